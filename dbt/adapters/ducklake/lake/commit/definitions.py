"""Rows of schemas, tables, columns, partition keys, sort keys, views and macros."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from .. import inlined
from .. import tables as t
from ..partitions import PartitionSpec
from ..snapshot import LakeState, Macro, Schema, Table, View, quoted
from ..types import Column
from .difference import differences, is_altered, is_moved, oldest_first
from .options import resolved_options
from .rows import SnapshotRows
from .staged import Staged


class DefinitionRows:
    """Writes what differs between the definitions of two states."""

    def __init__(self, rows: SnapshotRows, base_state: LakeState, staged: Staged) -> None:
        self.rows = rows
        self.base_state = base_state
        self.staged = staged
        self.new_versions: dict[int, bool] = {}
        """Tables whose columns or partitioning are new, and whether their inlined rows need a new table."""

    def write(self) -> None:
        base, state = self.base_state, self.staged.state
        schemas = sorted(differences(base.schemas, state.schemas), key=oldest_first)
        tables = sorted(differences(base.tables, state.tables), key=oldest_first)
        views = sorted(differences(base.views, state.views), key=oldest_first)
        for old, new in schemas:
            if new is None:
                self.rows.end(t.schema, t.schema.c.schema_id == old.id)
                self.rows.changes.append(f"dropped_schema:{old.id}")
        for old, new in tables:
            if new is None:
                self._drop_table(old)
        for old, new in views:
            if new is None:
                self.rows.end(t.view, t.view.c.view_id == old.id)
                self.rows.end(t.tag, t.tag.c.object_id == old.id)
                self.rows.changes.append(f"dropped_view:{old.id}")
        macros = sorted(differences(base.macros, state.macros), key=oldest_first)
        for old, new in macros:
            if new is None:
                self.rows.end(t.macro, t.macro.c.macro_id == old.id)
                self.rows.end(t.tag, t.tag.c.object_id == old.id)
                self.rows.changes.append(f"dropped_{old.kind}_macro:{old.id}")
        for old, new in schemas:
            if new is not None:
                self._put_schema(old, new)
        for old, new in (*tables, *views):
            if new is not None and (old is None or is_moved(old, new)):
                kind = "table" if isinstance(new, Table) else "view"
                schema = state.schema_of(new).name
                self.rows.changes.append(f"created_{kind}:{quoted(schema)}.{quoted(new.name)}")
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
        macro_id = self.rows.catalog_id(macro.id)
        schema = self.staged.state.schemas[macro.schema_id]
        self.rows.add(
            t.macro,
            schema_id=self.rows.catalog_id(macro.schema_id),
            macro_id=macro_id,
            macro_name=macro.name,
            begin_snapshot=self.rows.snapshot_id,
        )
        for number, impl in enumerate(macro.impls):
            self.rows.add(
                t.macro_impl, macro_id=macro_id, impl_id=number, dialect=impl.dialect, sql=impl.sql, type=impl.kind
            )
            for index, parameter in enumerate(impl.parameters):
                self.rows.add(
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
        self.rows.changes.append(f"created_{macro.kind}_macro:{quoted(schema.name)}.{quoted(macro.name)}")

    def _put_schema(self, old: Schema | None, new: Schema) -> None:
        schema_id = self.rows.catalog_id(new.id)
        if old is None:
            self.rows.add(
                t.schema,
                schema_id=schema_id,
                schema_uuid=new.uuid,
                begin_snapshot=self.rows.snapshot_id,
                schema_name=new.name,
                path=new.path,
                path_is_relative=new.path_is_relative,
            )
            self.rows.changes.append(f"created_schema:{quoted(new.name)}")
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
            self.rows.end(versioned, versioned.c.table_id == table.id)
        self.rows.end(t.tag, t.tag.c.object_id == table.id)
        self.rows.changes.append(f"dropped_table:{table.id}")

    def _put_table(self, old: Table | None, new: Table) -> None:
        table_id = self.rows.catalog_id(new.id)
        if old is None or is_moved(old, new):
            if old is not None:
                self.rows.end(t.table, t.table.c.table_id == table_id)
            self.rows.add(
                t.table,
                table_id=table_id,
                table_uuid=new.uuid,
                begin_snapshot=self.rows.snapshot_id,
                schema_id=self.rows.catalog_id(new.schema_id),
                table_name=new.name,
                path=new.path,
                path_is_relative=new.path_is_relative,
            )
        if old is not None and is_altered(old, new):
            self.rows.changes.append(f"altered_table:{table_id}")
        old_columns = old.columns if old else ()
        self._columns(table_id, old_columns, new.columns)
        self._partition(table_id, old.partition if old else None, new.partition)
        self._sort(table_id, old, new)
        self._tags(table_id, old.tags if old else (), new.tags)
        is_other = old is None or is_moved(old, new) or old.partition != new.partition
        if is_other or _definitions(old_columns) != _definitions(new.columns):
            self.new_versions[new.id] = is_other or _shape(old_columns) != _shape(new.columns)

    def _columns(self, table_id: int, old: tuple[Column, ...], new: tuple[Column, ...]) -> None:
        before, after = _definitions(old), _definitions(new)
        ended = [column_id for column_id in before if before[column_id] != after.get(column_id)]
        if ended:
            self.rows.end(t.column, t.column.c.table_id == table_id, t.column.c.column_id.in_(ended))
        for column_id, definition in after.items():
            if before.get(column_id) != definition:
                self.rows.add(t.column, table_id=table_id, begin_snapshot=self.rows.snapshot_id, **definition)
        old_tags = {c.id: c.tags for top in old for c in top.walk()}
        new_tags = {c.id: c.tags for top in new for c in top.walk()}
        for column_id in old_tags.keys() | new_tags.keys():
            was, now = dict(old_tags.get(column_id, ())), dict(new_tags.get(column_id, ()))
            for key in was.keys() | now.keys():
                if was.get(key) == now.get(key):
                    continue
                if key in was:
                    tag = t.column_tag
                    self.rows.end(tag, tag.c.table_id == table_id, tag.c.column_id == column_id, tag.c.key == key)
                if key in now:
                    self.rows.add(
                        t.column_tag,
                        table_id=table_id,
                        column_id=column_id,
                        begin_snapshot=self.rows.snapshot_id,
                        key=key,
                        value=now[key],
                    )

    def _partition(self, table_id: int, old: PartitionSpec | None, new: PartitionSpec | None) -> None:
        if old == new:
            return
        if old is not None:
            self.rows.end(t.partition_info, t.partition_info.c.table_id == table_id)
        if new is not None:
            add_partition(self.rows, table_id, new, None)

    def _sort(self, table_id: int, old: Table | None, new: Table) -> None:
        if old is not None and old.sort == new.sort:
            return
        if old is not None and old.sort is not None:
            self.rows.end(t.sort_info, t.sort_info.c.table_id == table_id)
        if new.sort is None:
            return
        # A sort order is never changed in place: a renamed column makes a new one.
        sort_id = self.rows.catalog_id(new.sort.id) if new.sort.id < 0 else self.rows.catalog_id(-(10**12) - table_id)
        self.rows.add(t.sort_info, sort_id=sort_id, table_id=table_id, begin_snapshot=self.rows.snapshot_id)
        for index, key in enumerate(new.sort.keys):
            self.rows.add(
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
        view_id = self.rows.catalog_id(new.id)
        if old is None or replace(old, tags=new.tags) != new:
            if old is not None:
                self.rows.end(t.view, t.view.c.view_id == view_id)
            self.rows.add(
                t.view,
                view_id=view_id,
                view_uuid=new.uuid,
                begin_snapshot=self.rows.snapshot_id,
                schema_id=self.rows.catalog_id(new.schema_id),
                view_name=new.name,
                dialect=new.dialect,
                sql=new.sql,
                column_aliases=",".join(quoted(name) for name in new.column_aliases),
            )
        if old is not None and is_altered(old, new):
            self.rows.changes.append(f"altered_view:{view_id}")
        self._tags(view_id, old.tags if old else (), new.tags)

    def _tags(self, object_id: int, old: tuple[tuple[str, str], ...], new: tuple[tuple[str, str], ...]) -> None:
        was, now = dict(old), dict(new)
        for key in sorted(was.keys() | now.keys()):
            if was.get(key) == now.get(key):
                continue
            if key in was:
                self.rows.end(t.tag, t.tag.c.object_id == object_id, t.tag.c.key == key)
            if key in now:
                self.rows.add(t.tag, object_id=object_id, begin_snapshot=self.rows.snapshot_id, key=key, value=now[key])

    def write_schema_versions(self) -> None:
        """What a table with a new definition needs besides: its schema version, its table of inlined rows."""
        for provisional, needs_inlined_table in self.new_versions.items():
            table = self.staged.state.tables[provisional]
            table_id = self.rows.catalog_id(table.id)
            self.rows.add(
                t.schema_versions,
                begin_snapshot=self.rows.snapshot_id,
                schema_version=self.rows.schema_version,
                table_id=table_id,
            )
            options = self.rows.catalog.options(self.rows.connection).with_values(
                resolved_options(self.rows, self.staged.options)
            )
            limit = options.number("data_inlining_row_limit", self.rows.catalog_id(table.schema_id), table_id)
            if needs_inlined_table and limit and inlined.can_inline(self.rows.catalog.database, table.columns):
                name = f"ducklake_inlined_data_{table_id}_{self.rows.schema_version}"
                inlined.create_table(self.rows.connection, self.rows.catalog, name, table.columns)
                self.rows.add(
                    t.inlined_data_tables,
                    table_id=table_id,
                    table_name=name,
                    schema_version=self.rows.schema_version,
                )


def add_partition(rows: SnapshotRows, table_id: int, spec: PartitionSpec, end: int | None) -> None:
    partition_id = rows.catalog_id(spec.id)
    rows.add(
        t.partition_info,
        partition_id=partition_id,
        table_id=table_id,
        begin_snapshot=rows.snapshot_id,
        end_snapshot=end,
    )
    for key in spec.fields:
        rows.add(
            t.partition_column,
            partition_id=partition_id,
            table_id=table_id,
            partition_key_index=key.index,
            column_id=key.column_id,
            transform=str(key.transform),
        )


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
