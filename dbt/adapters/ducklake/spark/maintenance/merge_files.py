"""`ducklake_merge_adjacent_files`, `ducklake_rewrite_data_files` and `ducklake_migrate_partitioning`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import sqlalchemy as sa

from ...lake.errors import LakeError
from ...lake.files import table_files
from ...lake.maintenance.compaction import (
    FileBin,
    StoredFile,
    bins_to_merge,
    bins_to_migrate,
    bins_to_rewrite,
    stored_files,
    tables_to_migrate,
    tables_with_deletes,
    tables_with_files,
)
from ...lake.options import Options
from ...lake.predicates import Predicate
from ...lake.snapshot import Table
from ...lake.transaction import Transaction
from ..sql.pushdown import pushdown_predicates
from .arguments import Bytes
from .compaction import STEP_BYTES, CompactionPlan, Totals, compact_table
from .context import MaintenanceContext
from .z_order import check_z_order_columns


def merge_adjacent_files(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    min_file_size: Bytes | None = None,
    max_file_size: Bytes | None = None,
    max_compacted_files: int | None = None,
    target_file_size: Bytes | None = None,
    where: str | None = None,
    zorder_by: Sequence[str] = (),
    dry_run: bool = False,
) -> pa.Table:
    """Merges small files of a partition into files of the target size, at every snapshot.

    `max_compacted_files` limits how many files the call makes in each table. Files below `min_file_size`, and from
    `max_file_size` on, stay as they are, as do those without a row that fulfills `where`. The rows of merged files are
    in the table's sort order, or in z-order by the columns `zorder_by`.
    """
    if max_compacted_files is not None and max_compacted_files < 1:
        raise LakeError(f"max_compacted_files must be at least 1, not {max_compacted_files}")
    if max_file_size is not None and max_file_size <= (min_file_size or 0):
        raise LakeError(f"max_file_size must be above min_file_size, {min_file_size or 0} bytes, not {max_file_size}")

    def plan(connection: sa.Connection, transaction: Transaction, table: Table) -> list[FileBin]:
        target = target_file_size or _target_file_size(transaction.options, table)
        files = _stored_files(context, connection, transaction, table, where)
        return bins_to_merge(files, target, min_file_size or 0, max_file_size)

    def candidates(connection: sa.Connection, at: int) -> set[int]:
        return tables_with_files(connection, at, least=2)

    operation = CompactionPlan(
        "ducklake_merge_adjacent_files", plan, candidates, is_merge=True, z_order=tuple(zorder_by)
    )
    return _compact(context, operation, table_name, schema, max_compacted_files, dry_run)


def rewrite_data_files(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    delete_threshold: float | None = None,
    where: str | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Writes files without their deleted rows, if at least the share `delete_threshold` of their rows is deleted.

    The default is the option `rewrite_delete_threshold`, 0.95. Files without a row that fulfills `where` stay.
    """
    if delete_threshold is not None and not 0 <= delete_threshold <= 1:
        raise LakeError(f"delete_threshold must be between 0 and 1, not {delete_threshold}")

    def plan(connection: sa.Connection, transaction: Transaction, table: Table) -> list[FileBin]:
        threshold = delete_threshold
        if threshold is None:
            threshold = float(transaction.options.get("rewrite_delete_threshold", table.schema_id, table.id) or 0)
        files = _stored_files(context, connection, transaction, table, where)
        return bins_to_rewrite(files, table.columns, _target_file_size(transaction.options, table), threshold)

    def candidates(connection: sa.Connection, at: int) -> set[int]:
        return tables_with_deletes(connection, context.lake.catalog, at)

    operation = CompactionPlan("ducklake_rewrite_data_files", plan, candidates)
    return _compact(context, operation, table_name, schema, None, dry_run)


def migrate_partitioning(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    max_steps: int | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Writes files of an earlier partition specification or sort order anew, in that of the table.

    A step takes a partition of the files, or a part of one, and is a snapshot. What is stopped goes on with the files
    that are left. `max_steps` limits the steps in each table.
    """

    def plan(connection: sa.Connection, transaction: Transaction, table: Table) -> list[FileBin]:
        return bins_to_migrate(connection, _stored_files(context, connection, transaction, table), table, STEP_BYTES)

    operation = CompactionPlan("ducklake_migrate_partitioning", plan, tables_to_migrate, moves_partitions=True)
    return _compact(context, operation, table_name, schema, max_steps, dry_run)


def _compact(
    context: MaintenanceContext,
    operation: CompactionPlan,
    table_name: str | None,
    schema: str | None,
    max_bins: int | None,
    dry_run: bool,
) -> pa.Table:
    """The result has a row for each table that has something to compact."""
    lake = context.lake
    if not dry_run:
        lake.catalog.check_writable()
    transaction = lake.begin()
    rows = []
    for table in context.tables(transaction, table_name, schema, operation.candidates):
        schema_name = transaction.state.schema_of(table).name
        plan = replace(operation, message=f"{operation.message}: {schema_name}.{table.name}")
        if plan.z_order:
            plan = replace(plan, z_order=check_z_order_columns(table, plan.z_order))
        size = 0
        if dry_run:
            with lake.catalog.read() as connection:
                bins = plan.bins(connection, transaction, table)[:max_bins]
            totals = Totals(sum(len(b.files) for b in bins), sum(1 for b in bins if b.live_bytes))
            size = sum(file.file_size_bytes for b in bins for file in b.files)
        else:
            totals = compact_table(context, table.id, plan, max_bins)
        if totals.files_processed:
            rows.append((schema_name, table.name, totals.files_processed, totals.files_created, size))
    columns = {"schema_name": pa.string(), "table_name": pa.string()}
    columns |= {"files_processed": pa.int64(), "files_created": pa.int64()}
    if dry_run:
        columns["bytes"] = pa.int64()
    arrays = [pa.array([row[i] for row in rows], type_) for i, type_ in enumerate(columns.values())]
    return pa.table(arrays, names=list(columns))


def _stored_files(
    context: MaintenanceContext,
    connection: sa.Connection,
    transaction: Transaction,
    table: Table,
    where: str | None = None,
) -> list[StoredFile]:
    """The data files of a table; with a condition, those that may have a row for which it is true."""
    folder = transaction.state.table_folder(context.lake.catalog.data_path, table)
    predicate = None if where is None else _predicate(table, where)
    time_zone = "UTC" if predicate is None else context.planner.time_zone
    at = transaction.base.id
    files = table_files(connection, context.lake.catalog, table, folder, at, predicate, time_zone)
    return stored_files(connection, table, files, at)


def _predicate(table: Table, where: str) -> Predicate:
    names = [column.name for column in table.columns]
    found = pushdown_predicates(f"select * from t where {where}", lambda ref: names)
    if len(found) != 1:
        raise LakeError(
            f"no file can be left out by the condition {where!r}: compare columns of table {table.name} with literals,"
            " as in region = 'EU' and day >= date'2026-01-01'"
        )
    return next(iter(found.values()))


def _target_file_size(options: Options, table: Table) -> int:
    return options.number("target_file_size", table.schema_id, table.id) or 1
