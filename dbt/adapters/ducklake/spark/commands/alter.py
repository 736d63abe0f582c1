"""ALTER TABLE and ALTER VIEW: a function for each action."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ...lake import evolution as evolve
from ...lake.errors import ConstraintError, NotFoundError, SchemaChangeError, UnsupportedError
from ...lake.options import OPTIONS
from ...lake.snapshot import Table, View
from ...lake.types import find_path
from ..change.command_context import CommandContext
from ..sql import alter as alters
from ..sql import statements as st
from ..sql.defaults import encode_default, encode_initial_default
from ..sql.quoting import quoted
from ..sql.views import COLUMNS_TAG, LAKE_TAG, SPARK_SQL_TAG, is_spark_only, renamed_sql
from .table_settings import set_partition_keys, set_properties, set_sort_keys
from .views import create_or_replace_view


def alter(context: CommandContext, statement: st.Alter) -> int:
    found = context.find(statement.name)
    if found is None:
        if statement.if_exists:
            return 0
        found = context.relation(statement.name)
    for action in statement.actions:
        relation = _current(context, found)
        if isinstance(relation, View):
            _alter_view(context, relation, action)
        else:
            _alter_table(context, relation, action)
    return 0


def _current(context: CommandContext, relation: Table | View) -> Table | View:
    """The relation with the earlier actions of the statement applied."""
    state = context.transaction.state
    return state.tables[relation.id] if isinstance(relation, Table) else state.views[relation.id]


def _alter_view(context: CommandContext, view: View, action: object) -> None:
    schema = context.state.schema_of(view)
    if isinstance(action, alters.RenameRelation):
        _rename(context, view, action)
    elif isinstance(action, alters.SetProperties):
        context.transaction.set_tags(view, tuple(sorted({**dict(view.tags), **dict(action.properties)}.items())))
    elif isinstance(action, alters.UnsetProperties):
        context.transaction.set_tags(view, tuple(t for t in view.tags if t[0] not in action.names))
    elif isinstance(action, alters.SetViewQuery):
        kept = {k: v for k, v in view.tags if k not in (SPARK_SQL_TAG, COLUMNS_TAG, LAKE_TAG)}
        create_or_replace_view(context, view, schema, view.name, action.query, (), kept)
    else:
        raise SchemaChangeError(f"{schema.name}.{view.name} is a view, and only a table can be changed so")


def _alter_table(context: CommandContext, table: Table, action: object) -> None:
    change = _ACTIONS.get(type(action))
    if change is None:  # MoveColumn
        raise UnsupportedError(
            f"columns of table {table.name} can not be moved: a DuckLake table has its columns in the order in"
            " which they were added; select them in the order you want"
        )
    if isinstance(action, _COLUMN_CHANGES):
        context.move_inlined_inserts_to_files(table)
    change(context, table, action)


def _rename(context: CommandContext, relation: Table | View, action: alters.RenameRelation) -> None:
    name = action.new_name
    schema = context.state.schema_of(relation) if len(name) == 1 else context.resolve_name(name)[0]
    old_name = context.state.qualified_name(relation)
    context.transaction.rename(relation, schema, name[-1])
    if isinstance(relation, View) and is_spark_only(relation):
        context.transaction.set_view_sql(relation, renamed_sql(relation, old_name, f"{schema.name}.{name[-1]}"))


def _add_column(context: CommandContext, table: Table, action: alters.AddColumn) -> None:
    definition = action.definition
    if action.position is not None:
        raise UnsupportedError(
            f"column {definition.column.name} can not be put at a place: a new column of a DuckLake table comes"
            " last; leave FIRST or AFTER out"
        )
    if action.if_not_exists and find_path(table.columns, (*action.parent, definition.column.name)):
        return
    column = definition.column
    if definition.default is not None:
        value = encode_initial_default(definition.default, column, table.name)
        column = replace(column, initial_default=value, default_value=value)
    if not column.nulls_allowed and column.initial_default is None and _has_rows(context, table):
        raise ConstraintError(
            f"column {column.name} can not be added to table {table.name} as NOT NULL: its rows have no value for"
            " it; give it a DEFAULT"
        )
    ids = context.transaction.column_ids(table)
    context.transaction.alter_table(table, lambda t: evolve.add_column(t, action.parent, column, ids))


def _has_rows(context: CommandContext, table: Table) -> bool:
    scan = context.lake.plan_scan(table, context.transaction.base, context.state, transaction=context.transaction)
    return bool(scan.files) or scan.inlined is not None


def _drop_column(context: CommandContext, table: Table, action: alters.DropColumn) -> None:
    if action.if_exists and find_path(table.columns, action.path) is None:
        return
    context.transaction.alter_table(table, lambda t: evolve.drop_column(t, action.path))


def _rename_column(context: CommandContext, table: Table, action: alters.RenameColumn) -> None:
    context.transaction.alter_table(table, lambda t: evolve.rename_column(t, action.path, action.new_name))


def _change_type(context: CommandContext, table: Table, action: alters.ChangeType) -> None:
    ids = context.transaction.column_ids(table)
    context.transaction.alter_table(table, lambda t: evolve.change_column_type(t, action.path, action.type, ids))


def _set_not_null(context: CommandContext, table: Table, action: alters.SetNotNull) -> None:
    new = evolve.set_not_null(table, action.path, True)
    column = table.column(*action.path)
    if not column.nulls_allowed:
        return
    name = f"{quoted(context.lake.name)}.{quoted(context.state.schema_of(table).name)}.{quoted(table.name)}"
    if _has_rows(context, table):
        nulls = context.query(f"select 1 from {name} where {quoted(column.name)} is null limit 1")
        if nulls.collect():
            raise ConstraintError(
                f"column {column.name} of table {table.name} can not be set NOT NULL: some of its rows have no"
                f" value for it; give them one, or look: select * from {name} where {quoted(column.name)} is null"
            )
    context.transaction.alter_table(table, lambda _: new)
    context.transaction.record_read(table)  # conflicts with a concurrent insert, which may hold a NULL


def _drop_not_null(context: CommandContext, table: Table, action: alters.DropNotNull) -> None:
    context.transaction.alter_table(table, lambda t: evolve.set_not_null(t, action.path, False))


def _set_default(context: CommandContext, table: Table, action: alters.SetDefault) -> None:
    value, kind = encode_default(action.expression, table.column(*action.path), table.name)
    context.transaction.alter_table(table, lambda t: evolve.set_default(t, action.path, value, kind))


def _drop_default(context: CommandContext, table: Table, action: alters.DropDefault) -> None:
    context.transaction.alter_table(table, lambda t: evolve.set_default(t, action.path, None))


def _comment_column(context: CommandContext, table: Table, action: alters.SetColumnComment) -> None:
    context.transaction.alter_table(table, lambda t: evolve.set_column_comment(t, action.path, action.comment))


def _set_partition_keys(context: CommandContext, table: Table, action: alters.SetPartitionKeys) -> None:
    set_partition_keys(context, table, action.keys)


def _set_sort_keys(context: CommandContext, table: Table, action: alters.SetSortKeys) -> None:
    set_sort_keys(context, table, action.keys)


def _set_properties(context: CommandContext, table: Table, action: alters.SetProperties) -> None:
    set_properties(context, table, dict(action.properties))


def _unset_properties(context: CommandContext, table: Table, action: alters.UnsetProperties) -> None:
    for name in action.names:
        if name.lower() in OPTIONS:
            if ("table", table.id, name.lower()) in context.transaction.options.values or not action.if_exists:
                context.transaction.set_option(name, None, table=table)
        elif name not in dict(table.tags) and not action.if_exists:
            raise NotFoundError(f"table {table.name} has no property {name}")
    context.transaction.set_tags(table, tuple(t for t in table.tags if t[0] not in action.names))


_COLUMN_CHANGES = (alters.AddColumn, alters.DropColumn, alters.RenameColumn, alters.ChangeType)

_ACTIONS: Mapping[type, Callable[[CommandContext, Table, Any], None]] = {
    alters.RenameRelation: _rename,
    alters.AddColumn: _add_column,
    alters.DropColumn: _drop_column,
    alters.RenameColumn: _rename_column,
    alters.ChangeType: _change_type,
    alters.SetNotNull: _set_not_null,
    alters.DropNotNull: _drop_not_null,
    alters.SetDefault: _set_default,
    alters.DropDefault: _drop_default,
    alters.SetColumnComment: _comment_column,
    alters.SetPartitionKeys: _set_partition_keys,
    alters.SetSortKeys: _set_sort_keys,
    alters.SetProperties: _set_properties,
    alters.UnsetProperties: _unset_properties,
}
