"""Table functions that the catalog answers: snapshots, files, options, settings and table sizes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from ...lake import tables as t
from ...lake.errors import NotFoundError
from ...lake.files import table_files
from ...lake.snapshot_changes import parse_changes
from .function_call import TableFunctionCall


def snapshots(call: TableFunctionCall) -> pa.Table:
    """`ducklake_snapshots()`: every snapshot with its time, author, commit message and changes."""
    catalog = call.lake.catalog
    with catalog.read() as connection:
        joined = sa.select(t.snapshot, t.snapshot_changes).outerjoin(
            t.snapshot_changes, t.snapshot.c.snapshot_id == t.snapshot_changes.c.snapshot_id
        )
        rows = connection.execute(joined.order_by(t.snapshot.c.snapshot_id)).all()
    return snapshot_table(rows)


def snapshot_table(rows: Sequence[sa.Row[Any]]) -> pa.Table:
    """The rows of `ducklake_snapshots()`, from joined rows of `ducklake_snapshot` and `ducklake_snapshot_changes`."""
    schema = pa.schema(
        [
            ("snapshot_id", pa.int64()),
            ("snapshot_time", pa.timestamp("us", tz="UTC")),
            ("schema_version", pa.int64()),
            ("changes", pa.map_(pa.string(), pa.list_(pa.string()))),
            ("author", pa.string()),
            ("commit_message", pa.string()),
            ("commit_extra_info", pa.string()),
        ]
    )
    return pa.Table.from_pylist(
        [
            {
                "snapshot_id": r[0],
                "snapshot_time": r.snapshot_time,
                "schema_version": r.schema_version,
                "changes": list(_changes_by_kind(r.changes_made or "").items()),
                "author": r.author,
                "commit_message": r.commit_message,
                "commit_extra_info": r.commit_extra_info,
            }
            for r in rows
        ],
        schema=schema,
    )


def _changes_by_kind(text: str) -> dict[str, list[str]]:
    """The changes of a snapshot in the form of the reference: `tables_created -> [main.orders]`."""
    changes = parse_changes(text)
    result: dict[str, list[str]] = {}
    if changes.created_schemas:
        result["schemas_created"] = sorted(changes.created_schemas)
    if changes.dropped_schemas:
        result["schemas_dropped"] = [str(i) for i in sorted(changes.dropped_schemas)]
    if changes.created_relations:
        result["tables_created"] = [f"{schema}.{name}" for schema, name in sorted(changes.created_relations)]
    for kind, schema, name in sorted(changes.created_macros):
        result.setdefault(f"{kind}_macros_created", []).append(f"{schema}.{name}")
    for kind, macro_id in sorted(changes.dropped_macros):
        result.setdefault(f"{kind}_macros_dropped", []).append(str(macro_id))
    for kind in ("inserted", "deleted", "altered", "dropped", "compacted", "flushed"):
        ids = sorted(i for k, i in changes.relation_changes if k == kind)
        if ids:
            result[_TABLE_CHANGES[kind]] = [str(i) for i in ids]
    return result


_TABLE_CHANGES = {
    "inserted": "tables_inserted_into",
    "deleted": "tables_deleted_from",
    "altered": "tables_altered",
    "dropped": "tables_dropped",
    "compacted": "tables_compacted",
    "flushed": "tables_flushed",
}


def list_files(call: TableFunctionCall) -> pa.Table:
    """`ducklake_list_files('main.orders')`: the data files of a table, each with its delete file."""
    arguments = call.arguments
    name = arguments.value("table_name", positional=True)
    schema = arguments.value("schema")
    version = arguments.text("version", positional=True) or arguments.text("snapshot_version")
    timestamp = arguments.text("timestamp") or arguments.text("snapshot_time")
    if not isinstance(name, str):
        raise NotFoundError("ducklake_list_files needs the name of a table, such as ducklake_list_files('main.orders')")
    lake, default_schema, table_name = call.resolve_name(name)
    transaction = call.context.transaction_on(lake.name)
    snapshot, state = transaction.base, transaction.base_state
    if version and version.strip().lower() != "null":
        snapshot, state = lake.snapshot_at(version=int(version))
    elif timestamp and timestamp.strip().lower() != "null":
        snapshot, state = lake.snapshot_at(timestamp=call.planner.evaluate_timestamp(timestamp))
    table = call.table(lake, schema or default_schema, table_name, snapshot, state)
    folder = state.table_folder(lake.catalog.data_path, table)
    with lake.catalog.read() as connection:
        files = table_files(connection, lake.catalog, table, folder, snapshot.id)
    fields = [
        ("data_file", pa.string()),
        ("data_file_size_bytes", pa.int64()),
        ("data_file_footer_size", pa.int64()),
        ("data_file_encryption_key", pa.binary()),
        ("delete_file", pa.string()),
        ("delete_file_size_bytes", pa.int64()),
        ("delete_file_footer_size", pa.int64()),
        ("delete_file_encryption_key", pa.binary()),
    ]
    return pa.Table.from_pylist(
        [
            {
                "data_file": f.path,
                "data_file_size_bytes": f.file_size_bytes,
                "data_file_footer_size": f.footer_size,
                "delete_file": f.delete_file.path if f.delete_file else None,
                "delete_file_size_bytes": f.delete_file.file_size_bytes if f.delete_file else None,
                "delete_file_footer_size": f.delete_file.footer_size if f.delete_file else None,
            }
            for f in files
        ],
        schema=pa.schema(fields),
    )


def options(call: TableFunctionCall) -> pa.Table:
    """`ducklake_options()`: every option that is set, with its scope."""
    transaction = call.transaction
    state = transaction.state
    rows = []
    for (scope, scope_id, name), value in sorted(transaction.options.values.items(), key=str):
        entry = None
        if scope == "schema" and scope_id is not None and scope_id in state.schemas:
            entry = state.schemas[scope_id].name
        elif scope == "table" and scope_id is not None and scope_id in state.tables:
            entry = state.qualified_name(state.tables[scope_id])
        rows.append({"option_name": name, "value": value, "scope": (scope or "global").upper(), "scope_entry": entry})
    names = ("option_name", "value", "scope", "scope_entry")
    return pa.Table.from_pylist(rows, schema=pa.schema([(n, pa.string()) for n in names]))


def settings(call: TableFunctionCall) -> pa.Table:
    """`ducklake_settings()`: the catalog database, the version of this package, and the data path."""
    catalog = call.lake.catalog
    try:
        package = version("dbt-ducklake")
    except PackageNotFoundError:
        package = "unknown"
    row = {
        "catalog_type": catalog.database.name,
        "extension_version": f"dbt-ducklake {package}",
        "data_path": catalog.data_path,
    }
    return pa.Table.from_pylist([row], schema=pa.schema([(n, pa.string()) for n in row]))


def current_snapshot(call: TableFunctionCall) -> pa.Table:
    """`ducklake_current_snapshot()`: the snapshot that the transaction reads."""
    return pa.table({"id": pa.array([call.transaction.base.id], pa.int64())})


def last_committed_snapshot(call: TableFunctionCall) -> pa.Table:
    """`ducklake_last_committed_snapshot()`: the last snapshot that this thread committed; NULL if there is none."""
    return pa.table({"id": pa.array([call.context.committed_snapshots.get(call.lake_name)], pa.int64())})


def table_info(call: TableFunctionCall) -> pa.Table:
    """`ducklake_table_info()`: each table with the number and size of its files."""
    transaction = call.transaction
    state, snapshot_id = transaction.base_state, transaction.base.id
    totals: dict[str, dict[int, tuple[int, int]]] = {}
    with call.lake.catalog.read() as connection:
        for kind in (t.data_file, t.delete_file):
            query = (
                sa.select(kind.c.table_id, sa.func.count(), sa.func.sum(kind.c.file_size_bytes))
                .where(t.alive(kind, snapshot_id))
                .group_by(kind.c.table_id)
            )
            totals[kind.name] = {r[0]: (r[1], int(r[2] or 0)) for r in connection.execute(query)}
    rows = []
    for table in sorted(state.tables.values(), key=lambda table: table.id):
        files, size = totals[t.data_file.name].get(table.id, (0, 0))
        deletes, delete_size = totals[t.delete_file.name].get(table.id, (0, 0))
        rows.append(
            {
                "table_name": table.name,
                "schema_id": table.schema_id,
                "table_id": table.id,
                "table_uuid": str(table.uuid),
                "file_count": files,
                "file_size_bytes": size,
                "delete_file_count": deletes,
                "delete_file_size_bytes": delete_size,
                "schema_name": state.schema_of(table).name,
            }
        )
    schema = pa.schema(
        [
            ("table_name", pa.string()),
            ("schema_id", pa.int64()),
            ("table_id", pa.int64()),
            ("table_uuid", pa.string()),
            ("file_count", pa.int64()),
            ("file_size_bytes", pa.int64()),
            ("delete_file_count", pa.int64()),
            ("delete_file_size_bytes", pa.int64()),
            ("schema_name", pa.string()),
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)
