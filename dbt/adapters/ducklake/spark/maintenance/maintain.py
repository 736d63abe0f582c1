"""`ducklake_maintain` does what tables need, by limits and within a time; `ducklake_checkpoint` does everything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ...lake.errors import LakeError
from ...lake.maintenance.health import TableHealth, table_health
from ...lake.snapshot import Table
from .cleanup import cleanup_old_files, delete_orphaned_files
from .context import MaintenanceContext
from .expire import expire_snapshots
from .flush import flush_inlined_data
from .merge_files import merge_adjacent_files, rewrite_data_files

SMALL_FILES = 20
DELETED_SHARE = 0.2
INLINED_ROWS = 1000


@dataclass(frozen=True)
class Done:
    """One operation on one table, or on the lake."""

    operation: str
    schema_name: str | None
    table_name: str | None
    files_processed: int | None = None
    files_created: int | None = None
    rows_flushed: int | None = None
    seconds: float = 0.0
    note: str | None = None


_TYPES = {
    "operation": pa.string(),
    "schema_name": pa.string(),
    "table_name": pa.string(),
    "files_processed": pa.int64(),
    "files_created": pa.int64(),
    "rows_flushed": pa.int64(),
    "seconds": pa.float64(),
    "note": pa.string(),
}


def maintain(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    small_files: int = SMALL_FILES,
    deleted_share: float = DELETED_SHARE,
    inlined_rows: int = INLINED_ROWS,
    max_seconds: float | None = None,
) -> pa.Table:
    """Flushes, rewrites and merges tables where it is worth it. Returns what was done.

    It flushes a table with so many `inlined_rows` or inlined deletes, rewrites files that lost a `deleted_share` of
    their rows once the table has, and merges files if that saves so many `small_files`. After `max_seconds` no further
    step begins.
    """
    if max_seconds is not None:
        context = replace(context, deadline=time.monotonic() + max_seconds)
    transaction = context.begin("ducklake_maintain")
    tables = context.tables(transaction.state, transaction.options, table_name, schema)
    health = _health(context, tables, deleted_share)
    done: list[Done] = []
    for table in tables:
        name = (transaction.state.schema_of(table).name, table.name)
        found = health.get(table.id, TableHealth())
        if context.is_late:
            break
        if max(found.inlined_rows, found.inlined_deletes) >= max(inlined_rows, 1):
            done += _timed(context, "ducklake_flush_inlined_data", *name)
            found = _health(context, [table], deleted_share).get(table.id, found)
        if found.rewritable_files and found.deleted_share >= deleted_share and not context.is_late:
            done += _timed(context, "ducklake_rewrite_data_files", *name, delete_threshold=deleted_share)
        if found.small_files - found.merged_files >= max(small_files, 1) and not context.is_late:
            done += _timed(context, "ducklake_merge_adjacent_files", *name)
    return _rows(done)


def checkpoint(context: MaintenanceContext, *, dry_run: bool = False) -> pa.Table:
    """Flushes inlined rows, expires snapshots, merges and rewrites files, and deletes those that nobody needs.

    It does so with the options of the lake, in the order of the reference.
    """
    done: list[Done] = []
    operations: Mapping[str, Callable[..., pa.Table]] = {
        "ducklake_flush_inlined_data": flush_inlined_data,
        "ducklake_expire_snapshots": expire_snapshots,
        "ducklake_merge_adjacent_files": merge_adjacent_files,
        "ducklake_rewrite_data_files": rewrite_data_files,
        "ducklake_cleanup_old_files": cleanup_old_files,
        "ducklake_delete_orphaned_files": delete_orphaned_files,
    }
    notes = {
        "ducklake_expire_snapshots": "snapshots expired",
        "ducklake_cleanup_old_files": "files deleted",
        "ducklake_delete_orphaned_files": "files deleted",
    }
    for name, operation in operations.items():
        start = time.monotonic()
        rows = operation(context, dry_run=dry_run)
        seconds = round(time.monotonic() - start, 3)
        if name in notes:
            verb = "would be " if dry_run else ""
            what, participle = notes[name].split()
            done.append(Done(name, None, None, seconds=seconds, note=f"{rows.num_rows} {what} {verb}{participle}"))
        else:
            done += [replace(found, seconds=seconds) for found in _done(name, rows)]
    return _rows(done)


def _health(context: MaintenanceContext, tables: list[Table], deleted_share: float) -> dict[int, TableHealth]:
    catalog = context.lake.catalog
    with catalog.read() as connection:
        snapshot = catalog.latest_snapshot(connection)
        state = context.lake.snapshots.state(connection, snapshot)
        ids = [table.id for table in tables if table.id in state.tables]
        options = catalog.options(connection)
        return table_health(connection, catalog, state, options, snapshot.id, deleted_share, ids)


def _timed(
    context: MaintenanceContext, operation: str, schema: str, table: str, delete_threshold: float | None = None
) -> Iterator[Done]:
    start = time.monotonic()
    note = None
    rows = None
    try:
        if operation == "ducklake_flush_inlined_data":
            rows = flush_inlined_data(context, _quoted(table), schema=schema)
        elif operation == "ducklake_rewrite_data_files":
            rows = rewrite_data_files(context, _quoted(table), schema=schema, delete_threshold=delete_threshold)
        else:
            rows = merge_adjacent_files(context, _quoted(table), schema=schema)
    except (LakeError, PySparkException, Py4JError) as error:  # its Spark jobs are cancelled when its time is over
        if not isinstance(error, LakeError) and not context.is_late:
            raise
        note = f"left for the next time: {str(error).splitlines()[0]}"
    if context.is_late:
        note = "stopped at the end of its time; the next run goes on"
    seconds = round(time.monotonic() - start, 3)
    found = list(_done(operation, rows)) if rows is not None else []
    for done in found or ([Done(operation, schema, table)] if note else []):
        yield replace(done, seconds=seconds, note=note)


def _done(operation: str, rows: pa.Table) -> Iterator[Done]:
    for row in rows.to_pylist():
        counts = {name: row.get(name) for name in ("files_processed", "files_created", "rows_flushed")}
        yield Done(operation, row["schema_name"], row["table_name"], **counts)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _rows(done: list[Done]) -> pa.Table:
    arrays = [pa.array([getattr(d, name) for d in done], type_) for name, type_ in _TYPES.items()]
    return pa.table(arrays, names=list(_TYPES))
