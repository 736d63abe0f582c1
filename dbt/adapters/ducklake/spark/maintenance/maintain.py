"""`ducklake_maintain` does what tables need, by limits and within a time; `ducklake_checkpoint` does everything."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from ...lake.errors import LakeError
from ...lake.maintenance.health import Limits
from ..engine.errors import first_line
from ..sql.quoting import quoted
from .cleanup import cleanup_old_files, delete_orphaned_files
from .context import MaintenanceContext
from .expire import expire_snapshots
from .flush import flush_inlined_data
from .health import measure
from .merge_files import merge_adjacent_files, rewrite_data_files

_OPERATIONS: Mapping[str, Callable[..., pa.Table]] = {
    "ducklake_flush_inlined_data": flush_inlined_data,
    "ducklake_expire_snapshots": expire_snapshots,
    "ducklake_merge_adjacent_files": merge_adjacent_files,
    "ducklake_rewrite_data_files": rewrite_data_files,
    "ducklake_cleanup_old_files": cleanup_old_files,
    "ducklake_delete_orphaned_files": delete_orphaned_files,
}
"""In the order in which the reference's checkpoint does them."""
_OF_LAKE = {
    "ducklake_expire_snapshots": ("snapshots", "expired"),
    "ducklake_cleanup_old_files": ("files", "deleted"),
    "ducklake_delete_orphaned_files": ("files", "deleted"),
}
"""Those that return no row for each table: what they return rows of, and what was done with it."""

_DONE = pa.schema(
    [
        ("operation", pa.string()),
        ("schema_name", pa.string()),
        ("table_name", pa.string()),
        ("files_processed", pa.int64()),
        ("files_created", pa.int64()),
        ("rows_flushed", pa.int64()),
        ("seconds", pa.float64()),
        ("note", pa.string()),
    ]
)


def maintain(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    small_files: int = Limits.small_files,
    deleted_share: float = Limits.deleted_share,
    inlined_rows: int = Limits.inlined_rows,
    max_seconds: float | None = None,
) -> pa.Table:
    """Flushes, rewrites and merges tables where it is worth it. Returns what was done.

    It flushes a table with so many `inlined_rows` or inlined deletes, rewrites files that lost a `deleted_share` of
    their rows once the table has, and merges files if that saves so many `small_files`. After `max_seconds` no further
    step begins.
    """
    if max_seconds is not None:
        context = replace(context, deadline=time.monotonic() + max_seconds)
    limits = Limits(small_files, deleted_share, inlined_rows)
    transaction = context.begin("ducklake_maintain")
    tables = context.tables(transaction, table_name, schema)
    health = measure(context, transaction, tables, deleted_share)
    done: list[dict[str, Any]] = []
    for table in tables:
        if context.is_late:
            break
        name, found = (transaction.state.schema_of(table).name, table.name), health[table.id]
        if found.needs_flush(limits):
            done += _maintain_table(context, "ducklake_flush_inlined_data", *name)
            found = measure(context, context.lake.begin(), [table], deleted_share)[table.id]
        if found.needs_rewrite(limits) and not context.is_late:
            done += _maintain_table(context, "ducklake_rewrite_data_files", *name, delete_threshold=deleted_share)
        if found.needs_merge(limits) and not context.is_late:
            done += _maintain_table(context, "ducklake_merge_adjacent_files", *name)
    return pa.Table.from_pylist(done, schema=_DONE)


def checkpoint(context: MaintenanceContext, *, dry_run: bool = False) -> pa.Table:
    """Flushes inlined rows, expires snapshots, merges and rewrites files, and deletes those that nobody needs.

    It does so with the options of the lake, in the order of the reference.
    """
    if not dry_run:
        context.lake.catalog.check_maintainable()
    done: list[dict[str, Any]] = []
    for name, operation in _OPERATIONS.items():
        start = time.monotonic()
        result = operation(context, dry_run=dry_run)
        seconds = round(time.monotonic() - start, 3)
        if name in _OF_LAKE:
            things, participle = _OF_LAKE[name]
            note = f"{result.num_rows} {things} {'would be ' if dry_run else ''}{participle}"
            done.append({"operation": name, "seconds": seconds, "note": note})
        else:
            done += [{"operation": name, "seconds": seconds, **row} for row in result.to_pylist()]
    return pa.Table.from_pylist(done, schema=_DONE)


def _maintain_table(
    context: MaintenanceContext, operation: str, schema: str, table: str, **arguments: Any
) -> list[dict[str, Any]]:
    """Does an operation on a table. Its error is a note in what is returned, so that other tables have their turn."""
    start = time.monotonic()
    rows, note = [], None
    try:
        rows = _OPERATIONS[operation](context, quoted(table), schema=schema, **arguments).to_pylist()
    except (LakeError, PySparkException, Py4JError) as error:  # its Spark jobs are cancelled when its time is over
        if not isinstance(error, LakeError) and not context.is_late:
            raise
        note = f"left for the next time: {first_line(error)}"
    if context.is_late:
        note = "stopped at the end of its time; the next run goes on"
    seconds = round(time.monotonic() - start, 3)
    if note and not rows:
        rows = [{"schema_name": schema, "table_name": table}]
    return [{"operation": operation, "seconds": seconds, "note": note, **row} for row in rows]
