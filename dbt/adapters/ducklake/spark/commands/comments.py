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
from ..sql.quoting import quoted
from ..sql.views import COLUMNS_TAG, columns_tag, view_columns


def comment_on(context: CommandContext, statement: st.CommentOn) -> int:
    if statement.kind == "schema":
        context.transaction.set_schema_comment(statement.name[-1], statement.comment)
        return 0
    if statement.kind == "column":
        view = context.find(statement.name[:-1])
        if isinstance(view, View):
            _set_view_column_comment(context, view, statement.name[-1], statement.comment)
            return 0
        table, path = _resolve_column(context, statement.name)
        context.transaction.alter_table(table, lambda t: evolve.set_column_comment(t, path, statement.comment))
        return 0
    relation = context.relation(statement.name)
    context.transaction.set_tags(relation, evolve.with_comment(relation.tags, statement.comment))
    return 0


def _set_view_column_comment(context: CommandContext, view: View, name: str, comment: str | None) -> None:
    """Sets the comment of a view's column: as the format has it, or in the tag of columns in lakes of version 1.0."""
    recorded = view_columns(view)
    in_format = context.lake.catalog.format.view_column_tag is not None
    if recorded is None and not in_format:
        raise UnsupportedError(f"the columns of view {view.name}, which another engine created, take no comments")
    if recorded is not None:
        names = [c.name for c in recorded]
    else:
        qualified = (context.lake.name, context.state.schema_of(view).name, view.name)
        names = context.query(f"select * from {'.'.join(map(quoted, qualified))}").columns
    column = next((n for n in names if n.lower() == name.lower()), None)
    if column is None:
        raise NotFoundError(f"view {view.name} has no column {name}; it has {', '.join(names)}")
    if recorded is not None:
        columns = [replace(c, comment=None if in_format else comment) if c.name == column else c for c in recorded]
        tags = {**dict(view.tags), COLUMNS_TAG: columns_tag(columns)}
        context.transaction.set_tags(view, tuple(sorted(tags.items())))
    if in_format:
        column_tags = evolve.with_comment(dict(view.column_tags).get(column, ()), comment)
        context.transaction.set_column_tags(view, column, column_tags)


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
