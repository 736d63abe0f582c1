"""`ducklake_cleanup_old_files` and `ducklake_delete_orphaned_files`: delete files that no snapshot needs."""

from __future__ import annotations

import datetime
import logging

import pyarrow as pa

from ...lake.durations import moment_before
from ...lake.errors import LakeError
from ...lake.maintenance import cleanup, orphans
from ...lake.maintenance.table_folders import table_folders
from ...lake.tables import UTC
from .context import MaintenanceContext

logger = logging.getLogger(__name__)

_DEFAULT_AGE = "2 days"


def cleanup_old_files(
    context: MaintenanceContext,
    *,
    older_than: datetime.datetime | None = None,
    cleanup_all: bool = False,
    table_name: str | None = None,
    schema: str | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Deletes the files that are scheduled for deletion since before a moment. Returns their paths.

    The moment is by default as long ago as the option `delete_older_than` says, or else 2 days. With `table_name`, only
    files in the folder of that table are deleted.
    """
    deleted = cleanup.cleanup_old_files(
        context.lake.catalog,
        context.lake.file_store,
        older_than=_limit(context, "ducklake_cleanup_old_files", older_than, cleanup_all),
        folders=_folders(context, table_name, schema),
        dry_run=dry_run,
    )
    return _rows(deleted, dry_run)


def delete_orphaned_files(
    context: MaintenanceContext,
    *,
    older_than: datetime.datetime | None = None,
    cleanup_all: bool = False,
    table_name: str | None = None,
    schema: str | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Deletes files in the data path that no catalog names and that are older than a moment. Returns their paths.

    The moment is by default as long ago as the option `delete_older_than` says, or else 2 days. With `table_name`, only
    files in the folder of that table are deleted.
    """
    deleted = orphans.delete_orphaned_files(
        context.lake.catalog,
        context.lake.file_store,
        older_than=_limit(context, "ducklake_delete_orphaned_files", older_than, cleanup_all),
        folders=_folders(context, table_name, schema),
        dry_run=dry_run,
        other_lakes=[lake.catalog for lake in context.other_lakes],
    )
    return _rows(deleted, dry_run)


def _folders(context: MaintenanceContext, table_name: str | None, schema: str | None) -> list[str] | None:
    """The folders that a table has or had; None for the whole lake."""
    if table_name is None:
        return None
    table = context.table(context.lake.begin().state, table_name, schema)
    with context.lake.catalog.read() as connection:
        return table_folders(connection, context.lake.catalog.data_path)[table.id]


def _limit(
    context: MaintenanceContext, procedure: str, older_than: datetime.datetime | None, cleanup_all: bool
) -> datetime.datetime | None:
    """The moment before which files are deleted; None for all of them."""
    if cleanup_all and older_than is not None:
        raise LakeError(f"{procedure} takes either cleanup_all or older_than, and both were given")
    if cleanup_all or older_than is not None:
        return older_than
    return default_moment(context, procedure)


def default_moment(context: MaintenanceContext, procedure: str) -> datetime.datetime:
    """The moment before which files are deleted if no other one is given."""
    with context.lake.catalog.read() as connection:
        age = context.lake.catalog.options(connection).get("delete_older_than")
    if age == "":
        raise LakeError(f"{procedure} needs older_than or cleanup_all, because the option delete_older_than is empty")
    return moment_before(datetime.datetime.now(UTC), age or _DEFAULT_AGE)


def _rows(deleted: cleanup.DeletedFiles, dry_run: bool) -> pa.Table:
    for note in deleted.notes:
        logger.warning(note)
    columns = {"path": pa.array(deleted.paths, pa.string())}
    if dry_run:
        columns["bytes"] = pa.array(deleted.sizes, pa.int64())
    return pa.table(columns)
