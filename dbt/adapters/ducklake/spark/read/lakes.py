"""The lakes of a session: its own, and those attached to it."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import sqlalchemy as sa
from pyspark.sql import DataFrame

from ...lake import paths
from ...lake import tables as t
from ...lake.catalog import Catalog, SnapshotInfo
from ...lake.deletes import PositionDeletes, read_delete_file
from ...lake.errors import NotFoundError
from ...lake.file_store import FileStore
from ...lake.files import DataFile, DeleteFile, NameMap, NewDataFile, name_maps, table_files
from ...lake.format_versions import FORMAT_VERSIONS
from ...lake.inlined import read_inlined_rows, united
from ...lake.inlined_inserts import staged_inlined_rows
from ...lake.migration import Migration, migrate
from ...lake.missing_names import did_you_mean_relation
from ...lake.predicates import Predicate
from ...lake.retry import Retry
from ...lake.snapshot import LakeState, Table
from ...lake.snapshot_loader import ColumnHistory, Snapshots, read_column_history
from ...lake.transaction import Transaction
from ..engine.parquet_encryption import encrypted_path
from .file_cache import FileCache
from .parquet import FileReader
from .scan import TableScan

FIRST_STAGED_ROW_ID = 10**18
"""Where the row ids of staged rows begin. The commit gives them their final ones."""


@dataclass
class Lake:
    """A lake under its name in SQL. It may be pinned to one snapshot, by version or timestamp."""

    name: str
    catalog: Catalog
    snapshots: Snapshots
    filesystem: pafs.FileSystem
    native_path: Callable[[str], str]
    """Turns a path of the lake into one of the file system."""
    pinned_version: int | None = None
    pinned_timestamp: datetime.datetime | None = None
    _histories: FileCache[ColumnHistory] = field(default_factory=lambda: FileCache(10_000), repr=False)
    """What the columns of tables were, by table id and schema version."""
    _footers: FileCache[pq.FileMetaData] = field(default_factory=lambda: FileCache(10_000), repr=False)
    _deletes: FileCache[pa.Table] = field(default_factory=lambda: FileCache(5_000_000, len), repr=False)
    _file_sizes: FileCache[int] = field(default_factory=lambda: FileCache(100_000), repr=False)
    _dataframes: FileCache[DataFrame] = field(default_factory=lambda: FileCache(20), repr=False)

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
        format_version: str | None = None,
        encrypted: bool = False,
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
            format_version=format_version,
            encrypted=encrypted,
        )
        filesystem, native = paths.filesystem_for(opened.data_path, storage)
        return cls(name, opened, Snapshots(opened), filesystem, native, snapshot_version, snapshot_time)

    def migrate(self, to_version: str | None = None, *, dry_run: bool = False) -> Migration:
        """Brings the lake to a later format version, by default the latest one."""
        catalog = self.catalog
        if not dry_run:
            catalog.check_writable()
        migration = migrate(catalog.database, to_version, metadata_schema=catalog.metadata_schema, dry_run=dry_run)
        if not dry_run:
            catalog.format = FORMAT_VERSIONS[migration.to_version]
            self.snapshots = Snapshots(catalog)
        return migration

    @property
    def file_reader(self) -> FileReader:
        return FileReader(
            _spark_path,
            self.read_footer,
            self.read_deletes,
            self.read_delete_file,
            self.file_size,
            self._dataframes.get,
            self._column_history,
        )

    @property
    def file_store(self) -> FileStore:
        return FileStore(self.filesystem, self.native_path, self.catalog.is_encrypted)

    def read_footer(self, file: DataFile) -> pq.FileMetaData:
        """The footer of a data file."""
        store = self.file_store
        return self._footers.get(file.path, lambda: store.read_footer(file.path, file.encryption_key).metadata)

    def file_size(self, path: str) -> int:
        """The size of a file in storage; 0 if the file is missing, which is reported when it is read."""
        return self._file_sizes.get(path, lambda: self.filesystem.get_file_info(self.native_path(path)).size or 0)

    def _column_history(self, table_id: int) -> ColumnHistory:
        with self.catalog.read() as connection:
            return read_column_history(connection, table_id)

    def read_deletes(self, file: DataFile) -> pa.Table:
        """The rows of a data file's delete files: positions, and the snapshots that deleted them."""

        def read_cached(delete_file: DeleteFile) -> pa.Table:
            if delete_file.id < 0:  # staged: its rows may have no snapshot before the commit
                return self.read_delete_file(delete_file)
            return self._deletes.get(delete_file.path, lambda: self.read_delete_file(delete_file))

        return pa.concat_tables([read_cached(delete_file) for delete_file in file.delete_files])

    def read_delete_file(self, file: DeleteFile) -> pa.Table:
        """The positions in a delete file, and the snapshots that deleted them."""
        return read_delete_file(self.file_store, file.path, file.begin_snapshot, file.format, file.encryption_key)

    def begin(self) -> Transaction:
        """A transaction on the lake's newest snapshot, or on the pinned one."""
        return Transaction.begin(self.catalog, self.snapshots, self.pinned_snapshot(), self.file_store)

    def pinned_snapshot(self) -> SnapshotInfo | None:
        if self.pinned_version is None and self.pinned_timestamp is None:
            return None
        with self.catalog.read() as connection:
            return self._find_snapshot(connection, self.pinned_version, self.pinned_timestamp)

    def _find_snapshot(
        self, connection: sa.Connection, version: int | None, timestamp: datetime.datetime | None
    ) -> SnapshotInfo:
        if version is not None:
            return self.catalog.snapshot_at_version(connection, version)
        assert timestamp is not None
        return self.catalog.snapshot_at_timestamp(connection, timestamp)

    def snapshot_at(
        self, version: int | None = None, timestamp: datetime.datetime | None = None
    ) -> tuple[SnapshotInfo, LakeState]:
        """The snapshot of this version, or the last one at this time, and the lake's state there."""
        with self.catalog.read() as connection:
            snapshot = self._find_snapshot(connection, version, timestamp)
            return snapshot, self.snapshots.state(connection, snapshot)

    def plan_scan(
        self,
        table: Table,
        snapshot: SnapshotInfo,
        state: LakeState,
        *,
        transaction: Transaction | None = None,
        predicate: Predicate | None = None,
        time_zone: str = "UTC",
    ) -> TableScan:
        """The scan of a table at a snapshot: the committed files that may match the predicate, and staged rows."""
        folder = state.table_folder(self.catalog.data_path, table)
        files: list[DataFile] = []
        maps: dict[int, NameMap] = {}
        inlined = None
        history = None
        data = transaction.data_changes(table) if transaction else None
        if table.id >= 0 and not (data and data.truncated):
            with self.catalog.read() as connection:
                self.catalog.check_not_expired(connection, snapshot.id)
                files = table_files(connection, self.catalog, table, folder, snapshot.id, predicate, time_zone)
                if data:
                    files = [
                        _with_staged_deletes(f, data.position_deletes.get(f.id), folder)
                        for f in files
                        if f.id not in data.ended_file_ids
                    ]
                if files:
                    history = self._histories.get(
                        (table.id, snapshot.schema_version), lambda: read_column_history(connection, table.id)
                    )
                if any(f.mapping_id is not None for f in files):
                    maps = name_maps(connection, table.id)
                inlined = read_inlined_rows(connection, self.catalog, table, snapshot.id)
                if inlined is not None and data and data.ended_inlined_row_ids:
                    inlined = inlined.without(data.ended_inlined_row_ids)
        if data:
            files += _staged_files(data.added_files, folder, maps)
            inlined = united(inlined, staged_inlined_rows(data.inlined_inserts, table.columns))
        return TableScan(table, snapshot.id, files, maps, inlined, column_history=history)


def _spark_path(file: DataFile | DeleteFile) -> str:
    path = paths.spark_path(file.path)
    return path if file.encryption_key is None else encrypted_path(path, file.encryption_key)


def _staged_files(added_files: Sequence[NewDataFile], folder: str, maps: dict[int, NameMap]) -> Iterator[DataFile]:
    """The files that a transaction added, with ids below zero; their name mappings are added to `maps`."""
    row_id = FIRST_STAGED_ROW_ID
    for index, new in enumerate(added_files, start=1):
        mapping_id = None
        if new.name_map is not None:
            mapping_id = next((i for i, m in maps.items() if m == new.name_map), -index)
            maps[mapping_id] = new.name_map
        file = DataFile(
            id=-index,
            path=paths.resolve(folder, new.path, new.path_is_relative),
            record_count=new.record_count,
            file_size_bytes=new.file_size_bytes,
            is_in_table_folder=new.path_is_relative,
            row_id_start=row_id,
            begin_snapshot=None,
            mapping_id=mapping_id,
            encryption_key=new.encryption_key,
        )
        yield _with_staged_deletes(file, new.position_deletes, folder)
        row_id += new.record_count


def _with_staged_deletes(file: DataFile, deletes: PositionDeletes | None, folder: str) -> DataFile:
    """A data file with the position deletes that a transaction staged for it."""
    if deletes is None:
        return file
    delete_files = file.delete_files
    if (staged := deletes.delete_file) is not None:  # takes the place of the committed one and repeats its positions
        path = paths.resolve(folder, staged.path, staged.path_is_relative)
        delete_files = (
            DeleteFile(
                -1,
                path,
                staged.format,
                staged.delete_count,
                None,
                staged.last_snapshot,
                encryption_key=staged.encryption_key,
            ),
        )
    inlined = (*file.inlined_deletes, *deletes.inlined_positions)
    return replace(file, delete_files=delete_files, inlined_deletes=inlined)


def ever_had_relation(lake: Lake, schema: str, name: str) -> bool:
    """Whether the catalog knows a table or view of this name, of whatever time."""
    tables, views, schemas = t.table.c, t.view.c, t.schema.c
    in_schema = sa.func.lower(schemas.schema_name) == schema.lower()
    queries = (
        sa.select(tables.table_id)
        .join(t.schema, schemas.schema_id == tables.schema_id)
        .where(in_schema, sa.func.lower(tables.table_name) == name.lower()),
        sa.select(views.view_id)
        .join(t.schema, schemas.schema_id == views.schema_id)
        .where(in_schema, sa.func.lower(views.view_name) == name.lower()),
    )
    with lake.catalog.read() as connection:
        return any(connection.execute(query.limit(1)).first() is not None for query in queries)


def not_found_at_snapshot(
    lake: Lake, schema: str, name: str, snapshot: SnapshotInfo, state: LakeState
) -> NotFoundError:
    """The error for a table that did not exist at a snapshot, at which the lake had this state."""
    with lake.catalog.read() as connection:
        first = connection.scalar(
            sa.select(sa.func.min(t.table.c.begin_snapshot))
            .join(t.schema, t.schema.c.schema_id == t.table.c.schema_id)
            .where(
                sa.func.lower(t.table.c.table_name) == name.lower(),
                sa.func.lower(t.schema.c.schema_name) == schema.lower(),
                t.table.c.begin_snapshot > snapshot.id,
            )
        )
    if first is not None:
        hint: str | None = f"a table of that name is there since snapshot {first}"
    else:
        hint = did_you_mean_relation(state, schema, name)
    return NotFoundError(
        f"there was no table {schema}.{name} at snapshot {snapshot.id} of {snapshot.time.isoformat()}"
        f"{f'; {hint}' if hint else ''}"
    )
