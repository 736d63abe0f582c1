"""From staged changes to the rows of one snapshot: the difference between two states of the lake."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import sqlalchemy as sa

from . import inlined
from . import tables as t
from .catalog import Catalog, SnapshotInfo
from .conflicts import Intent
from .deletes import Mask, NewDeleteFile
from .files import NameMap, NewDataFile, name_maps
from .options import Key
from .partitions import PartitionSpec
from .paths import relative_to, resolve
from .predicates import Read
from .snapshot import LakeState, Macro, Schema, Table, View, quoted
from .stats import TableColumnStats, widen, widest
from .types import Column

# How many values one statement may list: databases take 32,766 (SQLite) or 65,535 (PostgreSQL).
_MOST_IDS = 10_000


@dataclass(frozen=True)
class CommitInfo:
    author: str | None = None
    message: str | None = None
    extra_info: str | None = None


@dataclass(frozen=True)
class TableData:
    """What is staged of one table's rows."""

    added: tuple[NewDataFile, ...] = ()
    ended: frozenset[int] = frozenset()
    truncated: bool = False
    """Every file and inlined row that the table had in the base ends."""
    masks: Mapping[int, Mask] = field(default_factory=dict)
    """What is deleted of data files of the base, by their ids."""
    inlined: frozenset[int] = frozenset()
    """Row ids of inlined rows that end."""
    settled: Mapping[int, NewDeleteFile] = field(default_factory=dict)
    """Of data files that end: what the catalog itself kept of their deleted rows, as delete files."""
    updated: int = 0
    deleted: int = 0
    """How many rows of the base have a new version, and how many have none any more; not those truncated."""

    @property
    def deletes(self) -> bool:
        """Whether it takes something away from data files other than by positions in the catalog."""
        return self.truncated or bool(self.ended) or any(mask.file for mask in self.masks.values())

    @property
    def deletes_inlined(self) -> bool:
        return bool(self.inlined) or any(mask.positions for mask in self.masks.values())

    @property
    def touched(self) -> frozenset[int]:
        """The data files of which rows are taken away one by one."""
        return self.ended | self.masks.keys()


@dataclass(frozen=True)
class Staged:
    """All that a transaction has staged, as one value."""

    state: LakeState
    data: Mapping[int, TableData] = field(default_factory=dict)
    options: Mapping[Key, str | None] = field(default_factory=dict)
    rewritten: Mapping[int, Read | None] = field(default_factory=dict)
    """Tables whose rows were read to decide what to write, with what those rows have in common if it is known."""

    def makes_snapshot(self, base: LakeState) -> bool:
        """Whether more changed than options, which have no history."""
        return self.state != base or any(d != TableData() for d in self.data.values())


def _pairs(base: Mapping[int, Any], state: Mapping[int, Any]) -> Iterable[tuple[Any, Any]]:
    """Old and new of everything that differs: created things have no old, dropped ones no new."""
    for key in base.keys() | state.keys():
        old, new = base.get(key), state.get(key)
        if old is not new and old != new:
            yield old, new


def _is_moved(old: Table | View, new: Table | View) -> bool:
    return (old.schema_id, old.name) != (new.schema_id, new.name)


def _is_altered(old: Table | View, new: Table | View) -> bool:
    """Whether more than its name and place changed."""
    if isinstance(old, Table) and isinstance(new, Table):
        moved = replace(
            old, schema_id=new.schema_id, name=new.name, path=new.path, path_is_relative=new.path_is_relative
        )
        return moved != new
    return isinstance(old, View) and replace(old, schema_id=new.schema_id, name=new.name) != new


def intent(staged: Staged, base: LakeState) -> Intent:
    """What the commit is about to do, for the check against what others did."""
    state = staged.state
    created: dict[tuple[str, str], int] = {}
    tables: set[tuple[str, int]] = set()
    names: dict[int, str] = {}
    relations = [*_pairs(base.tables, state.tables), *_pairs(base.views, state.views)]
    for old, new in relations:
        if new is not None and (old is None or _is_moved(old, new)):
            created[state.schema_of(new).name.lower(), new.name.lower()] = new.schema_id
        if old is not None:
            names[old.id] = base.qualified(old)
            if new is None:
                tables.add(("dropped", old.id))
            else:
                tables.add(("altered", old.id))
    for table_id, data in staged.data.items():
        if table_id < 0:
            continue
        names[table_id] = base.qualified(base.tables[table_id])
        if data.added:
            tables.add(("inserted", table_id))
        if data.truncated:
            tables.add(("truncated", table_id))
        elif data.touched:
            tables.add(("deleted", table_id))
        if data.inlined:
            tables.add(("inlined", table_id))
    schemas = list(_pairs(base.schemas, state.schemas))
    macros = list(_pairs(base.macros, state.macros))
    return Intent(
        created_schemas=frozenset(new.name.lower() for old, new in schemas if old is None),
        dropped_schemas={old.id: old.name for old, new in schemas if new is None},
        created=created,
        created_macros={
            (new.kind, state.schemas[new.schema_id].name.lower(), new.name.lower()): new.schema_id
            for old, new in macros
            if old is None
        },
        dropped_macros={(old.kind, old.id): old.name for old, new in macros if new is None},
        tables=frozenset(tables),
        rewritten=frozenset(table_id for table_id, read in staged.rewritten.items() if read is None),
        names=names,
    )


class Snapshotter:
    """Writes one snapshot's rows into an open transaction of the catalog database."""

    def __init__(
        self,
        connection: sa.Connection,
        catalog: Catalog,
        latest: SnapshotInfo,
        base: SnapshotInfo,
        base_state: LakeState,
        staged: Staged,
        info: CommitInfo,
    ) -> None:
        self.connection = connection
        self.catalog = catalog
        self.latest = latest
        self.base = base
        self.base_state = base_state
        self.staged = staged
        self.info = info
        self.snapshot_id = latest.id + 1
        self.next_catalog_id = latest.next_catalog_id
        self.next_file_id = latest.next_file_id
        self.schema_version = latest.schema_version
        self.schema_ids: dict[int, int] = {}
        self.ids: dict[int, int] = {}
        """The real id of every table, view, partition and sort specification staged with one below zero."""
        self.rows: dict[sa.Table, list[dict[str, Any]]] = defaultdict(list)
        self.changes: list[str] = []
        self.new_versions: dict[int, bool] = {}
        """Tables whose columns or partitioning are new, and whether their inlined rows need a new table."""

    def write(self) -> SnapshotInfo:
        makes_snapshot = self.staged.makes_snapshot(self.base_state)
        if makes_snapshot:
            if self.staged.state != self.base_state:
                self.schema_version += 1
            self._relations()
            self._data()
            self._versions()
        self._options()
        if not makes_snapshot:
            self._flush()
            return self.latest
        moment = max(
            datetime.datetime.now(datetime.timezone.utc),
            self.latest.time + datetime.timedelta(microseconds=1),
        )
        snapshot = SnapshotInfo(self.snapshot_id, moment, self.schema_version, self.next_catalog_id, self.next_file_id)
        # First of all: whoever else is writing this snapshot id makes us fail here, not half-way.
        self.catalog.database.insert(
            self.connection,
            t.snapshot,
            [
                {
                    "snapshot_id": snapshot.id,
                    "snapshot_time": snapshot.time,
                    "schema_version": snapshot.schema_version,
                    "next_catalog_id": snapshot.next_catalog_id,
                    "next_file_id": snapshot.next_file_id,
                }
            ],
        )
        self.rows[t.snapshot_changes].append(
            {
                "snapshot_id": snapshot.id,
                # Nothing there is a word for, as a schema's comment, is NULL: the reference reads no ''.
                "changes_made": ",".join(self.changes) or None,
                "author": self.info.author,
                "commit_message": self.info.message,
                "commit_extra_info": self.info.extra_info,
            }
        )
        self._flush()
        return snapshot

    # -- ids

    def _catalog_id(self, provisional: int) -> int:
        if provisional >= 0:
            return provisional
        if provisional not in self.ids:
            self.ids[provisional] = self.next_catalog_id
            self.next_catalog_id += 1
        return self.ids[provisional]

    def _file_id(self) -> int:
        self.next_file_id += 1
        return self.next_file_id - 1

    def _add(self, table: sa.Table, **row: Any) -> None:
        self.rows[table].append(row)

    def _end(self, table: sa.Table, *where: sa.ColumnElement[bool]) -> None:
        self.connection.execute(
            sa.update(table).where(table.c.end_snapshot.is_(None), *where).values(end_snapshot=self.snapshot_id)
        )

    # -- schemas, tables, views

    def _relations(self) -> None:
        base, state = self.base_state, self.staged.state
        schemas = sorted(_pairs(base.schemas, state.schemas), key=_oldest_first)
        tables = sorted(_pairs(base.tables, state.tables), key=_oldest_first)
        views = sorted(_pairs(base.views, state.views), key=_oldest_first)
        for old, new in schemas:
            if new is None:
                self._end(t.schema, t.schema.c.schema_id == old.id)
                self.changes.append(f"dropped_schema:{old.id}")
        for old, new in tables:
            if new is None:
                self._drop_table(old)
        for old, new in views:
            if new is None:
                self._end(t.view, t.view.c.view_id == old.id)
                self._end(t.tag, t.tag.c.object_id == old.id)
                self.changes.append(f"dropped_view:{old.id}")
        macros = sorted(_pairs(base.macros, state.macros), key=_oldest_first)
        for old, new in macros:
            if new is None:
                self._end(t.macro, t.macro.c.macro_id == old.id)
                self._end(t.tag, t.tag.c.object_id == old.id)
                self.changes.append(f"dropped_{old.kind}_macro:{old.id}")
        for old, new in schemas:
            if new is not None:
                self._put_schema(old, new)
        for old, new in (*tables, *views):
            if new is not None and (old is None or _is_moved(old, new)):
                kind = "table" if isinstance(new, Table) else "view"
                schema = state.schema_of(new).name
                self.changes.append(f"created_{kind}:{quoted(schema)}.{quoted(new.name)}")
        for old, new in tables:
            if new is not None:
                self._put_table(old, new)
        for old, new in views:
            if new is not None:
                self._put_view(old, new)
        for old, new in macros:
            if new is not None and old is None:
                self._put_macro(new)

    def _put_macro(self, macro: Macro) -> None:
        """A new macro; one that changes is another one of its name."""
        macro_id = self._catalog_id(macro.id)
        schema = self.staged.state.schemas[macro.schema_id]
        self._add(
            t.macro,
            schema_id=self._catalog_id(macro.schema_id),
            macro_id=macro_id,
            macro_name=macro.name,
            begin_snapshot=self.snapshot_id,
        )
        for number, impl in enumerate(macro.impls):
            self._add(
                t.macro_impl, macro_id=macro_id, impl_id=number, dialect=impl.dialect, sql=impl.sql, type=impl.kind
            )
            for index, parameter in enumerate(impl.parameters):
                self._add(
                    t.macro_parameters,
                    macro_id=macro_id,
                    impl_id=number,
                    column_id=index,
                    parameter_name=parameter.name,
                    parameter_type=parameter.type,
                    default_value="NULL" if parameter.default is None else parameter.default,
                    default_value_type=parameter.default_type,
                )
        self._tags(macro_id, (), macro.tags)
        self.changes.append(f"created_{macro.kind}_macro:{quoted(schema.name)}.{quoted(macro.name)}")

    def _put_schema(self, old: Schema | None, new: Schema) -> None:
        schema_id = self._catalog_id(new.id)
        if old is None:
            self._add(
                t.schema,
                schema_id=schema_id,
                schema_uuid=new.uuid,
                begin_snapshot=self.snapshot_id,
                schema_name=new.name,
                path=new.path,
                path_is_relative=new.path_is_relative,
            )
            self.changes.append(f"created_schema:{quoted(new.name)}")
        self._tags(schema_id, old.tags if old else (), new.tags)

    def _drop_table(self, table: Table) -> None:
        for versioned in (
            t.table,
            t.partition_info,
            t.column,
            t.column_tag,
            t.data_file,
            t.delete_file,
            t.sort_info,
        ):
            self._end(versioned, versioned.c.table_id == table.id)
        self._end(t.tag, t.tag.c.object_id == table.id)
        self.changes.append(f"dropped_table:{table.id}")

    def _put_table(self, old: Table | None, new: Table) -> None:
        table_id = self._catalog_id(new.id)
        if old is None or _is_moved(old, new):
            if old is not None:
                self._end(t.table, t.table.c.table_id == table_id)
            self._add(
                t.table,
                table_id=table_id,
                table_uuid=new.uuid,
                begin_snapshot=self.snapshot_id,
                schema_id=self._catalog_id(new.schema_id),
                table_name=new.name,
                path=new.path,
                path_is_relative=new.path_is_relative,
            )
        if old is not None and _is_altered(old, new):
            self.changes.append(f"altered_table:{table_id}")
        old_columns = old.columns if old else ()
        self._columns(table_id, old_columns, new.columns)
        self._partition(table_id, old.partition if old else None, new.partition)
        self._sort(table_id, old, new)
        self._tags(table_id, old.tags if old else (), new.tags)
        is_other = old is None or _is_moved(old, new) or old.partition != new.partition
        if is_other or _definitions(old_columns) != _definitions(new.columns):
            self.new_versions[new.id] = is_other or _shape(old_columns) != _shape(new.columns)

    def _columns(self, table_id: int, old: tuple[Column, ...], new: tuple[Column, ...]) -> None:
        before, after = _definitions(old), _definitions(new)
        ended = [column_id for column_id in before if before[column_id] != after.get(column_id)]
        if ended:
            self._end(t.column, t.column.c.table_id == table_id, t.column.c.column_id.in_(ended))
        for column_id, definition in after.items():
            if before.get(column_id) != definition:
                self._add(t.column, table_id=table_id, begin_snapshot=self.snapshot_id, **definition)
        old_tags = {c.id: c.tags for top in old for c in top.walk()}
        new_tags = {c.id: c.tags for top in new for c in top.walk()}
        for column_id in old_tags.keys() | new_tags.keys():
            was, now = dict(old_tags.get(column_id, ())), dict(new_tags.get(column_id, ()))
            for key in was.keys() | now.keys():
                if was.get(key) == now.get(key):
                    continue
                if key in was:
                    tag = t.column_tag
                    self._end(tag, tag.c.table_id == table_id, tag.c.column_id == column_id, tag.c.key == key)
                if key in now:
                    self._add(
                        t.column_tag,
                        table_id=table_id,
                        column_id=column_id,
                        begin_snapshot=self.snapshot_id,
                        key=key,
                        value=now[key],
                    )

    def _partition(self, table_id: int, old: PartitionSpec | None, new: PartitionSpec | None) -> None:
        if old == new:
            return
        if old is not None:
            self._end(t.partition_info, t.partition_info.c.table_id == table_id)
        if new is not None:
            self._add_partition(table_id, new, None)

    def _add_partition(self, table_id: int, spec: PartitionSpec, end: int | None) -> None:
        partition_id = self._catalog_id(spec.id)
        self._add(
            t.partition_info,
            partition_id=partition_id,
            table_id=table_id,
            begin_snapshot=self.snapshot_id,
            end_snapshot=end,
        )
        for key in spec.fields:
            self._add(
                t.partition_column,
                partition_id=partition_id,
                table_id=table_id,
                partition_key_index=key.index,
                column_id=key.column_id,
                transform=str(key.transform),
            )

    def _passing_partitions(self, table_id: int, table: Table, files: Iterable[NewDataFile]) -> None:
        """Partitionings that were staged and given up in one transaction, but have files."""
        specs = {file.partition.id: file.partition for file in files if file.partition}
        for spec in specs.values():
            if spec.id < 0 and spec != table.partition:
                self._add_partition(table_id, spec, self.snapshot_id)

    def _sort(self, table_id: int, old: Table | None, new: Table) -> None:
        if old is not None and old.sort == new.sort:
            return
        if old is not None and old.sort is not None:
            self._end(t.sort_info, t.sort_info.c.table_id == table_id)
        if new.sort is None:
            return
        # A sort order is never changed in place: a renamed column makes a new one.
        sort_id = self._catalog_id(new.sort.id) if new.sort.id < 0 else self._catalog_id(-(10**12) - table_id)
        self._add(t.sort_info, sort_id=sort_id, table_id=table_id, begin_snapshot=self.snapshot_id)
        for index, key in enumerate(new.sort.keys):
            self._add(
                t.sort_expression,
                sort_id=sort_id,
                table_id=table_id,
                sort_key_index=index,
                expression=key.expression,
                dialect=key.dialect,
                sort_direction="DESC" if key.descending else "ASC",
                null_order="NULLS_FIRST" if key.nulls_first else "NULLS_LAST",
            )

    def _put_view(self, old: View | None, new: View) -> None:
        view_id = self._catalog_id(new.id)
        if old is None or replace(old, tags=new.tags) != new:
            if old is not None:
                self._end(t.view, t.view.c.view_id == view_id)
            self._add(
                t.view,
                view_id=view_id,
                view_uuid=new.uuid,
                begin_snapshot=self.snapshot_id,
                schema_id=self._catalog_id(new.schema_id),
                view_name=new.name,
                dialect=new.dialect,
                sql=new.sql,
                column_aliases=",".join(quoted(name) for name in new.column_aliases),
            )
        if old is not None and _is_altered(old, new):
            self.changes.append(f"altered_view:{view_id}")
        self._tags(view_id, old.tags if old else (), new.tags)

    def _tags(self, object_id: int, old: tuple[tuple[str, str], ...], new: tuple[tuple[str, str], ...]) -> None:
        was, now = dict(old), dict(new)
        for key in sorted(was.keys() | now.keys()):
            if was.get(key) == now.get(key):
                continue
            if key in was:
                self._end(t.tag, t.tag.c.object_id == object_id, t.tag.c.key == key)
            if key in now:
                self._add(t.tag, object_id=object_id, begin_snapshot=self.snapshot_id, key=key, value=now[key])

    def _versions(self) -> None:
        """What a table with a new definition needs besides: its schema version, its table of inlined rows."""
        for provisional, needs_inlined_table in self.new_versions.items():
            table = self.staged.state.tables[provisional]
            table_id = self._catalog_id(table.id)
            self._add(
                t.schema_versions,
                begin_snapshot=self.snapshot_id,
                schema_version=self.schema_version,
                table_id=table_id,
            )
            options = self.catalog.options(self.connection).with_values(self._resolved_options())
            limit = options.number("data_inlining_row_limit", self._catalog_id(table.schema_id), table_id)
            if needs_inlined_table and limit and inlined.can_inline(self.catalog.database, table.columns):
                name = f"ducklake_inlined_data_{table_id}_{self.schema_version}"
                inlined.create_table(self.connection, self.catalog, name, table.columns)
                self._add(
                    t.inlined_data_tables,
                    table_id=table_id,
                    table_name=name,
                    schema_version=self.schema_version,
                )

    # -- rows

    def _data(self) -> None:
        order = sorted(self.staged.data.items(), key=lambda item: (item[0] < 0, abs(item[0])))
        inserted = [self._catalog_id(key) for key, data in order if data.added]
        deleted = [key for key, data in order if data.deletes]
        inlined_deleted = [key for key, data in order if self._end_inlined(key, data) or data.deletes_inlined]
        self.changes += [f"inserted_into_table:{table_id}" for table_id in inserted]
        self.changes += [f"deleted_from_table:{table_id}" for table_id in deleted]
        self.changes += [f"inlined_delete:{table_id}" for table_id in inlined_deleted]
        for provisional, data in order:
            table_id = self._catalog_id(provisional)
            if data.truncated:
                file = t.data_file
                self._end(file, file.c.table_id == table_id, file.c.begin_snapshot <= self.base.id)
            ended = sorted(data.ended)
            for start in range(0, len(ended), _MOST_IDS):
                self._end(t.data_file, t.data_file.c.data_file_id.in_(ended[start : start + _MOST_IDS]))
            if data.masks:
                self._mask(table_id, data.masks)
            if data.settled:
                self._settle(table_id, data.settled)
            if data.added:
                self._append(table_id, self.staged.state.tables[provisional], data.added)

    def _end_inlined(self, table_id: int, data: TableData) -> bool:
        """Ends inlined rows of a table; says whether there were any."""
        if not data.truncated and not data.inlined:
            return False
        ended = 0
        for name in inlined.tables_of(self.connection, table_id).values():
            rows = t.inlined_data(name, [])
            ending = sa.update(rows).where(rows.c.end_snapshot.is_(None), rows.c.begin_snapshot <= self.base.id)
            ending = ending.values(end_snapshot=self.snapshot_id)
            if data.truncated:
                ended += self.connection.execute(ending).rowcount
                continue
            row_ids = sorted(data.inlined)
            for start in range(0, len(row_ids), _MOST_IDS):
                some = row_ids[start : start + _MOST_IDS]
                ended += self.connection.execute(ending.where(rows.c.row_id.in_(some))).rowcount
        return ended != 0

    def _mask(self, table_id: int, masks: Mapping[int, Mask]) -> None:
        """Puts the masks on data files that are there: each has one delete file at most."""
        replaced = [file_id for file_id, mask in masks.items() if mask.file is not None]
        table = self.staged.state.tables[table_id]
        folder = self.staged.state.folder(self.catalog.data_path, table)
        for start in range(0, len(replaced), _MOST_IDS):
            self._replace_delete_files(folder, replaced[start : start + _MOST_IDS])
        positions = []
        for file_id, mask in masks.items():
            self._add_delete_file(table_id, file_id, mask)
            positions += [
                {"file_id": file_id, "row_id": position, "begin_snapshot": self.snapshot_id}
                for position in mask.positions
            ]
        if positions:
            source = inlined.create_delete_table(self.connection, self.catalog, table_id)
            self.connection.execute(sa.insert(source), positions)

    def _settle(self, table_id: int, files: Mapping[int, NewDeleteFile]) -> None:
        """Puts positions that the catalog kept into delete files, which say of each when it was deleted."""
        self._mask(table_id, {file_id: Mask(file) for file_id, file in files.items()})
        source = t.inlined_delete(table_id)
        self.connection.execute(sa.delete(source).where(source.c.file_id.in_(sorted(files))))

    def _replace_delete_files(self, folder: str, file_ids: Sequence[int]) -> None:
        """Takes the delete files of data files out of the catalog: what takes their place says all that they said."""
        source = t.delete_file
        there = sa.and_(source.c.data_file_id.in_(file_ids), source.c.end_snapshot.is_(None))
        for row in self.connection.execute(sa.select(source).where(there)):
            path = resolve(folder, row.path, bool(row.path_is_relative))
            relative, is_relative = relative_to(path, self.catalog.data_path)
            self._add(
                t.files_scheduled_for_deletion,
                data_file_id=row.delete_file_id,
                path=relative,
                path_is_relative=is_relative,
                schedule_start=datetime.datetime.now(datetime.timezone.utc),
            )
        self.connection.execute(sa.delete(source).where(there))

    def _add_delete_file(self, table_id: int, file_id: int, mask: Mask) -> None:
        if mask.file is None:
            return
        self._add(
            t.delete_file,
            delete_file_id=self._file_id(),
            table_id=table_id,
            begin_snapshot=mask.file.first or self.snapshot_id,
            data_file_id=file_id,
            path=mask.file.path,
            path_is_relative=mask.file.path_is_relative,
            format="parquet",
            delete_count=mask.file.delete_count,
            file_size_bytes=mask.file.file_size_bytes,
            footer_size=mask.file.footer_size,
            partial_max=mask.file.last,
        )

    def _append(self, table_id: int, table: Table, files: tuple[NewDataFile, ...]) -> None:
        types = {c.id: c.type for c in table.leaves()}
        stats = t.table_stats
        known = self.connection.execute(sa.select(stats).where(stats.c.table_id == table_id)).first()
        record_count = known.record_count if known else 0
        next_row_id = known.next_row_id if known else 0
        size = known.file_size_bytes if known else 0
        columns = self._column_stats(table_id, types)
        fresh = not columns and next_row_id == 0
        mappings = self._mappings(table_id, files)
        self._passing_partitions(table_id, table, files)
        exact = all(column.exact for column in columns.values())
        for file in files:
            file_id = self._file_id()
            self._add(
                t.data_file,
                data_file_id=file_id,
                table_id=table_id,
                begin_snapshot=self.snapshot_id,
                path=file.path,
                path_is_relative=file.path_is_relative,
                file_format="parquet",
                record_count=file.record_count,
                file_size_bytes=file.file_size_bytes,
                footer_size=file.footer_size,
                row_id_start=next_row_id,
                partition_id=None if file.partition_id is None else self._catalog_id(file.partition_id),
                mapping_id=mappings.get(file.name_map) if file.name_map else None,
            )
            if file.mask is not None:
                self._add_delete_file(table_id, file_id, file.mask)
            for index, value in enumerate(file.partition_values):
                self._add(
                    t.file_partition_value,
                    data_file_id=file_id,
                    table_id=table_id,
                    partition_key_index=index,
                    partition_value=value,
                )
            for column_id, column_stats in file.stats.items():
                self._add(
                    t.file_column_stats,
                    data_file_id=file_id,
                    table_id=table_id,
                    column_id=column_id,
                    column_size_bytes=column_stats.column_size_bytes,
                    value_count=column_stats.value_count,
                    null_count=column_stats.null_count,
                    min_value=column_stats.min_value,
                    max_value=column_stats.max_value,
                    contains_nan=column_stats.contains_nan,
                    extra_stats=column_stats.extra_stats,
                )
                # A column added later has no row here, since rows from before hold its default: what
                # is not known of them must not be narrowed to what this file holds.
                is_there = column_id in types  # and was not dropped after the file was staged
                if is_there and (fresh or column_id in columns):
                    columns[column_id] = widen(columns.get(column_id), column_stats, types[column_id])
                    exact = exact and columns[column_id].exact
            record_count += file.record_count
            next_row_id += file.record_count
            size += file.file_size_bytes
        if not exact:
            # The reference takes MIN and MAX from these bounds where this count is that of the live rows.
            record_count += 1
        values = {"record_count": record_count, "next_row_id": next_row_id, "file_size_bytes": size}
        if known:
            self.connection.execute(sa.update(stats).where(stats.c.table_id == table_id).values(**values))
        else:
            self._add(stats, table_id=table_id, **values)
        self._put_column_stats(table_id, columns, fresh)

    def _column_stats(self, table_id: int, types: Mapping[int, str]) -> dict[int, TableColumnStats]:
        """The table's statistics, in which no bounds mean that there is no value yet."""
        stats, file_stats = t.table_column_stats, t.file_column_stats
        found = {
            r.column_id: TableColumnStats(r.contains_null, r.contains_nan, r.min_value, r.max_value, r.extra_stats)
            for r in self.connection.execute(sa.select(stats).where(stats.c.table_id == table_id))
        }
        # The reference forgets bounds that it can not compare, after a change of type for example.
        bare = [i for i, s in found.items() if s.min_value is None and s.max_value is None]
        if bare:
            with_values = (
                sa.select(file_stats.c.column_id)
                .distinct()
                .where(
                    file_stats.c.table_id == table_id, file_stats.c.column_id.in_(bare), file_stats.c.value_count > 0
                )
            )
            column_id: int
            for column_id in self.connection.scalars(with_values):
                least, greatest = widest(types[column_id]) if column_id in types else (None, None)
                found[column_id] = replace(found[column_id], min_value=least, max_value=greatest, exact=False)
        return found

    def _put_column_stats(self, table_id: int, columns: Mapping[int, TableColumnStats], fresh: bool) -> None:
        stats = t.table_column_stats
        if not fresh:
            self.connection.execute(
                sa.delete(stats).where(stats.c.table_id == table_id, stats.c.column_id.in_(list(columns)))
            )
        for column_id, column in columns.items():
            self._add(
                stats,
                table_id=table_id,
                column_id=column_id,
                contains_null=column.contains_null,
                contains_nan=column.contains_nan,
                min_value=column.min_value,
                max_value=column.max_value,
                extra_stats=column.extra_stats,
            )

    def _mappings(self, table_id: int, files: Iterable[NewDataFile]) -> dict[NameMap, int]:
        """An id for each name map of the files; those the table has already are used again."""
        wanted = {file.name_map for file in files if file.name_map}
        if not wanted:
            return {}
        found = {name_map: mapping_id for mapping_id, name_map in name_maps(self.connection, table_id).items()}
        result: dict[NameMap, int] = {}
        for name_map in wanted:
            if name_map in found:
                result[name_map] = found[name_map]
                continue
            mapping_id = result[name_map] = self._file_id()
            self._add(t.column_mapping, mapping_id=mapping_id, table_id=table_id, type="map_by_name")
            self._name_map(mapping_id, name_map, None, 0)
        return result

    def _name_map(self, mapping_id: int, entries: NameMap, parent: int | None, next_id: int) -> int:
        for entry in entries:
            own, next_id = next_id, next_id + 1
            self._add(
                t.name_mapping,
                mapping_id=mapping_id,
                column_id=own,
                source_name=entry.source_name,
                target_field_id=entry.column_id,
                parent_column=parent,
                is_partition=entry.is_partition,
            )
            next_id = self._name_map(mapping_id, entry.children, own, next_id)
        return next_id

    # -- options

    def _resolved_options(self) -> dict[Key, str | None]:
        return {
            (scope, scope_id if scope_id is None else self._catalog_id(scope_id), name): value
            for (scope, scope_id, name), value in self.staged.options.items()
        }

    def _options(self) -> None:
        settings = t.ducklake_metadata
        for (scope, scope_id, name), value in self._resolved_options().items():
            self.connection.execute(
                sa.delete(settings).where(
                    settings.c.key == name,
                    settings.c.scope.is_(None) if scope is None else settings.c.scope == scope,
                    settings.c.scope_id.is_(None) if scope_id is None else settings.c.scope_id == scope_id,
                )
            )
            if value is not None:
                self._add(settings, key=name, value=value, scope=scope, scope_id=scope_id)

    def _flush(self) -> None:
        for table, rows in self.rows.items():
            if rows:
                names = [c.name for c in table.columns if any(c.name in row for row in rows)]
                complete = [{name: row.get(name) for name in names} for row in rows]
                self.catalog.database.insert(self.connection, table, complete)


def _oldest_first(pair: tuple[Any, Any]) -> tuple[bool, int]:
    """Order of ids: what was there by id, then what is new in the order in which it was made."""
    thing = pair[0] or pair[1]
    return thing.id < 0, abs(thing.id)


def _definitions(columns: Iterable[Column]) -> dict[int, dict[str, Any]]:
    """What `ducklake_column` says of each column and field, by id."""
    result: dict[int, dict[str, Any]] = {}

    def visit(column: Column, parent: int | None) -> None:
        result[column.id] = {
            "column_id": column.id,
            "column_order": column.id,
            "column_name": column.name,
            "column_type": column.type,
            "initial_default": column.initial_default,
            "default_value": "NULL" if column.default_value is None else column.default_value,
            "nulls_allowed": column.nulls_allowed,
            "parent_column": parent,
            # The reference has no word for the default of what can have none.
            "default_value_type": "" if column.children else column.default_value_type,
            "default_value_dialect": column.default_value_dialect,
        }
        for child in column.children:
            visit(child, column.id)

    for column in columns:
        visit(column, None)
    return result


def _shape(columns: Iterable[Column]) -> list[tuple[int, str, str]]:
    """What of columns their stored rows depend on: not defaults, nor whether there may be NULLs."""
    return [(field.id, field.name, field.type) for column in columns for field in column.walk()]
