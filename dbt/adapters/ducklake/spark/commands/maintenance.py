"""OPTIMIZE, VACUUM and ANALYZE: other words for operations on the lake as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ..maintenance.analyze import analyze
from ..maintenance.context import MaintenanceContext
from ..maintenance.optimize import optimize
from ..maintenance.vacuum import vacuum
from ..read.context import QueryContext
from ..read.lakes import Lake, ever_had_relation
from ..sql import statements as st
from ..sql.quoting import quoted_name


def is_of_lake(context: QueryContext, statement: st.MaintenanceStatement) -> bool:
    """Whether a statement is about a lake or one of its tables. Others are for Spark to run."""
    if statement.name is None or context.find_relation(statement.name) is not None:
        return True
    if isinstance(statement, st.Restore):
        resolved = context.resolve_name(statement.name)
        return statement.kind == "schema" or (resolved is not None and ever_had_relation(*resolved))
    return isinstance(statement, st.Vacuum) and _lake_of_that_name(context, statement.name) is not None


def maintained(context: QueryContext, statement: st.Optimize | st.Vacuum | st.Analyze) -> tuple[Lake, str | None]:
    """The lake that a statement maintains, and the quoted name of its table; None for the lake as a whole."""
    if statement.name is None:
        return context.lakes[context.current_lake], None
    found = context.find_relation(statement.name)
    if found is not None:
        lake, schema, relation = found
        return lake, quoted_name((schema, relation.name))
    lake_of_that_name = _lake_of_that_name(context, statement.name)
    if lake_of_that_name is None or not isinstance(statement, st.Vacuum):
        raise context.not_found(statement.name)
    return lake_of_that_name, None


def _lake_of_that_name(context: QueryContext, name: st.Name) -> Lake | None:
    return context.lakes.get(name[0].lower()) if len(name) == 1 else None


def _optimize(context: MaintenanceContext, table_name: str | None, statement: st.Optimize) -> pa.Table:
    assert table_name is not None
    return optimize(context, table_name, where=statement.where, zorder_by=statement.zorder_by)


def _vacuum(context: MaintenanceContext, table_name: str | None, statement: st.Vacuum) -> pa.Table:
    return vacuum(context, table_name, retain_hours=statement.retain_hours, dry_run=statement.dry_run)


def _analyze(context: MaintenanceContext, table_name: str | None, statement: st.Analyze) -> pa.Table:
    assert table_name is not None
    return analyze(context, table_name, columns=statement.columns, noscan=statement.noscan)


MAINTENANCE_STATEMENTS: Mapping[type, Callable[[MaintenanceContext, str | None, Any], pa.Table]] = {
    st.Optimize: _optimize,
    st.Vacuum: _vacuum,
    st.Analyze: _analyze,
}
"""The statements that work on the lake outside of any transaction. Each function gets the quoted name of its table."""
