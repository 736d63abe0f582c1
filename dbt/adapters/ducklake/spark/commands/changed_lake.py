"""The lake that a statement changes, from the first part of its name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...lake.missing_names import lake_not_found
from ..read.context import QueryContext
from ..sql import statements as st


def changed_lake(statement: Any, context: QueryContext) -> str:
    """The name in lower case. Raises if the statement names a lake that is not attached."""
    name: Sequence[str] = getattr(statement, "name", ())
    if isinstance(statement, st.Restore) and statement.kind != "schema":
        resolved = context.resolve_name(name)
        return context.current_lake if resolved is None else resolved[0].name.lower()
    names_lake = len(name) >= _full_length(statement) or (isinstance(statement, st.Call) and len(name) == 2)
    if names_lake and name[0].lower() in context.lakes:
        return name[0].lower()
    if len(name) == _full_length(statement):
        raise lake_not_found(name[0], context.lakes)
    return context.current_lake


def _full_length(statement: Any) -> int:
    """How many parts the name of what a statement changes has, with the lake."""
    kind = getattr(statement, "kind", None)
    if isinstance(statement, st.CreateSchema | st.DropSchema):
        return 2
    if isinstance(statement, st.CommentOn | st.Restore) and kind == "schema":
        return 2
    return 4 if isinstance(statement, st.CommentOn) and kind == "column" else 3
