"""VACUUM: old snapshots expire, and files that no snapshot needs are deleted."""

from __future__ import annotations

import datetime

import pyarrow as pa

from ...lake.tables import UTC
from .cleanup import cleanup_old_files, default_moment, delete_orphaned_files
from .context import MaintenanceContext
from .expire import expire_snapshots

_HOURS_OF_CENTURIES = 300 * 365 * 24


def vacuum(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    retain_hours: float | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Expires snapshots, by default those older than the option `expire_older_than`, and deletes unneeded files.

    Files are deleted at the age at which the clean-up operations delete them: readers and writers may need younger
    ones. Snapshots are those of the whole lake. So of a single table none expires, and `retain_hours` can only keep its
    files for longer.
    """
    limit = None
    if retain_hours is not None:
        limit = datetime.datetime.now(UTC) - datetime.timedelta(hours=min(retain_hours, _HOURS_OF_CENTURIES))
    operations: list[str] = []
    paths: list[str | None] = []
    sizes: list[int | None] = []
    if table_name is None:
        expired = expire_snapshots(context, older_than=limit, dry_run=dry_run)
        operations += [f"expire snapshot {i}" for i in expired.column("snapshot_id").to_pylist()]
        paths, sizes, limit = [None] * len(operations), [None] * len(operations), None
    elif limit is not None:
        limit = min(limit, default_moment(context, "VACUUM"))
    for operation, clean_up in (("delete old file", cleanup_old_files), ("delete orphan file", delete_orphaned_files)):
        deleted = clean_up(context, older_than=limit, table_name=table_name, dry_run=dry_run)
        operations += [operation] * len(deleted)
        paths += deleted.column("path").to_pylist()
        sizes += deleted.column("bytes").to_pylist() if dry_run else [None] * len(deleted)
    return pa.table(
        {
            "operation": pa.array(operations, pa.string()),
            "path": pa.array(paths, pa.string()),
            "bytes": pa.array(sizes, pa.int64()),
        }
    )
