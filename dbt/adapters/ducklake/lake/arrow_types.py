"""The Arrow types in which rows of a lake are handed to Spark."""

from __future__ import annotations

import pyarrow as pa

from .types import Column, decimal_parts

_INT128 = pa.decimal128(38, 0)


def arrow_type(column: Column, int128: pa.DataType = _INT128) -> pa.DataType:
    """The Arrow type whose Spark counterpart a column of a lake has.

    `int128` is the type for values of an `int128`, not all of which are decimals of 38 digits.
    """
    kind = column.type
    if kind == "int128":
        return int128
    if kind == "list":
        return pa.list_(arrow_type(column.children[0], int128))
    if kind == "map":
        return pa.map_(arrow_type(column.children[0], int128), arrow_type(column.children[1], int128))
    if kind == "struct":
        return pa.struct([pa.field(c.name, arrow_type(c, int128)) for c in column.children])
    if decimal := decimal_parts(kind):
        return pa.decimal128(*decimal)
    return _ARROW.get(kind, pa.string())


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
