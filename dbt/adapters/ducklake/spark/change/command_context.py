"""What a command works with: a transaction on one lake, and names and queries in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from ...lake.commit.staged import CommitInfo
from ...lake.errors import LakeError, NotFoundError
from ...lake.files import count_files
from ...lake.paths import spark_target
from ...lake.snapshot import LakeState, Schema, Table, View
from ...lake.transaction import Transaction
from ..read.context import QueryContext
from ..read.lakes import Lake
from ..read.planner import Planner
from ..sql.views import COLUMNS_TAG, SPARK_SQL_TAG, ViewColumn, columns_tag, duckdb_sql, is_same
from ..write.local_files import can_write, write_local
from ..write.target import WriteTarget
from ..write.writer import write


@dataclass
class CommandContext:
    """What a command works with: one lake's transaction, and the planner for its queries."""

    query_context: QueryContext
    planner: Planner
    transaction: Transaction
    lake: Lake
    in_transaction: bool
    """Whether the statement is one of several that become one snapshot."""

    @property
    def state(self) -> LakeState:
        """The lake as the transaction sees it."""
        return self.transaction.state

    def place(self, name: Sequence[str]) -> tuple[Schema, str]:
        """The schema that a name is in, which must be there, and its last part."""
        found = self.query_context.find(name)
        if found is None or found[0] is not self.lake:
            raise NotFoundError(f"{'.'.join(name)} is no name in lake {self.lake.name}; write schema.table")
        _, schema, last = found
        return self.state.schema(schema), last

    def relation(self, name: Sequence[str]) -> Table | View:
        schema, last = self.place(name)
        return self.state.relation(schema.name, last)

    def table(self, name: Sequence[str]) -> Table:
        schema, last = self.place(name)
        return self.state.table(schema.name, last)

    def find(self, name: Sequence[str]) -> Table | View | None:
        """The table or view of that name; None where there is none, or no such schema."""
        found = self.query_context.find(name)
        return self.state.find(found[1], found[2]) if found and found[0] is self.lake else None

    def commit_info(self, info: CommitInfo) -> None:
        """Says who commits the running transaction, and why."""
        if not self.in_transaction or self.transaction.parent is None:
            raise LakeError("there is no transaction to give a message to: BEGIN one first")
        self.transaction.commit_info = self.transaction.parent.commit_info = info

    def query(self, sql: str) -> DataFrame:
        return self.planner.query(sql, self.query_context)

    def put_view(
        self,
        found: Table | View | None,
        schema: Schema,
        name: str,
        query: str,
        columns: tuple[str, ...],
        tags: Mapping[str, str],
    ) -> None:
        """Stages a view: in DuckDB's words where its query can be said in them, with Spark's beside.

        It takes the place of what is found under its name; a view that is the same already stays.
        """
        before = self.transaction.staged
        if found is not None:
            self.transaction.drop(found)
        rows = self.query(query)  # an error in the query is met now, not by its readers
        names = [*columns, *rows.columns[len(columns) :]]
        noted = [ViewColumn(n, f.dataType.simpleString()) for n, f in zip(names, rows.schema.fields, strict=False)]
        tags = {**tags, COLUMNS_TAG: columns_tag(noted)}
        words = duckdb_sql(query, self.lake.name, self.query_context.schema)
        sql, dialect = (query, "spark") if words is None else (words, "duckdb")
        if words is not None:
            tags = {**tags, SPARK_SQL_TAG: query}
        if isinstance(found, View) and is_same(found, sql, dialect, columns, tags):
            self.transaction.staged = before
            return
        self.transaction.create_view(schema, name, sql, dialect, columns, tags)

    def write(self, rows: DataFrame, table: Table, row_id: str | None = None) -> int:
        """Writes rows into a table of the transaction; says how many they were.

        Those that are new versions of rows that were there have their row ids in the column `row_id`.
        """
        known = self.transaction.data(table)
        count = sum(f.record_count for f in known.added)
        per_row = sum(f.file_size_bytes for f in known.added) / count if count else None
        files = write(rows, self.target(table), per_row, row_id)
        self.transaction.append(table, files)
        return sum(f.record_count for f in files)

    def file_count(self, table: Table) -> int:
        """How many data files a table has."""
        known = len(self.transaction.data(table).added)
        if table.id < 0:
            return known
        with self.lake.catalog.read() as connection:
            return known + count_files(connection, table.id, self.transaction.base.id)

    def insert(self, rows: pa.Table, table: Table) -> int:
        """Writes rows that the driver has; a few plain ones without Spark."""
        target = self.target(table)
        if not can_write(rows, target):
            return self.write(self.planner.local(rows), table)
        files = write_local(rows, target)
        self.transaction.append(table, files)
        return sum(f.record_count for f in files)

    def target(self, table: Table) -> WriteTarget:
        return WriteTarget(
            table=table,
            folder=self.state.folder(self.lake.catalog.data_path, table),
            options=self.transaction.options,
            filesystem=self.lake.filesystem,
            native=self.lake.native_path,
            spark_target=spark_target,
        )
