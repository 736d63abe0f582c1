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
from ..sql.defaults import default_sql
from ..sql.types import query_type, quoted
from .target import PLACE, TargetTable, old_name


@dataclass
class Assigned:
    """The values that a statement gives to columns and fields of a row."""

    target: TargetTable
    paths: list[tuple[Column, ...]]
    expressions: list[str]

    @classmethod
    def of(cls, target: TargetTable, assignments: Sequence[st.Assignment]) -> Assigned:
        paths = [target.column(a.column, "SET") for a in assignments]
        for index, path in enumerate(paths):
            for other in paths[:index]:
                if path[: len(other)] == other[: len(path)]:
                    raise SchemaChangeError(f"SET gives {'.'.join(c.name for c in path)} two values; give it one")
        return cls(target, paths, [or_default(a.expression, p) for a, p in zip(assignments, paths, strict=True)])

    @property
    def kept(self) -> list[Column]:
        """The columns of which something of the old value stays."""
        replaced = {path[0].id for path in self.paths if len(path) == 1}
        return [c for c in self.target.table.columns if c.id not in replaced]

    def values(self, stem: str, condition: str | None = None) -> list[str]:
        """What a query selects to have the values, computed only where the condition holds."""
        return [
            f"{e if condition is None else f'case when {condition} then {e} end'} as _lake_{stem}_{i}"
            for i, e in enumerate(self.expressions)
        ]

    def rows(self, rows: DataFrame, stem: str) -> DataFrame:
        """The new rows, with the places of the old ones."""
        columns: dict[int, SparkColumn] = {c.id: F.col(old_name(c)) for c in self.kept}
        for index, path in enumerate(self.paths):
            value = F.col(f"_lake_{stem}_{index}")
            if len(path) == 1:
                columns[path[0].id] = value
                continue
            field = ".".join(quoted(c.name) for c in path[1:])
            columns[path[0].id] = columns[path[0].id].withField(field, value)
        rows = rows.select(*PLACE, *(columns[c.id].alias(c.name) for c in self.target.table.columns))
        return stored(rows, self.target.table, PLACE)


def stored(rows: DataFrame, table: Table, besides: Sequence[str] = ()) -> DataFrame:
    """The rows with the types of the table's columns, by Spark's rules of what may be stored into what."""
    kept = [rows.schema[name] for name in besides]
    return rows.to(s.StructType([*kept, *(s.StructField(c.name, query_type(c), True) for c in table.columns)]))


def or_default(expression: str, path: Sequence[Column]) -> str:
    """The SQL for a value, which may be the word DEFAULT."""
    if expression.strip().lower() != "default":
        return expression
    return default_sql(path[0]) if len(path) == 1 else "null"
