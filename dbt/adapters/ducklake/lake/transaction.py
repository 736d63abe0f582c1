"""Changes to a lake that become one snapshot, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog, SnapshotInfo
from .commit import protocol
from .commit.protocol import Committed
from .commit.staged import CommitInfo, Staged, TableData
from .deletes import FileStore, Mask
from .errors import AlreadyExistsError, LakeError, OptionError, ReadOnlyError, SchemaChangeError
from .evolution import Change, ColumnIds, check_columns, replace_columns, set_partition, set_sort, with_comment
from .facts import table_facts
from .files import DataFile, NewDataFile
from .options import Key, Options, parse_option
from .paths import filesystem_for, folder_for_name, new_uuid7
from .predicates import Read
from .snapshot import LakeState, Macro, MacroImpl, Schema, Snapshots, Table, View
from .types import Column


@dataclass(frozen=True)
class Volume:
    """How much a transaction changes."""

    rows_added: int = 0
    rows_removed: int = 0
    files_added: int = 0
    rows_updated: int = 0

    def __add__(self, other: Volume) -> Volume:
        return Volume(
            self.rows_added + other.rows_added,
            self.rows_removed + other.rows_removed,
            self.files_added + other.files_added,
            self.rows_updated + other.rows_updated,
        )


@dataclass
class _Counters:
    """Provisional ids, below zero, shared by a transaction and all that is nested in it."""

    ids: count[int] = field(default_factory=lambda: count(-1, -1))
    columns: dict[int, ColumnIds] = field(default_factory=dict)


class Transaction:
    """A set of staged changes on top of one snapshot.

    What is staged is one immutable value, `staged`. A nested transaction starts with its parent's
    value; folding it hands its own value to the parent, and dropping it costs nothing. Only the
    outermost one commits.
    """

    def __init__(
        self,
        catalog: Catalog,
        snapshots: Snapshots,
        base: SnapshotInfo,
        state: LakeState,
        options: Options,
        *,
        store: FileStore | None = None,
        parent: Transaction | None = None,
    ) -> None:
        self.catalog = catalog
        self.snapshots = snapshots
        self.base = base
        self.base_state = state
        self._store = store
        self.parent = parent
        self.staged: Staged = parent.staged if parent else Staged(state)
        self.commit_info: CommitInfo = parent.commit_info if parent else CommitInfo()
        self._base_options = options
        self._counters: _Counters = parent._counters if parent else _Counters()

    @classmethod
    def begin(
        cls,
        catalog: Catalog,
        snapshots: Snapshots,
        info: SnapshotInfo | None = None,
        store: FileStore | None = None,
    ) -> Transaction:
        """A transaction on the newest snapshot, or on the given one."""
        with catalog.read() as connection:
            base = info or catalog.latest(connection)
            state = snapshots.state(connection, base)
            return cls(catalog, snapshots, base, state, catalog.options(connection), store=store)

    def nested(self) -> Transaction:
        return Transaction(
            self.catalog,
            self.snapshots,
            self.base,
            self.base_state,
            self._base_options,
            store=self._store,
            parent=self,
        )

    def fold(self) -> None:
        """Makes this nested transaction's changes its parent's own; its message, if the parent has none."""
        if self.parent is None:
            raise LakeError("only a nested transaction can be folded; the outermost one is committed")
        self.parent.staged = self.staged
        if self.parent.commit_info.message is None:
            self.parent.commit_info = self.commit_info

    @property
    def store(self) -> FileStore:
        """Where the lake's files are."""
        return self._store or FileStore(*filesystem_for(self.catalog.data_path))

    @property
    def state(self) -> LakeState:
        """The lake as this transaction sees it: the base with what it staged."""
        return self.staged.state

    @property
    def options(self) -> Options:
        return self._base_options.with_values(self.staged.options)

    @property
    def is_changed(self) -> bool:
        return self.staged.makes_snapshot(self.base_state) or bool(self.staged.options)

    def data(self, table: Table) -> TableData:
        return self.staged.data.get(table.id, TableData())

    def volume(self) -> Volume:
        """How many rows and files are staged; what a dropped table held is not counted."""
        data = self.staged.data
        files = [f for d in data.values() for f in d.added]
        updated = sum(d.updated for d in data.values())
        removed = sum(d.deleted for d in data.values())
        emptied = [table_id for table_id, d in data.items() if d.truncated]
        if emptied:
            with self.catalog.read() as connection:
                facts = table_facts(connection, self.catalog, self.base.id, emptied)
                removed += sum(f.rows for f in facts.values())
        return Volume(sum(f.live_rows for f in files) - updated, removed, len(files), updated)

    def column_ids(self, table: Table) -> ColumnIds:
        """The next column id of a table, counting every column that it ever had."""
        if table.id not in self._counters.columns:
            highest = max((c.id for c in table.leaves()), default=0)
            if table.id >= 0:
                with self.catalog.read() as connection:
                    ids = sa.select(sa.func.max(t.column.c.column_id)).where(t.column.c.table_id == table.id)
                    highest = max(highest, connection.scalar(ids) or 0)
            self._counters.columns[table.id] = ColumnIds(highest + 1)
        return self._counters.columns[table.id]

    def new_id(self) -> int:
        return next(self._counters.ids)

    # -- schemas

    def create_schema(self, name: str, comment: str | None = None) -> Schema:
        if self.state.find_schema(name):
            raise AlreadyExistsError(f"schema {name} already exists")
        uuid = new_uuid7()
        schema = Schema(self.new_id(), uuid, name, folder_for_name(name, uuid), True, with_comment((), comment))
        self.stage(state=self.state.with_schema(schema))
        return schema

    def drop_schema(self, name: str, cascade: bool = False) -> None:
        schema = self.state.schema(name)
        inside = self.state.relations_in(schema)
        things = [*inside, *self.state.macros_in(schema)]
        if things and not cascade:
            some = ", ".join(sorted(thing.name for thing in things)[:5])
            raise SchemaChangeError(
                f"schema {name} is not empty ({len(things)} tables, views and macros: {some});"
                " drop them first, or use DROP SCHEMA ... CASCADE"
            )
        for relation in inside:
            self.drop(relation)
        for macro in self.state.macros_in(schema):
            self.drop_macro(macro)
        options = {k: v for k, v in self.staged.options.items() if k[:2] != ("schema", schema.id)}
        self.stage(state=self.state.without_schema(schema.id), options=options)

    def set_schema_comment(self, name: str, comment: str | None) -> None:
        schema = self.state.schema(name)
        self.stage(state=self.state.with_schema(replace(schema, tags=with_comment(schema.tags, comment))))

    # -- tables

    def create_table(self, schema: Schema, name: str, columns: tuple[Column, ...], comment: str | None = None) -> Table:
        self._require_free(schema, name)
        check_columns(columns, name)
        ids = ColumnIds(1)
        uuid = new_uuid7()
        table = Table(
            id=self.new_id(),
            uuid=uuid,
            schema_id=schema.id,
            name=name,
            path=folder_for_name(name, uuid),
            path_is_relative=True,
            columns=tuple(ids.number(c) for c in columns),
            tags=with_comment((), comment),
        )
        self._counters.columns[table.id] = ids
        self.stage(state=self.state.with_table(table))
        return table

    def create_table_like(self, schema: Schema, name: str, source: Table) -> Table:
        """A table without rows that has the columns and the layout of another one."""
        table = self.create_table(schema, name, source.columns)
        names = {c.id: c.name for c in source.columns}
        if source.partition:
            keys = [(names[f.column_id], f.transform) for f in source.partition.fields]
            table = self.alter_table(table, lambda t: set_partition(t, keys, self.new_id()))
        if source.sort:
            sort_keys = source.sort.keys
            table = self.alter_table(table, lambda t: set_sort(t, sort_keys, self.new_id()))
        return table

    def replace_table(self, table: Table, columns: tuple[Column, ...], comment: str | None = None) -> Table:
        """The same table with other columns and no rows: its id, and its past, stay.

        Its partition and sort keys are there until they are set anew: keys that are the same then stay.
        """
        check_columns(columns, table.name)
        new = replace_columns(table, columns, self.column_ids(table))
        new = replace(new, tags=with_comment((), comment))
        self.truncate(table)
        self.stage(state=self.state.with_table(new))
        self.rewrites(table)
        return new

    def alter_table(self, table: Table, change: Change) -> Table:
        """The table as it is now, changed; the value given only says which table is meant."""
        now = self.state.tables[table.id]
        new = change(now)
        if new != now:
            self.stage(state=self.state.with_table(new))
        return new

    def rename(self, relation: Table | View, schema: Schema, name: str) -> None:
        if (schema.id, name.lower()) != (relation.schema_id, relation.name.lower()):
            self._require_free(schema, name)
        if isinstance(relation, Table):
            relation = self.state.tables[relation.id]
            # Its files stay where they are, so the path may no longer follow from the schema.
            path, is_relative = relation.path, relation.path_is_relative
            if schema.id != relation.schema_id:
                path, is_relative = self.state.folder(self.catalog.data_path, relation), False
            moved = replace(relation, schema_id=schema.id, name=name, path=path, path_is_relative=is_relative)
            self.stage(state=self.state.with_table(moved))
        else:
            view = self.state.views[relation.id]
            self.stage(state=self.state.with_view(replace(view, schema_id=schema.id, name=name)))

    def drop(self, relation: Table | View) -> None:
        data = {k: v for k, v in self.staged.data.items() if k != relation.id}
        options = {k: v for k, v in self.staged.options.items() if k[:2] != ("table", relation.id)}
        self.stage(state=self.state.without(relation), data=data, options=options)

    # -- views

    def create_view(
        self,
        schema: Schema,
        name: str,
        sql: str,
        dialect: str,
        aliases: tuple[str, ...] = (),
        tags: Mapping[str, str] | None = None,
    ) -> View:
        self._require_free(schema, name)
        view = View(
            self.new_id(),
            new_uuid7(),
            schema.id,
            name,
            dialect,
            sql,
            aliases,
            tuple(sorted((tags or {}).items())),
        )
        self.stage(state=self.state.with_view(view))
        return view

    # -- macros

    def create_macro(
        self, schema: Schema, name: str, impls: tuple[MacroImpl, ...], tags: Mapping[str, str] | None = None
    ) -> Macro:
        if self.state.find_macro(schema.name, name):
            raise AlreadyExistsError(f"{schema.name}.{name} already exists; it is a macro")
        macro = Macro(self.new_id(), schema.id, name, impls, tuple(sorted((tags or {}).items())))
        self.stage(state=self.state.with_macro(macro))
        return macro

    def drop_macro(self, macro: Macro) -> None:
        self.stage(state=self.state.without_macro(macro.id))

    def set_tags(self, relation: Table | View, tags: tuple[tuple[str, str], ...]) -> None:
        if isinstance(relation, Table):
            self.stage(state=self.state.with_table(replace(self.state.tables[relation.id], tags=tags)))
        else:
            self.stage(state=self.state.with_view(replace(self.state.views[relation.id], tags=tags)))

    # -- rows

    def append(self, table: Table, files: list[NewDataFile]) -> None:
        if files:
            data = self.data(table)
            self._stage_data(table, replace(data, added=(*data.added, *files)))

    def truncate(self, table: Table) -> None:
        """Ends every row that the table has, those staged in this transaction too."""
        self._stage_data(table, TableData(truncated=table.id >= 0))

    def end_files(self, table: Table, files: Iterable[DataFile]) -> None:
        """Takes data files away whole, committed and staged ones."""
        data = self.data(table)
        gone = {f.id: f for f in files}
        committed = [f for f in gone.values() if f.id >= 0]
        versions = sum(f.live_rows for i, f in enumerate(data.added, start=1) if -i in gone and f.versions)
        self._stage_data(
            table,
            replace(
                data,
                added=tuple(f for i, f in enumerate(data.added, start=1) if -i not in gone),
                ended=data.ended | {f.id for f in committed},
                masks={i: mask for i, mask in data.masks.items() if i not in gone},
                deleted=data.deleted + sum(f.live_rows for f in committed) + versions,
                updated=data.updated - versions,
            ),
        )

    def mask(self, table: Table, masks: Mapping[int, Mask], rows: Mapping[int, int]) -> None:
        """Takes so many rows away from data files, the ids of staged ones being below zero.

        A mask's delete file has all that is deleted of its data file; positions come to those there are.
        """
        data = self.data(table)
        added = tuple(replace(f, mask=masks.get(-i, f.mask)) for i, f in enumerate(data.added, start=1))
        merged = dict(data.masks)
        for file_id, mask in masks.items():
            if file_id >= 0:
                before = merged.get(file_id, Mask())
                merged[file_id] = before.and_(mask)
        committed = sum(count for file_id, count in rows.items() if file_id >= 0)
        versions = sum(rows.get(-i, 0) for i, f in enumerate(data.added, start=1) if f.versions)
        deleted = data.deleted + committed + versions
        self._stage_data(
            table, replace(data, added=added, masks=merged, deleted=deleted, updated=data.updated - versions)
        )

    def end_inlined(self, table: Table, row_ids: frozenset[int]) -> None:
        """Takes inlined rows away."""
        data = self.data(table)
        deleted = data.deleted + len(row_ids - data.inlined)
        self._stage_data(table, replace(data, inlined=data.inlined | row_ids, deleted=deleted))

    def updates(self, table: Table, rows: int) -> None:
        """Says that of the rows that were taken away so many have a new version among those appended."""
        data = self.data(table)
        self._stage_data(table, replace(data, updated=data.updated + rows, deleted=data.deleted - rows))

    def rewrites(self, table: Table, read: Read | None = None) -> None:
        """Says that what is written depends on rows of the table: on any, if it is not known on which."""
        if table.id < 0:
            return
        rewritten = dict(self.staged.rewritten)
        if table.id in rewritten:
            before = rewritten[table.id]
            read = before and read and before.or_(read)
        self.stage(rewritten={**rewritten, table.id: read})

    # -- options

    def set_option(
        self, name: str, value: object | None, schema: Schema | None = None, table: Table | None = None
    ) -> None:
        """Sets an option for the lake, a schema or a table; None takes the setting away."""
        scope = "table" if table else "schema" if schema else None
        scope_id = table.id if table else schema.id if schema else None
        key: Key = (scope, scope_id, name.lower())
        text = None if value is None else parse_option(name, value, scope)
        if value is None and key not in self.options.values:
            raise OptionError(f"option {name} is not set, so it can not be unset")
        self.stage(options={**self.staged.options, key: text})

    def commit(self) -> Committed:
        """Writes everything staged as one snapshot; see `commit.protocol`."""
        return protocol.commit(self)

    def _require_free(self, schema: Schema, name: str) -> None:
        found = self.state.find(schema.name, name)
        if found:
            kind = "table" if isinstance(found, Table) else "view"
            raise AlreadyExistsError(f"{schema.name}.{found.name} already exists; it is a {kind}")

    def _stage_data(self, table: Table, data: TableData) -> None:
        self.stage(data={**self.staged.data, table.id: data})

    def stage(self, **changes: Any) -> None:
        """Replaces fields of what is staged."""
        if self.catalog.read_only:
            raise ReadOnlyError(
                f"the lake in {self.catalog.database.location} is opened read-only; set read_only: false to change it"
            )
        self.staged = replace(self.staged, **changes)
