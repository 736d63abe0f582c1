"""The table functions that tell of a lake: its snapshots, files, options, settings, and what changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import DataFrame

from ...lake import tables as t
from ...lake.catalog import SnapshotInfo
from ...lake.conflicts import parse_changes
from ...lake.errors import LakeError, NotFoundError
from ...lake.files import table_files
from ...lake.snapshot import LakeState, Table
from ...lake.transaction import Transaction
from ..sql.definitions import parse_literal
from ..sql.names import FunctionRef, name_parts
from . import change_feed as feed
from .context import QueryContext
from .lakes import Lake, never_there
from .table_diff import diff

if TYPE_CHECKING:
    from .planner import Planner

PREFIX = "ducklake_"


def evaluate(ref: FunctionRef, context: QueryContext, planner: Planner, virtual: bool) -> pa.Table | DataFrame | None:
    """The rows of a table function of ours; None for any other function.

    `virtual` says whether the query asks for row ids and snapshots.
    """
    parts = ref.name.split(".")
    name = parts[-1].lower()
    lake_name = parts[0].lower() if len(parts) == 2 and parts[0].lower() in context.lakes else context.lake
    if len(parts) == 1 and not name.startswith(PREFIX):
        return None
    function = FUNCTIONS.get(name.removeprefix(PREFIX))
    if function is None or len(parts) > 2:
        return None
    call = Call(context, planner, lake_name, Arguments(ref, planner), virtual)
    result = function(call)
    call.arguments.check_all_used()
    return result


@dataclass
class Call:
    """One call of a table function in a query."""

    context: QueryContext
    planner: Planner
    lake: str
    """The lake that it is of, by its name."""
    arguments: Arguments
    virtual: bool

    @property
    def transaction(self) -> Transaction:
        return self.context.transactions(self.lake)

    def place(self, name: str) -> tuple[Lake, str, str]:
        """The lake, schema and name that a table's name means; the lake is the function's if it names none."""
        schema = self.context.schema if self.lake == self.context.lake else "main"
        inside = self.context.within(self.context.lakes[self.lake], schema)
        found = inside.find(name_parts(name) or (name,))
        if found is None:
            raise NotFoundError(f"{name} is no table of a lake; write schema.table, or lake.schema.table")
        return found

    def table(self, lake: Lake, schema: str, name: str, at: SnapshotInfo, state: LakeState) -> Table:
        """A table as it was at a snapshot."""
        if state.find(schema, name) is None:
            raise never_there(lake, schema, name, at)
        return state.table(schema, name)


class Arguments:
    """The arguments of one call, by position or by name, each taken once."""

    def __init__(self, ref: FunctionRef, planner: Planner) -> None:
        self.name = ref.name
        self.planner = planner
        self.positional = [text for keyword, text in ref.arguments if keyword is None]
        self.named = {keyword.lower(): text for keyword, text in ref.arguments if keyword is not None}

    def text(self, name: str, positional: bool = False) -> str | None:
        """An argument's SQL text, if it is given."""
        if positional and self.positional:
            return self.positional.pop(0)
        return self.named.pop(name, None)

    def value(self, name: str, positional: bool = False) -> Any:
        text = self.text(name, positional)
        if text is None:
            return None
        literal = parse_literal(text)
        if literal is None:
            raise LakeError(f"{self.name}: argument {name} must be a literal, not {text}")
        return literal.value

    def check_all_used(self) -> None:
        left = [*self.positional, *(f"{k} => {v}" for k, v in self.named.items())]
        if left:
            raise LakeError(f"{self.name} does not take the argument {left[0]}")


def _snapshots(call: Call) -> pa.Table:
    """Every snapshot: when, by whom, why, and what it changed."""
    catalog = call.context.lakes[call.lake].catalog
    with catalog.read() as connection:
        joined = sa.select(t.snapshot, t.snapshot_changes).outerjoin(
            t.snapshot_changes, t.snapshot.c.snapshot_id == t.snapshot_changes.c.snapshot_id
        )
        rows = connection.execute(joined.order_by(t.snapshot.c.snapshot_id)).all()
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
                "changes": list(changes_map(r.changes_made or "").items()),
                "author": r.author,
                "commit_message": r.commit_message,
                "commit_extra_info": r.commit_extra_info,
            }
            for r in rows
        ],
        schema=schema,
    )


def changes_map(text: str) -> dict[str, list[str]]:
    """The changes of a snapshot as the reference shows them: `tables_created -> [main.orders]`."""
    changes = parse_changes(text)
    result: dict[str, list[str]] = {}
    if changes.created_schemas:
        result["schemas_created"] = sorted(changes.created_schemas)
    if changes.dropped_schemas:
        result["schemas_dropped"] = [str(i) for i in sorted(changes.dropped_schemas)]
    if changes.created:
        result["tables_created"] = [f"{schema}.{name}" for schema, name in sorted(changes.created)]
    for kind, schema, name in sorted(changes.created_macros):
        result.setdefault(f"{kind}_macros_created", []).append(f"{schema}.{name}")
    for kind, macro_id in sorted(changes.dropped_macros):
        result.setdefault(f"{kind}_macros_dropped", []).append(str(macro_id))
    for kind in ("inserted", "deleted", "altered", "dropped", "compacted", "flushed"):
        ids = sorted(i for k, i in changes.tables if k == kind)
        if ids:
            result[_SHOWN[kind]] = [str(i) for i in ids]
    return result


_SHOWN = {
    "inserted": "tables_inserted_into",
    "deleted": "tables_deleted_from",
    "altered": "tables_altered",
    "dropped": "tables_dropped",
    "compacted": "tables_compacted",
    "flushed": "tables_flushed",
}


def _list_files(call: Call) -> pa.Table:
    """The data files of a table, each with its delete file."""
    arguments = call.arguments
    name = arguments.value("table_name", positional=True)
    schema = arguments.value("schema")
    version = arguments.text("version", positional=True) or arguments.text("snapshot_version")
    timestamp = arguments.text("timestamp") or arguments.text("snapshot_time")
    if not isinstance(name, str):
        raise NotFoundError("ducklake_list_files needs the name of a table, such as ducklake_list_files('main.orders')")
    lake, found_schema, table_name = call.place(name)
    transaction = call.context.transactions(lake.name)
    at, state = transaction.base, transaction.base_state
    if version and version.strip().lower() != "null":
        at, state = lake.past(version=int(version))
    elif timestamp and timestamp.strip().lower() != "null":
        at, state = lake.past(timestamp=call.planner.moment(timestamp))
    table = call.table(lake, schema or found_schema, table_name, at, state)
    folder = state.folder(lake.catalog.data_path, table)
    with lake.catalog.read() as connection:
        files = table_files(connection, lake.catalog, table, folder, at.id)
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


def _options(call: Call) -> pa.Table:
    """Every option that is set, with the scope that it is set for."""
    transaction = call.transaction
    state = transaction.state
    rows = []
    for (scope, scope_id, name), value in sorted(transaction.options.values.items(), key=str):
        entry = None
        if scope == "schema" and scope_id is not None and scope_id in state.schemas:
            entry = state.schemas[scope_id].name
        elif scope == "table" and scope_id is not None and scope_id in state.tables:
            entry = state.qualified(state.tables[scope_id])
        rows.append({"option_name": name, "value": value, "scope": (scope or "global").upper(), "scope_entry": entry})
    names = ("option_name", "value", "scope", "scope_entry")
    return pa.Table.from_pylist(rows, schema=pa.schema([(n, pa.string()) for n in names]))


def _settings(call: Call) -> pa.Table:
    catalog = call.context.lakes[call.lake].catalog
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


def _current_snapshot(call: Call) -> pa.Table:
    return pa.table({"id": pa.array([call.transaction.base.id], pa.int64())})


def _last_committed_snapshot(call: Call) -> pa.Table:
    """The last snapshot that this thread committed; NULL if it committed none."""
    return pa.table({"id": pa.array([call.context.committed.get(call.lake)], pa.int64())})


def _table_info(call: Call) -> pa.Table:
    """Each table with the number and size of its files, in one query of the catalog."""
    transaction = call.transaction
    state, at = transaction.base_state, transaction.base.id
    lake = call.context.lakes[call.lake]
    totals: dict[str, dict[int, tuple[int, int]]] = {}
    with lake.catalog.read() as connection:
        for kind in (t.data_file, t.delete_file):
            query = (
                sa.select(kind.c.table_id, sa.func.count(), sa.func.sum(kind.c.file_size_bytes))
                .where(t.alive(kind, at))
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


Function = Callable[[Call], "pa.Table | DataFrame"]

FUNCTIONS: Mapping[str, Function] = {
    "snapshots": _snapshots,
    "list_files": _list_files,
    "options": _options,
    "settings": _settings,
    "current_snapshot": _current_snapshot,
    "last_committed_snapshot": _last_committed_snapshot,
    "table_info": _table_info,
    "table_changes": feed.table_changes,
    "table_insertions": feed.table_insertions,
    "table_deletions": feed.table_deletions,
    "new_changes": feed.new_changes,
    "diff": diff,
}
