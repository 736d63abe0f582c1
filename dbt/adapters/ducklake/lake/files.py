"""The data files of a table at a snapshot, with their position deletes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .deletes import PositionDeletes
from .encryption import FileKey
from .literals import session_time_zone
from .partitions import PartitionField, PartitionSpec, parse_transform
from .paths import has_data_file_name, resolve
from .predicates import Predicate
from .pruning import FileStats, compile_predicate, needed_column_ids
from .snapshot import Table
from .sql_pruning import SqlPruning
from .stats import ColumnStats
from .types import Column

_MAX_IDS_IN_QUERY = 500


@dataclass(frozen=True)
class NameMapEntry:
    """Maps a field of a Parquet file to a column by name, because the file has no field ids."""

    source_name: str
    column_id: int
    is_partition: bool = False
    children: tuple[NameMapEntry, ...] = ()


NameMap = tuple[NameMapEntry, ...]
PartitionValues = tuple[str | None, ...]
"""The values of a file's partition keys, in their order."""


@dataclass(frozen=True)
class NewDataFile:
    """A data file that is written but not committed."""

    path: str
    path_is_relative: bool
    record_count: int
    file_size_bytes: int
    footer_size: int
    stats: Mapping[int, ColumnStats]
    partition_id: int | None = None
    partition_values: tuple[str | None, ...] = ()
    name_map: NameMap | None = None
    partition_spec: PartitionSpec | None = None
    """The partition spec with the id `partition_id`. The table may get another one before the commit."""
    holds_updated_rows: bool = False
    """Whether its rows are new versions of existing rows, with the row ids of those."""
    position_deletes: PositionDeletes | None = None
    """Rows of the file that the same transaction deleted again."""
    row_group_count: int | None = None
    encryption_key: FileKey | None = None
    written_columns: tuple[Column, ...] = ()
    """The columns of the table when the file was written. The table may get other names before the commit."""
    begin_snapshot: int | None = None
    """The first snapshot of which the file holds rows; None for the snapshot of the commit."""
    partial_max: int | None = None
    """The last snapshot of which the file holds rows, if each of its rows names its snapshot."""

    @property
    def live_rows(self) -> int:
        delete_file = self.position_deletes.delete_file if self.position_deletes else None
        return self.record_count - (delete_file.delete_count if delete_file else 0)


@dataclass(frozen=True)
class DeleteFile:
    """A delete file of a data file. `path` is complete."""

    id: int
    path: str
    format: str
    delete_count: int
    begin_snapshot: int | None = None
    """The snapshot that added the file, or the first snapshot that its positions name; None if only staged."""
    partial_max: int | None = None
    """The last snapshot that its positions name; None if they name none."""
    file_size_bytes: int | None = None
    footer_size: int | None = None
    encryption_key: FileKey | None = None


@dataclass(frozen=True)
class DataFile:
    """A data file of a table. `path` is complete: it starts with the lake's data path or is absolute."""

    id: int
    path: str
    record_count: int
    file_size_bytes: int
    is_in_table_folder: bool = False
    """Whether the catalog has its path relative to the table's folder."""
    footer_size: int | None = None
    row_id_start: int | None = None
    begin_snapshot: int | None = None
    """The snapshot that added the file; None if it is only staged."""
    partition_id: int | None = None
    mapping_id: int | None = None
    partial_max: int | None = None
    """The last snapshot of which the file holds rows, if it holds rows of several snapshots."""
    delete_files: tuple[DeleteFile, ...] = ()
    """At most one, unless the reference rewrote the file: it may flush later deletes into another delete file."""
    inlined_deletes: tuple[int, ...] = field(default=())
    """Deleted positions of the file that the catalog stores."""
    encryption_key: FileKey | None = None

    @property
    def delete_file(self) -> DeleteFile | None:
        return self.delete_files[-1] if self.delete_files else None

    @property
    def may_be_added(self) -> bool:
        """Whether the file may have been added as it is, rather than written for the table."""
        return not (self.is_in_table_folder and has_data_file_name(self.path))

    @property
    def has_deletes(self) -> bool:
        return bool(self.delete_files or self.inlined_deletes)

    @property
    def live_rows(self) -> int:
        return self.record_count - sum(f.delete_count for f in self.delete_files) - len(self.inlined_deletes)


DATA_FILE_COLUMNS = tuple(
    t.data_file.c[name]
    for name in (
        "data_file_id",
        "path",
        "path_is_relative",
        "record_count",
        "file_size_bytes",
        "footer_size",
        "row_id_start",
        "begin_snapshot",
        "partition_id",
        "mapping_id",
        "partial_max",
        "encryption_key",
    )
)
"""The columns that `data_file_from_row` needs."""

DELETE_FILE_COLUMNS = (
    t.delete_file.c.delete_file_id,
    t.delete_file.c.path.label("delete_path"),
    t.delete_file.c.path_is_relative.label("delete_path_is_relative"),
    t.delete_file.c.format,
    t.delete_file.c.delete_count,
    t.delete_file.c.begin_snapshot.label("delete_begin_snapshot"),
    t.delete_file.c.partial_max.label("delete_partial_max"),
    t.delete_file.c.file_size_bytes.label("delete_size"),
    t.delete_file.c.footer_size.label("delete_footer_size"),
    t.delete_file.c.encryption_key.label("delete_encryption_key"),
)
"""The columns that `delete_file_from_row` needs."""


def data_file_from_row(row: Any, folder: str) -> DataFile:
    """The data file of a catalog row, without its position deletes. `folder` is that of the table."""
    return DataFile(
        id=row.data_file_id,
        path=resolve(folder, row.path, bool(row.path_is_relative)),
        record_count=row.record_count,
        file_size_bytes=row.file_size_bytes,
        is_in_table_folder=bool(row.path_is_relative),
        footer_size=row.footer_size,
        row_id_start=row.row_id_start,
        begin_snapshot=row.begin_snapshot,
        partition_id=row.partition_id,
        mapping_id=row.mapping_id,
        partial_max=row.partial_max,
        encryption_key=FileKey.from_catalog(row.encryption_key),
    )


def delete_file_from_row(row: Any, folder: str) -> DeleteFile:
    return DeleteFile(
        row.delete_file_id,
        resolve(folder, row.delete_path, bool(row.delete_path_is_relative)),
        row.format or "parquet",
        row.delete_count,
        row.delete_begin_snapshot,
        row.delete_partial_max,
        row.delete_size,
        row.delete_footer_size,
        FileKey.from_catalog(row.delete_encryption_key),
    )


def table_files(
    connection: sa.Connection,
    catalog: Catalog,
    table: Table,
    folder: str,
    at: int,
    predicate: Predicate | None = None,
    time_zone: str = "UTC",
) -> list[DataFile]:
    """The data files of a table at snapshot `at` that may contain a row for which the predicate is true."""
    matching = (
        _matching_file_ids(connection, catalog, table, at, predicate, time_zone) if predicate is not None else None
    )
    if matching is not None and not matching:
        return []
    data, deleted = t.data_file, t.delete_file
    query = (
        sa.select(*DATA_FILE_COLUMNS, *DELETE_FILE_COLUMNS)
        .outerjoin(deleted, sa.and_(deleted.c.data_file_id == data.c.data_file_id, t.alive(deleted, at)))
        .where(data.c.table_id == table.id, t.alive(data, at))
        .order_by(data.c.data_file_id, deleted.c.delete_file_id)
    )
    if matching is not None and len(matching) <= _MAX_IDS_IN_QUERY:
        query = query.where(data.c.data_file_id.in_(matching))
    inlined = inlined_deletes(connection, catalog, table.id, at)
    files: list[DataFile] = []
    for row in connection.execute(query):
        if matching is not None and row.data_file_id not in matching:
            continue
        delete_files = (delete_file_from_row(row, folder),) if row.delete_file_id is not None else ()
        if files and files[-1].id == row.data_file_id:
            files[-1] = replace(files[-1], delete_files=files[-1].delete_files + delete_files)
            continue
        file = data_file_from_row(row, folder)
        files.append(replace(file, delete_files=delete_files, inlined_deletes=inlined.get(file.id, ())))
    return files


def count_files(connection: sa.Connection, table_id: int, at: int) -> int:
    """The number of data files of a table at snapshot `at`."""
    data = t.data_file
    return (
        connection.scalar(
            sa.select(sa.func.count()).select_from(data).where(data.c.table_id == table_id, t.alive(data, at))
        )
        or 0
    )


def _matching_file_ids(
    connection: sa.Connection, catalog: Catalog, table: Table, at: int, predicate: Predicate, time_zone: str
) -> set[int] | None:
    """The ids of files that may match; None if the catalog has nothing to prune by."""
    specs = partition_specs(connection, table.id)
    column_ids = sorted(needed_column_ids(predicate, table.columns))
    if not column_ids:
        return None
    may_match = compile_predicate(predicate, table.columns, specs, time_zone)
    values: Mapping[int, PartitionValues] = {}
    if any(field.column_id in column_ids for spec in specs.values() for field in spec.fields):
        values = partition_values(connection, t.file_partition_value.c.table_id == table.id)
    query = _files_with_stats(catalog, table, at, predicate, time_zone, column_ids)
    found: set[int] = set()
    row: Any
    for row in connection.execute(query):
        file_id, partition_id, *statistics = row
        columns = {
            column_id: ColumnStats(0, *statistics[start : start + len(_STATISTICS)])
            for start, column_id in zip(count(0, len(_STATISTICS)), column_ids, strict=False)
        }
        if may_match(FileStats(columns, partition_id, values.get(file_id, ()))):
            found.add(file_id)
    return found


_STATISTICS = ("value_count", "null_count", "min_value", "max_value", "contains_nan")


def _files_with_stats(
    catalog: Catalog, table: Table, at: int, predicate: Predicate, time_zone: str, column_ids: Sequence[int]
) -> sa.Select[Any]:
    """The files of a table that the database does not rule out, each with the statistics of these columns."""
    data = t.data_file
    stats = {column_id: t.file_column_stats.alias(f"stats_{column_id}") for column_id in column_ids}
    source: sa.FromClause = data
    selected: list[sa.ColumnElement[Any]] = [data.c.data_file_id, data.c.partition_id]
    for column_id, of_file in stats.items():
        of_column = sa.and_(of_file.c.table_id == table.id, of_file.c.column_id == column_id)
        source = source.outerjoin(of_file, sa.and_(of_file.c.data_file_id == data.c.data_file_id, of_column))
        selected += (of_file.c[name] for name in _STATISTICS)
    condition = SqlPruning(catalog.database, table.columns, stats, session_time_zone(time_zone)).may_match(predicate)
    query = sa.select(*selected).select_from(source).where(data.c.table_id == table.id, t.alive(data, at))
    return query if condition is None else query.where(condition)


def partition_values(connection: sa.Connection, *where: sa.ColumnElement[bool]) -> dict[int, PartitionValues]:
    """The partition values of data files by file id; `where` are conditions on `file_partition_value`."""
    value = t.file_partition_value
    query = sa.select(value.c.data_file_id, value.c.partition_value).where(*where)
    found: dict[int, list[str | None]] = defaultdict(list)
    for row in connection.execute(query.order_by(value.c.data_file_id, value.c.partition_key_index)):
        found[row.data_file_id].append(row.partition_value)
    return {file_id: tuple(values) for file_id, values in found.items()}


def partition_specs(connection: sa.Connection, table_id: int) -> dict[int, PartitionSpec]:
    """All partition specs that a table ever had, because old files keep theirs."""
    part = t.partition_column
    fields: dict[int, list[PartitionField]] = defaultdict(list)
    query = sa.select(part).where(part.c.table_id == table_id).order_by(part.c.partition_key_index)
    for r in connection.execute(query):
        fields[r.partition_id].append(PartitionField(r.partition_key_index, r.column_id, parse_transform(r.transform)))
    return {spec_id: PartitionSpec(spec_id, tuple(keys)) for spec_id, keys in fields.items()}


def inlined_deletes(connection: sa.Connection, catalog: Catalog, table_id: int, at: int) -> dict[int, tuple[int, ...]]:
    """The inlined deletes of each data file at snapshot `at`: positions that the catalog stores."""
    source = t.inlined_delete(table_id)
    if not catalog.database.supports_inlining or not catalog.has_table(connection, source.name):
        return {}
    positions: dict[int, list[int]] = defaultdict(list)
    query = sa.select(source.c.file_id, source.c.row_id).where(source.c.begin_snapshot <= at)
    for row in connection.execute(query):
        positions[row.file_id].append(row.row_id)
    return {file_id: tuple(sorted(rows)) for file_id, rows in positions.items()}


def name_maps(connection: sa.Connection, table_id: int) -> dict[int, NameMap]:
    """The name maps of a table, by mapping id."""
    mapping, entry = t.column_mapping, t.name_mapping
    query = (
        sa.select(entry)
        .join(mapping, mapping.c.mapping_id == entry.c.mapping_id)
        .where(mapping.c.table_id == table_id)
        .order_by(entry.c.mapping_id, entry.c.column_id)
    )
    rows: dict[int, dict[int | None, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in connection.execute(query):
        rows[row.mapping_id][row.parent_column].append(row)

    def entries(by_parent: Mapping[int | None, list[Any]], parent: int | None) -> NameMap:
        return tuple(
            NameMapEntry(r.source_name, r.target_field_id, bool(r.is_partition), entries(by_parent, r.column_id))
            for r in by_parent.get(parent, ())
        )

    return {mapping_id: entries(by_parent, None) for mapping_id, by_parent in rows.items()}
