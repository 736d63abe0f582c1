"""The values that UPDATE and MERGE assign to columns and nested fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.errors import SchemaChangeError
from ...lake.snapshot import Table
from ...lake.types import Column
from ..sql import statements as st
from ..sql.decoding import decode_as_text
from ..sql.defaults import default_sql
from ..sql.kept_text import as_text, is_kept_as_text
from ..sql.quoting import quoted
from ..sql.types import query_type
from ..write.geometry import with_wkb
from .literal_casts import with_cast
from .target import ROW_POSITION, TargetTable, old_value_column


@dataclass
class Assignments:
    """The SET clause of a statement: a value for each of some columns and nested fields."""

    target: TargetTable
    paths: list[tuple[Column, ...]]
    """Where each value goes: a column, or a column and the fields below it."""
    expressions: list[str]

    @classmethod
    def of(cls, target: TargetTable, assignments: Sequence[st.Assignment]) -> Assignments:
        paths = [target.column_path(a.column, "SET") for a in assignments]
        for index, path in enumerate(paths):
            for other in paths[:index]:
                if path[: len(other)] == other[: len(path)]:
                    raise SchemaChangeError(f"SET gives {'.'.join(c.name for c in path)} two values; give it one")
        values = [value_sql(a.expression, p, target.table) for a, p in zip(assignments, paths, strict=True)]
        return cls(target, paths, values)

    @property
    def kept_columns(self) -> list[Column]:
        """The columns that keep their old value, or some of its fields."""
        replaced = {path[0].id for path in self.paths if len(path) == 1}
        return [c for c in self.target.table.columns if c.id not in replaced]

    def value_columns(self, prefix: str, condition: str | None = None) -> list[str]:
        """The values as SELECT expressions. They are evaluated only where the condition holds."""
        return [
            f"{f'({e})' if condition is None else f'case when {condition} then ({e}) end'} as _lake_{prefix}_{i}"
            for i, e in enumerate(self.expressions)
        ]

    def new_rows(self, rows: DataFrame, prefix: str) -> DataFrame:
        """The new versions of rows, with the positions of the old ones, and some columns as text: see `sql.kept_text`.

        `rows` has the row positions, the old values of `kept_columns`, and `value_columns` of the same prefix.
        """
        columns: dict[int, SparkColumn] = {c.id: F.col(old_value_column(c)) for c in self.kept_columns}
        for index, path in enumerate(self.paths):
            value = F.col(f"_lake_{prefix}_{index}")
            if len(path) == 1:
                columns[path[0].id] = value
                continue
            field = ".".join(quoted(c.name) for c in path[1:])
            columns[path[0].id] = columns[path[0].id].withField(field, value)
        table = self.target.table
        rows = rows.select(*ROW_POSITION, *(columns[c.id].alias(c.name) for c in table.columns))
        kept = {c.id for c in self.kept_columns}
        rows = cast_to_table(rows, [as_text(c) if c.id in kept else c for c in table.columns], ROW_POSITION)
        values = {
            c.name: F.expr(decode_as_text(quoted(c.name), c, {}))
            for c in table.columns
            if is_kept_as_text(c) and c.id not in kept
        }
        return rows.withColumns(values) if values else rows


def cast_to_table(rows: DataFrame, columns: Sequence[Column], extra_columns: Sequence[str] = ()) -> DataFrame:
    """The rows with the types of a table's columns, by Spark's store assignment rules.

    `extra_columns` come first and keep their types.
    """
    extra = [rows.schema[name] for name in extra_columns]
    rows = with_wkb(rows, columns)
    return rows.to(s.StructType([*extra, *(s.StructField(c.name, query_type(c), True) for c in columns)]))


def value_sql(expression: str, path: Sequence[Column], table: Table) -> str:
    """The SQL of a value for a column or a nested field. A string literal is cast to its type.

    The word DEFAULT stands for the column's default. A nested field's is NULL.
    """
    if expression.strip().lower() != "default":
        return with_cast(expression, path, table)
    return default_sql(path[0]) if len(path) == 1 else "null"
