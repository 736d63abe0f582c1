"""CommandContext: what the function of a statement works with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from ...lake.arrow_types import has_plain_type
from ...lake.commit.staged import CommitInfo
from ...lake.errors import LakeError, NotFoundError
from ...lake.files import NewDataFile, count_files
from ...lake.inlined import has_rows
from ...lake.inlined_inserts import NewInlinedRows, takes_inserts
from ...lake.snapshot import LakeState, Macro, Schema, Table, View
from ...lake.transaction import Transaction
from ..read.context import QueryContext
from ..read.lakes import Lake
from ..read.planner import Planner
from ..sql.translation.to_spark.macros import macros_in
from ..write.data_files import check_rows_not_null
from ..write.local_files import can_write_locally, write_local_file
from ..write.small_results import collect_if_small
from ..write.target import WriteTarget
from ..write.writer import to_table_schema, write_dataframe, write_plain_rows


@dataclass
class CommandContext:
    """The transaction that a statement stages its changes in, with names, queries and writes in it."""

    query_context: QueryContext
    planner: Planner
    transaction: Transaction
    lake: Lake
    in_transaction: bool
    """Whether a transaction was running before the statement. Otherwise the statement is a snapshot of its own."""
    notes: list[str] = field(default_factory=list)
    """What the response to the statement says besides its snapshot, such as `Spark only`."""

    @property
    def state(self) -> LakeState:
        """The lake as the transaction sees it."""
        return self.transaction.state

    def resolve_name(self, name: Sequence[str]) -> tuple[Schema, str]:
        """The schema of a dotted name, and its last part. Raises if this lake has no such schema."""
        found = self.query_context.resolve_name(name)
        if found is None or found[0] is not self.lake:
            raise NotFoundError(f"{'.'.join(name)} is no name in lake {self.lake.name}; write schema.table")
        _, schema, last = found
        return self.query_context.schema(self.lake, schema), last

    def relation(self, name: Sequence[str]) -> Table | View:
        lake, _, relation = self.query_context.relation(name)
        if lake is not self.lake:
            raise NotFoundError(f"{'.'.join(name)} is no name in lake {self.lake.name}; write schema.table")
        return relation

    def table(self, name: Sequence[str]) -> Table:
        relation = self.relation(name)
        if isinstance(relation, View):
            raise NotFoundError(f"{self.state.qualified_name(relation)} is a view, not a table")
        return relation

    def find(self, name: Sequence[str]) -> Table | View | None:
        """The table or view of a name; None if there is no such relation or schema."""
        found = self.query_context.resolve_name(name)
        return self.state.find_relation(found[1], found[2]) if found and found[0] is self.lake else None

    def set_commit_info(self, info: CommitInfo) -> None:
        """Sets the author and message of the running transaction. Raises if the statement runs on its own."""
        if not self.in_transaction or self.transaction.parent is None:
            raise LakeError("there is no transaction to give a message to: BEGIN one first")
        self.transaction.commit_info = self.transaction.parent.commit_info = info

    def query(self, sql: str, statement: str | None = None) -> DataFrame:
        """Plans a query. `statement` is what the author wrote, if the query is composed of parts of it."""
        return self.planner.query(sql, self.query_context, statement=statement)

    def write(
        self,
        rows: DataFrame,
        table: Table,
        row_id: str | None = None,
        kept_text: bool = False,
        may_inline: bool = True,
    ) -> int:
        """Writes rows into a table. Returns how many there were.

        New versions of existing rows have the row ids of the old versions in the column `row_id`. With `kept_text`,
        columns of which Spark cannot hold every value are text: see `sql.kept_text`.
        """
        target, bytes_per_row = self.write_target(table), self._bytes_per_row(table)
        if row_id is not None or kept_text or not all(map(has_plain_type, table.columns)):
            return self._append(table, write_dataframe(rows, target, bytes_per_row, row_id, kept_text))
        converted = to_table_schema(rows, table.columns)
        few: pa.Table | None = collect_if_small(converted)
        if few is None:
            limit = self._inlining_limit(target) if may_inline else 0
            written, few = write_plain_rows(converted, target, bytes_per_row, limit)
            if few is None:
                return self._append(table, written)
        return self.write_arrow(few, table, may_inline)

    def _inlining_limit(self, target: WriteTarget) -> int:
        """How many rows of a statement are inserted into the catalog."""
        if not takes_inserts(self.lake.catalog, target.table.columns):
            return 0
        return int(target.option("data_inlining_row_limit") or 0)

    def _bytes_per_row(self, table: Table) -> float | None:
        added = self.transaction.data_changes(table).added_files
        count = sum(f.record_count for f in added)
        return sum(f.file_size_bytes for f in added) / count if count else None

    def _append(self, table: Table, files: list[NewDataFile]) -> int:
        self.transaction.append(table, files)
        return sum(f.record_count for f in files)

    def write_arrow(self, rows: pa.Table, table: Table, may_inline: bool = True) -> int:
        """Writes an Arrow table into a table; a few rows of plain types without Spark.

        Rows of up to `data_inlining_row_limit` are inserted into the catalog, unless they may not be inlined.
        """
        if not len(rows):
            return 0
        target = self.write_target(table)
        if may_inline and len(rows) <= self._inlining_limit(target):
            inserted = NewInlinedRows.of(rows, table.columns)
            check_rows_not_null(inserted.rows, table)
            if inserted.can_be_stored:
                self.transaction.insert_inlined(table, inserted)
                return len(rows)
        if can_write_locally(rows, target):
            return self._append(table, write_local_file(rows, target))
        return self._append(table, write_dataframe(self.planner.arrow_dataframe(rows), target))

    def move_inlined_inserts_to_files(self, table: Table) -> None:
        """Writes data files for what the transaction has inserted into the catalog: before columns change."""
        for inserted in self.transaction.take_back_inlined_inserts(table):
            self.write_arrow(inserted.rows, table, may_inline=False)

    def is_in_parts(self, table: Table) -> bool:
        """Whether a table has several data files, or one and inlined rows, with what the transaction staged."""
        changes = self.transaction.data_changes(table)
        parts = len(changes.added_files) + bool(changes.inlined_inserts)
        if parts < 2 and table.id >= 0:
            with self.lake.catalog.read() as connection:
                parts += count_files(connection, table.id, self.transaction.base.id)
                if parts == 1:
                    parts += has_rows(connection, self.lake.catalog, table.id)
        return parts > 1

    def write_target(self, table: Table) -> WriteTarget:
        return WriteTarget(
            table=table,
            folder=self.state.table_folder(self.lake.catalog.data_path, table),
            options=self.transaction.options,
            store=self.lake.file_store,
            find_macro=self.find_macro,
        )

    def find_macro(self, name: Sequence[str]) -> Macro | None:
        """The macro that a name means for DuckDB, in the current schema."""
        return macros_in(self.state, self.lake.name, self.query_context.current_schema)(name)
