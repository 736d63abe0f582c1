"""WITH SCHEMA EVOLUTION: a write adds columns and nested fields to the table, and widens types."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import types as s

from ...lake import evolution as evolve
from ...lake.snapshot import Table
from ...lake.types import Column, find_path
from ..sql.tokens import Name, lowered
from ..sql.types import lake_column, query_type
from .command_context import CommandContext


def merge_schema(context: CommandContext, table: Table, fields: Iterable[s.StructField]) -> Table:
    """Changes a table so that it can hold rows with these fields. Returns the changed table."""
    columns = [_column_for(field, find_path(table.columns, (field.name,))) for field in fields]
    ids = context.transaction.column_ids(table)
    context.move_inlined_inserts_to_files(table)
    return context.transaction.alter_table(table, lambda t: evolve.merge_schema(t, columns, ids))


def fields_assigned_by_name(
    source: Sequence[s.StructField], assigned: Iterable[tuple[Name, Name]]
) -> list[s.StructField]:
    """The fields of a source that a MERGE assigns to a column or nested field of the same name.

    `assigned` has pairs of paths: the column of the table, and the field of the source.
    """
    struct = s.StructType([*source])
    found = (_field_at(struct, value, column) for column, value in assigned)
    return [field for field in found if field is not None]


def _field_at(struct: s.StructType, path: Name, column: Name) -> s.StructField | None:
    """The field at a path as the column is spelled, inside structs of this field alone.

    None if there is no such field, or if the column has another path.
    """
    found = next((f for f in struct.fields if lowered((f.name,)) == lowered(path[:1])), None)
    if found is None or lowered(path) != lowered(column):
        return None
    if len(path) == 1:
        return s.StructField(column[0], found.dataType)
    inner = _field_at(found.dataType, path[1:], column[1:]) if isinstance(found.dataType, s.StructType) else None
    return inner and s.StructField(column[0], s.StructType([inner]))


def _column_for(field: s.StructField, existing: tuple[Column, ...] | None) -> Column:
    return lake_column(field) if existing is None else _with_table_types(existing[-1], field.dataType)


def _with_table_types(existing: Column, source_type: s.DataType) -> Column:
    """The column of a source's type. Types that Spark cannot tell from the table's own stay the table's."""
    children: tuple[Column, ...]
    match existing.type, source_type:
        case _, s.NullType():
            return existing
        case "struct", s.StructType():
            children = tuple(_column_for(f, find_path(existing.children, (f.name,))) for f in source_type.fields)
        case "list", s.ArrayType():
            children = (_with_table_types(existing.children[0], source_type.elementType),)
        case "map", s.MapType():
            key, value = existing.children
            children = (
                _with_table_types(key, source_type.keyType),
                _with_table_types(value, source_type.valueType),
            )
        case _:
            same_type = query_type(existing) == source_type or existing.type == "geometry"
            return existing if same_type else lake_column(s.StructField(existing.name, source_type))
    return Column(existing.id, existing.name, existing.type, children=children)
