"""INSERT: by position, by name, with a schema merge, and as an overwrite."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as s

from ...lake.arrow_types import arrow_type
from ...lake.errors import NotFoundError, SchemaChangeError
from ...lake.snapshot import Table
from ...lake.types import find_path
from ..sql import statements as st
from ..sql.defaults import default_sql
from ..sql.literal_rows import literal_rows
from ..sql.quoting import quoted
from .command_context import CommandContext
from .literal_casts import cast_literal_columns, with_cast
from .overwrite import insert_overwrite
from .schema_merge import merge_schema


def insert(context: CommandContext, statement: st.Insert) -> int:
    table = context.table(statement.name)
    literals = _literal_rows(table, statement)
    if literals is not None:
        return context.write_arrow(literals, table)
    rows = context.query(statement.full_query, statement.text if statement.with_clause else None)
    rows = cast_literal_columns(rows, statement.query, table, _target_columns(rows.columns, table, statement))
    if statement.schema_evolution:
        table = merge_schema(context, table, _table_fields(rows, table, statement))
    rows = _table_rows(rows, table, statement)
    return insert_overwrite(context, statement, table, rows) if statement.is_overwrite else context.write(rows, table)


def _literal_rows(table: Table, statement: st.Insert) -> pa.Table | None:
    """The rows of INSERT ... VALUES of literals with a value for each column; None for all that needs Spark."""
    if statement.is_overwrite or statement.by_name or statement.schema_evolution or statement.partition:
        return None
    paths = [find_path(table.columns, (name,)) for name in _target_columns([], table, statement)]
    columns = [path[0] for path in paths if path is not None]
    given = {c.id for c in columns}
    others = [c for c in table.columns if c.id not in given]
    if len(given) != len(paths) or any(c.default_value is not None for c in others):
        return None
    rows = literal_rows(statement.query, columns)
    if rows is None:
        return None
    for column in others:
        rows = rows.append_column(column.name, pa.nulls(len(rows), arrow_type(column)))
    return rows


def _table_fields(rows: DataFrame, table: Table, statement: st.Insert) -> list[s.StructField]:
    """The columns of a query under the names of the table's columns. Additional columns keep their own names."""
    targets = _target_columns(rows.columns, table, statement)
    if statement.columns is not None:
        for name in targets:
            table.column(name)  # a column list may only have columns that exist
    names = [*targets, *rows.columns[len(targets) :]]
    return [s.StructField(name, f.dataType) for name, f in zip(names, rows.schema.fields, strict=False)]


def _target_columns(query_columns: list[str], table: Table, statement: st.Insert) -> list[str]:
    """The columns of the table that the columns of a query are inserted into, in order."""
    if statement.by_name:
        return query_columns
    if statement.columns is not None:
        return list(statement.columns)
    return [c.name for c in table.columns if c.name.lower() not in _static_values(statement)]


def _static_values(statement: st.Insert) -> dict[str, str]:
    """The values in the PARTITION clause, by column in lower case."""
    return {p.column.lower(): p.expression for p in statement.partition if p.expression is not None}


def _table_rows(rows: DataFrame, table: Table, statement: st.Insert) -> DataFrame:
    """The rows of a query with all columns of the table: static partition values and defaults fill in the rest."""
    static, names = _static_values(statement), rows.columns
    targets = _target_columns(names, table, statement)
    if len(targets) != len(names):
        raise SchemaChangeError(
            f"table {table.name} takes {len(targets)} columns here ({', '.join(targets)}), but the query gives"
            f" {len(names)} ({', '.join(names)}); list the columns, or use INSERT INTO ... BY NAME"
        )
    index_of: dict[str, int] = {}
    for index, name in enumerate(targets):
        column = find_path(table.columns, (name,))
        if column is None:
            raise NotFoundError(
                f"table {table.name} has no column {name}; it has {', '.join(c.name for c in table.columns)}"
            )
        if column[0].name in index_of:
            raise SchemaChangeError(f"column {name} of table {table.name} is given twice")
        index_of[column[0].name] = index
    rows = rows.toDF(*(f"_lake_{i}" for i in range(len(names))))
    values = (
        f"_lake_{index_of[c.name]}"
        if c.name in index_of
        else with_cast(static.get(c.name.lower()) or default_sql(c), (c,), table)
        for c in table.columns
    )
    return rows.selectExpr(*(f"{value} as {quoted(c.name)}" for value, c in zip(values, table.columns, strict=True)))
