"""CommandContext: what the function of a statement works with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from ...lake.commit.staged import CommitInfo
from ...lake.errors import LakeError, NotFoundError
from ...lake.files import count_files
from ...lake.snapshot import LakeState, Macro, Schema, Table, View
from ...lake.transaction import Transaction
from ..read.context import QueryContext
from ..read.lakes import Lake
from ..read.planner import Planner
from ..sql.translation.to_spark.macros import macros_in
from ..write.local_files import can_write_locally, write_local_file
from ..write.target import WriteTarget
from ..write.writer import write_dataframe


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

    def write(self, rows: DataFrame, table: Table, row_id: str | None = None, kept_text: bool = False) -> int:
        """Writes rows into a table. Returns how many there were.

        New versions of existing rows have the row ids of the old versions in the column `row_id`. With `kept_text`,
        columns of which Spark cannot hold every value are text: see `sql.kept_text`.
        """
        added = self.transaction.data_changes(table).added_files
        count = sum(f.record_count for f in added)
        bytes_per_row = sum(f.file_size_bytes for f in added) / count if count else None
        files = write_dataframe(rows, self.write_target(table), bytes_per_row, row_id, kept_text)
        self.transaction.append(table, files)
        return sum(f.record_count for f in files)

    def write_arrow(self, rows: pa.Table, table: Table) -> int:
        """Writes an Arrow table into a table; a few rows of plain types without Spark."""
        target = self.write_target(table)
        if not can_write_locally(rows, target):
            return self.write(self.planner.arrow_dataframe(rows), table)
        files = write_local_file(rows, target)
        self.transaction.append(table, files)
        return sum(f.record_count for f in files)

    def file_count(self, table: Table) -> int:
        """The number of a table's data files, with those that the transaction staged."""
        staged = len(self.transaction.data_changes(table).added_files)
        if table.id < 0:
            return staged
        with self.lake.catalog.read() as connection:
            return staged + count_files(connection, table.id, self.transaction.base.id)

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
