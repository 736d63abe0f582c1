"""What the tables of a lake need, measured from the catalog alone, with a few queries for all of them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from .. import tables as t
from ..catalog import Catalog
from ..files import PartitionValues, partition_values
from ..options import Options
from ..snapshot import Table
from ..table_summary import inlined_delete_counts, inlined_row_counts
from .compaction import packed


@dataclass(frozen=True)
class Limits:
    """From when on it is worth it to maintain a table."""

    small_files: int = 20
    """How many files fewer a merge makes of it."""
    deleted_share: float = 0.2
    """The share of its rows that is deleted."""
    inlined_rows: int = 1000
    """How many inlined rows, or inlined deletes, it has."""


@dataclass(frozen=True)
class TableHealth:
    """The files of a table at one snapshot, and what maintenance would do with them."""

    files: int = 0
    bytes: int = 0
    small_files: int = 0
    """The files that a merge would take."""
    small_bytes: int = 0
    merged_files: int = 0
    """How many files a merge would make of them."""
    rows: int = 0
    """The rows of data files, deleted ones included."""
    deleted_rows: int = 0
    rewritable_files: int = 0
    """The files that have lost at least the share of rows that is asked for."""
    rewritable_bytes: int = 0
    inlined_rows: int = 0
    inlined_deletes: int = 0
    old_bytes: int = 0
    """The size of data files that only snapshots before this one need."""
    files_without_statistics: int = 0

    @property
    def deleted_share(self) -> float:
        return self.deleted_rows / self.rows if self.rows else 0.0

    def needs_flush(self, limits: Limits) -> bool:
        return max(self.inlined_rows, self.inlined_deletes) >= max(limits.inlined_rows, 1)

    def needs_rewrite(self, limits: Limits) -> bool:
        return self.rewritable_files > 0 and self.deleted_share >= limits.deleted_share

    def needs_merge(self, limits: Limits) -> bool:
        return self.small_files - self.merged_files >= max(limits.small_files, 1)


def table_health(
    connection: sa.Connection,
    catalog: Catalog,
    tables: Sequence[Table],
    options: Options,
    at: int,
    deleted_share: float,
) -> dict[int, TableHealth]:
    """The health of tables by id. Files that have lost `deleted_share` of their rows are rewritable."""
    ids = [table.id for table in tables]
    files, versions = _current_files(connection, ids, at), _schema_versions(connection, ids)
    deletes, inlined_deletes = _deletes(connection, catalog, ids, at)
    inlined_rows = inlined_row_counts(connection, catalog, at, ids)
    partitions = partition_values(connection, t.file_partition_value.c.table_id.in_(ids))
    old_bytes, without_statistics = _old_bytes(connection, ids, at), _files_without_statistics(connection, ids, at)
    health = {}
    for table in tables:
        target = options.number("target_file_size", table.schema_id, table.id) or 1
        found = files[table.id]
        lost = {row.data_file_id: deletes[row.data_file_id] for row in found if row.data_file_id in deletes}
        rewritable = [row for row in found if 0 < lost.get(row.data_file_id, 0) >= deleted_share * row.record_count]
        small = [row for row in found if row.data_file_id not in lost and row.file_size_bytes < target]
        bins = _merge_bins(small, sorted(versions[table.id]), partitions, target)
        health[table.id] = TableHealth(
            files=len(found),
            bytes=sum(row.file_size_bytes for row in found),
            small_files=sum(map(len, bins)),
            small_bytes=sum(row.file_size_bytes for file_bin in bins for row in file_bin),
            merged_files=len(bins),
            rows=sum(row.record_count for row in found),
            deleted_rows=sum(lost.values()),
            rewritable_files=len(rewritable),
            rewritable_bytes=sum(row.file_size_bytes for row in rewritable),
            inlined_rows=inlined_rows.get(table.id, 0),
            inlined_deletes=inlined_deletes[table.id],
            old_bytes=old_bytes.get(table.id, 0),
            files_without_statistics=without_statistics.get(table.id, 0),
        )
    return health


def _current_files(connection: sa.Connection, table_ids: Sequence[int], at: int) -> dict[int, list[Any]]:
    """The data files of each table, in the order in which their rows were inserted."""
    data = t.data_file
    query = sa.select(
        data.c.data_file_id,
        data.c.table_id,
        data.c.record_count,
        data.c.file_size_bytes,
        data.c.begin_snapshot,
        data.c.partition_id,
    ).where(t.alive(data, at), data.c.table_id.in_(table_ids))
    files: dict[int, list[Any]] = defaultdict(list)
    for row in connection.execute(query.order_by(data.c.begin_snapshot, data.c.row_id_start, data.c.data_file_id)):
        files[row.table_id].append(row)
    return files


def _deletes(
    connection: sa.Connection, catalog: Catalog, table_ids: Sequence[int], at: int
) -> tuple[dict[int, int], dict[int, int]]:
    """The deleted rows of each data file that has deletes at any snapshot, and the inlined ones of each table."""
    deleted = t.delete_file
    count = sa.case((t.alive(deleted, at), deleted.c.delete_count), else_=0)
    of_files: dict[int, int] = defaultdict(int)
    for row in connection.execute(sa.select(deleted.c.data_file_id, count).where(deleted.c.table_id.in_(table_ids))):
        of_files[row[0]] += row[1]
    inlined: dict[int, int] = defaultdict(int)
    for table_id, file_id, inlined_count in inlined_delete_counts(connection, catalog, at, table_ids):
        of_files[file_id] += inlined_count
        inlined[table_id] += inlined_count
    return of_files, inlined


def _schema_versions(connection: sa.Connection, table_ids: Sequence[int]) -> dict[int, list[int]]:
    """The snapshots in which the schema versions of each table began."""
    version = t.schema_versions.c
    versions: dict[int, list[int]] = defaultdict(list)
    for row in connection.execute(
        sa.select(version.table_id, version.begin_snapshot).where(version.table_id.in_(table_ids))
    ):
        versions[row.table_id].append(row.begin_snapshot)
    return versions


def _files_without_statistics(connection: sa.Connection, table_ids: Sequence[int], at: int) -> dict[int, int]:
    data = t.data_file
    query = sa.select(data.c.table_id, sa.func.count()).where(
        t.alive(data, at),
        data.c.table_id.in_(table_ids),
        ~sa.exists().where(t.file_column_stats.c.data_file_id == data.c.data_file_id),
    )
    return {row[0]: int(row[1]) for row in connection.execute(query.group_by(data.c.table_id))}


def _old_bytes(connection: sa.Connection, table_ids: Sequence[int], at: int) -> dict[int, int]:
    """The size of the files that only earlier snapshots need."""
    data = t.data_file.c
    query = sa.select(data.table_id, sa.func.sum(data.file_size_bytes)).where(
        data.end_snapshot <= at, data.table_id.in_(table_ids)
    )
    return {row[0]: int(row[1] or 0) for row in connection.execute(query.group_by(data.table_id))}


def _merge_bins(
    files: Sequence[Any], versions: Sequence[int], partitions: Mapping[int, PartitionValues], target: int
) -> list[list[Any]]:
    """What `compaction.bins_to_merge` would merge, except that it compares columns and this counts schema versions."""
    groups: dict[object, list[Any]] = defaultdict(list)
    for row in files:
        version = bisect_right(versions, row.begin_snapshot)
        groups[version, row.partition_id, partitions.get(row.data_file_id)].append(row)
    bins = (b for group in groups.values() for b in packed(group, lambda row: int(row.file_size_bytes), target))
    return [file_bin for file_bin in bins if len(file_bin) > 1]
