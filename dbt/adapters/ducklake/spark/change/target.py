"""The table whose rows a statement changes: the query over it, and the new versions of its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake.errors import NotFoundError
from ...lake.predicates import Read
from ...lake.snapshot import Table
from ...lake.types import Column, find_path
from ..read.local_rows import few
from ..read.planner import Changing
from ..read.scan import FILE, OWN_ROW_ID, POSITION, TableScan, file_keys
from ..sql import statements as st
from ..sql.types import quoted
from .command_context import CommandContext

PLACE = (FILE, POSITION, OWN_ROW_ID)
"""Where a row is, and the row id that it has of itself."""


@dataclass
class TargetTable:
    """The table that a statement changes, as its text calls it."""

    context: CommandContext
    table: Table
    name: str
    alias: str | None
    with_clause: str | None
    changing: Changing

    @classmethod
    def of(
        cls, context: CommandContext, name: Sequence[str], alias: str | None, with_clause: str | None
    ) -> TargetTable:
        return cls(context, context.table(name), st.quote_name(tuple(name)), alias, with_clause, Changing(0))

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
        return self.context.planner.query(sql, self.context.query_context, changing=self.changing, given=places)

    def read(self) -> Read | None:
        """What the rows that were looked at have in common, if that is known."""
        return None if self.changing.read is None else Read(self.changing.read, self.context.planner.time_zone)

    def old_columns(self, columns: Iterable[Column]) -> list[str]:
        return [f"{self.label}.{quoted(c.name)} as {old_name(c)}" for c in columns]

    def write_versions(self, rows: DataFrame) -> None:
        """Writes new versions of rows; these have the places of the old ones, which are to be taken away."""
        starts = [(key, f.row_id_start) for key, f in file_keys(self.scan.files).items() if f.id >= 0]
        known = few(rows.sparkSession, starts, _lake_key=pa.string(), _lake_start=pa.int64())
        row_id = F.coalesce(F.col(OWN_ROW_ID), F.col("_lake_start") + F.col(POSITION))
        rows = rows.join(F.broadcast(known), F.col(FILE) == F.col("_lake_key"), "left").withColumn("_lake_id", row_id)
        if all(f.id >= 0 for f in self.scan.files):
            self.context.transaction.updates(self.table, self.write(rows, row_id="_lake_id"))
            return
        # What this transaction inserted has no row id yet: its new version is what it inserts.
        self.write(rows.where(F.col("_lake_id").isNull()))
        there = rows.where(F.col("_lake_id").isNotNull())
        self.context.transaction.updates(self.table, self.write(there, row_id="_lake_id"))

    def write(self, rows: DataFrame, row_id: str | None = None) -> int:
        """Writes rows in files of a fair size, however many tasks computed them."""
        if self.table.partition is None and self.table.sort is None:
            rows = rows.hint("rebalance")
        return self.context.write(rows, self.table, row_id)

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
