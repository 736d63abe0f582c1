"""UPDATE."""

from __future__ import annotations

from ..read.scan import FILE, POSITION
from ..sql import statements as st
from .assignments import Assigned
from .command_context import CommandContext
from .position_deletes import Places, take_away
from .target import PLACE, TargetTable


def update(context: CommandContext, statement: st.Update) -> int:
    target = TargetTable.of(context, statement.name, statement.alias, statement.with_clause)
    new = Assigned.of(target, statement.assignments)
    where = "" if statement.condition is None else f"where {statement.condition}"
    rows = target.select([*PLACE, *target.old_columns(new.kept), *new.values("value")], where).localCheckpoint()
    target.write_versions(new.rows(rows, "value"))
    return take_away(context, target.table, target.scan, Places.of(rows.select(FILE, POSITION), target.scan))
