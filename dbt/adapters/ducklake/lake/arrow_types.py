"""The Arrow types in which rows of a lake are handed to Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from .types import Column, decimal_parts


def arrow_type(column: Column, exact: bool = False) -> pa.DataType:
    """The Arrow type whose Spark counterpart a column of a lake has.

    With `exact`, values of types that Spark cannot hold all of are text, and variants are binary.
    """
    kind = column.type
    if exact and kind in _INEXACT:
        return pa.string()
    if exact and kind == "variant":
        return _VARIANT
    if kind == "list":
        return pa.list_(arrow_type(column.children[0], exact))
    if kind == "map":
        return pa.map_(arrow_type(column.children[0], exact), arrow_type(column.children[1], exact))
    if kind == "struct":
        return pa.struct([pa.field(c.name, arrow_type(c, exact)) for c in column.children])
    if decimal := decimal_parts(kind):
        return pa.decimal128(*decimal)
    return _ARROW.get(kind, pa.string())


def with_field_ids(rows: pa.Table, columns: Sequence[Column]) -> pa.Table:
    """The rows in the order and the types of these columns, whose names they have, as Parquet files have them."""
    schema = pa.schema(
        pa.field(c.name, arrow_type(c), metadata={b"PARQUET:field_id": str(c.id).encode()}) for c in columns
    )
    return rows.select(schema.names).cast(schema)


def has_plain_type(column: Column) -> bool:
    """Whether the values of a column are the same in Arrow, in a data file and in Spark."""
    return not column.children and (column.type in _PLAIN_TYPES or decimal_parts(column.type) is not None)


_PLAIN_TYPES = frozenset(
    (
        *("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "varchar", "json", "blob"),
        *("date", "timestamp", "timestamptz"),
    )
)
_INEXACT = ("int128", "timestamp_ns")
# Spark takes a struct for a variant by the metadata of its field `metadata`.
_VARIANT = pa.struct(
    [
        pa.field("value", pa.binary(), nullable=False),
        pa.field("metadata", pa.binary(), nullable=False, metadata={b"variant": b"true"}),
    ]
)

_ARROW = {
    "boolean": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "uint8": pa.int16(),
    "uint16": pa.int32(),
    "uint32": pa.int64(),
    "uint64": pa.decimal128(20, 0),
    "int128": pa.decimal128(38, 0),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "blob": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamp_us": pa.timestamp("us"),
    "timestamp_s": pa.timestamp("us"),
    "timestamp_ms": pa.timestamp("us"),
    "timestamp_ns": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
}
