"""The definitions in a lake at one snapshot: schemas, tables, views and macros, as immutable values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from .errors import NotFoundError
from .missing_names import relation_not_found, schema_not_found
from .partitions import PartitionSpec
from .paths import resolve
from .sorting import SortSpec
from .types import Column, find_path

Tags = tuple[tuple[str, str], ...]


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
    id: int
    """Below zero if the table is staged but not committed."""
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
        """The column, or the nested field, that a query finds under this name."""
        found = find_path(self.columns, path)
        if found is None:
            names = ", ".join(c.name for c in self.columns)
            raise NotFoundError(f"table {self.name} has no column {'.'.join(path)}; its columns are {names}")
        return found[-1]

    def walk_columns(self) -> Iterator[Column]:
        """Every column and nested field, parents first."""
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
    column_tags: tuple[tuple[str, Tags], ...] = ()
    """The tags of columns, by name. Only lakes of DuckLake 1.1 have them."""

    @property
    def comment(self) -> str | None:
        return dict(self.tags).get("comment")


@dataclass(frozen=True)
class Parameter:
    """A parameter of a macro. Its type is one of DuckLake's column types, or `unknown`."""

    name: str
    type: str = "unknown"
    default: str | None = None
    default_type: str = "unknown"


@dataclass(frozen=True)
class MacroImpl:
    """One implementation of a macro. The reference reads its SQL as its own, whatever the dialect."""

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
    """Every schema, table, view and macro at one snapshot, by id. Names are found in any case."""

    schemas: Mapping[int, Schema] = field(default_factory=dict)
    tables: Mapping[int, Table] = field(default_factory=dict)
    views: Mapping[int, View] = field(default_factory=dict)
    macros: Mapping[int, Macro] = field(default_factory=dict)

    @cached_property
    def _schemas_by_name(self) -> Mapping[str, Schema]:
        return {s.name.lower(): s for s in self.schemas.values()}

    @cached_property
    def _relations_by_name(self) -> Mapping[tuple[int, str], Table | View]:
        return {(r.schema_id, r.name.lower()): r for r in self._relations()}

    @cached_property
    def _macros_by_name(self) -> Mapping[tuple[int, str], Macro]:
        return {(m.schema_id, m.name.lower()): m for m in self.macros.values()}

    def _relations(self) -> list[Table | View]:
        return [*self.tables.values(), *self.views.values()]

    # -- schemas

    def find_schema(self, name: str) -> Schema | None:
        return self._schemas_by_name.get(name.lower())

    def schema(self, name: str) -> Schema:
        schema = self.find_schema(name)
        if schema is None:
            raise schema_not_found(self, name)
        return schema

    def schema_of(self, relation: Table | View) -> Schema:
        return self.schemas[relation.schema_id]

    def with_schema(self, schema: Schema) -> LakeState:
        return replace(self, schemas={**self.schemas, schema.id: schema})

    def without_schema(self, schema_id: int) -> LakeState:
        return replace(self, schemas={k: v for k, v in self.schemas.items() if k != schema_id})

    # -- tables and views

    def find_relation(self, schema_name: str, name: str) -> Table | View | None:
        schema = self.find_schema(schema_name)
        return self._relations_by_name.get((schema.id, name.lower())) if schema else None

    def relation(self, schema_name: str, name: str) -> Table | View:
        relation = self.find_relation(schema_name, name)
        if relation is None:
            raise relation_not_found(self, schema_name, name)
        return relation

    def table(self, schema_name: str, name: str) -> Table:
        relation = self.relation(schema_name, name)
        if isinstance(relation, View):
            raise NotFoundError(f"{schema_name}.{name} is a view, not a table")
        return relation

    def find_relations_named(self, name: str) -> list[Table | View]:
        """The relations of a name in all schemas."""
        return [r for s in self.schemas.values() if (r := self.find_relation(s.name, name)) is not None]

    def relations_in(self, schema: Schema) -> list[Table | View]:
        return [r for r in self._relations() if r.schema_id == schema.id]

    def qualified_name(self, relation: Table | View) -> str:
        return f"{self.schema_of(relation).name}.{relation.name}"

    def table_folder(self, data_path: str, table: Table) -> str:
        """The folder of a table's files. Relative paths are resolved against the lake's data path."""
        schema = self.schema_of(table)
        schema_folder = resolve(data_path, schema.path or "", schema.path is None or schema.path_is_relative)
        return resolve(schema_folder, table.path or "", table.path is None or table.path_is_relative)

    def with_table(self, table: Table) -> LakeState:
        return replace(self, tables={**self.tables, table.id: table})

    def with_view(self, view: View) -> LakeState:
        return replace(self, views={**self.views, view.id: view})

    def without_relation(self, relation: Table | View) -> LakeState:
        return replace(
            self,
            tables={k: v for k, v in self.tables.items() if k != relation.id},
            views={k: v for k, v in self.views.items() if k != relation.id},
        )

    # -- macros

    def find_macro(self, schema_name: str, name: str) -> Macro | None:
        schema = self.find_schema(schema_name)
        return self._macros_by_name.get((schema.id, name.lower())) if schema else None

    def macros_in(self, schema: Schema) -> list[Macro]:
        return [m for m in self.macros.values() if m.schema_id == schema.id]

    def with_macro(self, macro: Macro) -> LakeState:
        return replace(self, macros={**self.macros, macro.id: macro})

    def without_macro(self, macro_id: int) -> LakeState:
        return replace(self, macros={k: v for k, v in self.macros.items() if k != macro_id})
