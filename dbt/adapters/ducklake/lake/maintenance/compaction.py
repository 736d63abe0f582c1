"""Which data files of a table are merged or rewritten together.

A merged file stands for its sources at every snapshot. So it takes sources with the same columns and in the same
partition, without deletes. A rewritten file begins in the snapshot of the commit and has the columns of the table now.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import sqlalchemy as sa

from .. import tables as t
from ..catalog import Catalog
from ..files import DataFile, PartitionValues, partition_specs, partition_values
from ..partitions import PartitionSpec
from ..snapshot import Table
from ..snapshot_loader import ColumnHistory, read_column_history
from ..table_summary import tables_with_inlined_data
from ..types import Column

T = TypeVar("T")


@dataclass(frozen=True)
class FileBin:
    """Data files of one partition whose rows go into new files together."""

    columns: tuple[Column, ...]
    """The columns of the new files."""
    partition: PartitionSpec | None
    partition_values: PartitionValues
    files: tuple[DataFile, ...]

    @property
    def live_bytes(self) -> int:
        """The size of the files without the share of deleted rows."""
        return sum(_live_bytes(file) for file in self.files)


@dataclass(frozen=True)
class StoredFile:
    """A data file, and how the table was defined when it was written."""

    file: DataFile
    columns: tuple[Column, ...]
    partition: PartitionSpec | None
    partition_values: PartitionValues
    had_deletes: bool
    """Whether the file has deletes, at this snapshot or any other."""


def tables_with_files(connection: sa.Connection, at: int, least: int) -> set[int]:
    """The tables that have at least so many data files."""
    data = t.data_file
    query = sa.select(data.c.table_id).where(t.alive(data, at)).group_by(data.c.table_id)
    return set(connection.scalars(query.having(sa.func.count() >= least)))


def tables_with_deletes(connection: sa.Connection, catalog: Catalog, at: int) -> set[int]:
    """The tables whose data files may have deleted rows."""
    deleted = t.delete_file
    with_files: set[int] = set(connection.scalars(sa.select(deleted.c.table_id).distinct().where(t.alive(deleted, at))))
    return with_files | tables_with_inlined_data(connection, catalog, at)


def tables_to_migrate(connection: sa.Connection, at: int) -> set[int]:
    """The tables that have data files of another partition specification, or older than the sort order."""
    data, partition, sort = t.data_file, t.partition_info, t.sort_info
    of_table = sa.and_(partition.c.table_id == data.c.table_id, t.alive(partition, at))
    elsewhere = sa.func.coalesce(data.c.partition_id, -1) != sa.func.coalesce(partition.c.partition_id, -1)
    partitioned = sa.select(data.c.table_id).select_from(data.outerjoin(partition, of_table)).where(elsewhere)
    sorted_later = sa.and_(sort.c.table_id == data.c.table_id, sort.c.begin_snapshot > data.c.begin_snapshot)
    unsorted = sa.select(data.c.table_id).select_from(data.join(sort, sorted_later)).where(t.alive(sort, at))
    found: set[int] = set()
    for query in (partitioned, unsorted):
        found.update(connection.scalars(query.where(t.alive(data, at)).distinct()))
    return found


def stored_files(connection: sa.Connection, table: Table, files: Iterable[DataFile], at: int) -> list[StoredFile]:
    """Data files of a table at a snapshot, in the order in which their rows were inserted."""
    specs = partition_specs(connection, table.id)
    values = partition_values(connection, t.file_partition_value.c.table_id == table.id) if specs else {}
    deleted = t.delete_file
    with_deletes: set[int] = set(
        connection.scalars(sa.select(deleted.c.data_file_id).distinct().where(deleted.c.table_id == table.id))
    )
    columns = _ColumnsBySnapshot(read_column_history(connection, table.id))
    in_order = sorted(files, key=lambda f: (f.begin_snapshot or 0, f.row_id_start or 0, f.id))
    return [
        StoredFile(
            file,
            columns.at(file.begin_snapshot or at),
            None if file.partition_id is None else specs[file.partition_id],
            values.get(file.id, ()),
            file.has_deletes or file.id in with_deletes,
        )
        for file in in_order
    ]


def bins_to_merge(
    files: Iterable[StoredFile],
    target_size: int,
    min_file_size: int = 0,
    max_file_size: int | None = None,
    max_bins: int | None = None,
) -> list[FileBin]:
    """Bins of at least two files that are smaller than the target size, or than `max_file_size` if it is given."""
    limit = min(target_size, target_size if max_file_size is None else max_file_size)
    groups: dict[tuple[object, ...], list[StoredFile]] = defaultdict(list)
    for stored in files:
        if not stored.had_deletes and min_file_size <= stored.file.file_size_bytes < limit:
            groups[id(stored.columns), stored.file.partition_id, stored.partition_values].append(stored)
    bins = [
        FileBin(group[0].columns, group[0].partition, group[0].partition_values, tuple(files_of_bin))
        for group in groups.values()
        for files_of_bin in packed([stored.file for stored in group], _live_bytes, target_size)
        if len(files_of_bin) > 1
    ]
    return bins[:max_bins]


def bins_to_rewrite(
    files: Iterable[StoredFile], columns: tuple[Column, ...], target_size: int, delete_threshold: float
) -> list[FileBin]:
    """Bins of the files of which at least this share of rows is deleted, and at least one row."""
    groups: dict[tuple[object, ...], list[StoredFile]] = defaultdict(list)
    for stored in files:
        deleted = stored.file.record_count - stored.file.live_rows
        if deleted and deleted >= delete_threshold * stored.file.record_count:
            groups[stored.file.partition_id, stored.partition_values].append(stored)
    return [
        FileBin(columns, group[0].partition, group[0].partition_values, tuple(files_of_bin))
        for group in groups.values()
        for files_of_bin in packed([stored.file for stored in group], _live_bytes, target_size)
    ]


def bins_to_migrate(
    connection: sa.Connection, files: Iterable[StoredFile], table: Table, step_bytes: int
) -> list[FileBin]:
    """Bins of the files that were written with an earlier partition specification or sort order than the table has.

    The rows of a bin were in one partition. The bin has the specification that they get.
    """
    sort = t.sort_info
    sorted_since = None
    if table.sort is not None:
        query = sa.select(sort.c.begin_snapshot).where(sort.c.sort_id == table.sort.id, sort.c.table_id == table.id)
        sorted_since = connection.scalar(query)
    groups: dict[tuple[object, ...], list[DataFile]] = defaultdict(list)
    for stored in files:
        is_unsorted = sorted_since is not None and (stored.file.begin_snapshot or 0) < sorted_since
        if stored.partition != table.partition or is_unsorted:
            groups[stored.file.partition_id, stored.partition_values].append(stored.file)
    return [
        FileBin(table.columns, table.partition, (), tuple(files_of_bin))
        for group in groups.values()
        for files_of_bin in packed(group, _live_bytes, step_bytes)
    ]


def packed(items: Iterable[T], size_of: Callable[[T], int], target_size: int) -> list[list[T]]:
    """The items in their order, in parts that reach the target size."""
    parts: list[list[T]] = []
    size = target_size
    for item in items:
        if size >= target_size:
            parts.append([])
            size = 0
        parts[-1].append(item)
        size += size_of(item)
    return parts


def _live_bytes(file: DataFile) -> int:
    return file.file_size_bytes * file.live_rows // max(file.record_count, 1)


class _ColumnsBySnapshot:
    """The columns of a table at any snapshot. Equal ones are the same object."""

    def __init__(self, history: ColumnHistory) -> None:
        self._history = history
        ends = {r.end_snapshot for r in history.rows if r.end_snapshot is not None}
        self._changes = sorted({r.begin_snapshot for r in history.rows} | ends)
        self._versions: dict[int, tuple[Column, ...]] = {}

    def at(self, snapshot_id: int) -> tuple[Column, ...]:
        version = bisect_right(self._changes, snapshot_id)
        if version not in self._versions:
            columns = self._history.columns_at(snapshot_id)
            self._versions[version] = next((c for c in self._versions.values() if c == columns), columns)
        return self._versions[version]
