"""OPTIMIZE: a table's data files become fewer, and lose their deleted rows."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from .context import MaintenanceContext
from .merge_files import merge_adjacent_files, rewrite_data_files


def optimize(
    context: MaintenanceContext, table_name: str, *, where: str | None = None, zorder_by: Sequence[str] | None = None
) -> pa.Table:
    """Rewrites files with many deleted rows and then merges small files, in partitions where `where` may be true."""
    state = context.lake.begin().state
    table = context.table(state, table_name)
    compacted = [
        rewrite_data_files(context, table_name, where=where),
        merge_adjacent_files(context, table_name, where=where, zorder_by=zorder_by or ()),
    ]
    totals = [sum(pc.sum(c.column(name)).as_py() or 0 for c in compacted) for name in _TOTALS]
    row = {
        "schema_name": state.schema_of(table).name,
        "table_name": table.name,
        **dict(zip(_TOTALS, totals, strict=True)),
    }
    return pa.Table.from_pylist([row] if totals[0] else [], schema=_RESULT)


_TOTALS = ("files_processed", "files_created")
_RESULT = pa.schema(
    [("schema_name", pa.string()), ("table_name", pa.string()), *((name, pa.int64()) for name in _TOTALS)]
)
