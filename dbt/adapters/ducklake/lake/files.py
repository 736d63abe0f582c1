"""The files of a table at one version, with what was deleted from each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .deletes import Mask
from .partitions import PartitionField, PartitionSpec, parse_transform
from .paths import resolve
from .predicates import Predicate
from .pruning import FileStats, compile_predicate, needed_column_ids
from .snapshot import Table
from .stats import ColumnStats


@dataclass(frozen=True)
class NameMapEntry:
    """A field of a file that is found by its name, because the file carries no field ids."""

    source_name: str
    column_id: int
    is_partition: bool = False
    children: tuple[NameMapEntry, ...] = ()


NameMap = tuple[NameMapEntry, ...]


@dataclass(frozen=True)
class NewDataFile:
    """A file that was written and that no snapshot knows yet."""

    path: str
    path_is_relative: bool
    record_count: int
    file_size_bytes: int
    footer_size: int
    stats: Mapping[int, ColumnStats]
    partition_id: int | None = None
    partition_values: tuple[str | None, ...] = ()
    name_map: NameMap | None = None
    partition: PartitionSpec | None = None
    """The partitioning that `partition_id` names, for the case that the table gets another one meanwhile."""
    versions: bool = False
    """Whether its rows are new versions of rows that were there, with their row ids."""
    mask: Mask | None = None
    """What was deleted of it again before it was committed."""

    @property
    def live_rows(self) -> int:
        return self.record_count - (self.mask.file.delete_count if self.mask and self.mask.file else 0)


@dataclass(frozen=True)
class DeleteFile:
    id: int
    path: str
    format: str
    delete_count: int
    begin_snapshot: int | None = None
    """The snapshot that brought the file, or the first of those that it names; None while it is only staged."""
    partial_max: int | None = None
    file_size_bytes: int | None = None
    footer_size: int | None = None


@dataclass(frozen=True)
class DataFile:
    """A data file of a table; `path` is whole, below the lake's data path or absolute."""

    id: int
    path: str
    record_count: int
    file_size_bytes: int
    footer_size: int | None = None
    row_id_start: int | None = None
    begin_snapshot: int | None = None
    """The snapshot that brought the file; None while it is only staged."""
    partition_id: int | None = None
    mapping_id: int | None = None
    partial_max: int | None = None
    delete_files: tuple[DeleteFile, ...] = ()
    """One at most, but of a file that the reference rewrote: it may flush more that was deleted of it into another."""
    inlined_deletes: tuple[int, ...] = field(default=())
    """Positions in the file whose deletion is kept in the catalog."""

    @property
    def delete_file(self) -> DeleteFile | None:
        return self.delete_files[-1] if self.delete_files else None

    @property
    def has_deletes(self) -> bool:
        return bool(self.delete_files or self.inlined_deletes)

    @property
    def live_rows(self) -> int:
        return self.record_count - sum(f.delete_count for f in self.delete_files) - len(self.inlined_deletes)


DATA_FILE = tuple(
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
    )
)
"""What a query selects for `data_file_of`."""
DELETE_FILE = (
    t.delete_file.c.delete_file_id,
    t.delete_file.c.path.label("delete_path"),
    t.delete_file.c.path_is_relative.label("delete_path_is_relative"),
    t.delete_file.c.format,
    t.delete_file.c.delete_count,
    t.delete_file.c.begin_snapshot.label("delete_begun"),
    t.delete_file.c.partial_max.label("delete_partial_max"),
    t.delete_file.c.file_size_bytes.label("delete_size"),
    t.delete_file.c.footer_size.label("delete_footer_size"),
)
"""Likewise for `delete_file_of`."""


def data_file_of(row: Any, folder: str) -> DataFile:
    """A data file of a table in a folder, as if nothing were deleted of it."""
    return DataFile(
        id=row.data_file_id,
        path=resolve(folder, row.path, bool(row.path_is_relative)),
        record_count=row.record_count,
        file_size_bytes=row.file_size_bytes,
        footer_size=row.footer_size,
        row_id_start=row.row_id_start,
        begin_snapshot=row.begin_snapshot,
        partition_id=row.partition_id,
        mapping_id=row.mapping_id,
        partial_max=row.partial_max,
    )


def delete_file_of(row: Any, folder: str) -> DeleteFile:
    return DeleteFile(
        row.delete_file_id,
        resolve(folder, row.delete_path, bool(row.delete_path_is_relative)),
        row.format or "parquet",
        row.delete_count,
        row.delete_begun,
        row.delete_partial_max,
        row.delete_size,
        row.delete_footer_size,
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
    """The data files of a table at a snapshot that can hold a row for which the predicate is true."""
    wanted = _matching(connection, table, at, predicate, time_zone) if predicate is not None else None
    if wanted is not None and not wanted:
        return []
    data, deleted = t.data_file, t.delete_file
    query = (
        sa.select(*DATA_FILE, *DELETE_FILE)
        .outerjoin(deleted, sa.and_(deleted.c.data_file_id == data.c.data_file_id, t.alive(deleted, at)))
        .where(data.c.table_id == table.id, t.alive(data, at))
        .order_by(data.c.data_file_id, deleted.c.delete_file_id)
    )
    if wanted is not None and len(wanted) <= 500:
        query = query.where(data.c.data_file_id.in_(wanted))
    inlined = inlined_deletes(connection, catalog, table.id, at)
    files: list[DataFile] = []
    for r in connection.execute(query):
        if wanted is not None and r.data_file_id not in wanted:
            continue
        by_file = (delete_file_of(r, folder),) if r.delete_file_id is not None else ()
        if files and files[-1].id == r.data_file_id:
            files[-1] = replace(files[-1], delete_files=files[-1].delete_files + by_file)
            continue
        deletes = inlined.get(r.data_file_id, ())
        files.append(replace(data_file_of(r, folder), delete_files=by_file, inlined_deletes=deletes))
    return files


def count_files(connection: sa.Connection, table_id: int, at: int) -> int:
    """How many data files a table has at a snapshot."""
    data = t.data_file
    return (
        connection.scalar(
            sa.select(sa.func.count()).select_from(data).where(data.c.table_id == table_id, t.alive(data, at))
        )
        or 0
    )


def _matching(
    connection: sa.Connection, table: Table, at: int, predicate: Predicate, time_zone: str
) -> set[int] | None:
    """The ids of the files that can match; None where nothing in the catalog can tell."""
    specs = _all_specs(connection, table.id)
    column_ids = needed_column_ids(predicate, table.columns)
    if not column_ids:
        return None
    test = compile_predicate(predicate, table.columns, specs, time_zone)
    data, stats, values = t.data_file, t.file_column_stats, t.file_partition_value
    live = sa.and_(data.c.table_id == table.id, t.alive(data, at))
    partition_ids: dict[int, int | None] = {
        r.data_file_id: r.partition_id
        for r in connection.execute(sa.select(data.c.data_file_id, data.c.partition_id).where(live))
    }
    columns: dict[int, dict[int, ColumnStats]] = defaultdict(dict)
    query = sa.select(
        stats.c.data_file_id,
        stats.c.column_id,
        stats.c.value_count,
        stats.c.null_count,
        stats.c.min_value,
        stats.c.max_value,
        stats.c.contains_nan,
    ).where(stats.c.table_id == table.id, stats.c.column_id.in_(column_ids))
    row: Any
    for row in connection.execute(query):
        file_id, column_id, *facts = row
        if file_id in partition_ids:
            columns[file_id][column_id] = ColumnStats(0, *facts)
    keys: dict[int, list[str | None]] = defaultdict(list)
    if any(field.column_id in column_ids for spec in specs.values() for field in spec.fields):
        query = (
            sa.select(values.c.data_file_id, values.c.partition_value)
            .where(values.c.table_id == table.id)
            .order_by(values.c.data_file_id, values.c.partition_key_index)
        )
        for row in connection.execute(query):
            keys[row.data_file_id].append(row.partition_value)
    return {
        file_id
        for file_id, partition_id in partition_ids.items()
        if test(FileStats(columns.get(file_id, {}), partition_id, keys.get(file_id, ())))
    }


def _all_specs(connection: sa.Connection, table_id: int) -> dict[int, PartitionSpec]:
    """Every partitioning that a table ever had: old files keep theirs."""
    part = t.partition_column
    fields: dict[int, list[PartitionField]] = defaultdict(list)
    query = sa.select(part).where(part.c.table_id == table_id).order_by(part.c.partition_key_index)
    for r in connection.execute(query):
        fields[r.partition_id].append(PartitionField(r.partition_key_index, r.column_id, parse_transform(r.transform)))
    return {spec_id: PartitionSpec(spec_id, tuple(keys)) for spec_id, keys in fields.items()}


def inlined_deletes(connection: sa.Connection, catalog: Catalog, table_id: int, at: int) -> dict[int, tuple[int, ...]]:
    """Positions deleted from each data file that are kept in the catalog instead of in delete files."""
    source = t.inlined_delete(table_id)
    if not catalog.database.supports_inlining or not catalog.has_table(connection, source.name):
        return {}
    positions: dict[int, list[int]] = defaultdict(list)
    query = sa.select(source.c.file_id, source.c.row_id).where(source.c.begin_snapshot <= at)
    for row in connection.execute(query):
        positions[row.file_id].append(row.row_id)
    return {file_id: tuple(sorted(rows)) for file_id, rows in positions.items()}


def name_maps(connection: sa.Connection, table_id: int) -> dict[int, NameMap]:
    """The name maps of a table by their mapping id."""
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

    def level(below: Mapping[int | None, list[Any]], parent: int | None) -> NameMap:
        return tuple(
            NameMapEntry(r.source_name, r.target_field_id, bool(r.is_partition), level(below, r.column_id))
            for r in below.get(parent, ())
        )

    return {mapping_id: level(below, None) for mapping_id, below in rows.items()}
