"""WITH SCHEMA EVOLUTION: a table takes up what the rows written to it have more than it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import types as s

from ...lake import evolution as evolve
from ...lake.snapshot import Table
from ...lake.types import Column, find_path
from ..sql.tokens import Name, lowered
from ..sql.types import lake_column, query_type
from .command_context import CommandContext


def take_up(context: CommandContext, table: Table, fields: Iterable[s.StructField]) -> Table:
    """The table with new columns, new fields of structs and wider types, so that it holds these fields."""
    others = [_column(find_path(table.columns, (field.name,)), field) for field in fields]
    ids = context.transaction.column_ids(table)
    return context.transaction.alter_table(table, lambda t: evolve.widen(t, others, ids))


def same_fields(source: Sequence[s.StructField], given: Iterable[tuple[Name, Name]]) -> list[s.StructField]:
    """The fields of a source that are given to those of the same name, by pairs of paths: to what, and what."""
    struct = s.StructType([*source])
    found = (_along(struct, value, column) for column, value in given)
    return [field for field in found if field is not None]


def _along(struct: s.StructType, path: Name, wanted: Name) -> s.StructField | None:
    """The field at a path, within structs that have no other; None if there is none or another one is wanted."""
    found = next((f for f in struct.fields if lowered((f.name,)) == lowered(path[:1])), None)
    if found is None or lowered(path) != lowered(wanted):
        return None
    if len(path) == 1:
        return s.StructField(wanted[0], found.dataType)
    inner = _along(found.dataType, path[1:], wanted[1:]) if isinstance(found.dataType, s.StructType) else None
    return inner and s.StructField(wanted[0], s.StructType([inner]))


def _column(own: tuple[Column, ...] | None, field: s.StructField) -> Column:
    return lake_column(field) if own is None else _as_known(own[-1], field.dataType)


def _as_known(own: Column, kind: s.DataType) -> Column:
    """What a query has for a column of the table, with the table's own types where Spark sees no difference."""
    children: tuple[Column, ...]
    match own.type, kind:
        case _, s.NullType():
            return own
        case "struct", s.StructType():
            children = tuple(_column(find_path(own.children, (f.name,)), f) for f in kind.fields)
        case "list", s.ArrayType():
            children = (_as_known(own.children[0], kind.elementType),)
        case "map", s.MapType():
            children = (_as_known(own.children[0], kind.keyType), _as_known(own.children[1], kind.valueType))
        case _:
            return own if query_type(own) == kind else lake_column(s.StructField(own.name, kind))
    return Column(own.id, own.name, own.type, children=children)
