"""The lake as it was at one version: schemas, tables, views, and everything said of them."""

from __future__ import annotations

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog, SnapshotInfo
from .errors import NotFoundError
from .partitions import PartitionField, PartitionSpec, parse_transform
from .paths import resolve
from .sorting import SortKey, SortSpec
from .types import Column, find_path

Tags = tuple[tuple[str, str], ...]
_FEW = 500
"""With more tables than these to read, all are read."""


@dataclass(frozen=True)
class Schema:
    id: int
    uuid: str
    name: str
    path: str | None
    path_is_relative: bool
    tags: Tags = ()

    @property
    def comment(self) -> str | None:
        return dict(self.tags).get("comment")


@dataclass(frozen=True)
class Table:
    """A table's definition; its rows are in files."""

    id: int
    uuid: str
    schema_id: int
    name: str
    path: str | None
    path_is_relative: bool
    columns: tuple[Column, ...]
    partition: PartitionSpec | None = None
    sort: SortSpec | None = None
    tags: Tags = ()

    @property
    def comment(self) -> str | None:
        return dict(self.tags).get("comment")

    def column(self, *path: str) -> Column:
        """The column, or the field inside it, that a query would find under that name."""
        found = find_path(self.columns, path)
        if found is None:
            there = ", ".join(c.name for c in self.columns)
            raise NotFoundError(f"table {self.name} has no column {'.'.join(path)}; its columns are {there}")
        return found[-1]

    def leaves(self) -> Iterable[Column]:
        return (field for column in self.columns for field in column.walk())


@dataclass(frozen=True)
class View:
    id: int
    uuid: str
    schema_id: int
    name: str
    dialect: str
    sql: str
    column_aliases: tuple[str, ...] = ()
    tags: Tags = ()

    @property
    def comment(self) -> str | None:
        return dict(self.tags).get("comment")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a macro, with a type of the lake's, or `unknown`."""

    name: str
    type: str = "unknown"
    default: str | None = None
    default_type: str = "unknown"


@dataclass(frozen=True)
class MacroImpl:
    """One of a macro's bodies. The reference reads each as its own SQL, whatever dialect it names."""

    dialect: str
    sql: str
    kind: str
    """`scalar` or `table`."""
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class Macro:
    id: int
    schema_id: int
    name: str
    impls: tuple[MacroImpl, ...]
    tags: Tags = ()

    @property
    def kind(self) -> str:
        return self.impls[0].kind if self.impls else "scalar"


@dataclass(frozen=True)
class LakeState:
    """Every schema, table, view and macro there is at one moment; a change of it is a new one."""

    schemas: Mapping[int, Schema] = field(default_factory=dict)
    tables: Mapping[int, Table] = field(default_factory=dict)
    views: Mapping[int, View] = field(default_factory=dict)
    macros: Mapping[int, Macro] = field(default_factory=dict)

    @cached_property
    def _schemas_by_name(self) -> Mapping[str, Schema]:
        return {s.name.lower(): s for s in self.schemas.values()}

    @cached_property
    def _relations_by_name(self) -> Mapping[tuple[int, str], Table | View]:
        relations: list[Table | View] = [*self.tables.values(), *self.views.values()]
        return {(r.schema_id, r.name.lower()): r for r in relations}

    def find_schema(self, name: str) -> Schema | None:
        return self._schemas_by_name.get(name.lower())

    def schema(self, name: str) -> Schema:
        schema = self.find_schema(name)
        if schema is None:
            there = ", ".join(sorted(s.name for s in self.schemas.values()))
            raise NotFoundError(f"there is no schema {name}; the lake's schemas are {there}")
        return schema

    def find(self, schema_name: str, name: str) -> Table | View | None:
        schema = self.find_schema(schema_name)
        return self._relations_by_name.get((schema.id, name.lower())) if schema else None

    def relation(self, schema_name: str, name: str) -> Table | View:
        relation = self.find(schema_name, name)
        if relation is None:
            self.schema(schema_name)
            raise NotFoundError(f"there is no table or view {schema_name}.{name}")
        return relation

    def table(self, schema_name: str, name: str) -> Table:
        relation = self.relation(schema_name, name)
        if isinstance(relation, View):
            raise NotFoundError(f"{schema_name}.{name} is a view, not a table")
        return relation

    @cached_property
    def _macros_by_name(self) -> Mapping[tuple[int, str], Macro]:
        return {(m.schema_id, m.name.lower()): m for m in self.macros.values()}

    def find_macro(self, schema_name: str, name: str) -> Macro | None:
        schema = self.find_schema(schema_name)
        return self._macros_by_name.get((schema.id, name.lower())) if schema else None

    def macros_in(self, schema: Schema) -> list[Macro]:
        return [m for m in self.macros.values() if m.schema_id == schema.id]

    def with_macro(self, macro: Macro) -> LakeState:
        return replace(self, macros={**self.macros, macro.id: macro})

    def without_macro(self, macro_id: int) -> LakeState:
        return replace(self, macros={k: v for k, v in self.macros.items() if k != macro_id})

    def relations_in(self, schema: Schema) -> list[Table | View]:
        relations: list[Table | View] = [*self.tables.values(), *self.views.values()]
        return [r for r in relations if r.schema_id == schema.id]

    def schema_of(self, relation: Table | View) -> Schema:
        return self.schemas[relation.schema_id]

    def qualified(self, relation: Table | View) -> str:
        return f"{self.schema_of(relation).name}.{relation.name}"

    def with_schema(self, schema: Schema) -> LakeState:
        return replace(self, schemas={**self.schemas, schema.id: schema})

    def without_schema(self, schema_id: int) -> LakeState:
        return replace(self, schemas={k: v for k, v in self.schemas.items() if k != schema_id})

    def with_table(self, table: Table) -> LakeState:
        return replace(self, tables={**self.tables, table.id: table})

    def with_view(self, view: View) -> LakeState:
        return replace(self, views={**self.views, view.id: view})

    def without(self, relation: Table | View) -> LakeState:
        return replace(
            self,
            tables={k: v for k, v in self.tables.items() if k != relation.id},
            views={k: v for k, v in self.views.items() if k != relation.id},
        )

    def folder(self, data_path: str, relation: Table) -> str:
        """Where a table's files are: every relative path ends up below the lake's data path."""
        schema = self.schema_of(relation)
        schema_folder = resolve(data_path, schema.path or "", schema.path is None or schema.path_is_relative)
        return resolve(schema_folder, relation.path or "", relation.path is None or relation.path_is_relative)


class Snapshots:
    """The states of one lake, each loaded once: data changes leave the schema version as it is."""

    def __init__(self, catalog: Catalog, keep: int = 16) -> None:
        self._catalog = catalog
        self._keep = keep
        self._states: OrderedDict[int, LakeState] = OrderedDict()
        self._columns: KnownColumns = {}
        self._lock = threading.Lock()

    def state(self, connection: sa.Connection, info: SnapshotInfo) -> LakeState:
        with self._lock:
            if (state := self._states.get(info.schema_version)) is not None:
                self._states.move_to_end(info.schema_version)
                return state
        state, columns = _load(connection, info.id, self._columns)
        with self._lock:
            self._columns = columns
            self._states[info.schema_version] = state
            while len(self._states) > self._keep:
                self._states.popitem(last=False)
        return state


Fingerprint = tuple[int, ...]
KnownColumns = dict[int, tuple[Fingerprint, tuple[Column, ...]]]
"""The columns of tables, each with what tells whether they are still the same."""


def load_state(connection: sa.Connection, at: int) -> LakeState:
    """The state at a snapshot, with one query for each kind of thing."""
    return _load(connection, at, {})[0]


def _load(connection: sa.Connection, at: int, known: KnownColumns) -> tuple[LakeState, KnownColumns]:
    """The state at a snapshot, with the columns that are known already where they are still the same.

    Columns are most of what a lake's definitions are: of 5,000 tables, only those that changed since
    the last look have theirs read.
    """

    def rows(versioned: sa.Table, *order: sa.Column[Any]) -> Iterable[Any]:
        return connection.execute(sa.select(versioned).where(t.alive(versioned, at)).order_by(*order))

    tags: dict[int, dict[str, str]] = defaultdict(dict)
    for r in rows(t.tag):
        if r.value is not None:
            tags[r.object_id][r.key] = r.value
    schemas = {
        r.schema_id: Schema(
            r.schema_id,
            r.schema_uuid,
            r.schema_name,
            r.path,
            bool(r.path_is_relative),
            _tags(tags, r.schema_id),
        )
        for r in rows(t.schema)
    }
    columns = _columns(connection, at, known)
    partitions = _partitions(connection, at)
    sorts = _sorts(connection, at)
    tables = {
        r.table_id: Table(
            id=r.table_id,
            uuid=r.table_uuid,
            schema_id=r.schema_id,
            name=r.table_name,
            path=r.path,
            path_is_relative=bool(r.path_is_relative),
            columns=columns[r.table_id][1] if r.table_id in columns else (),
            partition=partitions.get(r.table_id),
            sort=sorts.get(r.table_id),
            tags=_tags(tags, r.table_id),
        )
        for r in rows(t.table)
    }
    views = {
        r.view_id: View(
            id=r.view_id,
            uuid=r.view_uuid,
            schema_id=r.schema_id,
            name=r.view_name,
            dialect=r.dialect or "duckdb",
            sql=r.sql,
            column_aliases=parse_quoted_list(r.column_aliases or ""),
            tags=_tags(tags, r.view_id),
        )
        for r in rows(t.view)
    }
    return LakeState(schemas, tables, views, _macros(connection, at, tags)), columns


def _macros(connection: sa.Connection, at: int, tags: Mapping[int, Mapping[str, str]]) -> dict[int, Macro]:
    macro, impl, parameter = t.macro, t.macro_impl, t.macro_parameters
    found = connection.execute(sa.select(macro).where(t.alive(macro, at)).order_by(macro.c.macro_id)).all()
    if not found:
        return {}
    alive = sa.select(macro.c.macro_id).where(t.alive(macro, at))
    parameters: dict[tuple[int, int], list[Parameter]] = defaultdict(list)
    query = sa.select(parameter).where(parameter.c.macro_id.in_(alive)).order_by(parameter.c.column_id)
    for r in connection.execute(query):
        default = None if r.default_value == "NULL" and r.default_value_type == "unknown" else r.default_value
        parameters[r.macro_id, r.impl_id].append(
            Parameter(r.parameter_name, r.parameter_type, default, r.default_value_type)
        )
    impls: dict[int, list[MacroImpl]] = defaultdict(list)
    for r in connection.execute(sa.select(impl).where(impl.c.macro_id.in_(alive)).order_by(impl.c.impl_id)):
        impls[r.macro_id].append(MacroImpl(r.dialect, r.sql, r.type, tuple(parameters[r.macro_id, r.impl_id])))
    return {
        r.macro_id: Macro(r.macro_id, r.schema_id, r.macro_name, tuple(impls[r.macro_id]), _tags(tags, r.macro_id))
        for r in found
    }


def _columns(connection: sa.Connection, at: int, known: KnownColumns) -> KnownColumns:
    """The columns of every table: those that are known, unless their fingerprint is another one now.

    A change of a column or of its tags always is a new row, which begins later than those before it.
    """
    prints: dict[int, Fingerprint] = defaultdict(tuple)
    for source in (t.column, t.column_tag):
        query = (
            sa.select(
                source.c.table_id,
                sa.func.count().label("many"),
                sa.func.sum(source.c.begin_snapshot).label("begun"),
                sa.func.sum(source.c.column_id).label("ids"),
            )
            .where(t.alive(source, at))
            .group_by(source.c.table_id)
        )
        for r in connection.execute(query):
            prints[r.table_id] += (int(r.many), int(r.begun), int(r.ids))
    found = {i: known[i] for i, fingerprint in prints.items() if i in known and known[i][0] == fingerprint}
    missing = [i for i in prints if i not in found]

    def rows(source: sa.Table, *order: sa.Column[Any]) -> Iterable[Any]:
        query = sa.select(source).where(t.alive(source, at)).order_by(*order)
        if len(missing) <= _FEW:
            query = query.where(source.c.table_id.in_(missing))
        return connection.execute(query)

    if missing:
        tags: dict[tuple[int, int], dict[str, str]] = defaultdict(dict)
        for r in rows(t.column_tag):
            if r.value is not None:
                tags[r.table_id, r.column_id][r.key] = r.value
        by_table: dict[int, list[Any]] = defaultdict(list)
        for r in rows(t.column, t.column.c.table_id, t.column.c.column_order):
            by_table[r.table_id].append(r)
        found.update({i: (prints[i], build_columns(by_table[i], tags)) for i in missing})
    return found


def _tags(tags: Mapping[int, Mapping[str, str]], object_id: int) -> Tags:
    return tuple(sorted(tags[object_id].items())) if object_id in tags else ()


def build_columns(
    rows: Iterable[Any], tags: Mapping[tuple[int, int], Mapping[str, str]] | None = None
) -> tuple[Column, ...]:
    """The column tree that rows of `ducklake_column`, in their order, describe."""
    below: dict[int | None, list[Any]] = defaultdict(list)
    for row in rows:
        below[row.parent_column].append(row)

    def level(parent: int | None) -> tuple[Column, ...]:
        return tuple(
            Column(
                id=r.column_id,
                name=r.column_name,
                type=r.column_type,
                # The reference writes false for every field that it adds or renames, and takes NULLs there.
                nulls_allowed=parent is not None or r.nulls_allowed is not False,
                children=level(r.column_id),
                initial_default=r.initial_default,
                default_value=None if r.default_value == "NULL" else r.default_value,
                default_value_type=r.default_value_type or "literal",
                default_value_dialect=r.default_value_dialect or "duckdb",
                tags=tuple(sorted(tags[r.table_id, r.column_id].items()))
                if tags and (r.table_id, r.column_id) in tags
                else (),
            )
            for r in below.get(parent, ())
        )

    return level(None)


def _partitions(connection: sa.Connection, at: int) -> dict[int, PartitionSpec]:
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


def _sorts(connection: sa.Connection, at: int) -> dict[int, SortSpec]:
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


def quoted(name: str) -> str:
    """A name as `changes_made` and column aliases hold it: in double quotes, doubled inside."""
    return '"' + name.replace('"', '""') + '"'


def parse_quoted_list(text: str, separator: str = ",") -> tuple[str, ...]:
    """The names in a list of quoted names."""
    names: list[str] = []
    position = 0
    while position < len(text):
        if text[position] != '"':
            raise ValueError(f"a quoted name was expected at {position} of {text!r}")
        end, name = position + 1, ""
        while True:
            stop = text.index('"', end)
            name += text[end:stop]
            if text[stop + 1 : stop + 2] != '"':
                break
            name, end = name + '"', stop + 2
        names.append(name)
        position = stop + 1
        if position < len(text) and text[position] != separator:
            raise ValueError(f"a {separator!r} was expected at {position} of {text!r}")
        position += 1
    return tuple(names)


def last_types(connection: sa.Connection, table_id: int) -> dict[int, str]:
    """The type that each column and field of a table has, or had when it was dropped."""
    column = t.column
    query = sa.select(column.c.column_id, column.c.column_type).where(column.c.table_id == table_id)
    return {row.column_id: row.column_type for row in connection.execute(query.order_by(column.c.begin_snapshot))}
