"""The lakes that a session reads: its own, and those attached to it."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import sqlalchemy as sa
from pyspark.sql import DataFrame

from ...lake import paths
from ...lake.catalog import Catalog, Retry, SnapshotInfo
from ...lake.deletes import FileStore, Mask, read_positions
from ...lake.errors import NotFoundError
from ...lake.files import DataFile, DeleteFile, NameMap, name_maps, table_files
from ...lake.inlined import read as read_inlined
from ...lake.predicates import Predicate
from ...lake.snapshot import LakeState, Snapshots, Table
from ...lake.transaction import Transaction
from .parquet import Storage
from .scan import TableScan

T = TypeVar("T")

STAGED_ROW_IDS = 10**18
"""Where the row ids of staged rows begin, until the commit gives them their own."""


class _Known(Generic[T]):
    """What was read of files, which never change: so each is read once, as long as all is not too much."""

    def __init__(self, most: int, weight: Callable[[T], int]) -> None:
        self._most, self._weight = most, weight
        self._found: dict[Hashable, T] = {}
        self._size = 0
        self._lock = threading.Lock()

    def get(self, key: Hashable, read: Callable[[], T]) -> T:
        with self._lock:
            if key in self._found:
                return self._found[key]
        found = read()
        with self._lock:
            self._size += self._weight(found)
            if self._size > self._most:
                self._found.clear()
                self._size = self._weight(found)
            self._found[key] = found
        return found


@dataclass
class Lake:
    """One lake under its name in SQL, perhaps held at one version."""

    name: str
    catalog: Catalog
    snapshots: Snapshots
    filesystem: pafs.FileSystem
    native_path: Callable[[str], str]
    """What makes a path of the lake one of the file system."""
    version: int | None = None
    timestamp: datetime.datetime | None = None
    _footers: _Known[pq.FileMetaData] = field(default_factory=lambda: _Known(10_000, lambda footer: 1), repr=False)
    _deleted: _Known[pa.Table] = field(default_factory=lambda: _Known(5_000_000, len), repr=False)
    _sizes: _Known[int] = field(default_factory=lambda: _Known(100_000, lambda size: 1), repr=False)
    _masks: _Known[DataFrame] = field(default_factory=lambda: _Known(20, lambda rows: 1), repr=False)

    @classmethod
    def open(
        cls,
        name: str,
        catalog: str,
        data_path: str | None = None,
        *,
        storage: Mapping[str, str] | None = None,
        retry: Retry | None = None,
        metadata_schema: str | None = None,
        read_only: bool = False,
        create_if_not_exists: bool = True,
        override_data_path: bool = False,
        snapshot_version: int | None = None,
        snapshot_time: datetime.datetime | None = None,
        data_inlining_row_limit: int | None = None,
    ) -> Lake:
        opened = Catalog.open(
            catalog,
            data_path,
            metadata_schema=metadata_schema,
            read_only=read_only or snapshot_version is not None or snapshot_time is not None,
            create_if_not_exists=create_if_not_exists,
            override_data_path=override_data_path,
            retry=retry,
            data_inlining_row_limit=data_inlining_row_limit,
        )
        filesystem, native = paths.filesystem_for(opened.data_path, storage)
        return cls(name, opened, Snapshots(opened), filesystem, native, snapshot_version, snapshot_time)

    @property
    def storage(self) -> Storage:
        return Storage(paths.spark_path, self.footer, self.deleted, self.size, self._masks.get)

    @property
    def store(self) -> FileStore:
        return FileStore(self.filesystem, self.native_path)

    def footer(self, path: str) -> pq.FileMetaData:
        """The footer of a data file."""
        return self._footers.get(path, lambda: pq.read_metadata(self.native_path(path), filesystem=self.filesystem))

    def size(self, path: str) -> int:
        """How large a file is; 0 if it is not there, which who reads it will meet."""
        return self._sizes.get(path, lambda: self.filesystem.get_file_info(self.native_path(path)).size or 0)

    def deleted(self, file: DataFile) -> pa.Table:
        """What a data file's delete files say; one that is only staged is not kept, since it says less than later."""

        def said(by: DeleteFile) -> pa.Table:
            if by.id < 0:
                return read_positions(self.store, by.path, by.begin_snapshot)
            return self._deleted.get(by.path, lambda: read_positions(self.store, by.path, by.begin_snapshot))

        return pa.concat_tables([said(by) for by in file.delete_files])

    def begin(self) -> Transaction:
        """A transaction on the lake's newest snapshot, or on the one that it is held at."""
        return Transaction.begin(self.catalog, self.snapshots, self.held_at(), self.store)

    def held_at(self) -> SnapshotInfo | None:
        if self.version is None and self.timestamp is None:
            return None
        with self.catalog.read() as connection:
            return self._at(connection, self.version, self.timestamp)

    def _at(self, connection: sa.Connection, version: int | None, timestamp: datetime.datetime | None) -> SnapshotInfo:
        if version is not None:
            return self.catalog.at_version(connection, version)
        assert timestamp is not None
        return self.catalog.at_timestamp(connection, timestamp)

    def past(
        self, version: int | None = None, timestamp: datetime.datetime | None = None
    ) -> tuple[SnapshotInfo, LakeState]:
        """The lake at another version or moment."""
        with self.catalog.read() as connection:
            info = self._at(connection, version, timestamp)
            return info, self.snapshots.state(connection, info)

    def scan(
        self,
        table: Table,
        at: SnapshotInfo,
        state: LakeState,
        *,
        transaction: Transaction | None = None,
        predicate: Predicate | None = None,
        time_zone: str = "UTC",
    ) -> TableScan:
        """What must be read of a table: committed files that can match, and what is staged."""
        folder = state.folder(self.catalog.data_path, table)
        files: list[DataFile] = []
        maps: dict[int, NameMap] = {}
        inlined = None
        data = transaction.data(table) if transaction else None
        if table.id >= 0 and not (data and data.truncated):
            with self.catalog.read() as connection:
                files = table_files(connection, self.catalog, table, folder, at.id, predicate, time_zone)
                if data:
                    files = [_masked(f, data.masks.get(f.id), folder) for f in files if f.id not in data.ended]
                if any(f.mapping_id is not None for f in files):
                    maps = name_maps(connection, table.id)
                inlined = read_inlined(connection, self.catalog, table, at.id)
                if inlined is not None and data and data.inlined:
                    inlined = inlined.without(data.inlined)
        row_id = STAGED_ROW_IDS
        for index, new in enumerate(data.added if data else (), start=1):
            mapping_id = None
            if new.name_map is not None:
                mapping_id = next((i for i, m in maps.items() if m == new.name_map), -index)
                maps[mapping_id] = new.name_map
            file = DataFile(
                id=-index,
                path=paths.resolve(folder, new.path, new.path_is_relative),
                record_count=new.record_count,
                file_size_bytes=new.file_size_bytes,
                row_id_start=row_id,
                begin_snapshot=None,
                mapping_id=mapping_id,
            )
            files.append(_masked(file, new.mask, folder))
            row_id += new.record_count
        return TableScan(table, at.id, files, maps, inlined)


def _masked(file: DataFile, mask: Mask | None, folder: str) -> DataFile:
    """A data file without the rows that a transaction took away."""
    if mask is None:
        return file
    deleted = file.delete_files
    if mask.file is not None:
        path = paths.resolve(folder, mask.file.path, mask.file.path_is_relative)
        deleted = (DeleteFile(-1, path, "parquet", mask.file.delete_count, None, mask.file.last),)
    return replace(file, delete_files=deleted, inlined_deletes=(*file.inlined_deletes, *mask.positions))


def never_there(lake: Lake, schema: str, name: str, at: SnapshotInfo) -> NotFoundError:
    """The error for a table that did not exist at a version."""
    from ...lake import tables as t

    with lake.catalog.read() as connection:
        first = connection.scalar(
            sa.select(sa.func.min(t.table.c.begin_snapshot))
            .join(t.schema, t.schema.c.schema_id == t.table.c.schema_id)
            .where(
                sa.func.lower(t.table.c.table_name) == name.lower(),
                sa.func.lower(t.schema.c.schema_name) == schema.lower(),
                t.table.c.begin_snapshot > at.id,
            )
        )
    hint = f"; a table of that name is there since snapshot {first}" if first is not None else ""
    return NotFoundError(f"there was no table {schema}.{name} at snapshot {at.id} of {at.time.isoformat()}{hint}")
