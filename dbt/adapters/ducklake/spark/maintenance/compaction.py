"""Compaction: rows move into other data files, a step at a time, beside writers.

A step reads the files of some bins, writes new files and commits. Nobody waits for it. If a writer deleted rows of one
of its files meanwhile, or another compaction took it, the bin of that file is done again on the new state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import sqlalchemy as sa
from pyspark import inheritable_thread_target

from ...lake.commit.staged import Compaction
from ...lake.errors import CommitUnknownError, ConflictError
from ...lake.files import DataFile, NewDataFile, name_maps, table_files
from ...lake.maintenance.compaction import FileBin
from ...lake.snapshot import Table
from ...lake.sorting import SortKey, SortSpec
from ...lake.transaction import Transaction
from ..read.scan import TableScan
from ..sql.kept_text import table_as_text
from ..write.writer import write_moved_rows
from .context import MaintenanceContext
from .moved_rows import MAX_ROUNDS, ROW_ID, SNAPSHOT_ID, discard_files, read_rows
from .z_order import z_order_expression

logger = logging.getLogger(__name__)

STEP_BYTES = 16 << 30
"""A step compacts bins of about so many bytes, and is one snapshot."""
STEP_BYTES_IN_TIME = 1 << 30
"""The same where the time is limited: it is looked at between steps."""
SMALL_BIN_BYTES = 32 << 20
"""Bins of several partitions up to this size are written by one job, which shuffles their rows."""
_PARALLEL_JOBS = 4


@dataclass(frozen=True)
class CompactionPlan:
    """What a compaction does, for any table."""

    message: str
    bins: Callable[[sa.Connection, Transaction, Table], list[FileBin]]
    """Finds the bins of a table in a transaction."""
    candidates: Callable[[sa.Connection, int], set[int]]
    """Finds the tables that may have bins at a snapshot, so that a lake with many tables is not asked for each."""
    is_merge: bool = False
    z_order: tuple[str, ...] = ()
    """The columns by whose z-order the rows of new files are sorted, in place of the table's own order."""
    moves_partitions: bool = False
    """Whether rows get the partition specification of their bin, whatever they had. Each bin is then a step."""


@dataclass(frozen=True)
class Totals:
    """What a compaction came to for one table."""

    files_processed: int = 0
    files_created: int = 0

    def plus(self, compactions: Sequence[Compaction]) -> Totals:
        return Totals(
            self.files_processed + sum(len(c.sources) for c in compactions),
            self.files_created + sum(len(c.files) for c in compactions),
        )


def compact_table(
    context: MaintenanceContext, table_id: int, plan: CompactionPlan, max_bins: int | None = None
) -> Totals:
    """Compacts the bins that a plan finds in a table. Those that writers changed meanwhile are planned anew."""
    totals = Totals()
    for _ in range(MAX_ROUNDS):
        transaction = context.begin(plan.message)
        table = transaction.state.tables.get(table_id)
        if table is None:
            return totals
        with context.lake.catalog.read() as connection:
            bins = plan.bins(connection, transaction, table)[:max_bins]
        conflicts = 0
        step_bytes = STEP_BYTES if context.deadline is None else STEP_BYTES_IN_TIME
        for step in [[file_bin] for file_bin in bins] if plan.moves_partitions else _steps(bins, step_bytes):
            if context.is_late:
                return totals
            committed = _compact_step(context, table_id, plan, step)
            totals = totals.plus(committed)
            done = {source.id for compaction in committed for source in compaction.sources}
            conflicts += sum(1 for file_bin in step if file_bin.files[0].id not in done)
        if not conflicts:
            return totals
        max_bins = None if max_bins is None else conflicts
    logger.warning("%s: writers changed the files again and again; some are left as they are", plan.message)
    return totals


def _steps(bins: Sequence[FileBin], step_bytes: int) -> Iterator[list[FileBin]]:
    step: list[FileBin] = []
    size = 0
    for file_bin in bins:
        if step and size + file_bin.live_bytes > step_bytes:
            yield step
            step, size = [], 0
        step.append(file_bin)
        size += file_bin.live_bytes
    if step:
        yield step


def _compact_step(
    context: MaintenanceContext, table_id: int, plan: CompactionPlan, bins: Sequence[FileBin]
) -> list[Compaction]:
    """Compacts bins and commits. Returns the compactions of those whose files nobody changed meanwhile."""
    transaction = context.begin(plan.message)
    current = _current_files(context, transaction, table_id)
    bins = [b for b in bins if _has_files(current, b.files)]
    if not bins:
        return []
    table = transaction.state.tables[table_id]
    if not plan.is_merge and any(b.columns != table.columns for b in bins):
        return []  # the table was altered since its files were planned, and new files are to have its columns of now
    jobs = _jobs(bins, plan, is_sorted=bool(plan.z_order) or table.sort is not None)
    finished: list[Compaction] = []
    try:
        # The jobs of the threads have the tags of this one, by which they are cancelled.
        run = inheritable_thread_target(context.planner.spark)(lambda job: _run(context, transaction, table, plan, job))
        with ThreadPoolExecutor(min(_PARALLEL_JOBS, len(jobs)), thread_name_prefix="lake-compaction") as pool:
            for compactions in pool.map(run, jobs):
                finished += compactions
        committed = _commit(context, transaction, table_id, plan.message, finished)
    except CommitUnknownError:
        raise  # the snapshot may have the files
    except Exception:
        discard_files(context, transaction, table, (file for c in finished for file in c.files))
        raise
    left_over = (file for c in finished if c not in committed for file in c.files)
    discard_files(context, transaction, table, left_over)
    return committed


def _commit(
    context: MaintenanceContext, transaction: Transaction, table_id: int, message: str, finished: Sequence[Compaction]
) -> list[Compaction]:
    """Commits the compactions whose sources are as they were read, and returns these."""
    valid = list(finished)
    while valid:
        transaction.compact(transaction.state.tables[table_id], valid)
        try:
            transaction.commit()
            return valid
        except ConflictError:
            transaction = context.begin(message)
            current = _current_files(context, transaction, table_id)
            unchanged = [c for c in valid if _has_files(current, c.sources)]
            if len(unchanged) == len(valid):  # the definition of the table changed
                return []
            valid = unchanged
    return []


def _current_files(context: MaintenanceContext, transaction: Transaction, table_id: int) -> dict[int, DataFile]:
    table = transaction.state.tables.get(table_id)
    if table is None:
        return {}
    folder = transaction.state.table_folder(context.lake.catalog.data_path, table)
    with context.lake.catalog.read() as connection:
        files = table_files(connection, context.lake.catalog, table, folder, transaction.base.id)
    return {file.id: file for file in files}


def _has_files(current: Mapping[int, DataFile], files: Sequence[DataFile]) -> bool:
    """Whether a table has these files still, with the deletes that they had."""
    return all(current.get(file.id) == file for file in files)


@dataclass(frozen=True)
class _Job:
    """Bins that one Spark job writes: those of one partition, or small ones of a partition each."""

    bins: tuple[FileBin, ...]
    is_one_partition: bool


def _jobs(bins: Sequence[FileBin], plan: CompactionPlan, is_sorted: bool) -> list[_Job]:
    if plan.moves_partitions:
        return [_Job((file_bin,), False) for file_bin in bins]
    jobs: list[_Job] = []
    small: dict[tuple[int, object], list[FileBin]] = {}
    by_partition: dict[object, list[FileBin]] = {}
    for file_bin in bins:
        by_partition.setdefault((id(file_bin.columns), file_bin.partition, file_bin.partition_values), []).append(
            file_bin
        )
    for found in by_partition.values():
        first = found[0]
        if first.partition is not None and len(found) == 1 and first.live_bytes <= SMALL_BIN_BYTES:
            small.setdefault((id(first.columns), first.partition), []).append(first)
        elif is_sorted:  # sorted as a whole, so that the files hardly overlap
            jobs.append(_Job(tuple(found), True))
        else:
            jobs += [_Job((file_bin,), True) for file_bin in found]
    jobs += [_Job(tuple(found), len(found) == 1) for found in small.values()]
    return jobs


def _run(
    context: MaintenanceContext, transaction: Transaction, table: Table, plan: CompactionPlan, job: _Job
) -> list[Compaction]:
    """Writes the rows of a job's files into new files."""
    first = job.bins[0]
    table = replace(table, columns=first.columns, partition=first.partition)
    files = [file for file_bin in job.bins for file in file_bin.files]
    with context.lake.catalog.read() as connection:
        maps = name_maps(connection, table.id) if any(f.mapping_id is not None for f in files) else {}
    scan = TableScan(table_as_text(table), transaction.base.id, files, maps)
    rows = read_rows(context, table, scan)
    row_count = sum(file.live_rows for file in files)
    if plan.z_order:
        key = z_order_expression(rows, plan.z_order, row_count)
        table = replace(table, sort=SortSpec(-1, (SortKey(key, dialect="spark"),)))
    written = write_moved_rows(
        rows,
        context.write_target(transaction, table),
        ROW_ID,
        SNAPSHOT_ID if plan.is_merge else None,
        first.partition_values if job.is_one_partition else None,
        len(job.bins),
        sum(b.live_bytes for b in job.bins) / max(row_count, 1) if plan.moves_partitions else None,
    )
    if job.is_one_partition or len(job.bins) == 1:
        return [Compaction(tuple(files), tuple(written), plan.is_merge)]
    by_values: dict[object, list[NewDataFile]] = {}
    for file in written:
        by_values.setdefault(file.partition_values, []).append(file)
    return [Compaction(b.files, tuple(by_values.get(b.partition_values, ())), plan.is_merge) for b in job.bins]
