"""CREATE TABLE, DROP TABLE, DROP VIEW and TRUNCATE."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame

from ...lake.errors import AlreadyExistsError, NotFoundError
from ...lake.snapshot import Table
from ...lake.types import Column
from ..change.command_context import CommandContext
from ..sql import statements as st
from ..sql.defaults import encode_default
from ..sql.types import lake_column
from .table_settings import set_partition_keys, set_properties, set_sort_keys


def create_table(context: CommandContext, statement: st.CreateTable) -> int:
    schema, name = context.resolve_name(statement.name)
    found = context.state.find_relation(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is None and statement.must_exist:
        raise NotFoundError(f"there is no table {schema.name}.{name} to replace; use CREATE OR REPLACE TABLE")
    rows = context.query(statement.query) if statement.query is not None else None
    columns = _columns(statement, rows, name)
    if found is not None and not (statement.or_replace or statement.must_exist):
        raise AlreadyExistsError(f"{schema.name}.{name} already exists; use CREATE OR REPLACE TABLE, or IF NOT EXISTS")
    if isinstance(found, Table):
        table = context.transaction.replace_table(found, columns, statement.comment)
    else:
        if found is not None:
            context.transaction.drop(found)
        table = context.transaction.create_table(schema, name, columns, statement.comment)
    table = set_partition_keys(context, table, statement.partition_keys)
    table = set_sort_keys(context, table, statement.sort_keys)
    table = set_properties(context, table, dict(statement.properties))
    return context.write(rows, table) if rows is not None else 0


def _columns(statement: st.CreateTable, rows: DataFrame | None, table: str) -> tuple[Column, ...]:
    """The columns of a new table, from the statement's list or from its query."""
    if rows is None or statement.columns:
        return tuple(_column(d, table) for d in statement.columns)
    return tuple(lake_column(field) for field in rows.schema.fields)


def _column(definition: Any, table: str) -> Column:
    column: Column = definition.column
    if definition.default is None:
        return column
    value, kind = encode_default(definition.default, column, table)
    return replace(
        column,
        default_value=value,
        default_value_type=kind,
        initial_default=value if kind == "literal" else None,
    )


def create_table_like(context: CommandContext, statement: st.CreateTableLike) -> int:
    schema, name = context.resolve_name(statement.name)
    if context.state.find_relation(schema.name, name) is not None and statement.if_not_exists:
        return 0
    table = context.transaction.create_table_like(schema, name, context.table(statement.source))
    set_properties(context, table, dict(statement.properties))
    return 0


def drop(context: CommandContext, statement: st.Drop) -> int:
    if context.find(statement.name) is None:
        is_bare_view_name = statement.kind == "view" and len(statement.name) == 1
        if (is_bare_view_name and context.planner.drop_temporary_view(statement.name[0])) or statement.if_exists:
            return 0
    relation = context.relation(statement.name)
    kind = "table" if isinstance(relation, Table) else "view"
    if kind != statement.kind:
        raise NotFoundError(f"{'.'.join(statement.name)} is a {kind}, not a {statement.kind}: use DROP {kind.upper()}")
    context.transaction.drop(relation)
    return 0


def truncate(context: CommandContext, statement: st.Truncate) -> int:
    context.transaction.truncate(context.table(statement.name))
    return 0
