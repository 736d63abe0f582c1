"""DELETE."""

from __future__ import annotations

from ..read.deletion_masks import MAX_POSITIONS, driver_can_read_deletes
from ..read.scan import FILE, POSITION, TableScan
from ..sql import statements as st
from ..sql.safe_predicates import is_safe
from .command_context import CommandContext
from .row_deletion import delete_rows
from .row_positions import RowPositions, scan_fits_driver
from .target import TargetTable


def delete(context: CommandContext, statement: st.Delete) -> int:
    target = TargetTable.of(context, statement)
    if statement.condition is None:
        scan = context.lake.plan_scan(
            target.table, context.transaction.base, context.state, transaction=context.transaction
        )
        context.transaction.truncate(target.table)
        return sum(f.live_rows for f in scan.files) + len(scan.inlined or ())
    if is_safe(statement.condition, target.table.columns, statement.alias or target.table.name):
        target.changed_relation.may_include_deleted = _driver_can_exclude_deleted
    rows = target.select([FILE, POSITION], f"where {statement.condition}")
    if target.changed_relation.may_include_deleted(target.scan):
        positions = RowPositions.without_deleted(rows, target.scan, context.lake.file_reader)
    else:
        positions = RowPositions.of(rows, target.scan, checkpointed=False)
    return delete_rows(context, target.table, target.scan, positions)


def _driver_can_exclude_deleted(scan: TableScan) -> bool:
    """Whether the driver excludes rows that are deleted already, which is faster than deletion masks in Spark."""
    return scan_fits_driver(scan) and driver_can_read_deletes(scan.files, MAX_POSITIONS)
