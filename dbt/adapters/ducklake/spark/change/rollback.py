"""`ducklake_rollback`: restores tables, schemas or the whole lake to a snapshot, in a new snapshot.

Rows inserted since then are deleted. Rows deleted since then are inserted again, as copies with the same row ids:
the catalog records that their data file ended, and an ended file cannot become current again. Rows that are in both
snapshots stay where they are.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import functions as F

from ...lake.catalog import SnapshotInfo
from ...lake.change_feed import read_deletes_since
from ...lake.commit.staged import DataChanges
from ...lake.errors import LakeError
from ...lake.snapshot import LakeState, Macro, Schema, Table, View
from ...lake.snapshot_loader import last_types
from ...lake.types import Column, can_promote
from ..read.changed_rows import deleted_rows_with_id
from ..read.lakes import not_found_at_snapshot
from ..read.scan import FILE, POSITION, TableScan, internal_names, scan_dataframe
from ..sql.kept_text import table_as_text
from ..sql.names import name_parts
from ..sql.quoting import string_literal
from .command_context import CommandContext
from .row_deletion import delete_rows
from .row_positions import RowPositions

EXTRA_INFO_KEY = "ducklake_rollback"
"""The key in a commit's extra information that describes its rollback."""
_ROW_ID, _BEGIN_SNAPSHOT = "_lake_row_id", "_lake_begun"


def rollback(context: CommandContext, arguments: dict[str, Any]) -> int:
    """Rolls back a table or a list of tables, a `schema`, or the `whole_lake`, to a `version` or a `timestamp`.

    For example, `ducklake_rollback('main.orders', version => 3)`.
    """
    tables = arguments.pop("0", None) or arguments.pop("table_name", None)
    schema, whole_lake = arguments.pop("schema", None), arguments.pop("whole_lake", None)
    version, timestamp = arguments.pop("version", None), arguments.pop("timestamp", None)
    if arguments:
        raise LakeError(f"ducklake_rollback does not take the argument {next(iter(arguments))}")
    if (version is None) == (timestamp is None):
        raise LakeError("ducklake_rollback needs the version or the timestamp to go back to: give one of the two")
    if version is not None:
        snapshot, past = context.lake.snapshot_at(version=int(version))
    else:
        moment = context.planner.evaluate_timestamp(string_literal(str(timestamp)))
        snapshot, past = context.lake.snapshot_at(timestamp=moment)
    if snapshot.id > context.transaction.base.id:
        raise LakeError(f"snapshot {snapshot.id} came after this transaction began; roll back in one of its own")
    names = [tables] if isinstance(tables, str) else list(tables or ())
    if sum((bool(names), schema is not None, whole_lake is True)) != 1:
        raise LakeError(
            "ducklake_rollback takes a table or a list of them, schema => 'name', or whole_lake => true: one of them"
        )
    work = _Rollback(context, snapshot, past)
    for name in names:
        work.restore_relation(name)
    if schema is not None:
        work.restore_schemas([schema])
    elif not names:
        work.restore_schemas(sorted({s.name for s in (*past.schemas.values(), *context.state.schemas.values())}))
    listed = ", ".join(".".join(name_parts(name) or (name,)) for name in names)
    work.describe_commit(listed or (f"schema {schema}" if schema is not None else "the lake"))
    return work.changed_rows


@dataclass
class _Rollback:
    context: CommandContext
    snapshot: SnapshotInfo
    """The snapshot to go back to."""
    past: LakeState
    """The schemas, tables, views and macros of that snapshot."""
    changed_rows: int = 0
    """The rows that were deleted or inserted again."""
    restored_tables: list[int] = field(default_factory=list)
    """The tables that exist in both states and keep their ids."""

    def describe_commit(self, subject: str) -> None:
        """Records the rollback in the commit, for those who consume the changes of the tables."""
        info = self.context.transaction.commit_info
        has_message = self.context.in_transaction and info.message
        message = info.message if has_message else f"rollback of {subject} to {self.snapshot.id}"
        extra = json.dumps({EXTRA_INFO_KEY: {"version": self.snapshot.id, "tables": sorted(self.restored_tables)}})
        described = replace(info, message=message, extra_info=extra)
        self.context.transaction.commit_info = described
        if self.context.transaction.parent is not None:
            self.context.transaction.parent.commit_info = described

    def restore_relation(self, name: str) -> None:
        """Restores one table or view, under its current name."""
        found = self.context.query_context.resolve_name(name_parts(name) or (name,))
        if found is None or found[0] is not self.context.lake:
            raise LakeError(f"{name} is no name in lake {self.context.lake.name}; write schema.table")
        _, schema_name, last = found
        current = self.context.state.find_relation(schema_name, last)
        past = self.past.tables.get(current.id) if isinstance(current, Table) else None
        past = past or self.past.find_relation(schema_name, last)  # type: ignore[assignment]
        if past is None:
            raise not_found_at_snapshot(self.context.lake, schema_name, last, self.snapshot, self.past)
        schema = self.context.state.schema(schema_name)
        if isinstance(current, Table) and isinstance(past, Table) and current.id == past.id:
            self._restore_table(current, past)
            return
        if isinstance(current, View) and isinstance(past, View) and _is_same_view(current, past):
            return
        if current is not None:
            self.context.transaction.drop(current)
        self._recreate(schema, last, past)

    def restore_schemas(self, names: Sequence[str]) -> None:
        """Restores everything in some schemas: drops what is new, and recreates what was dropped."""
        transaction, before = self.context.transaction, self.context.state
        past_schemas = [s for s in map(self.past.find_schema, names) if s is not None]
        current_schemas = [s for s in map(before.find_schema, names) if s is not None]
        if not past_schemas and not current_schemas:
            self.past.schema(names[0])  # raises: there is no such schema
        past_entries = [entry for schema in past_schemas for entry in _entries(self.past, schema)]
        past_by_id = {entry.id: entry for entry in past_entries}
        kept_tables = {i: before.tables[i] for i in past_by_id if i in before.tables}
        for entry in [entry for schema in current_schemas for entry in _entries(before, schema)]:
            past = past_by_id.get(entry.id)
            if isinstance(entry, Table) and entry.id in self.past.tables:
                kept_tables[entry.id] = entry  # even if it was in another schema: it moves back there
            elif isinstance(entry, Macro):
                if entry != past:
                    transaction.drop_macro(entry)
            elif not (isinstance(entry, View) and isinstance(past, View) and _is_same_view(entry, past)):
                transaction.drop(entry)
        schemas_of_tables = {self.past.schema_of(self.past.tables[i]).name for i in kept_tables}
        for name in sorted({schema.name for schema in past_schemas} | schemas_of_tables):
            if self.context.state.find_schema(name) is None:
                transaction.create_schema(name)
        for table in kept_tables.values():
            past_table = self.past.tables[table.id]
            schema = self.context.state.schema(self.past.schema_of(past_table).name)
            self._restore_table(table, past_table, schema)
        state = self.context.state
        existing = state.tables.keys() | state.views.keys() | state.macros.keys()
        for entry in past_entries:
            if entry.id not in existing:
                self._recreate(state.schema(self.past.schemas[entry.schema_id].name), entry.name, entry)
        for schema in current_schemas:
            if self.past.find_schema(schema.name) is None:
                transaction.drop_schema(schema.name)

    def _recreate(self, schema: Schema, name: str, past: Table | View | Macro) -> None:
        """Creates a relation or macro that no longer exists. A table gets copies of its rows."""
        transaction = self.context.transaction
        if isinstance(past, View):
            transaction.create_view(schema, name, past.sql, past.dialect, past.column_aliases, dict(past.tags))
        elif isinstance(past, Macro):
            transaction.create_macro(schema, name, past.impls, dict(past.tags))
        else:
            table = transaction.create_table_like(schema, name, past)
            transaction.set_tags(table, past.tags)
            table = self.context.state.tables[table.id]
            scan = self.context.lake.plan_scan(past, self.snapshot, self.past)
            if scan.files or scan.inlined:
                scan = replace(scan, table=table_as_text(past))
                rows = scan_dataframe(self.context.planner.spark, self.context.lake.file_reader, scan)
                self.changed_rows += self.context.write(rows, table, kept_text=True)

    def _restore_table(self, current: Table, past: Table, schema: Schema | None = None) -> None:
        """Restores a table that exists in both states. With a `schema`, moves it there under its past name."""
        transaction, lake = self.context.transaction, self.context.lake
        if transaction.data_changes(current) != DataChanges():
            raise LakeError(f"table {current.name} was changed in this transaction; roll it back in one of its own")
        transaction.record_read(current)
        self.restored_tables.append(current.id)
        folder = transaction.base_state.table_folder(lake.catalog.data_path, current)
        with lake.catalog.read() as connection:
            types = last_types(connection, current.id)
            restored = _restored_definition(current, past, types, transaction.new_provisional_id)
            base_id = transaction.base.id
            deletes = read_deletes_since(connection, lake.catalog, restored, folder, self.snapshot.id, base_id)
        self._delete_newer_rows(current)
        table = transaction.alter_table(current, lambda t: restored)
        if schema is not None and (schema.id, past.name) != (table.schema_id, table.name):
            transaction.rename(table, schema, past.name)
            table = self.context.state.tables[table.id]
        if deletes.file_deletes or deletes.deleted_inlined_rows:
            deletes = replace(deletes, table=table_as_text(deletes.table))
            rows = deleted_rows_with_id(self.context.planner.spark, lake.file_reader, deletes, _ROW_ID)
            self.changed_rows += self.context.write(rows, table, _ROW_ID, kept_text=True)

    def _delete_newer_rows(self, table: Table) -> None:
        """Deletes the rows that were inserted after the snapshot."""
        transaction, lake = self.context.transaction, self.context.lake
        scan = lake.plan_scan(table, transaction.base, transaction.base_state)
        new_files = [f for f in scan.files if (f.begin_snapshot or 0) > self.snapshot.id]
        mixed_files = [f for f in scan.files if f not in new_files and (f.partial_max or 0) > self.snapshot.id]
        self.changed_rows += sum(f.live_rows for f in new_files)
        if mixed_files:
            mixed = TableScan(table, scan.snapshot_id, mixed_files, scan.name_maps)
            rows = scan_dataframe(
                self.context.planner.spark, lake.file_reader, mixed, with_virtual_columns=True, with_row_positions=True
            )
            rows = rows.toDF(*internal_names(table), _ROW_ID, _BEGIN_SNAPSHOT, FILE, POSITION, "_lake_own")
            rows = rows.where(F.col(_BEGIN_SNAPSHOT) > self.snapshot.id).select(FILE, POSITION)
            positions = RowPositions.of(rows, mixed, checkpointed=False)
            self.changed_rows += delete_rows(self.context, table, mixed, positions, whole_files=new_files)
        elif new_files:
            transaction.end_files(table, new_files)
        if scan.inlined is not None:
            row_ids = frozenset(scan.inlined.since(self.snapshot.id).row_ids.to_pylist())
            if row_ids:
                self.changed_rows += len(row_ids)
                transaction.delete_inlined_rows(table, row_ids)


def _restored_definition(current: Table, past: Table, types: Mapping[int, str], new_id: Callable[[], int]) -> Table:
    """The table with its past definition. Partition and sort keys that differ from the current ones get new ids."""
    partition, sort = current.partition, current.sort
    if past.partition != partition:
        partition = past.partition and replace(past.partition, id=new_id())
    if (past.sort and past.sort.keys) != (sort and sort.keys):
        sort = past.sort and replace(past.sort, id=new_id())
    columns = tuple(_with_widest_type(c, types) for c in past.columns)
    return replace(current, columns=columns, tags=past.tags, partition=partition, sort=sort)


def _with_widest_type(column: Column, types: Mapping[int, str]) -> Column:
    """The column with the widest type that it ever had: files keep values of that type, even of deleted rows."""
    last = types.get(column.id, column.type)
    widest = last if can_promote(column.type, last) else column.type
    return replace(column, type=widest, children=tuple(_with_widest_type(c, types) for c in column.children))


def _entries(state: LakeState, schema: Schema) -> Iterator[Table | View | Macro]:
    yield from state.relations_in(schema)
    yield from state.macros_in(schema)


def _is_same_view(one: View, other: View) -> bool:
    return replace(one, id=other.id, uuid=other.uuid, schema_id=other.schema_id) == other
