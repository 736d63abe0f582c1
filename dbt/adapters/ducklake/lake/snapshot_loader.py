"""Load the definitions of a snapshot from the catalog."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog, SnapshotInfo
from .format_versions import FormatVersion
from .partitions import PartitionField, PartitionSpec, parse_transform
from .quoted_names import parse_quoted_names
from .snapshot import LakeState, Macro, MacroImpl, Parameter, Schema, Table, Tags, View
from .sorting import SortKey, SortSpec
from .types import Column

_MAX_LISTED_TABLES = 500
"""Above this number of tables to load, queries read the columns of all tables instead of listing ids."""


@dataclass(frozen=True)
class _TableColumns:
    columns: tuple[Column, ...]
    fingerprint: tuple[int, ...]
    """Changes whenever the columns or their tags change."""


_ColumnCache = Mapping[int, _TableColumns]
"""The columns of tables, by table id."""


class Snapshots:
    """Loads lake states and caches them by schema version, which changes of data leave as it is."""

    def __init__(self, catalog: Catalog, keep: int = 16) -> None:
        self._catalog = catalog
        self._keep = keep
        self._states: OrderedDict[int, LakeState] = OrderedDict()
        self._columns: _ColumnCache = {}
        self._lock = threading.Lock()

    def state(self, connection: sa.Connection, info: SnapshotInfo) -> LakeState:
        with self._lock:
            if (state := self._states.get(info.schema_version)) is not None:
                self._states.move_to_end(info.schema_version)
                return state
        state, columns = _load(connection, self._catalog.format, info.id, self._columns)
        with self._lock:
            self._columns = columns
            self._states[info.schema_version] = state
            while len(self._states) > self._keep:
                self._states.popitem(last=False)
        return state


def load_state(connection: sa.Connection, catalog: Catalog, at: int) -> LakeState:
    """The state at a snapshot, past every cache."""
    return _load(connection, catalog.format, at, {})[0]


def _load(
    connection: sa.Connection, format_version: FormatVersion, at: int, cache: _ColumnCache
) -> tuple[LakeState, _ColumnCache]:
    """The state at a snapshot, with one query for each kind of thing, and the columns to cache.

    Columns are most of a lake's definitions. Of 5,000 tables, only those that changed since the last load have
    theirs read again.
    """

    def rows(versioned: sa.Table) -> Iterable[Any]:
        return connection.execute(sa.select(versioned).where(t.alive(versioned, at)))

    tags: dict[int, dict[str, str]] = defaultdict(dict)
    for r in rows(t.tag):
        if r.value is not None:
            tags[r.object_id][r.key] = r.value
    schemas = {
        r.schema_id: Schema(
            id=r.schema_id,
            uuid=r.schema_uuid,
            name=r.schema_name,
            path=r.path,
            path_is_relative=bool(r.path_is_relative),
            tags=_tags_of(tags, r.schema_id),
        )
        for r in rows(t.schema)
    }
    columns = _load_columns(connection, at, cache)
    partitions = _load_partitions(connection, at)
    sorts = _load_sorts(connection, at)
    tables = {
        r.table_id: Table(
            id=r.table_id,
            uuid=r.table_uuid,
            schema_id=r.schema_id,
            name=r.table_name,
            path=r.path,
            path_is_relative=bool(r.path_is_relative),
            columns=columns[r.table_id].columns if r.table_id in columns else (),
            partition=partitions.get(r.table_id),
            sort=sorts.get(r.table_id),
            tags=_tags_of(tags, r.table_id),
        )
        for r in rows(t.table)
    }
    column_tags: dict[int, dict[str, dict[str, str]]] = defaultdict(lambda: defaultdict(dict))
    if format_version.view_column_tag is not None:
        for r in rows(format_version.view_column_tag):
            if r.value is not None:
                column_tags[r.view_id][r.column_name][r.key] = r.value
    views = {
        r.view_id: View(
            id=r.view_id,
            uuid=r.view_uuid,
            schema_id=r.schema_id,
            name=r.view_name,
            dialect=r.dialect or "duckdb",
            sql=r.sql,
            column_aliases=parse_quoted_names(r.column_aliases or ""),
            tags=_tags_of(tags, r.view_id),
            column_tags=tuple((name, tuple(sorted(t.items()))) for name, t in sorted(column_tags[r.view_id].items()))
            if r.view_id in column_tags
            else (),
        )
        for r in rows(t.view)
    }
    return LakeState(schemas, tables, views, _load_macros(connection, at, tags)), columns


def _tags_of(tags: Mapping[int, Mapping[str, str]], object_id: int) -> Tags:
    return tuple(sorted(tags[object_id].items())) if object_id in tags else ()


def _load_macros(connection: sa.Connection, at: int, tags: Mapping[int, Mapping[str, str]]) -> dict[int, Macro]:
    macro, impl, parameter = t.macro, t.macro_impl, t.macro_parameters
    macro_rows = connection.execute(sa.select(macro).where(t.alive(macro, at)).order_by(macro.c.macro_id)).all()
    if not macro_rows:
        return {}
    macro_ids = sa.select(macro.c.macro_id).where(t.alive(macro, at))
    parameters: dict[tuple[int, int], list[Parameter]] = defaultdict(list)
    query = sa.select(parameter).where(parameter.c.macro_id.in_(macro_ids)).order_by(parameter.c.column_id)
    for r in connection.execute(query):
        default = None if r.default_value == "NULL" and r.default_value_type == "unknown" else r.default_value
        parameters[r.macro_id, r.impl_id].append(
            Parameter(r.parameter_name, r.parameter_type, default, r.default_value_type)
        )
    impls: dict[int, list[MacroImpl]] = defaultdict(list)
    for r in connection.execute(sa.select(impl).where(impl.c.macro_id.in_(macro_ids)).order_by(impl.c.impl_id)):
        impls[r.macro_id].append(MacroImpl(r.dialect, r.sql, r.type, tuple(parameters[r.macro_id, r.impl_id])))
    return {
        r.macro_id: Macro(r.macro_id, r.schema_id, r.macro_name, tuple(impls[r.macro_id]), _tags_of(tags, r.macro_id))
        for r in macro_rows
    }


def _load_columns(connection: sa.Connection, at: int, cache: _ColumnCache) -> _ColumnCache:
    """The columns of every table, from the cache where the fingerprint is unchanged."""
    fingerprints = _fingerprints(connection, at)
    columns = {
        table_id: cache[table_id]
        for table_id, fingerprint in fingerprints.items()
        if table_id in cache and cache[table_id].fingerprint == fingerprint
    }
    missing = [table_id for table_id in fingerprints if table_id not in columns]
    if not missing:
        return columns

    def rows(source: sa.Table, *order: sa.Column[Any]) -> Iterable[Any]:
        query = sa.select(source).where(t.alive(source, at)).order_by(*order)
        if len(missing) <= _MAX_LISTED_TABLES:
            query = query.where(source.c.table_id.in_(missing))
        return connection.execute(query)

    tags: dict[tuple[int, int], dict[str, str]] = defaultdict(dict)
    for r in rows(t.column_tag):
        if r.value is not None:
            tags[r.table_id, r.column_id][r.key] = r.value
    column_rows: dict[int, list[Any]] = defaultdict(list)
    for r in rows(t.column, t.column.c.table_id, t.column.c.column_order):
        column_rows[r.table_id].append(r)
    for table_id in missing:
        columns[table_id] = _TableColumns(build_columns(column_rows[table_id], tags), fingerprints[table_id])
    return columns


def _fingerprints(connection: sa.Connection, at: int) -> dict[int, tuple[int, ...]]:
    """A fingerprint of each table's columns and their tags.

    Every change adds a row whose `begin_snapshot` is greater than that of all earlier rows.
    """
    fingerprints: dict[int, tuple[int, ...]] = defaultdict(tuple)
    for source in (t.column, t.column_tag):
        query = (
            sa.select(
                source.c.table_id,
                sa.func.count().label("row_count"),
                sa.func.sum(source.c.begin_snapshot).label("sum_of_begins"),
                sa.func.sum(source.c.column_id).label("sum_of_ids"),
            )
            .where(t.alive(source, at))
            .group_by(source.c.table_id)
        )
        for r in connection.execute(query):
            fingerprints[r.table_id] += (int(r.row_count), int(r.sum_of_begins), int(r.sum_of_ids))
    return fingerprints


def build_columns(
    rows: Iterable[Any], tags: Mapping[tuple[int, int], Mapping[str, str]] | None = None
) -> tuple[Column, ...]:
    """The column tree that ordered rows of `ducklake_column` describe. `tags` are by table id and column id."""
    children: dict[int | None, list[Any]] = defaultdict(list)
    for row in rows:
        children[row.parent_column].append(row)

    def columns_below(parent: int | None) -> tuple[Column, ...]:
        return tuple(
            Column(
                id=r.column_id,
                name=r.column_name,
                type=r.column_type,
                # The reference writes false for every nested field that it adds or renames, yet accepts NULLs there.
                nulls_allowed=parent is not None or r.nulls_allowed is not False,
                children=columns_below(r.column_id),
                initial_default=r.initial_default,
                default_value=None if r.default_value == "NULL" else r.default_value,
                default_value_type=r.default_value_type or "literal",
                default_value_dialect=r.default_value_dialect or "duckdb",
                tags=tuple(sorted(tags[r.table_id, r.column_id].items()))
                if tags and (r.table_id, r.column_id) in tags
                else (),
                position=None if r.column_order == r.column_id else r.column_order,
            )
            for r in children.get(parent, ())
        )

    return columns_below(None)


def _load_partitions(connection: sa.Connection, at: int) -> dict[int, PartitionSpec]:
    info, part = t.partition_info, t.partition_column
    query = (
        sa.select(
            info.c.table_id,
            info.c.partition_id,
            part.c.partition_key_index,
            part.c.column_id,
            part.c.transform,
        )
        .join(part, sa.and_(info.c.partition_id == part.c.partition_id, info.c.table_id == part.c.table_id))
        .where(t.alive(info, at))
        .order_by(info.c.table_id, part.c.partition_key_index)
    )
    fields: dict[tuple[int, int], list[PartitionField]] = defaultdict(list)
    for r in connection.execute(query):
        fields[r.table_id, r.partition_id].append(
            PartitionField(r.partition_key_index, r.column_id, parse_transform(r.transform))
        )
    return {table_id: PartitionSpec(spec_id, tuple(f)) for (table_id, spec_id), f in fields.items()}


def _load_sorts(connection: sa.Connection, at: int) -> dict[int, SortSpec]:
    info, key = t.sort_info, t.sort_expression
    query = (
        sa.select(info.c.table_id, info.c.sort_id, key)
        .join(key, sa.and_(info.c.sort_id == key.c.sort_id, info.c.table_id == key.c.table_id))
        .where(t.alive(info, at))
        .order_by(info.c.table_id, key.c.sort_key_index)
    )
    keys: dict[tuple[int, int], list[SortKey]] = defaultdict(list)
    for r in connection.execute(query):
        keys[r[0], r[1]].append(
            SortKey(
                r.expression,
                (r.sort_direction or "").upper() == "DESC",
                (r.null_order or "").upper() == "NULLS_FIRST",
                r.dialect,
            )
        )
    return {table_id: SortSpec(sort_id, tuple(k)) for (table_id, sort_id), k in keys.items()}


def last_types(connection: sa.Connection, table_id: int) -> dict[int, str]:
    """The current type of each column and nested field of a table, or its last type if it was dropped."""
    column = t.column
    query = sa.select(column.c.column_id, column.c.column_type).where(column.c.table_id == table_id)
    return {row.column_id: row.column_type for row in connection.execute(query.order_by(column.c.begin_snapshot))}


@dataclass(frozen=True)
class ColumnHistory:
    """All versions that the columns of a table ever had."""

    rows: tuple[Any, ...]
    """Rows of `ducklake_column` in the order of columns."""

    def columns_at(self, snapshot_id: int) -> tuple[Column, ...]:
        """The columns of the table at a snapshot."""
        return build_columns(
            r
            for r in self.rows
            if r.begin_snapshot <= snapshot_id and (r.end_snapshot is None or snapshot_id < r.end_snapshot)
        )

    def had_another_type(self, column: Column) -> bool:
        """Whether files may hold the column in a type that it was promoted from."""
        return any(r.column_id == column.id and r.column_type != column.type for r in self.rows)

    def with_reused_names(self, columns: Iterable[Column]) -> frozenset[int]:
        """The ids of the columns that have a name, or a field with one, by which files may know another column."""
        owners: dict[tuple[int | None, str], set[int]] = defaultdict(set)
        for r in self.rows:
            owners[r.parent_column, r.column_name.lower()].add(r.column_id)

        def has_reused_name(column: Column, parent: int | None) -> bool:
            others = owners[parent, column.name.lower()] - {column.id}
            return bool(others) or any(has_reused_name(child, column.id) for child in column.children)

        return frozenset(column.id for column in columns if has_reused_name(column, None))

    @property
    def snapshots_of_changes(self) -> frozenset[int]:
        """The snapshots that changed the columns of the existing table.

        A transaction of the reference may have written files before it changed them, under names that the catalog never
        had. Only for tables that it creates it leaves all names there.
        """
        begins = {r.begin_snapshot for r in self.rows}
        return frozenset(begins - {min(begins, default=None)})


def read_column_history(connection: sa.Connection, table_id: int) -> ColumnHistory:
    query = sa.select(t.column).where(t.column.c.table_id == table_id).order_by(t.column.c.column_order)
    return ColumnHistory(tuple(connection.execute(query)))
