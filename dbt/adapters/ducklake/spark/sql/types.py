"""The Spark types of DuckLake columns.

A column has three of them: the type in a query (`query_type`), the one in which Spark reads it from a file
(`read_type`, `read_field`), and the one in which Spark writes it (`written_field`). They differ only for types that
Spark does not have; `decoding.py` and `write/encoding.py` convert the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pyspark.sql import types as s

from ...lake.duckdb_text import parse_blob
from ...lake.errors import SchemaChangeError, UnsupportedError
from ...lake.types import TIMESTAMPS, Column, decimal_parts
from .kept_text import TEXT_TYPES, type_of_text
from .quoting import quoted, string_literal

FIELD_ID = "parquet.field.id"
"""The key of a column's field id in the metadata of a Spark field."""
EXISTS_DEFAULT = "EXISTS_DEFAULT"
"""The key of the default that Spark's scan fills in where a file lacks the column."""

LeafConversion: TypeAlias = Callable[[str, Column], str]
"""Returns the SQL for the converted value of a column without children, given the SQL for its value."""

_QUERY_TYPES: Mapping[str, s.DataType] = {
    "boolean": s.BooleanType(),
    "int8": s.ByteType(),
    "int16": s.ShortType(),
    "int32": s.IntegerType(),
    "int64": s.LongType(),
    "uint8": s.ShortType(),
    "uint16": s.IntegerType(),
    "uint32": s.LongType(),
    "uint64": s.DecimalType(20, 0),
    "int128": s.DecimalType(38, 0),
    "uint128": s.StringType(),
    "float32": s.FloatType(),
    "float64": s.DoubleType(),
    "varchar": s.StringType(),
    "json": s.StringType(),
    "uuid": s.StringType(),
    "time": s.StringType(),
    "time_ns": s.StringType(),
    "timetz": s.StringType(),
    "interval": s.StringType(),
    "blob": s.BinaryType(),
    "geometry": s.BinaryType(),
    "date": s.DateType(),
    "timestamp": s.TimestampNTZType(),
    "timestamp_us": s.TimestampNTZType(),
    "timestamp_s": s.TimestampNTZType(),
    "timestamp_ms": s.TimestampNTZType(),
    "timestamp_ns": s.TimestampNTZType(),
    "timestamptz": s.TimestampType(),
    "variant": s.VariantType(),
    **dict.fromkeys(TEXT_TYPES.values(), s.StringType()),
}

WRITER_DEPENDENT_TYPES = frozenset({"int128", "uint128", "timestamp_ns", "timetz", "interval", "time_ns"})
"""Types with another physical type in files of DuckDB than in those of Spark: only a file's footer tells which."""

_READ_TYPES: Mapping[str, s.DataType] = {"uuid": s.BinaryType(), "time": s.LongType()}

_READ_TYPES_BY_PHYSICAL_TYPE: Mapping[tuple[str, str], s.DataType] = {
    ("int128", "DOUBLE"): s.DoubleType(),
    ("int128", "BYTE_ARRAY"): s.StringType(),
    ("uint128", "DOUBLE"): s.DoubleType(),
    ("uint128", "FIXED_LEN_BYTE_ARRAY:decimal(38,0)"): s.DecimalType(38, 0),
    ("timestamp_ns", "INT64:ns"): s.LongType(),
    ("timestamp_ns", "BYTE_ARRAY"): s.StringType(),
    ("time_ns", "INT64:ns"): s.LongType(),
    ("timetz", "INT64:us"): s.LongType(),
    ("interval", "FIXED_LEN_BYTE_ARRAY"): s.BinaryType(),
    # Narrower and other types of files that were added, and narrower types that a column was promoted from.
    ("uint64", "INT32:uint8"): s.ShortType(),
    ("uint64", "INT32:uint16"): s.IntegerType(),
    ("uint64", "INT32:uint32"): s.LongType(),
    ("timestamp", "INT64:ns"): s.LongType(),
    ("timestamp", "INT96"): s.TimestampType(),
    ("timestamp_us", "INT64:ns"): s.LongType(),
    ("timestamp_us", "INT96"): s.TimestampType(),
    ("timestamptz", "INT64:ns"): s.LongType(),
    ("timestamp_s", "INT64:ms"): s.TimestampNTZType(),
    ("timestamp_s", "INT64:us"): s.TimestampNTZType(),
    ("timestamp_s", "INT96"): s.TimestampType(),
    ("timestamp_ms", "INT64:us"): s.TimestampNTZType(),
    ("timestamp_ms", "INT96"): s.TimestampType(),
    ("timestamp_ns", "INT96"): s.TimestampType(),
}

MISSING = "missing"
"""Stands for the physical type of a column that a file lacks."""


def query_type(column: Column) -> s.DataType:
    """Returns the type of a column in a Spark query."""
    return _spark_type(column, _leaf_query_type)


def _leaf_query_type(column: Column) -> s.DataType:
    if decimal := decimal_parts(column.type):
        return s.DecimalType(*decimal)
    found = _QUERY_TYPES.get(column.type)
    if found is None:
        raise UnsupportedError(f"column {column.name} has type {column.type}, which this version can not read")
    return found


def _spark_type(column: Column, leaf_type: Callable[[Column], s.DataType], field_ids: bool = False) -> s.DataType:
    """Returns the Spark type of a column whose leaves, the parts without children, have the types of `leaf_type`."""

    def child_type(child: Column) -> s.DataType:
        return _spark_type(child, leaf_type, field_ids)

    if column.type == "list":
        return s.ArrayType(child_type(column.children[0]), True)
    if column.type == "map":
        key, value = column.children
        return s.MapType(child_type(key), child_type(value), True)
    if column.type == "struct":
        return s.StructType(
            [
                s.StructField(c.name, child_type(c), True, {FIELD_ID: c.id} if field_ids else None)
                for c in column.children
            ]
        )
    return leaf_type(column)


def read_type(column: Column, physical_types: Mapping[int, str]) -> s.DataType:
    """Returns the type in which Spark reads a column without children.

    `physical_types` has the physical types that differ from file to file, by column id: see `read.stored_columns`.
    """
    column = replace(column, type=type_of_text(column.type))
    by_physical_type = _read_type_by_physical_type(column, physical_types)
    return by_physical_type or _READ_TYPES.get(column.type) or _leaf_query_type(column)


def _read_type_by_physical_type(column: Column, physical_types: Mapping[int, str]) -> s.DataType | None:
    physical = physical_types.get(column.id, "")
    parts, stored = decimal_parts(column.type), decimal_parts(physical.partition(":")[2])
    if parts and stored and parts[1] != stored[1]:
        return s.DecimalType(*stored)
    return _READ_TYPES_BY_PHYSICAL_TYPE.get((column.type, physical))


def read_field(column: Column, physical_types: Mapping[int, str]) -> s.StructField:
    """Returns the field by which Spark reads a column: by its field id, with its default if a file lacks it."""
    metadata: dict[str, Any] = {FIELD_ID: column.id}
    type_ = _spark_type(column, lambda c: read_type(c, physical_types), field_ids=True)
    if has_scan_default(column):
        metadata[EXISTS_DEFAULT] = initial_default_literal(column)
    return s.StructField(column.name, type_, True, metadata)


def is_encoded(column: Column, physical_types: Mapping[int, str]) -> bool:
    """Whether a file stores a column without children in another form than a query shows it."""
    depends_on_file = _read_type_by_physical_type(column, physical_types) is not None
    is_text = column.type in TEXT_TYPES.values()
    return not column.children and (column.type in _READ_TYPES or depends_on_file or is_text)


def is_missing(column: Column, physical_types: Mapping[int, str]) -> bool:
    """Whether a file lacks a column, and the query must fill in its default."""
    return column.initial_default is not None and physical_types.get(column.id) == MISSING


def depends_on_added_file(column: Column) -> bool:
    """Whether a file that was added may hold the column in a type that Spark does not read as the column's."""
    decimal = decimal_parts(column.type)
    return type_of_text(column.type) in ("uint64", *TIMESTAMPS) or (decimal is not None and decimal[1] > 0)


def has_scan_default(column: Column) -> bool:
    """Whether Spark's scan fills in the column's default if a file lacks the column."""
    if column.initial_default is None or column.children:
        return False
    decimal = decimal_parts(column.type)
    return column.type in _TYPES_WITH_SCAN_DEFAULT or (decimal is not None and decimal[0] <= 18)


def columns_with_query_default(columns: Sequence[Column]) -> list[Column]:
    """The columns and nested fields whose defaults the query must fill in, because Spark's scan cannot."""
    nested = [field for column in columns for child in column.children for field in child.walk()]
    candidates = [*(c for c in columns if not has_scan_default(c)), *nested]
    return [c for c in candidates if c.initial_default is not None and not c.children]


_TYPES_WITH_SCAN_DEFAULT = frozenset(
    ("boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64", "varchar")
    + ("json", "date", "timestamp", "timestamp_us", "timestamp_s", "timestamp_ms", "timestamptz")
)


def written_field(column: Column) -> s.StructField:
    """Returns the field as which Spark writes a column, with field ids for the column and for fields of structs."""
    type_ = _spark_type(column, _leaf_written_type, field_ids=True)
    return s.StructField(column.name, type_, True, {FIELD_ID: column.id})


def _leaf_written_type(column: Column) -> s.DataType:
    return _WRITTEN_TYPES.get(column.type) or _leaf_query_type(column)


_WRITTEN_TYPES: Mapping[str, s.DataType] = {"time": s.TimeType(6), "geometry": s.GeometryType(0)}


def convert_leaves(sql: str, column: Column, convert: LeafConversion, depth: int = 0) -> str:
    """Returns the SQL for a value with `convert` applied to every part of it that has no children.

    >>> tags = Column(1, "tags", "list", children=(Column(2, "element", "varchar"),))
    >>> convert_leaves("tags", tags, lambda sql, column: f"lower({sql})")
    'transform(tags, x0 -> lower(x0))'
    """
    if column.type == "list":
        item = f"x{depth}"
        return f"transform({sql}, {item} -> {convert_leaves(item, column.children[0], convert, depth + 1)})"
    if column.type == "map":
        key, value = f"k{depth}", f"v{depth}"
        key_sql = convert_leaves(key, column.children[0], convert, depth + 1)
        value_sql = convert_leaves(value, column.children[1], convert, depth + 1)
        values = f"transform_values({sql}, ({key}, {value}) -> {value_sql})"
        return f"transform_keys({values}, ({key}, {value}) -> {key_sql})"
    if column.type == "struct":
        fields = ", ".join(
            f"{string_literal(c.name)}, {convert_leaves(f'{sql}.{quoted(c.name)}', c, convert, depth)}"
            for c in column.children
        )
        return f"if({sql} is null, null, named_struct({fields}))"
    return convert(sql, column)


def lake_column(field: s.StructField) -> Column:
    """Returns the column of a lake for a column of a query, with the id 0."""
    column = _lake_column(field.name, field.dataType)
    comment = (field.metadata or {}).get("comment")
    tags = (("comment", str(comment)),) if comment else ()
    return Column(0, field.name, column.type, True, column.children, tags=tags)


def _lake_column(name: str, type_: s.DataType) -> Column:
    if isinstance(type_, s.ArrayType):
        return Column(0, name, "list", children=(_lake_column("element", type_.elementType),))
    if isinstance(type_, s.MapType):
        children = (_lake_column("key", type_.keyType), _lake_column("value", type_.valueType))
        return Column(0, name, "map", children=children)
    if isinstance(type_, s.StructType):
        return Column(0, name, "struct", children=tuple(_lake_column(f.name, f.dataType) for f in type_.fields))
    if isinstance(type_, s.DecimalType):
        return Column(0, name, f"decimal({type_.precision},{type_.scale})")
    if isinstance(type_, s.NullType):
        raise SchemaChangeError(
            f"column {name} is NULL in every row and so has no type; give it one, for example"
            f" cast(null as string) as {quoted(name)}"
        )
    found = _LAKE_TYPES.get(type(type_).__name__)
    if found is None:
        raise SchemaChangeError(
            f"column {name} has the Spark type {type_.simpleString()}, which DuckLake does not have;"
            f" {'store its WKB, which st_asbinary returns' if isinstance(type_, s.GeographyType) else _CAST_IT}"
        )
    return Column(0, name, found)


_CAST_IT = "cast it to another, for example to string"

_LAKE_TYPES = {
    "BooleanType": "boolean",
    "ByteType": "int8",
    "ShortType": "int16",
    "IntegerType": "int32",
    "LongType": "int64",
    "FloatType": "float32",
    "DoubleType": "float64",
    "StringType": "varchar",
    "VarcharType": "varchar",
    "CharType": "varchar",
    "BinaryType": "blob",
    "DateType": "date",
    "TimestampType": "timestamptz",
    "TimestampNTZType": "timestamp",
    "TimeType": "time",
    "VariantType": "variant",
    "GeometryType": "geometry",
}


def initial_default_literal(column: Column) -> str:
    """Returns the Spark SQL for the value of a column in rows that are older than it."""
    return "NULL" if column.initial_default is None else value_literal(column.initial_default, column)


def value_literal(text: str, column: Column) -> str:
    """Returns the Spark SQL for a value of a column, given the value's text in the catalog."""
    if column.type == "boolean":
        return "true" if text.lower() in ("true", "t", "1") else "false"
    if column.type == "blob":
        return f"X'{parse_blob(text).hex()}'"
    target = query_type(column)
    if isinstance(target, s.StringType):
        return string_literal(text)
    return f"cast({string_literal(text)} as {target.simpleString()})"
