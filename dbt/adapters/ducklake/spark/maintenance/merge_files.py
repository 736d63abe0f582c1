"""`ducklake_merge_adjacent_files` and `ducklake_rewrite_data_files`."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import sqlalchemy as sa

from ...lake.errors import LakeError
from ...lake.maintenance.compaction import FileBin, StoredFile, bins_to_merge, bins_to_rewrite, stored_files
from ...lake.options import Options
from ...lake.snapshot import Table
from ...lake.transaction import Transaction
from .arguments import Bytes
from .compaction import Totals, compact_table
from .context import MaintenanceContext


def merge_adjacent_files(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    min_file_size: Bytes | None = None,
    max_file_size: Bytes | None = None,
    max_compacted_files: int | None = None,
    target_file_size: Bytes | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Merges small files of a partition into files of the target size, at every snapshot.

    `max_compacted_files` limits how many files the call makes in each table. Files below `min_file_size`, and from
    `max_file_size` on, stay as they are.
    """
    if max_compacted_files is not None and max_compacted_files < 1:
        raise LakeError(f"max_compacted_files must be at least 1, not {max_compacted_files}")
    if max_file_size is not None and max_file_size <= (min_file_size or 0):
        raise LakeError(f"max_file_size must be above min_file_size, {min_file_size or 0} bytes, not {max_file_size}")

    def plan(connection: sa.Connection, transaction: Transaction, table: Table) -> list[FileBin]:
        target = target_file_size or _target_file_size(transaction.options, table)
        files = _stored_files(context, connection, transaction, table)
        return bins_to_merge(files, target, min_file_size or 0, max_file_size)

    return _compact(
        context, "ducklake_merge_adjacent_files", table_name, schema, plan, True, max_compacted_files, dry_run
    )


def rewrite_data_files(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    delete_threshold: float | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Writes files without their deleted rows, if at least the share `delete_threshold` of their rows is deleted.

    The default is the option `rewrite_delete_threshold`, 0.95.
    """
    if delete_threshold is not None and not 0 <= delete_threshold <= 1:
        raise LakeError(f"delete_threshold must be between 0 and 1, not {delete_threshold}")

    def plan(connection: sa.Connection, transaction: Transaction, table: Table) -> list[FileBin]:
        threshold = delete_threshold
        if threshold is None:
            threshold = float(transaction.options.get("rewrite_delete_threshold", table.schema_id, table.id) or 0)
        files = _stored_files(context, connection, transaction, table)
        return bins_to_rewrite(files, table.columns, _target_file_size(transaction.options, table), threshold)

    return _compact(context, "ducklake_rewrite_data_files", table_name, schema, plan, False, None, dry_run)


def _compact(
    context: MaintenanceContext,
    operation: str,
    table_name: str | None,
    schema: str | None,
    plan: Callable[[sa.Connection, Transaction, Table], list[FileBin]],
    is_merge: bool,
    max_bins: int | None,
    dry_run: bool,
) -> pa.Table:
    """The result has a row for each table that has something to compact."""
    lake = context.lake
    transaction = lake.begin()
    rows = []
    for table in context.tables(transaction.state, transaction.options, table_name, schema):
        schema_name = transaction.state.schema_of(table).name
        size = 0
        if dry_run:
            with lake.catalog.read() as connection:
                bins = plan(connection, transaction, table)[:max_bins]
            totals = Totals(sum(len(b.files) for b in bins), sum(1 for b in bins if b.live_bytes))
            size = sum(file.file_size_bytes for b in bins for file in b.files)
        else:
            message = f"{operation}: {schema_name}.{table.name}"
            totals = compact_table(context, table.id, message, plan, is_merge=is_merge, max_bins=max_bins)
        if totals.files_processed:
            rows.append((schema_name, table.name, totals.files_processed, totals.files_created, size))
    columns = {"schema_name": pa.string(), "table_name": pa.string()}
    columns |= {"files_processed": pa.int64(), "files_created": pa.int64()}
    if dry_run:
        columns["bytes"] = pa.int64()
    arrays = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(columns.values())]
    return pa.table(arrays, names=list(columns))


def _stored_files(
    context: MaintenanceContext, connection: sa.Connection, transaction: Transaction, table: Table
) -> list[StoredFile]:
    folder = transaction.state.table_folder(context.lake.catalog.data_path, table)
    return stored_files(connection, context.lake.catalog, table, folder, transaction.base.id)


def _target_file_size(options: Options, table: Table) -> int:
    return options.number("target_file_size", table.schema_id, table.id) or 1
