"""What a statement says of a table: columns and their types, partition keys, sort keys, properties."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal as OneOf
from typing import TypeAlias, TypeVar

from ...lake.types import FLOATS, INTEGER_BITS, PRIMITIVES, Column
from .tokens import Cursor, Name, StatementError, decode_string, quote
from .types import query_type

Properties: TypeAlias = tuple[tuple[str, str], ...]
Transform: TypeAlias = OneOf["identity", "year", "month", "day", "hour", "bucket"]
Value: TypeAlias = "str | bool | int | float | Decimal | bytes | tuple[Value, ...] | None"
T = TypeVar("T")

# Spark's words for types. Its TIMESTAMP is an instant, DuckLake's `timestamp` has no zone.
_SPARK_TYPES = {
    "boolean": "boolean",
    "tinyint": "int8",
    "byte": "int8",
    "smallint": "int16",
    "short": "int16",
    "int": "int32",
    "integer": "int32",
    "bigint": "int64",
    "long": "int64",
    "float": "float32",
    "real": "float32",
    "double": "float64",
    "string": "varchar",
    "char": "varchar",
    "character": "varchar",
    "binary": "blob",
    "timestamp": "timestamptz",
    "timestamp_ltz": "timestamptz",
    "timestamp_ntz": "timestamp",
    "timestamp_us": "timestamp",
}
_TYPES = {**{name: name for name in PRIMITIVES}, **_SPARK_TYPES}
_DECIMALS = ("decimal", "dec", "numeric")
_INTERVAL_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_ACCEPTED = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), string, varchar(n), char(n), "
    "binary, date, timestamp, timestamp_ntz, timestamp_ltz, variant, interval, array<type>, "
    "map<type, type>, struct<name: type, ...>; and DuckLake's "
    + ", ".join([*INTEGER_BITS, *FLOATS])
    + ", varchar, blob, json, uuid, time, time_ns, timetz, timestamptz, timestamp_s, timestamp_ms, "
    "timestamp_ns, geometry"
)
_TRANSFORMS: dict[str, Transform] = {
    "identity": "identity",
    "year": "year",
    "years": "year",
    "month": "month",
    "months": "month",
    "day": "day",
    "days": "day",
    "hour": "hour",
    "hours": "hour",
    "bucket": "bucket",
}
_CONSTRAINTS = ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "REFERENCES")
_AFTER_DEFAULT = ("NOT", "COMMENT", "DEFAULT", "FIRST", "AFTER", "GENERATED", *_CONSTRAINTS)


@dataclass(frozen=True)
class ColumnDefinition:
    """A column as a statement defines it; `default` is the expression's text."""

    column: Column
    default: str | None = None


@dataclass(frozen=True)
class PartitionKey:
    """One key of a table's partitioning: a top-level column and what is computed of it."""

    transform: Transform
    column: str
    buckets: int | None = None


@dataclass(frozen=True)
class SortKey:
    """One key of a table's sort order; `nulls_first` is None where nothing was said."""

    expression: str
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Literal:
    """The value of an expression that is a literal; a list of literals is a tuple."""

    value: Value


# Types


def parse_type(text: str, column: str = "") -> Column:
    """The type that a text in Spark's or DuckLake's words says, as a column of that name with id 0."""
    path = (column,) if column else ()
    return _whole(Cursor(text, "column type"), lambda cursor: column_type(cursor, path))


def with_new_fields(old: str, new: str) -> str:
    """The first of two types, in Spark's words, with the fields that only the second one's structs have."""
    return query_type(_merged(parse_type(old), parse_type(new))).simpleString()


def _merged(old: Column, new: Column) -> Column:
    if not old.children or old.type != new.type:
        return old
    if old.type != "struct":
        pairs = zip(old.children, new.children, strict=True)
        return replace(old, children=tuple(_merged(one, other) for one, other in pairs))
    there = {child.name.lower(): child for child in new.children}
    kept = [_merged(c, there.pop(c.name.lower(), c)) for c in old.children]
    return replace(old, children=(*kept, *there.values()))


def column_type(cursor: Cursor, path: Name) -> Column:
    """The type that stands here, as a column with the last name of `path`; errors name the whole path."""
    first = cursor.index
    name = path[-1] if path else ""
    word = cursor.token.key.lower() if cursor.token.kind == "word" else ""
    if not word:
        raise cursor.unexpected(f"the type of column {_shown(path)}")
    cursor.index += 1
    if word == "array":
        cursor.expect("<")
        element = column_type(cursor, (*path, "element"))
        cursor.expect(">")
        return Column(0, name, "list", children=(element,))
    if word == "map":
        cursor.expect("<")
        key = column_type(cursor, (*path, "key"))
        cursor.expect(",")
        value = column_type(cursor, (*path, "value"))
        cursor.expect(">")
        return Column(0, name, "map", children=(key, value))
    if word == "struct":
        cursor.expect("<")
        fields = cursor.listed(lambda: _field(cursor, path))
        _refuse_duplicates(cursor, "field", [field.name for field in fields])
        cursor.expect(">")
        return Column(0, name, "struct", children=fields)
    if word in _DECIMALS:
        return Column(0, name, _decimal(cursor, path, first))
    if word not in _TYPES:
        if cursor.at("("):  # so that the message shows the type with its arguments
            cursor.skip_parentheses()
        written = cursor.text_since(first)
        cursor.index = first
        raise cursor.error(
            f"column {_shown(path)} has the type {written} at {cursor.place()}, which is not known. "
            f"Accepted are {_ACCEPTED}"
        )
    if word in ("char", "character", "varchar", "time") and cursor.take("("):
        _whole_number(cursor, "a length")  # DuckLake has no lengths: the value is kept, the limit is not
        cursor.expect(")")
    elif word == "interval" and cursor.take_any(*_INTERVAL_UNITS) and cursor.take("TO"):
        if not cursor.take_any(*_INTERVAL_UNITS):
            raise cursor.unexpected("a unit such as MONTH or SECOND")
    elif word == "string" and cursor.at("COLLATE") and cursor.look(1).key != "UTF8_BINARY":
        raise cursor.refused(
            f"COLLATE of column {_shown(path)}", "DuckLake compares text by its bytes. Leave COLLATE out"
        )
    elif word == "string":
        cursor.take("COLLATE", "UTF8_BINARY")
    return Column(0, name, _TYPES[word])


def _field(cursor: Cursor, parent: Name) -> Column:
    name = cursor.part("a field's name")
    cursor.take(":")
    shape = column_type(cursor, (*parent, name))
    nulls_allowed = not cursor.take("NOT", "NULL")
    comment = cursor.string("a comment") if cursor.take("COMMENT") else None
    return Column(0, name, shape.type, nulls_allowed, shape.children, tags=_tags(comment))


def _decimal(cursor: Cursor, path: Name, first: int) -> str:
    precision, scale = 10, 0
    if cursor.take("("):
        precision = _whole_number(cursor, "a precision")
        if cursor.take(","):
            scale = _whole_number(cursor, "a scale")
        cursor.expect(")")
    if not (1 <= precision <= 38 and scale <= precision):
        raise cursor.error(
            f"column {_shown(path)} has the type {cursor.text_since(first)}; a decimal has a precision "
            "from 1 to 38 and a scale from 0 to its precision"
        )
    return f"decimal({precision},{scale})"


def _whole_number(cursor: Cursor, what: str) -> int:
    text = cursor.sql[cursor.token.start : cursor.token.end]
    if cursor.token.kind != "number" or not text.isdecimal():
        raise cursor.unexpected(f"{what}, a whole number")
    cursor.index += 1
    return int(text)


def _shown(path: Name) -> str:
    return ".".join(path) if path else "(without a name)"


def _tags(comment: str | None) -> Properties:
    return () if comment is None else (("comment", comment),)


# Columns


def column_definitions(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """The columns of a CREATE TABLE, with their parentheses."""

    def one() -> ColumnDefinition:
        _refuse_table_constraint(cursor)
        return column_definition(cursor, (cursor.part("a column name"),))

    definitions = cursor.parenthesised(one)
    _refuse_duplicates(cursor, "column", [definition.column.name for definition in definitions])
    return definitions


def column_definition(cursor: Cursor, path: Name) -> ColumnDefinition:
    """What follows a column's name: its type, NOT NULL, DEFAULT, COMMENT, in any order."""
    shape = column_type(cursor, path)
    nulls_allowed, default, comment = True, None, None
    while True:
        if cursor.take("NOT", "NULL"):
            nulls_allowed = False
        elif default is None and cursor.take("DEFAULT"):
            default = cursor.expression("a default value", *_AFTER_DEFAULT)
        elif comment is None and cursor.take("COMMENT"):
            comment = cursor.string("a comment")
        elif cursor.at("GENERATED"):
            raise cursor.refused(
                f"GENERATED of column {_shown(path)}",
                "DuckLake has no generated columns. Compute the value where rows are written",
            )
        elif cursor.at_any(*_CONSTRAINTS):
            raise _no_constraint(cursor)
        else:
            break
    return ColumnDefinition(
        Column(0, path[-1], shape.type, nulls_allowed, shape.children, tags=_tags(comment)), default
    )


def _refuse_table_constraint(cursor: Cursor) -> None:
    named = cursor.at("CONSTRAINT") and cursor.look(2).key in _CONSTRAINTS
    keyed = cursor.at_any("PRIMARY", "FOREIGN") and cursor.look(1).key == "KEY"
    if named or keyed or (cursor.at_any("UNIQUE", "CHECK") and cursor.look(1).key == "("):
        raise _no_constraint(cursor)


def _no_constraint(cursor: Cursor) -> StatementError:
    ahead = 2 if cursor.at("CONSTRAINT") else 0  # behind the constraint's name
    kind = cursor.look(ahead).key + (" KEY" if cursor.look(ahead + 1).key == "KEY" else "")
    return cursor.refused(
        kind or "CONSTRAINT",
        "DuckLake knows no constraint but NOT NULL. Leave it out, and check the rows with a test",
    )


def refuse_constraint(cursor: Cursor) -> None:
    """Raises if a constraint, rather than a column, is named here."""
    _refuse_table_constraint(cursor)
    if cursor.at("CONSTRAINT") and cursor.look(1).kind in ("word", "quoted"):
        raise _no_constraint(cursor)


def _refuse_duplicates(cursor: Cursor, what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise cursor.error(f"{what} {quote(name)} is there twice; names differ by more than their case")
        seen.add(name.lower())


# Keys


def parse_partition_keys(text: str) -> tuple[PartitionKey, ...]:
    """The keys of a list such as `region, month(ordered_at)`, in parentheses or not."""
    return _whole(Cursor(text, "partition keys"), lambda cursor: _bare_list(cursor, partition_key))


def parse_sort_keys(text: str) -> tuple[SortKey, ...]:
    """The keys of a list such as `ordered_at desc nulls last, id`, in parentheses or not."""
    return _whole(Cursor(text, "sort keys"), lambda cursor: _bare_list(cursor, sort_key))


def partition_keys(cursor: Cursor) -> tuple[PartitionKey, ...]:
    return cursor.parenthesised(lambda: partition_key(cursor))


def sort_keys(cursor: Cursor) -> tuple[SortKey, ...]:
    return cursor.parenthesised(lambda: sort_key(cursor))


def partition_key(cursor: Cursor) -> PartitionKey:
    if cursor.look(1).key != "(":
        return PartitionKey("identity", _partition_column(cursor))
    written = cursor.token.key.lower()
    if written not in _TRANSFORMS:
        raise cursor.unexpected("a column or one of year(c), month(c), day(c), hour(c), bucket(n, c)")
    transform, buckets = _TRANSFORMS[written], None
    cursor.index += 2
    if transform == "bucket":
        if cursor.at_name():
            raise cursor.unexpected("the number of buckets first, as in bucket(8, column)")
        buckets = _whole_number(cursor, "the number of buckets")
        if buckets == 0:
            cursor.index -= 1
            raise cursor.unexpected("a number of buckets above zero")
        cursor.expect(",")
    column = _partition_column(cursor)
    if not cursor.take(")"):
        raise cursor.unexpected(") after the one column of a partition key")
    return PartitionKey(transform, column, buckets)


def _partition_column(cursor: Cursor) -> str:
    name = cursor.name("a partition key's column")
    if len(name) > 1:
        raise cursor.error(f"a partition key is a top-level column, {'.'.join(name)} is a field of one")
    if not (cursor.at_any(",", ")") or cursor.at_end()):
        raise cursor.unexpected(
            f"a comma or ) after the partition key {name[0]}, whose type stands in the list of columns"
        )
    return name[0]


def sort_key(cursor: Cursor) -> SortKey:
    expression = cursor.expression("a column or an expression to sort by", "ASC", "DESC", "NULLS")
    descending = cursor.take_any("ASC", "DESC") == "DESC"
    nulls_first = None
    if cursor.take("NULLS"):
        place = cursor.take_any("FIRST", "LAST")
        if not place:
            raise cursor.unexpected("FIRST or LAST")
        nulls_first = place == "FIRST"
    return SortKey(expression, descending, nulls_first)


def _bare_list(cursor: Cursor, one: Callable[[Cursor], T]) -> tuple[T, ...]:
    if cursor.at("("):
        cursor.skip_parentheses()
        around_all, cursor.index = cursor.at_end(), 0
        if around_all:
            return cursor.parenthesised(lambda: one(cursor))
    return cursor.listed(lambda: one(cursor))


def _whole(cursor: Cursor, parse: Callable[[Cursor], T]) -> T:
    parsed = parse(cursor)
    cursor.finish()
    return parsed


# Properties and literals


def properties(cursor: Cursor) -> Properties:
    """The pairs of TBLPROPERTIES or OPTIONS, with their parentheses."""

    def one() -> tuple[str, str]:
        key = property_key(cursor)
        cursor.take("=")
        if cursor.at_string():
            return key, cursor.string("a value")
        return key, cursor.expression("a value")

    return cursor.parenthesised(one)


def property_key(cursor: Cursor) -> str:
    """A property's name, in quotes or with dots; one literal only, since `=` may be left out after it."""
    if cursor.at_string():
        token = cursor.token
        cursor.index += 1
        return decode_string(cursor.sql[token.start : token.end])
    return ".".join(cursor.name("a property's name"))


def parse_literal(text: str) -> Literal | None:
    """The value of an expression that is a literal; None if it must be computed."""
    cursor = Cursor(text, "literal")
    try:
        value = _literal(cursor)
    except StatementError:
        return None
    return Literal(value) if cursor.at_end() else None


def _literal(cursor: Cursor) -> Value:
    if cursor.at_string():
        return cursor.string("a literal")
    if cursor.take("["):
        return _literal_list(cursor, "]")
    if cursor.take("ARRAY", "("):
        return _literal_list(cursor, ")")
    if cursor.at("X") and cursor.look(1).kind == "string":
        cursor.index += 1
        return _bytes(cursor)
    if word := cursor.take_any("TRUE", "FALSE", "NULL"):
        return {"TRUE": True, "FALSE": False, "NULL": None}[word]
    sign = "-" if cursor.take("-") else ""
    cursor.take("+")
    if cursor.token.kind != "number":
        raise cursor.unexpected("a literal")
    text = cursor.sql[cursor.token.start : cursor.token.end]
    cursor.index += 1
    return _number(sign + text.lower())


def _literal_list(cursor: Cursor, closing: str) -> tuple[Value, ...]:
    if cursor.take(closing):
        return ()
    values = cursor.listed(lambda: _literal(cursor))
    cursor.expect(closing)
    return values


def _number(text: str) -> Value:
    """A number as Spark types it: digits with a point are exact, an exponent or F or D is not."""
    if re.fullmatch(r"-?\d+[lsy]?", text):
        return int(text.rstrip("lsy"))
    if text.endswith("bd"):
        return Decimal(text[:-2])
    if "e" in text or text[-1] in "fd":
        return float(text.rstrip("fd"))
    return Decimal(text)


def _bytes(cursor: Cursor) -> bytes:
    text = cursor.string("hexadecimal digits")
    try:
        return bytes.fromhex(text.zfill(len(text) + len(text) % 2))
    except ValueError:
        raise cursor.error(f"X'{text}' holds more than hexadecimal digits") from None
