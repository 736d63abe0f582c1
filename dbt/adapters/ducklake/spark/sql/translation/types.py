"""The types of translated expressions: Spark's, and how the two engines widen and name them."""

from __future__ import annotations

from pyspark.sql import types as s

BOOLEAN, BYTE, SHORT, INT, LONG = s.BooleanType(), s.ByteType(), s.ShortType(), s.IntegerType(), s.LongType()
FLOAT, DOUBLE, STRING, BINARY = s.FloatType(), s.DoubleType(), s.StringType(), s.BinaryType()
DATE, TIMESTAMP, TIMESTAMP_NTZ, NULL = s.DateType(), s.TimestampType(), s.TimestampNTZType(), s.NullType()

INTEGRAL_TYPES: tuple[s.DataType, ...] = (BYTE, SHORT, INT, LONG)
"""The integral types, from narrow to wide."""
INTEGRAL_DIGITS: dict[s.DataType, int] = {BYTE: 3, SHORT: 5, INT: 10, LONG: 20}
MAX_PRECISION = 38
_ATOMIC = (BOOLEAN, *INTEGRAL_TYPES, FLOAT, DOUBLE, STRING, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ)

_DUCKDB_NAMES: dict[s.DataType, str] = {
    BOOLEAN: "BOOLEAN",
    BYTE: "TINYINT",
    SHORT: "SMALLINT",
    INT: "INTEGER",
    LONG: "BIGINT",
    FLOAT: "FLOAT",
    DOUBLE: "DOUBLE",
    STRING: "VARCHAR",
    BINARY: "BLOB",
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMPTZ",
    TIMESTAMP_NTZ: "TIMESTAMP",
    NULL: "INTEGER",
}


def duckdb_type(type_: s.DataType) -> str | None:
    """Returns the DuckDB type of a Spark type; None if there is none.

    >>> duckdb_type(s.ArrayType(s.DecimalType(10, 2)))
    'DECIMAL(10, 2)[]'
    """
    if isinstance(type_, s.DecimalType):
        return f"DECIMAL({type_.precision}, {type_.scale})"
    if isinstance(type_, s.ArrayType):
        element = duckdb_type(type_.elementType)
        return element and f"{element}[]"
    if isinstance(type_, s.MapType):
        key, value = duckdb_type(type_.keyType), duckdb_type(type_.valueType)
        return f"MAP({key}, {value})" if key and value else None
    if isinstance(type_, s.StructType):
        fields = [(f.name.replace('"', '""'), duckdb_type(f.dataType)) for f in type_.fields]
        if not fields or any(kind is None for _, kind in fields):
            return None
        return "STRUCT(" + ", ".join(f'"{name}" {kind}' for name, kind in fields) + ")"
    return _DUCKDB_NAMES.get(type_)


def is_integral(type_: s.DataType) -> bool:
    return type_ in INTEGRAL_TYPES


def is_fractional(type_: s.DataType) -> bool:
    return type_ in (FLOAT, DOUBLE)


def is_numeric(type_: s.DataType) -> bool:
    return is_integral(type_) or is_fractional(type_) or isinstance(type_, s.DecimalType)


def is_atomic_type(type_: s.DataType) -> bool:
    return type_ in _ATOMIC or isinstance(type_, s.DecimalType)


def is_temporal(type_: s.DataType) -> bool:
    return type_ in (DATE, TIMESTAMP, TIMESTAMP_NTZ)


def same_type(one: s.DataType, other: s.DataType) -> bool:
    """Whether two types are the same, whatever may be NULL in them."""
    return one.simpleString() == other.simpleString()


def as_decimal(type_: s.DataType) -> s.DecimalType | None:
    """Returns the decimal type that holds all values of an exact number's type."""
    if isinstance(type_, s.DecimalType):
        return type_
    digits = INTEGRAL_DIGITS.get(type_)
    return None if digits is None else s.DecimalType(digits, 0)


def decimal_of_literal(value: int) -> s.DecimalType:
    """Returns the type that Spark gives an integer literal next to a decimal: that of its digits."""
    return s.DecimalType(max(1, len(str(abs(value)))), 0)


def widest(one: s.DataType, other: s.DataType) -> s.DataType | None:
    """Returns the type in which Spark's ANSI mode combines two types; None if it is not known to.

    >>> widest(s.ByteType(), s.LongType()), widest(s.IntegerType(), s.DecimalType(10, 2))
    (LongType(), DecimalType(12,2))
    """
    if same_type(one, other) or other == NULL:
        return one
    if one == NULL:
        return other
    if is_integral(one) and is_integral(other):
        return max(one, other, key=INTEGRAL_TYPES.index)
    if is_numeric(one) and is_numeric(other):
        if is_fractional(one) or is_fractional(other):
            return DOUBLE
        return _wider_decimal(as_decimal(one), as_decimal(other))
    if is_temporal(one) and is_temporal(other):
        pair = {one, other}
        return TIMESTAMP if TIMESTAMP in pair else TIMESTAMP_NTZ
    if STRING in (one, other):
        return _wider_than_string(other if one == STRING else one)
    return None


def _wider_decimal(one: s.DecimalType | None, other: s.DecimalType | None) -> s.DecimalType | None:
    assert one is not None
    assert other is not None
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    return s.DecimalType(precision, scale) if precision <= MAX_PRECISION else None


def _wider_than_string(type_: s.DataType) -> s.DataType | None:
    """Returns the type in which Spark combines a type with a string: it casts the string."""
    if is_integral(type_):
        return LONG
    if is_fractional(type_) or isinstance(type_, s.DecimalType):
        return DOUBLE
    return type_ if type_ in (BOOLEAN, BINARY, DATE, TIMESTAMP, TIMESTAMP_NTZ) else None
