"""CREATE VIEW."""

from __future__ import annotations

from collections.abc import Mapping

from ...lake.errors import AlreadyExistsError
from ...lake.snapshot import Schema, Table, View
from ..change.command_context import CommandContext
from ..sql import statements as st
from ..sql.views import COLUMNS_TAG, SPARK_SQL_TAG, RecordedColumn, columns_tag, duckdb_sql, is_unchanged


def create_view(context: CommandContext, statement: st.CreateView) -> int:
    schema, name = context.resolve_name(statement.name)
    found = context.state.find_relation(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is not None and not statement.or_replace:
        raise AlreadyExistsError(f"{schema.name}.{name} already exists; use CREATE OR REPLACE VIEW, or IF NOT EXISTS")
    tags = dict(statement.properties)
    if statement.comment is not None:
        tags["comment"] = statement.comment
    columns = tuple(c.name for c in statement.columns)
    create_or_replace_view(context, found, schema, name, statement.query, columns, tags)
    return 0


def create_or_replace_view(
    context: CommandContext,
    existing: Table | View | None,
    schema: Schema,
    name: str,
    query: str,
    columns: tuple[str, ...],
    tags: Mapping[str, str],
) -> None:
    """Stages a view in place of the existing relation of its name.

    The view has DuckDB SQL if the query can be translated, with the Spark SQL in a tag. Otherwise it has Spark SQL.
    An existing view that is the same stays as it is.
    """
    transaction = context.transaction
    before = transaction.staged
    if existing is not None:
        transaction.drop(existing)
    rows = context.query(query)  # an invalid query fails here, and not for the readers of the view
    names = [*columns, *rows.columns[len(columns) :]]
    view_columns = [
        RecordedColumn(n, f.dataType.simpleString()) for n, f in zip(names, rows.schema.fields, strict=False)
    ]
    tags = {**tags, COLUMNS_TAG: columns_tag(view_columns)}
    translated = duckdb_sql(query, context.lake.name, context.query_context.current_schema)
    sql, dialect = (query, "spark") if translated is None else (translated, "duckdb")
    if translated is not None:
        tags = {**tags, SPARK_SQL_TAG: query}
    if isinstance(existing, View) and is_unchanged(existing, sql, dialect, columns, tags):
        transaction.staged = before
        return
    transaction.create_view(schema, name, sql, dialect, columns, tags)
