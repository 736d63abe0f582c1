"""The `information_schema` of each lake, answered from the catalog: schemata, tables, views and columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ...lake.snapshot import LakeState, Table, View
from ..sql.defaults import default_sql
from ..sql.types import query_type
from ..sql.views import readable_columns, view_definition

if TYPE_CHECKING:
    from .context import QueryContext

NAME = "information_schema"


def read_relation(parts: Sequence[str], context: QueryContext) -> tuple[tuple[str, str, str], pa.Table] | None:
    """The full name and the rows of a relation of `information_schema`; None for any other name.

    A schema of the lake with that name takes precedence.
    """
    if len(parts) not in (2, 3) or parts[-2].lower() != NAME:
        return None
    resolved = context.resolve_name(parts)
    if resolved is None:
        return None
    lake, schema, name = resolved
    state = context.transaction_on(lake.name).state
    relation = _RELATIONS.get(name.lower())
    if relation is None or state.find_schema(schema) is not None:
        return None
    types, rows = relation
    table = pa.Table.from_pylist(list(rows(lake.name, state)), schema=pa.schema(list(types.items())))
    return (lake.name, NAME, name.lower()), table


Row = dict[str, Any]


def _schemata(lake: str, state: LakeState) -> Iterator[Row]:
    for schema in state.schemas.values():
        yield {"catalog_name": lake, "schema_name": schema.name, "comment": schema.comment}


def _name_columns(lake: str, state: LakeState, relation: Table | View) -> Row:
    return {
        "table_catalog": lake,
        "table_schema": state.schema_of(relation).name,
        "table_name": relation.name,
    }


def _tables(lake: str, state: LakeState) -> Iterator[Row]:
    for kind, relations in (("BASE TABLE", state.tables), ("VIEW", state.views)):
        for relation in relations.values():
            yield {**_name_columns(lake, state, relation), "table_type": kind, "comment": relation.comment}


def _views(lake: str, state: LakeState) -> Iterator[Row]:
    for view in state.views.values():
        yield {**_name_columns(lake, state, view), "view_definition": view_definition(view, state, lake)}


def _columns(lake: str, state: LakeState) -> Iterator[Row]:
    for table in state.tables.values():
        for position, column in enumerate(table.columns, start=1):
            yield {
                **_name_columns(lake, state, table),
                "column_name": column.name,
                "ordinal_position": position,
                "column_default": default_sql(column) if column.default_value is not None else None,
                "is_nullable": "YES" if column.nulls_allowed else "NO",
                "data_type": query_type(column).simpleString(),
                "comment": column.comment,
            }
    for view in state.views.values():
        for position, view_column in enumerate(readable_columns(view, state, lake), start=1):
            yield {
                **_name_columns(lake, state, view),
                "column_name": view_column.name,
                "ordinal_position": position,
                "is_nullable": "YES",
                "data_type": view_column.type,
                "comment": view_column.comment,
            }


_TEXT = pa.string()
_NAME_COLUMNS = {"table_catalog": _TEXT, "table_schema": _TEXT, "table_name": _TEXT}
_RELATIONS: Mapping[str, tuple[Mapping[str, pa.DataType], Callable[[str, LakeState], Iterator[Row]]]] = {
    "schemata": ({"catalog_name": _TEXT, "schema_name": _TEXT, "comment": _TEXT}, _schemata),
    "tables": ({**_NAME_COLUMNS, "table_type": _TEXT, "comment": _TEXT}, _tables),
    "views": ({**_NAME_COLUMNS, "view_definition": _TEXT}, _views),
    "columns": (
        {
            **_NAME_COLUMNS,
            "column_name": _TEXT,
            "ordinal_position": pa.int32(),
            "column_default": _TEXT,
            "is_nullable": _TEXT,
            "data_type": _TEXT,
            "comment": _TEXT,
        },
        _columns,
    ),
}
