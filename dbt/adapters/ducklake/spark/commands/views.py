"""CREATE VIEW."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from ...lake.errors import AlreadyExistsError
from ...lake.snapshot import Schema, Table, View
from ..change.command_context import CommandContext
from ..sql import statements as st
from ..sql.name_reader import find_names
from ..sql.translation.relations import resolve_in
from ..sql.views import (
    COLUMNS_TAG,
    LAKE_TAG,
    SPARK_SQL_TAG,
    VIEW_SETTINGS,
    RecordedColumn,
    columns_tag,
    duckdb_view,
    is_unchanged,
    translated_columns,
)

logger = logging.getLogger(__name__)


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

    It is stored in DuckDB's SQL, with the query in Spark's SQL in a tag. An existing view that is the same stays as it
    is.
    """
    transaction = context.transaction
    before = transaction.staged
    if existing is not None:
        transaction.drop(existing)
    rows = context.query(query)  # an invalid query fails here, and not for the readers of the view
    fields = [(f.name, f.dataType) for f in rows.schema.fields]
    names = [*columns, *rows.columns[len(columns) :]]
    view_columns = [
        RecordedColumn(n, f.dataType.simpleString()) for n, f in zip(names, rows.schema.fields, strict=False)
    ]
    tags = {**tags, COLUMNS_TAG: columns_tag(view_columns), SPARK_SQL_TAG: query}
    if _names_lake(query, context.lake.name):
        tags[LAKE_TAG] = context.lake.name
    resolve = resolve_in(context.state, context.lake.name, context.query_context.current_schema, translated_columns)
    settings = {name: context.planner.spark.conf.get(name, None) for name in VIEW_SETTINGS}
    stored = duckdb_view(query, f"{schema.name}.{name}", fields, resolve, settings, names)
    if stored.spark_only is not None:
        context.notes.append("Spark only")
        logger.info("view %s.%s is Spark only: %s", schema.name, name, stored.spark_only)
    if isinstance(existing, View) and is_unchanged(existing, stored.sql, "duckdb", columns, tags):
        transaction.staged = before
        return
    transaction.create_view(schema, name, stored.sql, "duckdb", columns, tags)


def _names_lake(query: str, lake: str) -> bool:
    """Whether a query calls its lake by name."""
    names = find_names(query)
    dotted = [*(ref.parts for ref in names.relations), *(ref.parts for ref in names.calls)]
    return any(len(parts) > 1 and parts[0].lower() == lake.lower() for parts in dotted)
