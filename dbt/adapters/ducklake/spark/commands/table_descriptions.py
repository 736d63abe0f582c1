"""DESCRIBE HISTORY and DESCRIBE DETAIL: a table's snapshots, and the table as a whole, from the catalog alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from ...lake import tables as t
from ...lake.errors import NotFoundError
from ...lake.options import OPTIONS
from ...lake.snapshot import LakeState, Table, View
from ...lake.table_history import table_history
from ...lake.table_summary import TableSummary, table_summaries
from ..read.context import QueryContext
from ..read.lakes import Lake
from ..sql import statements as st
from .show import partition_key_text, sort_key_text

_MOMENT = pa.timestamp("us", tz="UTC")
_HISTORY = pa.schema(
    [
        ("version", pa.int64()),
        ("timestamp", _MOMENT),
        ("author", pa.string()),
        ("operation", pa.string()),
        ("message", pa.string()),
        ("rows_inserted", pa.int64()),
        ("rows_updated", pa.int64()),
        ("rows_deleted", pa.int64()),
        ("extra_info", pa.string()),
    ]
)
_DETAIL = pa.schema(
    [
        ("format", pa.string()),
        ("format_version", pa.string()),
        ("id", pa.int64()),
        ("uuid", pa.string()),
        ("name", pa.string()),
        ("comment", pa.string()),
        ("location", pa.string()),
        ("created_at", _MOMENT),
        ("last_modified", _MOMENT),
        ("partition_keys", pa.list_(pa.string())),
        ("sort_keys", pa.list_(pa.string())),
        ("num_files", pa.int64()),
        ("num_delete_files", pa.int64()),
        ("num_rows", pa.int64()),
        ("deleted_rows", pa.int64()),
        ("inlined_rows", pa.int64()),
        ("size_in_bytes", pa.int64()),
        ("options", pa.map_(pa.string(), pa.string())),
    ]
)


def describe_history(context: QueryContext, statement: st.DescribeHistory) -> pa.Table:
    """The snapshots that changed a table, the newest first."""
    lake, _, table = _table(context, statement.name)
    with lake.catalog.read() as connection:
        history = table_history(connection, table.id, context.transaction_on(lake.name).base.id)
    rows = [
        {
            "version": change.snapshot_id,
            "timestamp": change.time,
            "author": change.author,
            "operation": ", ".join(change.operations),
            "message": change.message,
            "rows_inserted": change.rows and change.rows.inserted,
            "rows_updated": change.rows and change.rows.updated,
            "rows_deleted": change.rows and change.rows.deleted,
            "extra_info": change.extra_info,
        }
        for change in history
    ]
    return pa.Table.from_pylist(rows, schema=_HISTORY)


def describe_detail(context: QueryContext, statement: st.DescribeDetail) -> pa.Table:
    """One row about a table: what it is, and what it comes to at the snapshot that the transaction reads."""
    lake, state, table = _table(context, statement.name)
    transaction, names = context.transaction_on(lake.name), {c.id: c.name for c in table.columns}
    summary, times = TableSummary(), {}
    created = modified = None
    if table.id >= 0:
        with lake.catalog.read() as connection:
            summary = table_summaries(connection, lake.catalog, transaction.base.id, [table.id])[table.id]
            first = sa.select(sa.func.min(t.table.c.begin_snapshot)).where(t.table.c.table_id == table.id)
            created, modified = connection.scalar(first), summary.last_change_snapshot
            times = lake.catalog.commit_times(connection, (s for s in (created, modified) if s is not None))
    options = {name: transaction.options.explicit_value(name, table.schema_id, table.id) for name in OPTIONS}
    row = {
        "format": "ducklake",
        "format_version": lake.catalog.format.name,
        "id": table.id if table.id >= 0 else None,
        "uuid": str(table.uuid),
        "name": f"{lake.name}.{state.qualified_name(table)}",
        "comment": table.comment,
        "location": state.table_folder(lake.catalog.data_path, table),
        "created_at": None if created is None else times.get(created),
        "last_modified": None if modified is None else times.get(modified),
        "partition_keys": _partition_keys(table, names),
        "sort_keys": [sort_key_text(key) for key in table.sort.keys] if table.sort else [],
        "num_files": summary.data_file_count,
        "num_delete_files": summary.delete_file_count,
        "num_rows": summary.row_count,
        "deleted_rows": summary.deleted_row_count,
        "inlined_rows": summary.inlined_row_count,
        "size_in_bytes": summary.size_bytes,
        "options": [(name, value) for name, value in options.items() if value is not None],
    }
    return pa.Table.from_pylist([row], schema=_DETAIL)


def _partition_keys(table: Table, names: Mapping[int, str]) -> list[str]:
    if table.partition is None:
        return []
    return [partition_key_text(str(f.transform), names[f.column_id]) for f in table.partition.fields]


def _table(context: QueryContext, name: st.Name) -> tuple[Lake, LakeState, Table]:
    lake, state, relation = context.relation(name)
    if isinstance(relation, View):
        raise NotFoundError(
            f"{state.qualified_name(relation)} is a view, and has neither rows nor files of its own; describe a table"
        )
    return lake, state, relation


TABLE_DESCRIPTIONS: Mapping[type, Callable[[QueryContext, Any], pa.Table]] = {
    st.DescribeDetail: describe_detail,
    st.DescribeHistory: describe_history,
}
