"""Taking tables, schemas or the whole lake back to a version, as a change like any other.

Rows that came since then go, and rows that went come back with their row ids, as copies: a data file that
ended has its end in the catalog, and never stands there again. What both versions have stays where it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import functions as F

from ...lake.catalog import SnapshotInfo
from ...lake.commit.staged import TableData
from ...lake.errors import LakeError
from ...lake.feed import read_lost
from ...lake.snapshot import LakeState, Macro, Schema, Table, View, last_types
from ...lake.types import Column, promotes
from ..read.change_feed import lost_rows
from ..read.lakes import never_there
from ..read.scan import FILE, POSITION, TableScan, dataframe
from ..sql.names import name_parts
from ..sql.types import string_literal
from .command_context import CommandContext
from .position_deletes import Places, take_away

EXTRA_INFO = "ducklake_rollback"
"""What a rollback says of itself stands under this key of the commit's extra information."""
_ROW_ID = "_lake_row_id"


def rollback(context: CommandContext, arguments: dict[str, Any]) -> int:
    """`ducklake_rollback('main.orders', version => 3)`: a table, a list, a `schema`, or the `whole_lake`."""
    given = arguments.pop("0", None) or arguments.pop("table_name", None)
    schema, everything = arguments.pop("schema", None), arguments.pop("whole_lake", None)
    version, timestamp = arguments.pop("version", None), arguments.pop("timestamp", None)
    if arguments:
        raise LakeError(f"ducklake_rollback does not take the argument {next(iter(arguments))}")
    if (version is None) == (timestamp is None):
        raise LakeError("ducklake_rollback needs the version or the timestamp to go back to: give one of the two")
    if version is not None:
        info, state = context.lake.past(version=int(version))
    else:
        moment = context.planner.moment(string_literal(str(timestamp)))
        info, state = context.lake.past(timestamp=moment)
    if info.id > context.transaction.base.id:
        raise LakeError(f"snapshot {info.id} came after this transaction began; roll back in one of its own")
    work = _Rollback(context, info, state)
    names = [given] if isinstance(given, str) else list(given or ())
    if sum((bool(names), schema is not None, everything is True)) != 1:
        raise LakeError(
            "ducklake_rollback takes a table or a list of them, schema => 'name', or whole_lake => true: one of them"
        )
    for name in names:
        work.relation(name)
    if schema is not None:
        work.schemas([schema])
    elif not names:
        work.schemas(sorted({s.name for s in (*state.schemas.values(), *context.state.schemas.values())}))
    tables = ", ".join(".".join(name_parts(name) or (name,)) for name in names)
    work.say(tables or (f"schema {schema}" if schema is not None else "the lake"))
    return work.rows


@dataclass
class _Rollback:
    context: CommandContext
    to: SnapshotInfo
    then: LakeState
    rows: int = 0
    """How many rows came back or went."""
    tables: list[int] = field(default_factory=list)
    """The tables that stay the same ones."""

    def say(self, what: str) -> None:
        """Says in the commit what was done: who consumes the changes of tables has to know."""
        info = self.context.transaction.commit_info
        message = (
            info.message if self.context.in_transaction and info.message else f"rollback of {what} to {self.to.id}"
        )
        extra = json.dumps({EXTRA_INFO: {"version": self.to.id, "tables": sorted(self.tables)}})
        said = replace(info, message=message, extra_info=extra)
        self.context.transaction.commit_info = said
        if self.context.transaction.parent is not None:
            self.context.transaction.parent.commit_info = said

    # -- what is taken back

    def relation(self, name: str) -> None:
        """One table or view, which keeps its name."""
        found = self.context.query_context.find(name_parts(name) or (name,))
        if found is None or found[0] is not self.context.lake:
            raise LakeError(f"{name} is no name in lake {self.context.lake.name}; write schema.table")
        _, schema_name, last = found
        now = self.context.state.find(schema_name, last)
        then = self.then.tables.get(now.id) if isinstance(now, Table) else None
        then = then or self.then.find(schema_name, last)  # type: ignore[assignment]
        if then is None:
            raise never_there(self.context.lake, schema_name, last, self.to)
        schema = self.context.state.schema(schema_name)
        if isinstance(now, Table) and isinstance(then, Table) and now.id == then.id:
            self._table(now, then)
            return
        if isinstance(now, View) and isinstance(then, View) and _same_view(now, then):
            return
        if now is not None:
            self.context.transaction.drop(now)
        self._again(schema, last, then)

    def schemas(self, names: Sequence[str]) -> None:
        """Everything in some schemas: what is new since then goes, and what went is there again."""
        transaction = self.context.transaction
        then = [s for s in map(self.then.find_schema, names) if s is not None]
        now = [s for s in map(self.context.state.find_schema, names) if s is not None]
        if not then and not now:
            self.then.schema(names[0])
        wanted = [thing for schema in then for thing in _things(self.then, schema)]
        by_id = {thing.id: thing for thing in wanted}
        before = self.context.state
        kept = {i: before.tables[i] for i in by_id if i in before.tables}
        for thing in [thing for schema in now for thing in _things(before, schema)]:
            same = by_id.get(thing.id)
            if isinstance(thing, Table) and thing.id in self.then.tables:
                kept[thing.id] = thing  # perhaps of another schema then, where it goes back to
            elif isinstance(thing, Macro):
                if thing != same:
                    transaction.drop_macro(thing)
            elif not (isinstance(thing, View) and isinstance(same, View) and _same_view(thing, same)):
                transaction.drop(thing)
        homes = {self.then.schema_of(self.then.tables[i]).name for i in kept}
        for name in sorted({schema.name for schema in then} | homes):
            if self.context.state.find_schema(name) is None:
                transaction.create_schema(name)
        for table in kept.values():
            same = self.then.tables[table.id]
            self._table(table, same, home=self.context.state.schema(self.then.schema_of(same).name))
        state = self.context.state
        there = state.tables.keys() | state.views.keys() | state.macros.keys()
        for thing in wanted:
            if thing.id not in there:
                self._again(state.schema(self.then.schemas[thing.schema_id].name), thing.name, thing)
        for schema in now:
            if self.then.find_schema(schema.name) is None:
                transaction.drop_schema(schema.name)

    # -- one thing

    def _again(self, schema: Schema, name: str, then: Table | View | Macro) -> None:
        """Makes anew what is not there any more, with copies of its rows."""
        transaction = self.context.transaction
        if isinstance(then, View):
            transaction.create_view(schema, name, then.sql, then.dialect, then.column_aliases, dict(then.tags))
        elif isinstance(then, Macro):
            transaction.create_macro(schema, name, then.impls, dict(then.tags))
        else:
            table = transaction.create_table_like(schema, name, then)
            transaction.set_tags(table, then.tags)
            table = self.context.state.tables[table.id]
            scan = self.context.lake.scan(then, self.to, self.then)
            if scan.files or scan.inlined:
                rows = dataframe(self.context.planner.spark, self.context.lake.storage, scan)
                self.rows += self.context.write(rows, table)

    def _table(self, now: Table, then: Table, home: Schema | None = None) -> None:
        """Takes a table back that is still the same one; into its schema and to its name of then, if it had one."""
        transaction, lake = self.context.transaction, self.context.lake
        if transaction.data(now) != TableData():
            raise LakeError(f"table {now.name} was changed in this transaction; roll it back in one of its own")
        transaction.rewrites(now)
        self.tables.append(now.id)
        folder = transaction.base_state.folder(lake.catalog.data_path, now)
        with lake.catalog.read() as connection:
            types = last_types(connection, now.id)
            restored = _restored(now, then, types, transaction.new_id)
            lost = read_lost(connection, lake.catalog, restored, folder, self.to.id, transaction.base.id)
        self._take_new_rows(now)
        table = transaction.alter_table(now, lambda t: restored)
        if home is not None and (home.id, then.name) != (table.schema_id, table.name):
            transaction.rename(table, home, then.name)
            table = self.context.state.tables[table.id]
        if lost.deleted or lost.deleted_rows:
            rows = lost_rows(self.context.planner.spark, lake.storage, lost, _ROW_ID)
            self.rows += self.context.write(rows, table, _ROW_ID)

    def _take_new_rows(self, now: Table) -> None:
        """Takes away what came into a table since then."""
        transaction, lake = self.context.transaction, self.context.lake
        scan = lake.scan(now, transaction.base, transaction.base_state)
        new = [f for f in scan.files if (f.begin_snapshot or 0) > self.to.id]
        mixed = [f for f in scan.files if f not in new and (f.partial_max or 0) > self.to.id]
        self.rows += sum(f.live_rows for f in new)
        if mixed:
            some = TableScan(now, scan.at, mixed, scan.name_maps)
            rows = dataframe(self.context.planner.spark, lake.storage, some, virtual=True, places=True)
            names = [f"_lake_c{index}" for index in range(len(now.columns))]
            rows = rows.toDF(*names, _ROW_ID, "_lake_begun", FILE, POSITION, "_lake_own")
            rows = rows.where(F.col("_lake_begun") > self.to.id).select(FILE, POSITION)
            self.rows += take_away(self.context, now, some, Places.of(rows, some, computed=False), besides=new)
        elif new:
            transaction.end_files(now, new)
        if scan.inlined is not None:
            came = scan.inlined.rows.filter(pc.field("begin_snapshot") > self.to.id).column("row_id").to_pylist()
            if came:
                self.rows += len(came)
                transaction.end_inlined(now, frozenset(came))


def _restored(now: Table, then: Table, types: Mapping[int, str], new_id: Callable[[], int]) -> Table:
    """A table with the definition of another version of it; keys that it has again are new ones for new files."""
    partition, sort = now.partition, now.sort
    if then.partition != partition:
        partition = then.partition and replace(then.partition, id=new_id())
    if (then.sort and then.sort.keys) != (sort and sort.keys):
        sort = then.sort and replace(then.sort, id=new_id())
    columns = tuple(_as_wide(c, types) for c in then.columns)
    return replace(now, columns=columns, tags=then.tags, partition=partition, sort=sort)


def _as_wide(column: Column, types: Mapping[int, str]) -> Column:
    """The column with the widest type that it ever had: files hold values of it, also where rows are gone."""
    last = types.get(column.id, column.type)
    kind = last if promotes(column.type, last) else column.type
    return replace(column, type=kind, children=tuple(_as_wide(c, types) for c in column.children))


def _things(state: LakeState, schema: Schema) -> Iterator[Table | View | Macro]:
    yield from state.relations_in(schema)
    yield from state.macros_in(schema)


def _same_view(one: View, other: View) -> bool:
    return replace(one, id=other.id, uuid=other.uuid, schema_id=other.schema_id) == other
