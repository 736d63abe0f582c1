"""DELETE."""

from __future__ import annotations

from ..read.deletion_masks import FEW_POSITIONS, few_deleted
from ..read.scan import FILE, POSITION, TableScan
from ..sql import statements as st
from ..sql.safe_predicates import is_harmless
from .command_context import CommandContext
from .position_deletes import Places, fit_driver, take_away
from .target import TargetTable


def delete(context: CommandContext, statement: st.Delete) -> int:
    target = TargetTable.of(context, statement.name, statement.alias, statement.with_clause)
    if statement.condition is None:
        scan = context.lake.scan(target.table, context.transaction.base, context.state, transaction=context.transaction)
        context.transaction.truncate(target.table)
        return sum(f.live_rows for f in scan.files) + len(scan.inlined or ())
    if is_harmless(statement.condition, target.table.columns, statement.alias or target.table.name):
        target.changing.deleted_too = _may_be_deleted
    rows = target.select([FILE, POSITION], f"where {statement.condition}")
    if target.changing.deleted_too(target.scan):
        places = Places.of_living(rows, target.scan, context.lake.storage)
    else:
        places = Places.of(rows, target.scan, computed=False)
    return take_away(context, target.table, target.scan, places)


def _may_be_deleted(scan: TableScan) -> bool:
    """Whether the driver, sooner than Spark, leaves out rows that are deleted already."""
    return fit_driver(scan) and few_deleted(scan.files, FEW_POSITIONS)
