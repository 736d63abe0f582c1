"""Casts string literals to the types of the columns that they are written to.

Scripts write timestamps and numbers as text, as in `insert into t values ('2026-01-01 10:00:00')`. What a query reads
from a column is not cast: a text that is no timestamp in every row should be noticed when the query is written.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.snapshot import Table
from ...lake.types import Column, find_path
from ..sql.literal_columns import is_string_literal, literal_columns
from ..sql.quoting import string_literal
from ..sql.types import query_type


def cast_literal_columns(rows: DataFrame, query: str, table: Table, targets: Sequence[str]) -> DataFrame:
    """The rows of a query, with the columns cast that hold only literals, for the table's columns `targets`."""
    columns: dict[int, Column] = {}
    for index, (field, target) in enumerate(zip(rows.schema.fields, targets, strict=False)):
        path = find_path(table.columns, (target,))
        if path is not None and isinstance(field.dataType, s.StringType) and _takes_cast(path[0]):
            columns[index] = path[0]
    literals = literal_columns(query, len(rows.columns)) if columns else frozenset()
    if not literals & columns.keys():
        return rows
    names = [f"_lake_{i}" for i in range(len(rows.columns))]
    values = [
        F.expr(_cast(name, columns[i], (columns[i],), table)) if i in columns.keys() & literals else F.col(name)
        for i, name in enumerate(names)
    ]
    return rows.toDF(*names).select(*values).toDF(*rows.columns)


def with_cast(expression: str, path: Sequence[Column], table: Table) -> str:
    """The SQL of a value for a column, or for a nested field, which is cast if it is a string literal."""
    is_cast = is_string_literal(expression) and _takes_cast(path[-1])
    return _cast(expression, path[-1], path, table) if is_cast else expression


def _takes_cast(column: Column) -> bool:
    # A text for a geometry is WKT, and not the bytes of its characters.
    is_text = column.type == "geometry" or isinstance(query_type(column), s.StringType)
    return not column.children and not is_text


def _cast(sql: str, column: Column, path: Sequence[Column], table: Table) -> str:
    """The SQL that casts a string as Spark does in ANSI mode, with an error that names the column."""
    type_ = query_type(column).simpleString()
    name = ".".join(c.name for c in path)
    before = string_literal(f"column {name} of table {table.name}: the value '")
    behind = string_literal(f"' can not be cast to {type_}")
    error = f"raise_error(concat({before}, {sql}, {behind}))"
    return f"case when {sql} is not null then coalesce(try_cast({sql} as {type_}), {error}) end"
