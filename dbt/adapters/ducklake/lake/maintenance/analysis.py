"""Analysis: statistics of data files that the catalog lacks, from the footers of the files, and then of the table.

Readers prune by statistics, so they are completed and never narrowed. Those of a file hold for all of its rows, deleted
or not. Those of a table hold for every snapshot that is left, since DuckDB applies them to earlier versions too:
* Bounds that the table has are widened by what the files turned out to hold.
* A column without bounds gets those of all files that any snapshot needs, if every file tells and the catalog stores no
  rows of the table itself. Otherwise it stays without, or with the widest ones: see `stats`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import sqlalchemy as sa

from .. import inlined
from .. import tables as t
from ..catalog import Catalog
from ..commit.rows import SnapshotRows, id_batches
from ..commit.table_statistics import load_statistics
from ..errors import BusyError
from ..file_store import FileStore
from ..files import DataFile, NameMap, name_maps, table_files
from ..parquet_footer import file_stats, positional_name_map
from ..paths import has_data_file_name
from ..snapshot import LakeState, Table
from ..snapshot_loader import ColumnHistory, Snapshots, read_column_history
from ..stats import UNKNOWN_STATS, ColumnStats, TableColumnStats, widen_table_stats
from ..types import INTEGER_RANGES, Column
from .write_attempts import write_with_retries

_PARALLEL_READS = 16

FileStatistics = Mapping[int, Mapping[int, ColumnStats]]
"""Statistics by file id and column id."""


@dataclass(frozen=True)
class _Work:
    """The files to read, and what it takes to read them."""

    table: Table
    files: Sequence[DataFile]
    name_maps: Mapping[int, NameMap]
    history: ColumnHistory


def analyze_table(
    catalog: Catalog,
    snapshots: Snapshots,
    store: FileStore,
    table_id: int,
    columns: Collection[int] | None = None,
    *,
    read_files: bool = True,
) -> int:
    """Completes the statistics of some columns, by default of all. Returns of how many files.

    Without `read_files` only the table's statistics are completed, from those of its files in the catalog.
    """
    catalog.check_writable()
    found: dict[int, Mapping[int, ColumnStats]] = {}
    columns_found: Sequence[Column] = ()
    for attempt in range(catalog.retry.max_count + 1):
        work = _plan(catalog, snapshots, table_id, columns, read_files)
        if work is None:
            return 0
        if work.table.columns != columns_found:
            found, columns_found = {}, work.table.columns
        new = [file for file in work.files if file.id not in found]
        found.update(_read(store, replace(work, files=new)))
        analyzed = write_with_retries(
            catalog,
            f"writing statistics of table {work.table.name}",
            lambda connection, work=work, found=found: _write(  # type: ignore[misc]
                connection, catalog, snapshots, work.table, columns, found
            ),
            in_line=True,
        )
        if analyzed is not None:
            return analyzed
        catalog.retry.wait(attempt)
    raise BusyError(
        f"writing statistics of a table in {catalog.database.location} failed: other writers were first"
        f" {catalog.retry.max_count + 1} times in a row; run it again, or raise retry.max_count"
    )


def _plan(
    catalog: Catalog, snapshots: Snapshots, table_id: int, columns: Collection[int] | None, read_files: bool
) -> _Work | None:
    """The files that lack statistics. None if the table does not exist."""
    with catalog.read() as connection:
        latest = catalog.latest_snapshot(connection)
        state = snapshots.state(connection, latest)
        table = state.tables.get(table_id)
        if table is None:
            return None
        history = read_column_history(connection, table_id)
        if not read_files:
            return _Work(table, (), {}, history)
        begins = _column_begins(connection, table_id)
        wanted = [column.id for column in _leaves(table, columns)]
        counts = _statistics_counts(connection, table_id, wanted)
        folder = state.table_folder(catalog.data_path, table)
        files = [
            file
            for file in table_files(connection, catalog, table, folder, latest.id)
            # A file that is older than a column has mostly no such column.
            if counts.get(file.id, 0) < sum(1 for i in wanted if begins.get(i, 0) <= (file.begin_snapshot or 0))
        ]
        maps = name_maps(connection, table_id) if any(file.mapping_id is not None for file in files) else {}
    return _Work(table, files, maps, history)


def _leaves(table: Table, columns: Collection[int] | None) -> Iterator[Column]:
    """The columns and nested fields that have statistics, of some columns or of all."""
    for column in table.walk_columns():
        if columns is None or column.id in columns:
            yield from column.leaves()


def _column_begins(connection: sa.Connection, table_id: int) -> dict[int, int]:
    """The snapshot in which each column was added."""
    column = t.column.c
    query = sa.select(column.column_id, sa.func.min(column.begin_snapshot)).group_by(column.column_id)
    return {row[0]: row[1] for row in connection.execute(query.where(column.table_id == table_id))}


def _statistics_counts(connection: sa.Connection, table_id: int, columns: Sequence[int]) -> dict[int, int]:
    """Of how many of the columns the catalog has statistics, by file id."""
    stats = t.file_column_stats.c
    counts: dict[int, int] = defaultdict(int)
    for batch in id_batches(columns):
        query = (
            sa.select(stats.data_file_id, sa.func.count())
            .where(stats.table_id == table_id, stats.column_id.in_(batch))
            .group_by(stats.data_file_id)
        )
        for row in connection.execute(query):
            counts[row[0]] += row[1]
    return counts


def _read(store: FileStore, work: _Work) -> FileStatistics:
    """The statistics in the footers of files."""

    def read(file: DataFile) -> Mapping[int, ColumnStats]:
        footer = store.read_footer(file.path, file.encryption_key).metadata
        name_map = work.name_maps.get(file.mapping_id) if file.mapping_id is not None else None
        if file.mapping_id is None and not has_data_file_name(file.path):
            # As such files are read: by the positions of the columns at that time, unless they have field ids.
            name_map = positional_name_map(footer, work.history.columns_at(file.begin_snapshot or 0))
        return file_stats(footer, work.table.columns, name_map=name_map)

    if not work.files:
        return {}
    with ThreadPoolExecutor(_PARALLEL_READS, thread_name_prefix="lake-footers") as pool:
        return dict(zip((file.id for file in work.files), pool.map(read, work.files), strict=True))


def _write(
    connection: sa.Connection,
    catalog: Catalog,
    snapshots: Snapshots,
    table: Table,
    columns: Collection[int] | None,
    found: FileStatistics,
) -> int | None:
    """Writes what was found, in one transaction. Returns of how many files; None if it has to begin again."""
    _exclude_other_writers(connection, table.id)
    latest, snapshot_id = catalog.latest_snapshot(connection), t.snapshot.c.snapshot_id
    newest = sa.select(snapshot_id).order_by(snapshot_id.desc()).limit(1)
    if connection.scalar(catalog.database.newest_rows(newest)) != latest.id:
        return None
    state: LakeState = snapshots.state(connection, latest)
    current = state.tables.get(table.id)
    if current is None:
        return 0
    if current.columns != table.columns:
        return None
    leaves = {column.id: column.type for column in _leaves(table, columns)}
    missing = _missing(connection, catalog, table.id, latest.id, found, leaves)
    rows = SnapshotRows(connection, catalog, latest)
    for file_id, by_column in missing.items():
        rows.add_column_stats(table.id, file_id, by_column)
    rows.flush()
    _write_table_statistics(SnapshotRows(connection, catalog, latest), table, leaves, missing)
    return len(missing)


def _exclude_other_writers(connection: sa.Connection, table_id: int) -> None:
    """Makes a commit that adds files to the table, or another analysis, wait for this one or start again."""
    stats = t.table_stats
    connection.execute(sa.update(stats).where(stats.c.table_id == table_id).values(record_count=stats.c.record_count))


def _missing(
    connection: sa.Connection,
    catalog: Catalog,
    table_id: int,
    at: int,
    found: FileStatistics,
    columns: Collection[int],
) -> dict[int, dict[int, ColumnStats]]:
    """The statistics that were found, of current files, and that the catalog does not have."""
    data, stats = t.data_file, t.file_column_stats
    missing: dict[int, dict[int, ColumnStats]] = {}
    for batch in id_batches(found):
        alive = sa.select(data.c.data_file_id).where(data.c.data_file_id.in_(batch), t.alive(data, at))
        file_id: int
        for file_id in connection.scalars(alive):
            missing[file_id] = {i: s for i, s in found[file_id].items() if i in columns}
        known = sa.select(stats.c.data_file_id, stats.c.column_id).where(
            stats.c.table_id == table_id, stats.c.data_file_id.in_(batch)
        )
        for row in connection.execute(catalog.database.newest_rows(known)):
            missing.get(row.data_file_id, {}).pop(row.column_id, None)
    return {file_id: by_column for file_id, by_column in missing.items() if by_column}


def _write_table_statistics(
    rows: SnapshotRows, table: Table, columns: Mapping[int, str], missing: FileStatistics
) -> None:
    statistics = load_statistics(rows, {table.id: columns})[table.id]
    if not statistics.exists:
        return
    without = statistics.columns_without_bounds(columns)
    if without and not inlined.has_rows(rows.connection, rows.catalog, table.id):
        statistics.complete(_statistics_of_all_files(rows.connection, table, {i: columns[i] for i in without}))
    statistics.widen({i: s for i, s in found.items() if i not in without} for found in missing.values())
    if not statistics.is_unchanged:
        statistics.write()
        rows.flush()


def _statistics_of_all_files(
    connection: sa.Connection, table: Table, columns: Mapping[int, str]
) -> dict[int, TableColumnStats]:
    """The statistics over all files that any snapshot needs, of the columns of which every file tells."""
    history, begins = read_column_history(connection, table.id), _column_begins(connection, table.id)
    data, stats = t.data_file.c, t.file_column_stats.c
    query = sa.select(data.data_file_id, data.begin_snapshot, data.partial_max).where(data.table_id == table.id)
    files = connection.execute(query).all()
    by_id = {column.id: column for column in table.walk_columns()}
    complete: dict[int, TableColumnStats] = {}
    for column_id, type_ in columns.items():
        if type_ not in INTEGER_RANGES and history.had_another_type(by_id[column_id]):
            continue  # the text of a bound may mean another value in the new type, as that of 0.1 does
        of_column = sa.select(
            stats.data_file_id,
            stats.value_count,
            stats.null_count,
            stats.min_value,
            stats.max_value,
            stats.contains_nan,
        ).where(stats.table_id == table.id, stats.column_id == column_id)
        told = {row.data_file_id: ColumnStats(0, *row[1:]) for row in connection.execute(of_column)}
        total: TableColumnStats | None = None
        for file in files:
            known = told.get(file.data_file_id, UNKNOWN_STATS)
            is_older = max(file.begin_snapshot, file.partial_max or 0) < begins.get(column_id, 0)
            if known is UNKNOWN_STATS and is_older and by_id[column_id].initial_default is None:
                known = ColumnStats(0, 0, 1, None, None, False)  # NULL in all rows
            if known.value_count != 0 and (known.min_value is None or known.max_value is None):
                break
            total = widen_table_stats(total, known, type_)
        else:
            if total is not None:
                complete[column_id] = total
    return complete
