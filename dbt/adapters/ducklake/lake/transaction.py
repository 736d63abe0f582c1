"""Transactions: staged changes that become one snapshot, or nothing at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog, SnapshotInfo
from .commit import protocol
from .commit.folding import fold
from .commit.protocol import Committed
from .commit.staged import CommitInfo, Compaction, DataChanges, Flush, Staged
from .deletes import PositionDeletes
from .errors import AlreadyExistsError, LakeError, OptionError, SchemaChangeError
from .evolution import (
    ColumnIds,
    TableChange,
    check_columns,
    replace_columns,
    set_partition,
    set_sort,
    with_comment,
)
from .file_store import FileStore
from .files import DataFile, NewDataFile
from .inlined_inserts import NewInlinedRows
from .options import OptionKey, Options, parse_option
from .paths import filesystem_for, folder_for_name, new_uuid7
from .predicates import ReadPredicate
from .snapshot import LakeState, Macro, MacroImpl, Schema, Table, Tags, View
from .snapshot_loader import Snapshots
from .table_summary import table_summaries
from .types import Column


@dataclass(frozen=True)
class ChangeCounts:
    """How many rows and files a transaction changes."""

    rows_added: int = 0
    """Without the new versions of updated rows."""
    rows_removed: int = 0
    """Without the old versions of updated rows."""
    files_added: int = 0
    rows_updated: int = 0

    def __add__(self, other: ChangeCounts) -> ChangeCounts:
        return ChangeCounts(
            self.rows_added + other.rows_added,
            self.rows_removed + other.rows_removed,
            self.files_added + other.files_added,
            self.rows_updated + other.rows_updated,
        )


@dataclass
class _IdGenerators:
    """The next free ids. A transaction shares them with those nested in it."""

    provisional_ids: count[int] = field(default_factory=lambda: count(-1, -1))
    """Ids below zero, for which the commit assigns real ones."""
    column_ids: dict[int, ColumnIds] = field(default_factory=dict)
    """The next column id of each table, by table id."""


class Transaction:
    """Staged changes on top of one snapshot, the base.

    All of them are in one immutable value, `staged`. A nested transaction starts with the value of its parent. Merging
    it folds its changes into that of the parent; discarding it needs no work. Only the outermost transaction commits.
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
        self.origin: Staged = self.staged
        """What was staged when the transaction began."""
        self.commit_info: CommitInfo = parent.commit_info if parent else CommitInfo()
        self._base_options = options
        self._id_generators: _IdGenerators = parent._id_generators if parent else _IdGenerators()

    @classmethod
    def begin(
        cls,
        catalog: Catalog,
        snapshots: Snapshots,
        base: SnapshotInfo | None = None,
        store: FileStore | None = None,
    ) -> Transaction:
        """A transaction on the latest snapshot, or on the given one."""
        with catalog.read() as connection:
            base = base or catalog.latest_snapshot(connection)
            state = snapshots.state(connection, base)
            return cls(catalog, snapshots, base, state, catalog.options(connection), store=store)

    def nested(self) -> Transaction:
        """A transaction that starts with the changes staged here."""
        return Transaction(
            self.catalog,
            self.snapshots,
            self.base,
            self.base_state,
            self._base_options,
            store=self._store,
            parent=self,
        )

    def merge_into_parent(self) -> None:
        """Gives the changes of this nested transaction to its parent, and its commit info if the parent has none.

        Raises a ConflictError if another transaction that was merged into the parent meanwhile changed the same.
        """
        if self.parent is None:
            raise LakeError("only a nested transaction can be merged into its parent; the outermost one is committed")
        self.parent.staged = fold(self.origin, self.staged, self.parent.staged)
        if self.parent.commit_info.message is None:
            self.parent.commit_info = self.commit_info

    @property
    def store(self) -> FileStore:
        """Access to the lake's files."""
        return self._store or FileStore(*filesystem_for(self.catalog.data_path), self.catalog.is_encrypted)

    @property
    def state(self) -> LakeState:
        """The definitions as this transaction sees them: those of the base with the staged changes."""
        return self.staged.state

    @property
    def options(self) -> Options:
        return self._base_options.with_values(self.staged.options)

    @property
    def is_changed(self) -> bool:
        """Whether anything was staged since the transaction began."""
        return self.staged.makes_snapshot(self.origin) or self.staged.options != self.origin.options

    def data_changes(self, table: Table) -> DataChanges:
        return self.staged.changes_of(table.id)

    def change_counts(self) -> ChangeCounts:
        """How many rows and files were staged since the transaction began. Rows of dropped tables are not counted."""
        counts, truncated = ChangeCounts(), []
        for table_id, now in self.staged.data_changes.items():
            before = self.origin.changes_of(table_id)
            if now != before:
                counts += _counts_of(before, now)
            if now.truncated and not before.truncated:
                truncated.append(table_id)
        if truncated:
            with self.catalog.read() as connection:
                summaries = table_summaries(connection, self.catalog, self.base.id, truncated)
                counts += ChangeCounts(rows_removed=sum(summary.row_count for summary in summaries.values()))
        return counts

    def column_ids(self, table: Table) -> ColumnIds:
        """The next column ids of a table, greater than the id of every column that it ever had."""
        if table.id not in self._id_generators.column_ids:
            highest = max((c.id for c in table.walk_columns()), default=0)
            if table.id >= 0:
                with self.catalog.read() as connection:
                    ids = sa.select(sa.func.max(t.column.c.column_id)).where(t.column.c.table_id == table.id)
                    highest = max(highest, connection.scalar(ids) or 0)
            self._id_generators.column_ids[table.id] = ColumnIds(highest + 1)
        return self._id_generators.column_ids[table.id]

    def new_provisional_id(self) -> int:
        """An id below zero, for which the commit assigns a real one."""
        return next(self._id_generators.provisional_ids)

    # -- schemas

    def create_schema(self, name: str, comment: str | None = None) -> Schema:
        if self.state.find_schema(name):
            raise AlreadyExistsError(f"schema {name} already exists")
        uuid = new_uuid7()
        schema = Schema(
            id=self.new_provisional_id(),
            uuid=uuid,
            name=name,
            path=folder_for_name(name, uuid),
            path_is_relative=True,
            tags=with_comment((), comment),
        )
        self.stage(state=self.state.with_schema(schema))
        return schema

    def drop_schema(self, name: str, cascade: bool = False) -> None:
        schema = self.state.schema(name)
        relations, macros = self.state.relations_in(schema), self.state.macros_in(schema)
        contents = [*relations, *macros]
        if contents and not cascade:
            names = ", ".join(sorted(content.name for content in contents)[:5])
            raise SchemaChangeError(
                f"schema {name} is not empty ({len(contents)} tables, views and macros: {names});"
                " drop them first, or use DROP SCHEMA ... CASCADE"
            )
        for relation in relations:
            self.drop(relation)
        for macro in macros:
            self.drop_macro(macro)
        options = {k: v for k, v in self.staged.options.items() if k[:2] != ("schema", schema.id)}
        self.stage(state=self.state.without_schema(schema.id), options=options)

    def set_schema_comment(self, name: str, comment: str | None) -> None:
        schema = self.state.schema(name)
        self.stage(state=self.state.with_schema(replace(schema, tags=with_comment(schema.tags, comment))))

    # -- tables and views

    def create_table(self, schema: Schema, name: str, columns: tuple[Column, ...], comment: str | None = None) -> Table:
        self._check_name_is_free(schema, name)
        check_columns(columns, name)
        ids = ColumnIds(1)
        uuid = new_uuid7()
        table = Table(
            id=self.new_provisional_id(),
            uuid=uuid,
            schema_id=schema.id,
            name=name,
            path=folder_for_name(name, uuid),
            path_is_relative=True,
            columns=tuple(ids.assign(c) for c in columns),
            tags=with_comment((), comment),
        )
        self._id_generators.column_ids[table.id] = ids
        self.stage(state=self.state.with_table(table))
        return table

    def create_table_like(self, schema: Schema, name: str, source: Table) -> Table:
        """A new table without rows, with the columns, the partition keys and the sort keys of another one."""
        table = self.create_table(schema, name, source.columns)
        names = {c.id: c.name for c in source.columns}
        if source.partition:
            keys = [(names[f.column_id], f.transform) for f in source.partition.fields]
            table = self.alter_table(table, lambda t: set_partition(t, keys, self.new_provisional_id()))
        if source.sort:
            sort_keys = source.sort.keys
            table = self.alter_table(table, lambda t: set_sort(t, sort_keys, self.new_provisional_id()))
        return table

    def replace_table(self, table: Table, columns: tuple[Column, ...], comment: str | None = None) -> Table:
        """Gives a table other columns and removes its rows. It keeps its id, so time travel still finds its past.

        It also keeps its partition keys and sort keys until others are set.
        """
        check_columns(columns, table.name)
        new = replace_columns(table, columns, self.column_ids(table))
        new = replace(new, tags=with_comment((), comment))
        self.truncate(table)
        self.stage(state=self.state.with_table(new))
        self.record_read(table)
        return new

    def alter_table(self, table: Table, change: TableChange) -> Table:
        """Applies a change to the current staged definition of the table, which may be newer than the value given."""
        current = self.state.tables[table.id]
        changed = change(current)
        if changed != current:
            self.stage(state=self.state.with_table(changed))
        return changed

    def rename(self, relation: Table | View, schema: Schema, name: str) -> None:
        if (schema.id, name.lower()) != (relation.schema_id, relation.name.lower()):
            self._check_name_is_free(schema, name)
        if isinstance(relation, Table):
            relation = self.state.tables[relation.id]
            # The files stay where they are. In another schema, only an absolute path still leads there.
            path, is_relative = relation.path, relation.path_is_relative
            if schema.id != relation.schema_id:
                path, is_relative = self.state.table_folder(self.catalog.data_path, relation), False
            moved = replace(relation, schema_id=schema.id, name=name, path=path, path_is_relative=is_relative)
            self.stage(state=self.state.with_table(moved))
        else:
            view = self.state.views[relation.id]
            self.stage(state=self.state.with_view(replace(view, schema_id=schema.id, name=name)))

    def drop(self, relation: Table | View) -> None:
        data_changes = {k: v for k, v in self.staged.data_changes.items() if k != relation.id}
        options = {k: v for k, v in self.staged.options.items() if k[:2] != ("table", relation.id)}
        self.stage(state=self.state.without_relation(relation), data_changes=data_changes, options=options)

    def set_tags(self, relation: Table | View, tags: Tags) -> None:
        if isinstance(relation, Table):
            self.stage(state=self.state.with_table(replace(self.state.tables[relation.id], tags=tags)))
        else:
            self.stage(state=self.state.with_view(replace(self.state.views[relation.id], tags=tags)))

    def set_column_tags(self, view: View, column: str, tags: Tags) -> None:
        """Sets the tags of a view's column, in place of all that it has."""
        staged = self.state.views[view.id]
        column_tags = {**dict(staged.column_tags), column: tags}
        changed = replace(staged, column_tags=tuple(sorted((k, v) for k, v in column_tags.items() if v)))
        self.stage(state=self.state.with_view(changed))

    def create_view(
        self,
        schema: Schema,
        name: str,
        sql: str,
        dialect: str,
        aliases: tuple[str, ...] = (),
        tags: Mapping[str, str] | None = None,
    ) -> View:
        self._check_name_is_free(schema, name)
        view = View(
            id=self.new_provisional_id(),
            uuid=new_uuid7(),
            schema_id=schema.id,
            name=name,
            dialect=dialect,
            sql=sql,
            column_aliases=aliases,
            tags=tuple(sorted((tags or {}).items())),
        )
        self.stage(state=self.state.with_view(view))
        return view

    def set_view_sql(self, view: View, sql: str) -> None:
        self.stage(state=self.state.with_view(replace(self.state.views[view.id], sql=sql)))

    # -- macros

    def create_macro(
        self, schema: Schema, name: str, impls: tuple[MacroImpl, ...], tags: Mapping[str, str] | None = None
    ) -> Macro:
        if self.state.find_macro(schema.name, name):
            raise AlreadyExistsError(f"{schema.name}.{name} already exists; it is a macro")
        macro = Macro(self.new_provisional_id(), schema.id, name, impls, tuple(sorted((tags or {}).items())))
        self.stage(state=self.state.with_macro(macro))
        return macro

    def drop_macro(self, macro: Macro) -> None:
        self.stage(state=self.state.without_macro(macro.id))

    # -- rows

    def append(self, table: Table, files: list[NewDataFile]) -> None:
        if files:
            self._stage_data_changes(table, self.data_changes(table).with_added_files(files))

    def insert_inlined(self, table: Table, rows: NewInlinedRows) -> None:
        """Inserts rows into the catalog."""
        self._stage_data_changes(table, self.data_changes(table).with_inlined_inserts([rows]))

    def take_back_inlined_inserts(self, table: Table) -> tuple[NewInlinedRows, ...]:
        """Takes back what was inserted into the catalog, and returns it."""
        changes = self.data_changes(table)
        if changes.inlined_inserts:
            self._stage_data_changes(table, replace(changes, inlined_inserts=()))
        return changes.inlined_inserts

    def truncate(self, table: Table) -> None:
        """Ends every row of the table, including those staged in this transaction."""
        self._stage_data_changes(table, DataChanges(truncated=table.id >= 0))

    def end_files(self, table: Table, files: Iterable[DataFile]) -> None:
        """Ends whole data files, committed or staged."""
        self._stage_data_changes(table, self.data_changes(table).without_files(files))

    def compact(self, table: Table, compactions: Iterable[Compaction]) -> None:
        """Puts data files in the place of committed ones that hold the same rows."""
        changes = self.data_changes(table)
        self._stage_data_changes(table, replace(changes, compactions=(*changes.compactions, *compactions)))

    def flush(self, table: Table, flushes: Iterable[Flush], deletes: Mapping[int, PositionDeletes]) -> None:
        """Puts data files in the place of inlined rows, and delete files in the place of inlined deletes."""
        changes = replace(self.data_changes(table), flushes=tuple(flushes), flushed_deletes=deletes)
        self._stage_data_changes(table, changes)

    def delete_positions(
        self, table: Table, position_deletes: Mapping[int, PositionDeletes], row_counts: Mapping[int, int]
    ) -> None:
        """Deletes rows of data files by position. Both arguments are by file id; ids of staged files are below zero.

        A delete file must contain all deleted positions of its data file. Inlined positions are added to earlier ones.
        """
        self._stage_data_changes(table, self.data_changes(table).with_position_deletes(position_deletes, row_counts))

    def delete_inlined_rows(self, table: Table, row_ids: frozenset[int]) -> None:
        self._stage_data_changes(table, self.data_changes(table).with_deleted_inlined_rows(row_ids))

    def record_updates(self, table: Table, row_count: int) -> None:
        """Records that so many of the deleted rows have a new version among the appended rows."""
        self._stage_data_changes(table, self.data_changes(table).with_updates(row_count))

    def record_read(self, table: Table, read: ReadPredicate | None = None) -> None:
        """Records that the written rows depend on rows of the table: those that satisfy the predicate, or any.

        The commit conflicts with a snapshot that has changed such rows since the base.
        """
        if table.id < 0:
            return
        reads = self.staged.reads
        if table.id in reads:
            before = reads[table.id]
            read = before and read and before.union(read)
        self.stage(reads={**reads, table.id: read})

    # -- options

    def set_option(
        self, name: str, value: object | None, schema: Schema | None = None, table: Table | None = None
    ) -> None:
        """Sets an option for the lake, a schema or a table. The value None unsets it."""
        scope = "table" if table else "schema" if schema else None
        scope_id = table.id if table else schema.id if schema else None
        key: OptionKey = (scope, scope_id, name.lower())
        text = None if value is None else parse_option(name, value, scope)
        if value is None and key not in self.options.values:
            raise OptionError(f"option {name} is not set, so it can not be unset")
        if text is not None and self.options.values.get(key) == text:
            self.catalog.check_writable()
            return
        self.stage(options={**self.staged.options, key: text})

    def commit(self) -> Committed:
        """Commits everything staged as one snapshot; see `commit.protocol`."""
        return protocol.commit(self)

    def stage(self, **changes: Any) -> None:
        """Replaces fields of the staged value."""
        self.catalog.check_writable()
        self.staged = replace(self.staged, **changes)

    def _stage_data_changes(self, table: Table, changes: DataChanges) -> None:
        self.stage(data_changes={**self.staged.data_changes, table.id: changes})

    def _check_name_is_free(self, schema: Schema, name: str) -> None:
        relation = self.state.find_relation(schema.name, name)
        if relation:
            kind = "table" if isinstance(relation, Table) else "view"
            raise AlreadyExistsError(f"{schema.name}.{relation.name} already exists; it is a {kind}")


def _counts_of(before: DataChanges, now: DataChanges) -> ChangeCounts:
    """What was staged for a table in between, without the committed rows that a truncation removes."""
    updated = now.updated_row_count - before.updated_row_count
    added = now.added_row_count - before.added_row_count - updated
    return ChangeCounts(
        rows_added=max(added, 0),
        rows_removed=now.deleted_row_count - before.deleted_row_count - min(added, 0),
        files_added=len(now.added_paths - before.added_paths),
        rows_updated=max(updated, 0),  # new versions that were staged before may be gone
    )
