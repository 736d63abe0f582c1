"""Rows of schemas, tables, columns, partition keys, sort keys, views and macros."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from .. import inlined
from .. import tables as t
from ..partitions import PartitionSpec
from ..quoted_names import quote_name
from ..snapshot import LakeState, Macro, Schema, Table, Tags, View
from ..types import Column
from .difference import creation_order, differences, is_altered, is_provisional, is_renamed
from .options import with_catalog_ids
from .rows import SnapshotRows
from .staged import Staged


class DefinitionRows:
    """Writes the difference between the definitions of the base state and the staged state."""

    def __init__(self, rows: SnapshotRows, base_state: LakeState, staged: Staged) -> None:
        self.rows = rows
        self.base_state = base_state
        self.staged = staged
        self._new_schema_versions: dict[int, bool] = {}
        """The staged ids of tables with a new schema version, and whether it needs a new table of inlined rows."""
        self.inlined_tables: dict[int, str] = {}
        """The catalog tables for the new inlined rows of tables, by their real ids."""

    def write(self) -> None:
        base, state = self.base_state, self.staged.state
        schemas = sorted(differences(base.schemas, state.schemas), key=creation_order)
        tables = sorted(differences(base.tables, state.tables), key=creation_order)
        views = sorted(differences(base.views, state.views), key=creation_order)
        macros = sorted(differences(base.macros, state.macros), key=creation_order)
        for old, new in schemas:
            if new is None:
                self.rows.end(t.schema, t.schema.c.schema_id == old.id)
                self.rows.changes.append(f"dropped_schema:{old.id}")
        for old, new in tables:
            if new is None:
                self._drop_table(old)
        view_column_tag = self.rows.catalog.format.view_column_tag
        for old, new in views:
            if new is None:
                self.rows.end(t.view, t.view.c.view_id == old.id)
                self.rows.end(t.tag, t.tag.c.object_id == old.id)
                if view_column_tag is not None:
                    self.rows.end(view_column_tag, view_column_tag.c.view_id == old.id)
                self.rows.changes.append(f"dropped_view:{old.id}")
        for old, new in macros:
            if new is None:
                self.rows.end(t.macro, t.macro.c.macro_id == old.id)
                self.rows.end(t.tag, t.tag.c.object_id == old.id)
                self.rows.changes.append(f"dropped_{old.kind}_macro:{old.id}")
        for old, new in schemas:
            if new is not None:
                self._write_schema(old, new)
        for old, new in (*tables, *views):
            if new is not None and (old is None or is_renamed(old, new)):
                kind = "table" if isinstance(new, Table) else "view"
                schema = state.schema_of(new).name
                self.rows.changes.append(f"created_{kind}:{quote_name(schema)}.{quote_name(new.name)}")
        for old, new in tables:
            if new is not None:
                self._write_table(old, new)
        for old, new in views:
            if new is not None:
                self._write_view(old, new)
        for old, new in macros:
            # A macro is never altered. Replacing it drops it and creates another one of the same name.
            if new is not None and old is None:
                self._write_macro(new)

    def _write_schema(self, old: Schema | None, new: Schema) -> None:
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
            self.rows.changes.append(f"created_schema:{quote_name(new.name)}")
        self._write_tags(schema_id, old.tags if old else (), new.tags)

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

    def _write_table(self, old: Table | None, new: Table) -> None:
        table_id = self.rows.catalog_id(new.id)
        if old is None or is_renamed(old, new):
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
        self._write_columns(table_id, old_columns, new.columns)
        self._write_partition(table_id, old.partition if old else None, new.partition)
        self._write_sort(table_id, old, new)
        self._write_tags(table_id, old.tags if old else (), new.tags)
        needs_inlined_table = (
            old is None
            or is_renamed(old, new)
            or old.partition != new.partition
            or inlined.stored_shape(old_columns) != inlined.stored_shape(new.columns)
        )
        if needs_inlined_table or column_rows(old_columns) != column_rows(new.columns):
            self._new_schema_versions[new.id] = needs_inlined_table

    def _write_columns(self, table_id: int, old: tuple[Column, ...], new: tuple[Column, ...]) -> None:
        old_rows, new_rows = column_rows(old), column_rows(new)
        ended = [column_id for column_id, row in old_rows.items() if row != new_rows.get(column_id)]
        if ended:
            self.rows.end(t.column, t.column.c.table_id == table_id, t.column.c.column_id.in_(ended))
        for column_id, row in new_rows.items():
            if row != old_rows.get(column_id):
                self.rows.add(t.column, table_id=table_id, begin_snapshot=self.rows.snapshot_id, **row)
        old_tags = {field.id: field.tags for column in old for field in column.walk()}
        new_tags = {field.id: field.tags for column in new for field in column.walk()}
        for column_id in old_tags.keys() | new_tags.keys():
            ids = {"table_id": table_id, "column_id": column_id}
            self._write_tag_rows(t.column_tag, ids, old_tags.get(column_id, ()), new_tags.get(column_id, ()))

    def _write_tags(self, object_id: int, old: Tags, new: Tags) -> None:
        self._write_tag_rows(t.tag, {"object_id": object_id}, old, new)

    def _write_tag_rows(self, table: sa.Table, ids: Mapping[str, Any], old: Tags, new: Tags) -> None:
        """Writes the tags of one thing, which the columns in `ids` identify."""
        for key, old_value, value in _tag_changes(old, new):
            if old_value is not None:
                self.rows.end(table, *(table.c[name] == of for name, of in ids.items()), table.c.key == key)
            if value is not None:
                self.rows.add(table, **ids, begin_snapshot=self.rows.snapshot_id, key=key, value=value)

    def _write_partition(self, table_id: int, old: PartitionSpec | None, new: PartitionSpec | None) -> None:
        if old == new:
            return
        if old is not None:
            self.rows.end(t.partition_info, t.partition_info.c.table_id == table_id)
        if new is not None:
            add_partition_spec(self.rows, table_id, new, end_snapshot=None)

    def _write_sort(self, table_id: int, old: Table | None, new: Table) -> None:
        if old is not None and old.sort == new.sort:
            return
        if old is not None and old.sort is not None:
            self.rows.end(t.sort_info, t.sort_info.c.table_id == table_id)
        if new.sort is None:
            return
        # A changed sort order always gets a new id. It still has its old one after a rename of a column, so a
        # provisional id is made up that nothing else has.
        provisional_id = new.sort.id if is_provisional(new.sort.id) else -(10**12) - table_id
        sort_id = self.rows.catalog_id(provisional_id)
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

    def _write_view(self, old: View | None, new: View) -> None:
        view_id = self.rows.catalog_id(new.id)
        if old is None or replace(old, tags=new.tags, column_tags=new.column_tags) != new:
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
                column_aliases=",".join(quote_name(name) for name in new.column_aliases),
            )
        if old is not None and is_altered(old, new):
            self.rows.changes.append(f"altered_view:{view_id}")
        self._write_tags(view_id, old.tags if old else (), new.tags)
        self._write_view_column_tags(view_id, dict(old.column_tags) if old else {}, dict(new.column_tags))

    def _write_view_column_tags(self, view_id: int, old: Mapping[str, Tags], new: Mapping[str, Tags]) -> None:
        tag = self.rows.catalog.format.view_column_tag
        if tag is None:
            return
        for column in sorted(old.keys() | new.keys()):
            ids = {"view_id": view_id, "column_name": column}
            self._write_tag_rows(tag, ids, old.get(column, ()), new.get(column, ()))

    def _write_macro(self, macro: Macro) -> None:
        macro_id = self.rows.catalog_id(macro.id)
        schema = self.staged.state.schemas[macro.schema_id]
        self.rows.add(
            t.macro,
            schema_id=self.rows.catalog_id(macro.schema_id),
            macro_id=macro_id,
            macro_name=macro.name,
            begin_snapshot=self.rows.snapshot_id,
        )
        for impl_id, impl in enumerate(macro.impls):
            self.rows.add(
                t.macro_impl, macro_id=macro_id, impl_id=impl_id, dialect=impl.dialect, sql=impl.sql, type=impl.kind
            )
            for index, parameter in enumerate(impl.parameters):
                self.rows.add(
                    t.macro_parameters,
                    macro_id=macro_id,
                    impl_id=impl_id,
                    column_id=index,
                    parameter_name=parameter.name,
                    parameter_type=parameter.type,
                    default_value="NULL" if parameter.default is None else parameter.default,
                    default_value_type=parameter.default_type,
                )
        self._write_tags(macro_id, (), macro.tags)
        self.rows.changes.append(f"created_{macro.kind}_macro:{quote_name(schema.name)}.{quote_name(macro.name)}")

    def write_schema_versions(self) -> None:
        """Adds the schema version of each table with a new definition, and its table of inlined rows if needed."""
        self._find_inlined_tables()
        if not self._new_schema_versions:
            return
        options = self.rows.catalog.options(self.rows.connection).with_values(
            with_catalog_ids(self.rows, self.staged.options)
        )
        for staged_id, needs_inlined_table in self._new_schema_versions.items():
            table = self.staged.state.tables[staged_id]
            table_id = self.rows.catalog_id(table.id)
            self.rows.add(
                t.schema_versions,
                begin_snapshot=self.rows.snapshot_id,
                schema_version=self.rows.schema_version,
                table_id=table_id,
            )
            limit = options.number("data_inlining_row_limit", self.rows.catalog_id(table.schema_id), table_id)
            may_get_rows = limit and inlined.can_inline(self.rows.catalog, table.columns)
            if needs_inlined_table and (may_get_rows or self.staged.changes_of(staged_id).inlined_inserts):
                name = f"ducklake_inlined_data_{table_id}_{self.rows.schema_version}"
                inlined.create_table(self.rows.connection, self.rows.catalog, name, table.columns)
                self.rows.add(
                    t.inlined_data_tables,
                    table_id=table_id,
                    table_name=name,
                    schema_version=self.rows.schema_version,
                )
                self.inlined_tables[table_id] = name

    def _find_inlined_tables(self) -> None:
        """Finds the catalog tables for new inlined rows of tables whose columns stay as they were.

        There is none if `data_inlining_row_limit` was 0 when a table got its columns. Then it gets a schema version.
        """
        is_new_version = self.staged.state != self.base_state
        for table_id, changes in self.staged.data_changes.items():
            if not changes.inlined_inserts or self._new_schema_versions.get(table_id):
                continue
            name = inlined.newest_table(self.rows.connection, self.staged.state.tables[table_id])
            if name is not None:
                self.inlined_tables[table_id] = name
                continue
            self._new_schema_versions[table_id] = True
            if not is_new_version:
                self.rows.schema_version += 1
                is_new_version = True


def add_partition_spec(rows: SnapshotRows, table_id: int, spec: PartitionSpec, end_snapshot: int | None) -> None:
    partition_id = rows.catalog_id(spec.id)
    rows.add(
        t.partition_info,
        partition_id=partition_id,
        table_id=table_id,
        begin_snapshot=rows.snapshot_id,
        end_snapshot=end_snapshot,
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


def _tag_changes(old: Tags, new: Tags) -> Iterator[tuple[str, str | None, str | None]]:
    """The key, the old value and the new value of each tag that differs; None for a value that is not set."""
    old_values, new_values = dict(old), dict(new)
    for key in sorted(old_values.keys() | new_values.keys()):
        if old_values.get(key) != new_values.get(key):
            yield key, old_values.get(key), new_values.get(key)


def column_rows(columns: Iterable[Column]) -> dict[int, dict[str, Any]]:
    """The row of `ducklake_column` for each column and nested field, by id, without table and snapshots."""
    rows: dict[int, dict[str, Any]] = {}

    def add(column: Column, parent_id: int | None) -> None:
        rows[column.id] = {
            "column_id": column.id,
            "column_order": column.id if column.position is None else column.position,
            "column_name": column.name,
            "column_type": column.type,
            "initial_default": column.initial_default,
            "default_value": "NULL" if column.default_value is None else column.default_value,
            "nulls_allowed": column.nulls_allowed,
            "parent_column": parent_id,
            # The reference leaves this empty for nested columns, which can have no default.
            "default_value_type": "" if column.children else column.default_value_type,
            "default_value_dialect": column.default_value_dialect,
        }
        for child in column.children:
            add(child, column.id)

    for column in columns:
        add(column, None)
    return rows
