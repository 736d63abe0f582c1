"""COMMENT ON a schema, a relation or a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...lake import evolution as evolve
from ...lake.errors import NotFoundError, UnsupportedError
from ...lake.snapshot import Table, View
from ...lake.types import find_path
from ..change.command_context import CommandContext
from ..sql import statements as st
from ..sql.views import COLUMNS_TAG, columns_tag, view_columns


def comment_on(context: CommandContext, statement: st.CommentOn) -> int:
    if statement.kind == "schema":
        context.transaction.set_schema_comment(statement.name[-1], statement.comment)
        return 0
    if statement.kind == "column":
        view = context.find(statement.name[:-1])
        if isinstance(view, View):
            context.transaction.set_tags(view, _with_column_comment(view, statement.name[-1], statement.comment))
            return 0
        table, path = _resolve_column(context, statement.name)
        context.transaction.alter_table(table, lambda t: evolve.set_column_comment(t, path, statement.comment))
        return 0
    relation = context.relation(statement.name)
    context.transaction.set_tags(relation, evolve.with_comment(relation.tags, statement.comment))
    return 0


def _with_column_comment(view: View, column: str, comment: str | None) -> tuple[tuple[str, str], ...]:
    columns = view_columns(view)
    if columns is None:
        raise UnsupportedError(f"the columns of view {view.name}, which another engine created, take no comments")
    if not any(c.name.lower() == column.lower() for c in columns):
        raise NotFoundError(f"view {view.name} has no column {column}; it has {', '.join(c.name for c in columns)}")
    columns = [replace(c, comment=comment) if c.name.lower() == column.lower() else c for c in columns]
    return tuple(sorted({**dict(view.tags), COLUMNS_TAG: columns_tag(columns)}.items()))


def _resolve_column(context: CommandContext, name: Sequence[str]) -> tuple[Table, tuple[str, ...]]:
    """The table and the column path of a dotted name. The longest prefix that names a table is the table."""
    for length in (3, 2, 1):
        if length >= len(name):
            continue
        found = context.query_context.resolve_name(name[:length])
        if found is None or found[0] is not context.lake or context.state.find_schema(found[1]) is None:
            continue
        relation = context.state.find_relation(found[1], found[2])
        if isinstance(relation, Table) and find_path(relation.columns, tuple(name[length:])):
            return relation, tuple(name[length:])
    raise NotFoundError(f"there is no column {'.'.join(name)}")
