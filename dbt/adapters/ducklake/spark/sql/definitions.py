"""The parts of a table definition in a statement: columns and their types, partition keys, sort keys, properties."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, TypeVar

from ...lake.types import FLOATS, INTEGER_RANGES, PRIMITIVES, Column
from .quoting import quoted
from .tokens import Cursor, Name, StatementError, decode_string
from .types import query_type

Properties: TypeAlias = tuple[tuple[str, str], ...]
Transform: TypeAlias = Literal[
    "identity", "year", "month", "day", "hour", "epoch_year", "epoch_month", "epoch_day", "epoch_hour", "bucket"
]
T = TypeVar("T")

# TIMESTAMP is an instant in Spark, but has no time zone in DuckLake.
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
_PRIMITIVE_TYPES = {**{name: name for name in PRIMITIVES}, **_SPARK_TYPES}
_DECIMAL_KEYWORDS = ("decimal", "dec", "numeric")
_INTERVAL_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")
_ACCEPTED_TYPES = (
    "boolean, tinyint, smallint, int, bigint, float, double, decimal(p,s), string, varchar(n), char(n), "
    "binary, date, timestamp, timestamp_ntz, timestamp_ltz, variant, interval, array<type>, "
    "map<type, type>, struct<name: type, ...>; and DuckLake's "
    + ", ".join([*INTEGER_RANGES, *FLOATS])
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
    "epoch_year": "epoch_year",
    "epoch_month": "epoch_month",
    "epoch_day": "epoch_day",
    "epoch_hour": "epoch_hour",
    "bucket": "bucket",
}
_CONSTRAINT_KEYWORDS = ("CONSTRAINT", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "REFERENCES")
_KEYWORDS_AFTER_DEFAULT = ("NOT", "COMMENT", "DEFAULT", "FIRST", "AFTER", "GENERATED", *_CONSTRAINT_KEYWORDS)


@dataclass(frozen=True)
class ColumnDefinition:
    column: Column
    default: str | None = None
    """The SQL text of the default."""


@dataclass(frozen=True)
class PartitionKey:
    """A partition key: a transform of a top-level column."""

    transform: Transform
    column: str
    buckets: int | None = None


@dataclass(frozen=True)
class SortKey:
    expression: str
    descending: bool = False
    nulls_first: bool | None = None
    """None if the statement has neither NULLS FIRST nor NULLS LAST."""


# Types


def parse_type(text: str, column: str = "") -> Column:
    """Parses a type, in the syntax of Spark or DuckLake, to a column of that name and type with the id 0."""
    path = (column,) if column else ()
    return _parse_all(Cursor(text, "column type"), lambda cursor: column_type(cursor, path))


def with_new_fields(old: str, new: str) -> str:
    """Returns the old type, in Spark's syntax, with the struct fields that only the new one has.

    >>> with_new_fields("struct<id: int>", "array<int>")
    'struct<id:int>'
    >>> with_new_fields("array<struct<id: int>>", "array<struct<name: string, id: bigint>>")
    'array<struct<id:int,name:string>>'
    """
    return query_type(_merged(parse_type(old), parse_type(new))).simpleString()


def _merged(old: Column, new: Column) -> Column:
    if not old.children or old.type != new.type:
        return old
    if old.type != "struct":
        pairs = zip(old.children, new.children, strict=True)
        return replace(old, children=tuple(_merged(old_child, new_child) for old_child, new_child in pairs))
    new_fields = {child.name.lower(): child for child in new.children}
    old_fields = [_merged(c, new_fields.pop(c.name.lower(), c)) for c in old.children]
    return replace(old, children=(*old_fields, *new_fields.values()))


def column_type(cursor: Cursor, path: Name) -> Column:
    """Parses a type to a column with the last name of `path`; errors show the whole path."""
    first = cursor.index
    name = path[-1] if path else ""
    word = cursor.token.key.lower() if cursor.token.kind == "word" else ""
    if not word:
        raise cursor.unexpected(f"the type of column {_path_text(path)}")
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
        fields = cursor.comma_separated(lambda: _struct_field(cursor, path))
        _refuse_duplicates(cursor, "field", [field.name for field in fields])
        cursor.expect(">")
        return Column(0, name, "struct", children=fields)
    if word in _DECIMAL_KEYWORDS:
        return Column(0, name, _decimal(cursor, path, first))
    if word not in _PRIMITIVE_TYPES:
        if cursor.at("("):  # the message shows the type with its arguments
            cursor.skip_parentheses()
        written = cursor.text_since(first)
        cursor.index = first
        raise cursor.error(
            f"column {_path_text(path)} has the type {written} at {cursor.position()}, which is not known. "
            f"Accepted are {_ACCEPTED_TYPES}"
        )
    if word in ("char", "character", "varchar", "time") and cursor.take("("):
        _integer(cursor, "a length")  # DuckLake has no length limits: values are not checked
        cursor.expect(")")
    elif word == "interval" and cursor.take_any(*_INTERVAL_UNITS) and cursor.take("TO"):
        if not cursor.take_any(*_INTERVAL_UNITS):
            raise cursor.unexpected("a unit such as MONTH or SECOND")
    elif word == "string" and cursor.at("COLLATE") and cursor.peek(1).key != "UTF8_BINARY":
        raise cursor.refused(
            f"COLLATE of column {_path_text(path)}", "DuckLake compares text by its bytes. Leave COLLATE out"
        )
    elif word == "string":
        cursor.take("COLLATE", "UTF8_BINARY")
    return Column(0, name, _PRIMITIVE_TYPES[word])


def _struct_field(cursor: Cursor, parent: Name) -> Column:
    name = cursor.identifier("a field's name")
    cursor.take(":")
    parsed_type = column_type(cursor, (*parent, name))
    nulls_allowed = not cursor.take("NOT", "NULL")
    comment = cursor.string("a comment") if cursor.take("COMMENT") else None
    return Column(0, name, parsed_type.type, nulls_allowed, parsed_type.children, tags=_tags(comment))


def _decimal(cursor: Cursor, path: Name, first: int) -> str:
    precision, scale = 10, 0
    if cursor.take("("):
        precision = _integer(cursor, "a precision")
        if cursor.take(","):
            scale = _integer(cursor, "a scale")
        cursor.expect(")")
    if not (1 <= precision <= 38 and scale <= precision):
        raise cursor.error(
            f"column {_path_text(path)} has the type {cursor.text_since(first)}; a decimal has a precision "
            "from 1 to 38 and a scale from 0 to its precision"
        )
    return f"decimal({precision},{scale})"


def _integer(cursor: Cursor, what: str) -> int:
    text = cursor.sql[cursor.token.start : cursor.token.end]
    if cursor.token.kind != "number" or not text.isdecimal():
        raise cursor.unexpected(f"{what}, a whole number")
    cursor.index += 1
    return int(text)


def _path_text(path: Name) -> str:
    return ".".join(path) if path else "(without a name)"


def _tags(comment: str | None) -> Properties:
    return () if comment is None else (("comment", comment),)


# Columns


def column_definitions(cursor: Cursor) -> tuple[ColumnDefinition, ...]:
    """Parses the columns of a CREATE TABLE, with their parentheses."""

    def parse_column() -> ColumnDefinition:
        _refuse_table_constraint(cursor)
        return column_definition(cursor, (cursor.identifier("a column name"),))

    definitions = cursor.parenthesized(parse_column)
    _refuse_duplicates(cursor, "column", [definition.column.name for definition in definitions])
    return definitions


def column_definition(cursor: Cursor, path: Name) -> ColumnDefinition:
    """Parses what follows a column's name: its type, then NOT NULL, DEFAULT and COMMENT in any order."""
    parsed_type = column_type(cursor, path)
    nulls_allowed, default, comment = True, None, None
    while True:
        if cursor.take("NOT", "NULL"):
            nulls_allowed = False
        elif default is None and cursor.take("DEFAULT"):
            default = cursor.expression("a default value", *_KEYWORDS_AFTER_DEFAULT)
        elif comment is None and cursor.take("COMMENT"):
            comment = cursor.string("a comment")
        elif cursor.at("GENERATED"):
            raise cursor.refused(
                f"GENERATED of column {_path_text(path)}",
                "DuckLake has no generated columns. Compute the value where rows are written",
            )
        elif cursor.at_any(*_CONSTRAINT_KEYWORDS):
            raise _no_constraint(cursor)
        else:
            break
    return ColumnDefinition(
        Column(0, path[-1], parsed_type.type, nulls_allowed, parsed_type.children, tags=_tags(comment)), default
    )


def _refuse_table_constraint(cursor: Cursor) -> None:
    named = cursor.at("CONSTRAINT") and cursor.peek(2).key in _CONSTRAINT_KEYWORDS
    keyed = cursor.at_any("PRIMARY", "FOREIGN") and cursor.peek(1).key == "KEY"
    if named or keyed or (cursor.at_any("UNIQUE", "CHECK") and cursor.peek(1).key == "("):
        raise _no_constraint(cursor)


def _no_constraint(cursor: Cursor) -> StatementError:
    ahead = 2 if cursor.at("CONSTRAINT") else 0  # skips the constraint's name
    kind = cursor.peek(ahead).key + (" KEY" if cursor.peek(ahead + 1).key == "KEY" else "")
    return cursor.refused(
        kind or "CONSTRAINT",
        "DuckLake knows no constraint but NOT NULL. Leave it out, and check the rows with a test",
    )


def refuse_constraint(cursor: Cursor) -> None:
    """Raises if a constraint stands here instead of a column."""
    _refuse_table_constraint(cursor)
    if cursor.at("CONSTRAINT") and cursor.peek(1).kind in ("word", "quoted"):
        raise _no_constraint(cursor)


def _refuse_duplicates(cursor: Cursor, what: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise cursor.error(f"{what} {quoted(name)} is there twice; names differ by more than their case")
        seen.add(name.lower())


# Keys


def parse_partition_keys(text: str) -> tuple[PartitionKey, ...]:
    """Parses a list such as `region, month(ordered_at)`, with or without parentheses."""
    return _parse_all(Cursor(text, "partition keys"), lambda cursor: _list(cursor, partition_key))


def parse_sort_keys(text: str) -> tuple[SortKey, ...]:
    """Parses a list such as `ordered_at desc nulls last, id`, with or without parentheses."""
    return _parse_all(Cursor(text, "sort keys"), lambda cursor: _list(cursor, sort_key))


def partition_keys(cursor: Cursor) -> tuple[PartitionKey, ...]:
    return cursor.parenthesized(lambda: partition_key(cursor))


def sort_keys(cursor: Cursor) -> tuple[SortKey, ...]:
    return cursor.parenthesized(lambda: sort_key(cursor))


def partition_key(cursor: Cursor) -> PartitionKey:
    if cursor.peek(1).key != "(":
        return PartitionKey("identity", _partition_column(cursor))
    written = cursor.token.key.lower()
    if written not in _TRANSFORMS:
        raise cursor.unexpected("a column or one of year(c), month(c), day(c), hour(c), epoch_day(c), bucket(n, c)")
    transform, buckets = _TRANSFORMS[written], None
    cursor.index += 2
    if transform == "bucket":
        if cursor.at_name():
            raise cursor.unexpected("the number of buckets first, as in bucket(8, column)")
        buckets = _integer(cursor, "the number of buckets")
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
        keyword = cursor.take_any("FIRST", "LAST")
        if not keyword:
            raise cursor.unexpected("FIRST or LAST")
        nulls_first = keyword == "FIRST"
    return SortKey(expression, descending, nulls_first)


def _list(cursor: Cursor, parse_item: Callable[[Cursor], T]) -> tuple[T, ...]:
    """Parses a list that may be in parentheses; its first item may begin with some of its own."""
    if cursor.at("("):
        cursor.skip_parentheses()
        enclose_all, cursor.index = cursor.at_end(), 0
        if enclose_all:
            return cursor.parenthesized(lambda: parse_item(cursor))
    return cursor.comma_separated(lambda: parse_item(cursor))


def _parse_all(cursor: Cursor, parse: Callable[[Cursor], T]) -> T:
    result = parse(cursor)
    cursor.finish()
    return result


# Properties


def properties(cursor: Cursor) -> Properties:
    """Parses the pairs of TBLPROPERTIES or OPTIONS, with their parentheses."""

    def parse_pair() -> tuple[str, str]:
        key = property_key(cursor)
        cursor.take("=")
        if cursor.at_string():
            return key, cursor.string("a value")
        return key, cursor.expression("a value")

    return cursor.parenthesized(parse_pair)


def property_key(cursor: Cursor) -> str:
    """Parses a property's name, in quotes or dotted."""
    if cursor.at_string():
        # Only one literal: without the optional `=` the next one is the value.
        token = cursor.token
        cursor.index += 1
        return decode_string(cursor.sql[token.start : token.end])
    return ".".join(cursor.name("a property's name"))
