"""DELETE and UPDATE, and what every change of rows needs: old rows are masked, their new versions keep the row ids.

What a statement does to each row is one Spark plan over the table and the source. Its result is
computed once and kept by Spark, since it is used twice: for the rows to write, and for the places of
the rows that go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.errors import NotFoundError, SchemaChangeError
from ...lake.predicates import Read
from ...lake.snapshot import Table
from ...lake.types import Column, find_path
from ..read.deletion_masks import FEW_POSITIONS, few_deleted
from ..read.parquet import few
from ..read.planner import Changing
from ..read.scan import FILE, OWN_ROW_ID, POSITION, TableScan, file_keys
from ..sql import statements as st
from ..sql.defaults import default_sql
from ..sql.safe_predicates import is_harmless
from ..sql.types import query_type, quoted
from .command_context import Scope
from .position_deletes import Places, fit_driver, take_away

PLACE = (FILE, POSITION, OWN_ROW_ID)
"""Where a row is, and the row id that it has of itself."""


def delete(scope: Scope, statement: st.Delete) -> int:
    target = Target.of(scope, statement.name, statement.alias, statement.with_clause)
    if statement.condition is None:
        scan = scope.lake.scan(target.table, scope.transaction.base, scope.state, transaction=scope.transaction)
        scope.transaction.truncate(target.table)
        return sum(f.live_rows for f in scan.files) + len(scan.inlined or ())
    if is_harmless(statement.condition, target.table.columns, statement.alias or target.table.name):
        target.changing.deleted_too = _may_be_deleted
    rows = target.select([FILE, POSITION], f"where {statement.condition}")
    if target.changing.deleted_too(target.scan):
        places = Places.of_living(rows, target.scan, scope.lake.storage)
    else:
        places = Places.of(rows, target.scan, computed=False)
    return take_away(scope, target.table, target.scan, places)


def _may_be_deleted(scan: TableScan) -> bool:
    """Whether the driver, sooner than Spark, leaves out rows that are deleted already."""
    return fit_driver(scan) and few_deleted(scan.files, FEW_POSITIONS)


def update(scope: Scope, statement: st.Update) -> int:
    target = Target.of(scope, statement.name, statement.alias, statement.with_clause)
    new = Assigned.of(target, statement.assignments)
    where = "" if statement.condition is None else f"where {statement.condition}"
    rows = target.select([*PLACE, *target.old_columns(new.kept), *new.values("value")], where).localCheckpoint()
    target.write_versions(new.rows(rows, "value"))
    return take_away(scope, target.table, target.scan, Places.of(rows.select(FILE, POSITION), target.scan))


@dataclass
class Target:
    """The table that a statement changes, as its text calls it."""

    scope: Scope
    table: Table
    name: str
    alias: str | None
    with_clause: str | None
    changing: Changing

    @classmethod
    def of(cls, scope: Scope, name: Sequence[str], alias: str | None, with_clause: str | None) -> Target:
        return cls(scope, scope.table(name), st.quote_name(tuple(name)), alias, with_clause, Changing(0))

    @property
    def label(self) -> str:
        """What its columns are qualified with."""
        return quoted(self.alias) if self.alias else self.name

    @property
    def text(self) -> str:
        """What stands in FROM."""
        return self.name if self.alias is None else f"{self.name} as {quoted(self.alias)}"

    @property
    def scan(self) -> TableScan:
        assert self.changing.scan is not None
        return self.changing.scan

    def select(self, columns: Iterable[str], rest: str, given: dict[str, str] | None = None) -> DataFrame:
        """Rows of the table, with what follows its name in the query.

        `given` are temporary views for relations by their text, which `rest` has once after a blank.
        """
        head = f"{self.with_clause or ''} select {', '.join(columns)} from "
        self.changing.start = len(head)
        sql = f"{head}{self.text} {rest}"
        behind = len(head) + len(self.text)
        places = {sql.index(f" {text}", behind) + 1: view for text, view in (given or {}).items()}
        return self.scope.planner.query(sql, self.scope.context, changing=self.changing, given=places)

    def read(self) -> Read | None:
        """What the rows that were looked at have in common, if that is known."""
        return None if self.changing.read is None else Read(self.changing.read, self.scope.planner.time_zone)

    def old_columns(self, columns: Iterable[Column]) -> list[str]:
        return [f"{self.label}.{quoted(c.name)} as {old_name(c)}" for c in columns]

    def write_versions(self, rows: DataFrame) -> None:
        """Writes new versions of rows; these have the places of the old ones, which are to be taken away."""
        starts = [(key, f.row_id_start) for key, f in file_keys(self.scan.files).items() if f.id >= 0]
        known = few(rows.sparkSession, starts, _lake_key=pa.string(), _lake_start=pa.int64())
        row_id = F.coalesce(F.col(OWN_ROW_ID), F.col("_lake_start") + F.col(POSITION))
        rows = rows.join(F.broadcast(known), F.col(FILE) == F.col("_lake_key"), "left").withColumn("_lake_id", row_id)
        if all(f.id >= 0 for f in self.scan.files):
            self.scope.transaction.updates(self.table, self.write(rows, row_id="_lake_id"))
            return
        # What this transaction inserted has no row id yet: its new version is what it inserts.
        self.write(rows.where(F.col("_lake_id").isNull()))
        there = rows.where(F.col("_lake_id").isNotNull())
        self.scope.transaction.updates(self.table, self.write(there, row_id="_lake_id"))

    def write(self, rows: DataFrame, row_id: str | None = None) -> int:
        """Writes rows in files of a fair size, however many tasks computed them."""
        if self.table.partition is None and self.table.sort is None:
            rows = rows.hint("rebalance")
        return self.scope.write(rows, self.table, row_id)

    def column(self, name: Sequence[str], what: str) -> tuple[Column, ...]:
        """The column or field that a statement assigns to, as a path."""
        for start in range(len(name)):
            if start and name[start - 1].lower() not in ((self.alias or "").lower(), self.table.name.lower()):
                continue
            path = find_path(self.table.columns, tuple(name[start:]))
            if path is not None:
                return tuple(path)
        there = ", ".join(c.name for c in self.table.columns)
        raise NotFoundError(f"{what} names {'.'.join(name)}, which table {self.table.name} has not; it has {there}")


def old_name(column: Column) -> str:
    """What the value that a column had is called in a query of a change."""
    return f"_lake_old_{column.id}"


@dataclass
class Assigned:
    """The values that a statement gives to columns and fields of a row."""

    target: Target
    paths: list[tuple[Column, ...]]
    expressions: list[str]

    @classmethod
    def of(cls, target: Target, assignments: Sequence[st.Assignment]) -> Assigned:
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
