"""DuckLake's types in Spark's, and what must be done to a value between a file and a query.

Three types belong to a column: what a query sees (`query_type`), what Spark asks of a file
(`stored_type`), and what Spark writes. They differ only for types that Spark does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import types as s

from ...lake.errors import SchemaChangeError, UnsupportedError
from ...lake.inlined import parse_blob
from ...lake.types import Column, decimal_parts

FIELD_ID = "parquet.field.id"
EXISTS_DEFAULT = "EXISTS_DEFAULT"

_QUERY: Mapping[str, s.DataType] = {
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
    "uint128": s.DecimalType(38, 0),
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
}

TWO_FACED = frozenset({"int128", "uint128", "timestamp_ns", "timetz", "interval", "time_ns"})
"""Types that DuckDB and Spark store differently, so that a file must be asked which it is."""

_STORED: Mapping[str, s.DataType] = {"uuid": s.BinaryType(), "time": s.LongType()}

_STORED_AS: Mapping[tuple[str, str], s.DataType] = {
    ("int128", "DOUBLE"): s.DoubleType(),
    ("uint128", "DOUBLE"): s.DoubleType(),
    ("timestamp_ns", "INT64:ns"): s.LongType(),
    ("time_ns", "INT64:ns"): s.LongType(),
    ("timetz", "INT64:us"): s.LongType(),
    ("interval", "FIXED_LEN_BYTE_ARRAY"): s.BinaryType(),
}

MISSING = "missing"
"""What is said of a column in place of its physical type where a file has no such column."""


def query_type(column: Column) -> s.DataType:
    """The type that a column has in a Spark query."""
    return _tree(column, _query_leaf)


def _query_leaf(column: Column) -> s.DataType:
    if decimal := decimal_parts(column.type):
        return s.DecimalType(*decimal)
    found = _QUERY.get(column.type)
    if found is None:
        raise UnsupportedError(f"column {column.name} has type {column.type}, which this version can not read")
    return found


def _tree(column: Column, leaf: Any, metadata: bool = False) -> s.DataType:
    if column.type == "list":
        return s.ArrayType(_tree(column.children[0], leaf, metadata), True)
    if column.type == "map":
        key, value = column.children
        return s.MapType(_tree(key, leaf, metadata), _tree(value, leaf, metadata), True)
    if column.type == "struct":
        return s.StructType(
            [
                s.StructField(c.name, _tree(c, leaf, metadata), True, {FIELD_ID: c.id} if metadata else None)
                for c in column.children
            ]
        )
    found: s.DataType = leaf(column)
    return found


def stored_leaf(column: Column, physical: Mapping[int, str]) -> s.DataType:
    """What to ask a file for, given the physical types of its two-faced columns."""
    if (column.type, physical.get(column.id, "")) in _STORED_AS:
        return _STORED_AS[column.type, physical[column.id]]
    return _STORED.get(column.type) or _query_leaf(column)


def stored_field(column: Column, physical: Mapping[int, str]) -> s.StructField:
    """The field by which Spark finds a column in a file: by its id, with its default where it lacks it."""
    metadata: dict[str, Any] = {FIELD_ID: column.id}
    kind = _tree(column, lambda c: stored_leaf(c, physical), metadata=True)
    if has_scan_default(column):
        metadata[EXISTS_DEFAULT] = default_literal(column)
    return s.StructField(column.name, kind, True, metadata)


def has_scan_default(column: Column) -> bool:
    """Whether Spark's scan fills in the column's default where a file lacks it."""
    if column.initial_default is None or column.children:
        return False
    decimal = decimal_parts(column.type)
    return column.type in _SCAN_DEFAULTS or (decimal is not None and decimal[0] <= 18)


def needs_default(column: Column) -> bool:
    """Whether a default must be put in by the query, since the scan can not."""
    return column.initial_default is not None and not column.children and not has_scan_default(column)


_SCAN_DEFAULTS = frozenset(
    ("boolean", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "float32", "float64", "varchar")
    + ("json", "date", "timestamp", "timestamp_us", "timestamp_s", "timestamp_ms", "timestamptz")
)


def written_field(column: Column) -> s.StructField:
    """The field as Spark writes it: with ids on columns and on fields of structs."""
    return s.StructField(column.name, _tree(column, _written_leaf, metadata=True), True, {FIELD_ID: column.id})


def _written_leaf(column: Column) -> s.DataType:
    return s.TimeType(6) if column.type == "time" else _query_leaf(column)


def from_file(sql: str, column: Column, physical: Mapping[int, str]) -> str:
    """The Spark SQL for a column as a query sees it, from what a file holds."""
    if physical.get(column.id) == MISSING and column.initial_default is not None:
        return default_literal(column)
    if not needs_conversion(column, physical):
        return sql
    return convert(sql, column, lambda text, leaf: _leaf_from_file(text, leaf, physical))


def needs_conversion(column: Column, physical: Mapping[int, str]) -> bool:
    if physical.get(column.id) == MISSING and column.initial_default is not None:
        return True
    return any(
        not c.children and (c.type in _STORED or (c.type, physical.get(c.id, "")) in _STORED_AS) for c in column.walk()
    )


def convert(sql: str, column: Column, leaf: Callable[[str, Column], str], depth: int = 0) -> str:
    """The SQL for a value of which each part that has no parts is made into another."""
    if column.type == "list":
        item = f"x{depth}"
        return f"transform({sql}, {item} -> {convert(item, column.children[0], leaf, depth + 1)})"
    if column.type == "map":
        key, value = f"k{depth}", f"v{depth}"
        values = f"transform_values({sql}, ({key}, {value}) -> {convert(value, column.children[1], leaf, depth + 1)})"
        return f"transform_keys({values}, ({key}, {value}) -> {convert(key, column.children[0], leaf, depth + 1)})"
    if column.type == "struct":
        parts = ", ".join(
            f"{string_literal(c.name)}, {convert(f'{sql}.{quoted(c.name)}', c, leaf, depth)}" for c in column.children
        )
        return f"if({sql} is null, null, named_struct({parts}))"
    return leaf(sql, column)


def _leaf_from_file(sql: str, column: Column, physical: Mapping[int, str]) -> str:
    face = physical.get(column.id, "")
    if column.type == "uuid":
        hexed = f"lower(hex({sql}))"
        dashed = "concat_ws('-', " + ", ".join(
            f"substr({hexed}, {start}, {length})" for start, length in ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
        )
        return f"case when octet_length({sql}) = 16 then {dashed}) else cast({sql} as string) end"
    if column.type == "time":
        return _clock(sql)
    if (column.type, face) not in _STORED_AS:
        return sql
    if column.type in ("int128", "uint128"):
        return f"cast({sql} as decimal(38,0))"
    if column.type == "timestamp_ns":
        return _from_nanos(sql)
    if column.type == "time_ns":
        return _clock(f"({sql} div 1000)")
    if column.type == "timetz":
        return f"concat({_clock(sql)}, '+00')"
    return _interval(sql)


def _from_nanos(sql: str) -> str:
    """Nanoseconds since 1970 without what is beyond microseconds."""
    micros = f"(({sql} - pmod({sql}, 1000)) div 1000)"
    return f"timestampadd(MICROSECOND, {micros}, TIMESTAMP_NTZ'1970-01-01 00:00:00')"


def _clock(micros: str) -> str:
    """A time of day in words, as DuckDB writes it, from microseconds since midnight."""
    whole = (
        f"format_string('%02d:%02d:%02d', {micros} div 3600000000, ({micros} div 60000000) % 60,"
        f" ({micros} div 1000000) % 60)"
    )
    fraction = f"rtrim('0', format_string('.%06d', {micros} % 1000000))"
    text = f"if({micros} % 1000000 = 0, {whole}, concat({whole}, {fraction}))"
    return f"case when {micros} is null then null else {text} end"


def _interval(sql: str) -> str:
    """An interval as DuckDB writes it, from months, days and milliseconds of four bytes, little end first."""

    def number(start: int) -> str:
        swapped = ", ".join(f"substring({sql}, {start + 4 - i}, 1)" for i in range(1, 5))
        unsigned = f"cast(conv(hex(concat({swapped})), 16, 10) as bigint)"
        return f"({unsigned} - if({unsigned} >= 2147483648, 4294967296, 0))"

    def part(count: str, word: str) -> str:
        return f"case when {count} = 0 then null else concat({count}, ' {word}', if(abs({count}) = 1, '', 's')) end"

    months, days, millis = number(1), number(5), number(9)
    micros = f"(abs({millis}) * 1000)"
    clock = f"concat(if({millis} < 0, '-', ''), {_clock(micros)})"
    time = f"case when {millis} = 0 and ({months} <> 0 or {days} <> 0) then null else {clock} end"
    parts = (part(f"({months} div 12)", "year"), part(f"({months} % 12)", "month"), part(days, "day"), time)
    return f"case when {sql} is null then null else concat_ws(' ', {', '.join(parts)}) end"


def lake_column(field: s.StructField) -> Column:
    """The column that a lake gets for a column of a query; without an id yet."""
    column = _lake_type(field.name, field.dataType)
    comment = (field.metadata or {}).get("comment")
    tags = (("comment", str(comment)),) if comment else ()
    return Column(0, field.name, column.type, True, column.children, tags=tags)


def _lake_type(name: str, kind: s.DataType) -> Column:
    if isinstance(kind, s.ArrayType):
        return Column(0, name, "list", children=(_lake_type("element", kind.elementType),))
    if isinstance(kind, s.MapType):
        return Column(0, name, "map", children=(_lake_type("key", kind.keyType), _lake_type("value", kind.valueType)))
    if isinstance(kind, s.StructType):
        return Column(0, name, "struct", children=tuple(_lake_type(f.name, f.dataType) for f in kind.fields))
    if isinstance(kind, s.DecimalType):
        return Column(0, name, f"decimal({kind.precision},{kind.scale})")
    if isinstance(kind, s.NullType):
        raise SchemaChangeError(
            f"column {name} is NULL in every row and so has no type; give it one, for example"
            f" cast(null as string) as {quoted(name)}"
        )
    found = _LAKE.get(type(kind).__name__)
    if found is None:
        raise SchemaChangeError(
            f"column {name} has the Spark type {kind.simpleString()}, which DuckLake does not have;"
            " cast it to another, for example to string"
        )
    return Column(0, name, found)


_LAKE = {
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
}


def quoted(name: str) -> str:
    """A name as Spark takes it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def string_literal(text: str) -> str:
    """A text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return f"'{escaped}'"


def default_literal(column: Column) -> str:
    """A column's default, as the catalog holds it, as a literal of Spark SQL."""
    return "NULL" if column.initial_default is None else value_literal(column.initial_default, column)


def value_literal(text: str, column: Column) -> str:
    kind = column.type
    if kind == "boolean":
        return "true" if text.lower() in ("true", "t", "1") else "false"
    if kind == "blob":
        return f"X'{parse_blob(text).hex()}'"
    target = query_type(column)
    if isinstance(target, s.StringType):
        return string_literal(text)
    return f"cast({string_literal(text)} as {target.simpleString()})"
