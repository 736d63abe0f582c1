"""The target table of DELETE, UPDATE, MERGE and overwrites: queries over its rows, and their new versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake.errors import NotFoundError
from ...lake.predicates import ReadPredicate
from ...lake.snapshot import Table
from ...lake.types import Column, find_path
from ..read.local_rows import small_dataframe
from ..read.planner import ChangedRelation
from ..read.scan import FILE, OWN_ROW_ID, POSITION, TableScan
from ..sql import statements as st
from ..sql.kept_text import is_kept_as_text, kept_text_name
from ..sql.quoting import quoted, quoted_name
from .command_context import CommandContext

ROW_POSITION = (FILE, POSITION, OWN_ROW_ID)
"""The columns that say where a row is: its file, its position in it, and the row id that the file stores for it."""


@dataclass
class TargetTable:
    """The table that a statement changes, with the name and alias that its conditions use."""

    context: CommandContext
    table: Table
    name: str
    alias: str | None
    with_clause: str | None
    statement: str
    """The author's statement, which errors in its queries quote."""
    changed_relation: ChangedRelation

    @classmethod
    def of(cls, context: CommandContext, statement: st.Insert | st.Update | st.Delete | st.Merge) -> TargetTable:
        return cls(
            context,
            context.table(statement.name),
            quoted_name(statement.name),
            statement.alias,
            statement.with_clause,
            statement.text,
            ChangedRelation(0),
        )

    @property
    def qualifier(self) -> str:
        """What qualifies its columns in SQL."""
        return quoted(self.alias) if self.alias else self.name

    @property
    def from_item(self) -> str:
        """The table as it stands in FROM."""
        return self.name if self.alias is None else f"{self.name} as {quoted(self.alias)}"

    @property
    def scan(self) -> TableScan:
        assert self.changed_relation.scan is not None
        return self.changed_relation.scan

    def select(self, columns: Iterable[str], rest: str, views: Mapping[str, str] | None = None) -> DataFrame:
        """Runs `select columns from target rest`, where `rest` is a join or a WHERE clause.

        `views` maps relations that `rest` names to temporary views that replace them. `rest` names each once, after
        a space.
        """
        head = f"{self.with_clause or ''} select {', '.join(columns)} from "
        self.changed_relation.name_position = len(head)
        sql = f"{head}{self.from_item} {rest}"
        rest_start = len(head) + len(self.from_item)
        views_at = {sql.index(f" {relation}", rest_start) + 1: view for relation, view in (views or {}).items()}
        return self.context.planner.query(
            sql,
            self.context.query_context,
            changed_relation=self.changed_relation,
            views_at=views_at,
            statement=self.statement,
        )

    def read_predicate(self) -> ReadPredicate | None:
        """A predicate that holds for every row that the last query had to read; None if none is known."""
        predicate = self.changed_relation.read_predicate
        return None if predicate is None else ReadPredicate(predicate, self.context.planner.time_zone)

    def old_value_columns(self, columns: Iterable[Column]) -> list[str]:
        """The current values of columns as SELECT expressions, some of them as text: see `sql.kept_text`."""
        names = ((c, kept_text_name(c) if is_kept_as_text(c) else c.name) for c in columns)
        return [f"{self.qualifier}.{quoted(name)} as {old_value_column(c)}" for c, name in names]

    def write_new_versions(self, rows: DataFrame) -> None:
        """Writes new versions of rows, which keep their row ids. Deleting the old versions is left to the caller.

        `rows` has the columns of the table, some of them as text, and `ROW_POSITION` of the old versions.
        """
        starts = [(key, f.row_id_start) for key, f in self.scan.files_by_key.items() if f.id >= 0]
        files = small_dataframe(rows.sparkSession, starts, _lake_key=pa.string(), _lake_start=pa.int64())
        row_id = F.coalesce(F.col(OWN_ROW_ID), F.col("_lake_start") + F.col(POSITION))
        rows = rows.join(F.broadcast(files), F.col(FILE) == F.col("_lake_key"), "left").withColumn("_lake_id", row_id)
        if not self.scan.has_staged_rows:
            self.context.transaction.record_updates(self.table, self._write_new_versions(rows, "_lake_id"))
            return
        # A row that this transaction inserted has no row id yet. Its new version counts as the inserted row.
        self._write_new_versions(rows.where(F.col("_lake_id").isNull()))
        committed = rows.where(F.col("_lake_id").isNotNull())
        self.context.transaction.record_updates(self.table, self._write_new_versions(committed, "_lake_id"))

    def _write_new_versions(self, rows: DataFrame, row_id: str | None = None) -> int:
        return self.context.write(self._rebalanced(rows), self.table, row_id, kept_text=True)

    def write(self, rows: DataFrame) -> int:
        """Writes new rows."""
        return self.context.write(self._rebalanced(rows), self.table)

    def _rebalanced(self, rows: DataFrame) -> DataFrame:
        """The rows, for files of a reasonable size however many tasks computed them."""
        return rows.hint("rebalance") if self.table.partition is None and self.table.sort is None else rows

    def column_path(self, name: Sequence[str], clause: str) -> tuple[Column, ...]:
        """The column or nested field that a clause of the statement assigns to, as a path."""
        for start in range(len(name)):
            if start and name[start - 1].lower() not in ((self.alias or "").lower(), self.table.name.lower()):
                continue
            path = find_path(self.table.columns, tuple(name[start:]))
            if path is not None:
                return tuple(path)
        columns = ", ".join(c.name for c in self.table.columns)
        raise NotFoundError(f"{clause} names {'.'.join(name)}, which table {self.table.name} has not; it has {columns}")


def old_value_column(column: Column) -> str:
    """The name under which a query of a change returns the current value of a column."""
    return f"_lake_old_{column.id}"
