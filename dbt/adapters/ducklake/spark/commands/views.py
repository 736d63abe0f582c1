"""CREATE VIEW."""

from __future__ import annotations

from ...lake.errors import AlreadyExistsError
from ..change.command_context import CommandContext
from ..sql import statements as st

# -- views


def create_view(context: CommandContext, statement: st.CreateView) -> int:
    schema, name = context.place(statement.name)
    found = context.state.find(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is not None and not statement.or_replace:
        raise AlreadyExistsError(f"{schema.name}.{name} already exists; use CREATE OR REPLACE VIEW, or IF NOT EXISTS")
    tags = dict(statement.properties)
    if statement.comment is not None:
        tags["comment"] = statement.comment
    context.put_view(found, schema, name, statement.query, tuple(c.name for c in statement.columns), tags)
    return 0
