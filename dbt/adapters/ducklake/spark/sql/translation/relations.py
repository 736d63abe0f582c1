"""The relations that a query reads: their columns, with the types that Spark gives them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pyspark.sql import types as s
from pyspark.sql.types import DataType

from ....lake import types as lake_types
from ....lake.snapshot import LakeState, View
from ..types import query_type
from .expressions import Untranslatable
from .types import INT, LONG, SHORT, STRING, TIMESTAMP_NTZ


@dataclass(frozen=True)
class Column:
    """A column of a relation."""

    name: str | None
    """None if no query can refer to it, since an engine chose the name."""
    type: DataType | None
    """The type in which Spark reads it; None if it has none that expressions are translated for."""
    cast_in_duckdb: bool = False
    """Whether DuckDB has the column in a type of its own, which is to be cast to Spark's."""
    is_opaque: bool = False
    """Whether DuckDB computes with the column in other ways than Spark."""


@dataclass(frozen=True)
class Relation:
    """A table or a view of the lake."""

    lake: str
    schema: str
    name: str
    columns: tuple[Column, ...]
    names_lake: bool = False
    """Whether the query calls the lake by name."""


RelationResolver = Callable[[Sequence[str]], Relation]
"""Returns the relation of a dotted name. Raises `Untranslatable` if it is none of the lake."""

ViewColumns = Callable[[View, LakeState, str], tuple[Column, ...]]
"""Returns the columns of a view of the lake of that name."""


def resolve_in(
    state: LakeState, lake: str, schema: str, view_columns: ViewColumns, default_schema: str | None = None
) -> RelationResolver:
    """Returns a resolver of names in one lake, which the query calls `lake`; `schema` is the current schema.

    `default_schema` is where the engine of the query's author looks next for a name without a schema.
    """

    def resolve(parts: Sequence[str]) -> Relation:
        *qualifier, name = parts
        names_lake = bool(qualifier) and qualifier[0].lower() == lake.lower()
        # A schema goes before a lake of the same name.
        names_lake = names_lake and (len(qualifier) == 2 or state.find_schema(qualifier[0]) is None)
        if names_lake:
            qualifier = qualifier[1:] or ["main"]
        relation = state.find_relation(qualifier[0] if qualifier else schema, name) if len(qualifier) < 2 else None
        if relation is None and not qualifier and default_schema is not None:
            relation = state.find_relation(default_schema, name)
        if relation is None:
            raise Untranslatable(f"{'.'.join(parts)}, which is not in the lake")
        if isinstance(relation, View):
            columns = view_columns(relation, state, lake)
        else:
            columns = tuple(map(lake_column, relation.columns))
        return Relation(lake, state.schema_of(relation).name, relation.name, columns, names_lake)

    return resolve


_CAST_IN_DUCKDB: dict[str, DataType] = {
    "uint8": SHORT,
    "uint16": INT,
    "uint32": LONG,
    "uint64": s.DecimalType(20, 0),
    "int128": s.DecimalType(38, 0),
    "json": STRING,
    "uuid": STRING,
    "timestamp_s": TIMESTAMP_NTZ,
    "timestamp_ms": TIMESTAMP_NTZ,
}
_COMPUTED_ALIKE = ("int128", "json")
_SAME_IN_BOTH = frozenset(
    [
        "boolean",
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
        "varchar",
        "blob",
        "date",
        "timestamp",
        "timestamptz",
    ]
)


def lake_column(column: lake_types.Column) -> Column:
    """Returns a table's column as queries see it."""
    if column.type in _CAST_IN_DUCKDB:
        is_opaque = column.type not in _COMPUTED_ALIKE
        return Column(column.name, _CAST_IN_DUCKDB[column.type], cast_in_duckdb=True, is_opaque=is_opaque)
    return Column(column.name, query_type(column) if _is_the_same(column) else None)


def _is_the_same(column: lake_types.Column) -> bool:
    """Whether both engines have a column in the same type."""
    if column.children:
        return all(map(_is_the_same, column.children))
    return column.type in _SAME_IN_BOTH or lake_types.decimal_parts(column.type) is not None
