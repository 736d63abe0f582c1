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
from ..snapshot import LakeState
from ..table_summary import inlined_delete_counts, inlined_row_counts
from .compaction import packed


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
    old_files: int = 0
    """Data files that only snapshots before this one need."""
    old_bytes: int = 0
    files_without_statistics: int = 0

    @property
    def deleted_share(self) -> float:
        return self.deleted_rows / self.rows if self.rows else 0.0


def table_health(
    connection: sa.Connection,
    catalog: Catalog,
    state: LakeState,
    options: Options,
    at: int,
    deleted_share: float | None = None,
    table_ids: Sequence[int] | None = None,
) -> dict[int, TableHealth]:
    """The health of the given tables, or of all, by id. `deleted_share` is by default the option of each table."""
    data, deleted = t.data_file, t.delete_file
    chosen = list(state.tables) if table_ids is None else list(table_ids)

    def is_chosen(column: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        return sa.true() if table_ids is None else column.in_(chosen)

    deletes: dict[int, int] = defaultdict(int)
    for row in connection.execute(
        sa.select(deleted.c.data_file_id, sa.case((t.alive(deleted, at), deleted.c.delete_count), else_=0)).where(
            is_chosen(deleted.c.table_id)
        )
    ):
        deletes[row[0]] += row[1]
    inlined_deletes: dict[int, int] = defaultdict(int)
    for table_id, file_id, count in inlined_delete_counts(connection, catalog, at, table_ids):
        deletes[file_id] += count
        inlined_deletes[table_id] += count
    files: dict[int, list[Any]] = defaultdict(list)
    query = sa.select(
        data.c.data_file_id,
        data.c.table_id,
        data.c.record_count,
        data.c.file_size_bytes,
        data.c.begin_snapshot,
        data.c.partition_id,
    ).where(t.alive(data, at), is_chosen(data.c.table_id))
    for row in connection.execute(query.order_by(data.c.begin_snapshot, data.c.row_id_start, data.c.data_file_id)):
        files[row.table_id].append(row)
    is_partitioned = any(table.partition for table in state.tables.values())
    of_chosen = is_chosen(t.file_partition_value.c.table_id)
    partitions = partition_values(connection, of_chosen) if is_partitioned else {}
    versions: dict[int, list[int]] = defaultdict(list)
    begins = t.schema_versions.c
    for row in connection.execute(
        sa.select(begins.table_id, begins.begin_snapshot).where(
            begins.table_id.is_not(None), is_chosen(begins.table_id)
        )
    ):
        versions[row.table_id].append(row.begin_snapshot)
    without_statistics = _counts(
        connection,
        sa.select(data.c.table_id, sa.func.count())
        .where(
            t.alive(data, at),
            is_chosen(data.c.table_id),
            ~sa.exists().where(t.file_column_stats.c.data_file_id == data.c.data_file_id),
        )
        .group_by(data.c.table_id),
    )
    old: dict[int, tuple[int, int]] = {}
    for row in connection.execute(
        sa.select(data.c.table_id, sa.func.count(), sa.func.sum(data.c.file_size_bytes))
        .where(data.c.end_snapshot <= at, is_chosen(data.c.table_id))
        .group_by(data.c.table_id)
    ):
        old[row[0]] = (row[1], int(row[2] or 0))
    inlined_rows = inlined_row_counts(connection, catalog, at, table_ids)
    result = {}
    for table_id in chosen:
        table = state.tables[table_id]
        target = options.number("target_file_size", table.schema_id, table_id) or 1
        threshold = deleted_share
        if threshold is None:
            threshold = float(options.get("rewrite_delete_threshold", table.schema_id, table_id) or 0)
        found = files[table_id]
        lost = {row.data_file_id: deletes[row.data_file_id] for row in found if row.data_file_id in deletes}
        rewritable = [row for row in found if 0 < lost.get(row.data_file_id, 0) >= threshold * row.record_count]
        small = [row for row in found if row.data_file_id not in lost and row.file_size_bytes < target]
        bins = _merge_bins(small, sorted(versions[table_id]), partitions, target)
        result[table_id] = TableHealth(
            files=len(found),
            bytes=sum(row.file_size_bytes for row in found),
            small_files=sum(map(len, bins)),
            small_bytes=sum(row.file_size_bytes for file_bin in bins for row in file_bin),
            merged_files=len(bins),
            rows=sum(row.record_count for row in found),
            deleted_rows=sum(lost.values()),
            rewritable_files=len(rewritable),
            rewritable_bytes=sum(row.file_size_bytes for row in rewritable),
            inlined_rows=inlined_rows.get(table_id, 0),
            inlined_deletes=inlined_deletes[table_id],
            old_files=old.get(table_id, (0, 0))[0],
            old_bytes=old.get(table_id, (0, 0))[1],
            files_without_statistics=without_statistics.get(table_id, 0),
        )
    return result


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


def _counts(connection: sa.Connection, query: sa.Select[Any]) -> dict[int, int]:
    return {row[0]: int(row[1]) for row in connection.execute(query)}
