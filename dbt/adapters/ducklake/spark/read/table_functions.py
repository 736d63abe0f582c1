"""The `ducklake_...` table functions that Spark queries can call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame

from ..sql.names import FunctionRef
from . import catalog_functions, change_feed
from .context import QueryContext
from .function_call import Arguments, TableFunctionCall
from .table_diff import diff

if TYPE_CHECKING:
    from .planner import Planner

PREFIX = "ducklake_"

TableFunction = Callable[[TableFunctionCall], "pa.Table | DataFrame"]

TABLE_FUNCTIONS: Mapping[str, TableFunction] = {
    "snapshots": catalog_functions.snapshots,
    "list_files": catalog_functions.list_files,
    "options": catalog_functions.options,
    "settings": catalog_functions.settings,
    "current_snapshot": catalog_functions.current_snapshot,
    "last_committed_snapshot": catalog_functions.last_committed_snapshot,
    "table_info": catalog_functions.table_info,
    "table_changes": change_feed.table_changes,
    "table_insertions": change_feed.table_insertions,
    "table_deletions": change_feed.table_deletions,
    "new_changes": change_feed.new_changes,
    "diff": diff,
}


def evaluate(
    ref: FunctionRef, context: QueryContext, planner: Planner, with_virtual_columns: bool
) -> pa.Table | DataFrame | None:
    """The rows of a table function: `ducklake_snapshots()`, or `lake.snapshots()`; None if the function is Spark's.

    `with_virtual_columns` says whether the query names `rowid` or `snapshot_id`.
    """
    parts = ref.name.split(".")
    name = parts[-1].lower()
    lake_name = parts[0].lower() if len(parts) == 2 and parts[0].lower() in context.lakes else context.current_lake
    if len(parts) == 1 and not name.startswith(PREFIX):
        return None
    function = TABLE_FUNCTIONS.get(name.removeprefix(PREFIX))
    if function is None or len(parts) > 2:
        return None
    call = TableFunctionCall(context, planner, lake_name, Arguments(ref), with_virtual_columns)
    result = function(call)
    call.arguments.check_all_used()
    return result
