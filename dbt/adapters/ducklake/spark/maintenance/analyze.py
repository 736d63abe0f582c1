"""`ducklake_analyze`: statistics that the catalog lacks are read from the footers of data files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ...lake.maintenance.analysis import analyze_table
from ...lake.snapshot import Table
from ...lake.types import Column
from ..sql.names import name_parts
from .context import MaintenanceContext


def analyze(
    context: MaintenanceContext,
    table_name: str,
    *,
    schema: str | None = None,
    columns: Sequence[str] | None = None,
    noscan: bool = False,
) -> pa.Table:
    """Completes the statistics of a table's files, and then of the table. Returns a row if files lacked any.

    With `noscan` no file is opened, and only the table's statistics are completed.
    """
    lake = context.lake
    state = lake.begin().state
    table = context.table(state, table_name, schema)
    ids = None if columns is None else {_column(table, name).id for name in columns}
    analyzed = analyze_table(lake.catalog, lake.snapshots, lake.file_store, table.id, ids, read_files=not noscan)
    row = {"schema_name": state.schema_of(table).name, "table_name": table.name, "files_analyzed": analyzed}
    types = {"schema_name": pa.string(), "table_name": pa.string(), "files_analyzed": pa.int64()}
    return pa.Table.from_pylist([row], schema=pa.schema(types))


def _column(table: Table, name: str) -> Column:
    """The column of a name, or the nested field of a dotted one. Raises if there is none."""
    whole = next((column for column in table.columns if column.name.lower() == name.lower()), None)
    return whole or table.column(*(name_parts(name) or (name,)))
