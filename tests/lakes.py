"""Lakes, tables and rows for tests of the format, each made in a line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.arrow_types import arrow_type
from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.lake.commit.staged import CommitInfo
from dbt.adapters.ducklake.lake.files import NewDataFile
from dbt.adapters.ducklake.lake.parquet_footer import file_stats
from dbt.adapters.ducklake.lake.paths import new_data_file_name
from dbt.adapters.ducklake.lake.retry import Retry
from dbt.adapters.ducklake.lake.snapshot import LakeState, Table
from dbt.adapters.ducklake.lake.snapshot_loader import Snapshots, load_state
from dbt.adapters.ducklake.lake.transaction import Transaction
from dbt.adapters.ducklake.lake.types import Column

from . import reference

PATIENT = Retry(max_count=60, wait_ms=20, backoff=1.1)


@dataclass(frozen=True)
class LakeAddress:
    """Where a lake is: the same words for this package and for ATTACH."""

    kind: str
    catalog: str
    data_path: str


def column(name: str, kind: Any, **rest: Any) -> Column:
    """A column without an id: `kind` is a type's text, {field: kind}, [kind] or (key kind, value kind)."""
    if isinstance(kind, dict):
        return Column(0, name, "struct", children=tuple(column(n, k) for n, k in kind.items()), **rest)
    if isinstance(kind, list):
        return Column(0, name, "list", children=(column("element", kind[0]),), **rest)
    if isinstance(kind, tuple):
        return Column(0, name, "map", children=(column("key", kind[0]), column("value", kind[1])), **rest)
    return Column(0, name, kind, **rest)


def columns(**kinds: Any) -> tuple[Column, ...]:
    return tuple(column(name, kind) for name, kind in kinds.items())


class Lake:
    """A lake that a test works on, with a short word for each thing that tests do."""

    def __init__(self, address: LakeAddress, **settings: Any) -> None:
        self.address = address
        self.catalog = Catalog.open(address.catalog, address.data_path, **{"retry": PATIENT, **settings})
        self.snapshots = Snapshots(self.catalog)

    def begin(
        self, author: str | None = None, message: str | None = None, extra_info: str | None = None
    ) -> Transaction:
        transaction = Transaction.begin(self.catalog, self.snapshots)
        transaction.commit_info = CommitInfo(author, message, extra_info)
        return transaction

    @contextmanager
    def transaction(self, **info: Any) -> Iterator[Transaction]:
        transaction = self.begin(**info)
        yield transaction
        transaction.commit()

    def create(self, name: str = "t", schema: str = "main", **kinds: Any) -> Table:
        with self.transaction() as tx:
            tx.create_table(tx.state.schema(schema), name, columns(**(kinds or {"id": "int64", "name": "varchar"})))
        return self.table(name, schema)

    def append(self, rows: Mapping[str, list[Any]], name: str = "t", schema: str = "main") -> Table:
        with self.transaction() as tx:
            table = tx.state.table(schema, name)
            tx.append(table, [self.file(tx, table, rows)])
        return self.table(name, schema)

    def file(self, tx: Transaction, table: Table, rows: Mapping[str, list[Any]]) -> NewDataFile:
        """A Parquet file with these rows, where the table keeps its files."""
        return write_file(tx.state.table_folder(self.catalog.data_path, table), table, rows)

    @property
    def latest(self) -> int:
        with self.catalog.read() as connection:
            return self.catalog.latest_snapshot(connection).id

    @property
    def state(self) -> LakeState:
        """The newest state as the catalog holds it, past every cache."""
        with self.catalog.read() as connection:
            return load_state(connection, self.catalog, self.catalog.latest_snapshot(connection).id)

    def table(self, name: str = "t", schema: str = "main") -> Table:
        return self.state.table(schema, name)

    def rows(self, table: sa.Table, *where: Any) -> list[dict[str, Any]]:
        with self.catalog.read() as connection:
            return [dict(r._mapping) for r in connection.execute(sa.select(table).where(*where))]

    @property
    def changes(self) -> list[str]:
        return [r["changes_made"] for r in sorted(self.rows(t.snapshot_changes), key=lambda r: r["snapshot_id"])]

    @contextmanager
    def duckdb(self) -> Iterator[duckdb.DuckDBPyConnection]:
        with attached(self.address) as connection:
            yield connection

    def run_in_duckdb(self, *statements: str) -> None:
        with self.duckdb() as connection:
            for statement in statements:
                connection.execute(statement)

    def seen_by_duckdb(self, query: str) -> list[tuple[Any, ...]]:
        with self.duckdb() as connection:
            return connection.execute(query).fetchall()


@contextmanager
def attached(address: LakeAddress, **options: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    """The reference on that lake; gone afterwards, because a DuckDB file takes one process at a time."""
    connection = reference.connect(address.catalog, address.data_path, **options)
    try:
        yield connection
    finally:
        connection.close()


def write_file(folder: str, table: Table, rows: Mapping[str, list[Any]]) -> NewDataFile:
    schema = pa.schema([_field(c) for c in table.columns if c.name in rows])
    name = new_data_file_name()
    os.makedirs(folder, exist_ok=True)
    pq.write_table(pa.table(dict(rows), schema=schema), folder + name)
    metadata = pq.read_metadata(folder + name)
    return NewDataFile(
        path=name,
        path_is_relative=True,
        record_count=metadata.num_rows,
        file_size_bytes=os.path.getsize(folder + name),
        footer_size=metadata.serialized_size,
        stats=file_stats(metadata, table.columns),
        row_group_count=metadata.num_row_groups,
    )


def _field(column: Column) -> pa.Field:
    kind = arrow_type(column)
    if column.type == "struct":
        kind = pa.struct([_field(c) for c in column.children])
    elif column.type == "list":
        kind = pa.list_(_field(column.children[0]))
    elif column.type == "map":
        kind = pa.map_(_field(column.children[0]).with_nullable(False), _field(column.children[1]))
    return pa.field(column.name, kind, metadata={"PARQUET:field_id": str(column.id)})
