"""UPDATE."""

from __future__ import annotations

from ..read.scan import FILE, POSITION
from ..sql import statements as st
from .assignments import Assignments
from .command_context import CommandContext
from .row_deletion import delete_rows
from .row_positions import RowPositions
from .target import ROW_POSITION, TargetTable


def update(context: CommandContext, statement: st.Update) -> int:
    target = TargetTable.of(context, statement)
    assignments = Assignments.of(target, statement.assignments)
    where = "" if statement.condition is None else f"where {statement.condition}"
    columns = [*ROW_POSITION, *target.old_value_columns(assignments.kept_columns), *assignments.value_columns("value")]
    rows = target.select(columns, where).localCheckpoint()
    target.write_new_versions(assignments.new_rows(rows, "value"))
    return delete_rows(context, target.table, target.scan, RowPositions.of(rows.select(FILE, POSITION), target.scan))
