"""SHOW and DESCRIBE statements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from .ddl import SCHEMA_KEYWORDS, Passthrough
from .definitions import property_key
from .dml import Query
from .maintenance_statements import (
    DescribeDetail,
    DescribeHistory,
    UnreadStatement,
    at_table_description,
    parse_table_description,
)
from .tokens import QUERY_KEYWORDS, Cursor, Name


@dataclass(frozen=True)
class DescribeTable:
    """DESCRIBE of a table or view, or of a column of a table."""

    name: Name
    extended: bool = False
    column: Name | None = None


@dataclass(frozen=True)
class DescribeSchema:
    name: Name
    extended: bool = False


@dataclass(frozen=True)
class DescribeFunction:
    """DESCRIBE FUNCTION of a name that a lake can have."""

    name: Name
    text: str
    """The statement, for Spark if no lake has the function."""


@dataclass(frozen=True)
class ShowUserFunctions:
    schema: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class ShowSchemas:
    catalog: Name | None = None
    """None for the current catalog."""
    pattern: str | None = None


@dataclass(frozen=True)
class ShowTables:
    schema: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class ShowViews:
    schema: Name | None = None
    pattern: str | None = None


@dataclass(frozen=True)
class ShowTableExtended:
    pattern: str
    schema: Name | None = None


@dataclass(frozen=True)
class ShowColumns:
    name: Name


@dataclass(frozen=True)
class ShowCreateTable:
    name: Name


@dataclass(frozen=True)
class ShowProperties:
    name: Name
    key: str | None = None


@dataclass(frozen=True)
class ShowPartitions:
    name: Name


ShowStatement: TypeAlias = (
    ShowSchemas
    | ShowTables
    | ShowViews
    | ShowTableExtended
    | ShowColumns
    | ShowCreateTable
    | ShowProperties
    | ShowPartitions
    | ShowUserFunctions
)


DescribeStatement: TypeAlias = (
    DescribeTable | DescribeSchema | DescribeFunction | DescribeHistory | DescribeDetail | UnreadStatement
)


def parse_describe(cursor: Cursor) -> DescribeStatement | Query | Passthrough:
    cursor.begin(cursor.token.key)
    if at_table_description(cursor):
        return parse_table_description(cursor)
    if cursor.at("FUNCTION") and cursor.peek(1).kind != "end":
        return _describe_function(cursor)
    describes_query = cursor.at("QUERY") and cursor.peek(1).key in QUERY_KEYWORDS
    if describes_query or cursor.at("(") or (cursor.at_query() and not cursor.at("TABLE")):
        return Query(cursor.whole_text())
    is_schema = cursor.at_any(*SCHEMA_KEYWORDS) and cursor.peek(1).kind in ("word", "quoted")
    if is_schema:
        cursor.begin(cursor.token.key)
    elif cursor.peek(1).kind in ("word", "quoted"):
        cursor.take("TABLE")
    extended = cursor.peek(1).kind in ("word", "quoted") and cursor.take_any("EXTENDED", "FORMATTED") != ""
    name = cursor.subject("a schema" if is_schema else "a table")
    if is_schema:
        cursor.finish()
        return DescribeSchema(name, extended)
    if cursor.at("PARTITION") and cursor.peek(1).key == "(":
        raise cursor.refused("PARTITION", "a lake's partitions are values of rows. Query the table instead")
    column = cursor.name("a column") if cursor.at_name() and not cursor.at("AS") else None
    cursor.finish()
    return DescribeTable(name, extended, column)


def _describe_function(cursor: Cursor) -> DescribeFunction | Passthrough:
    cursor.begin("FUNCTION")
    cursor.take("EXTENDED")
    name = cursor.name("a function") if cursor.at_name() else ()
    text = cursor.whole_text()
    # A name without a schema is never that of a lake's function.
    return DescribeFunction(name, text) if len(name) > 1 and cursor.at_end() else Passthrough(text)


def parse_show(cursor: Cursor) -> ShowStatement | Passthrough:
    cursor.begin("SHOW")
    if cursor.at_any("SCHEMAS", "DATABASES", "NAMESPACES"):
        cursor.begin(cursor.token.key)
        return ShowSchemas(*_from_and_pattern(cursor, "a catalog"))
    if cursor.at("TABLES"):
        cursor.begin("TABLES")
        return ShowTables(*_from_and_pattern(cursor, "a schema"))
    if cursor.at("VIEWS"):
        cursor.begin("VIEWS")
        return ShowViews(*_from_and_pattern(cursor, "a schema"))
    if cursor.at("USER", "FUNCTIONS"):
        cursor.begin("USER", "FUNCTIONS")
        return ShowUserFunctions(*_from_and_pattern(cursor, "a schema"))
    if cursor.at("TABLE", "EXTENDED"):
        cursor.begin("TABLE", "EXTENDED")
        schema, pattern = _from_and_pattern(cursor, "a schema")
        if pattern is None:
            raise cursor.unexpected("LIKE and a pattern in quotes")
        return ShowTableExtended(pattern, schema)
    if cursor.at("COLUMNS"):
        return _show_columns(cursor)
    if cursor.at("CREATE", "TABLE"):
        cursor.begin("CREATE", "TABLE")
        return ShowCreateTable(_only_name(cursor))
    if cursor.at("PARTITIONS"):
        cursor.begin("PARTITIONS")
        return ShowPartitions(_only_name(cursor))
    if cursor.at("TBLPROPERTIES"):
        cursor.begin("TBLPROPERTIES")
        name = cursor.subject("a table")
        keys = cursor.parenthesized(lambda: property_key(cursor)) if cursor.at("(") else (None,)
        cursor.finish()
        return ShowProperties(name, keys[0])
    return Passthrough(cursor.whole_text())


def _only_name(cursor: Cursor) -> Name:
    name = cursor.subject("a table")
    cursor.finish()
    return name


def _show_columns(cursor: Cursor) -> ShowColumns:
    cursor.begin("COLUMNS")
    if not cursor.take_any("FROM", "IN"):
        raise cursor.unexpected("FROM or IN")
    name = cursor.subject("a table")
    if cursor.take_any("FROM", "IN"):
        name = cursor.name("a schema") + name[-1:]
    cursor.finish()
    return ShowColumns(name)


def _from_and_pattern(cursor: Cursor, what: str) -> tuple[Name | None, str | None]:
    """Parses `[FROM|IN name] [[LIKE] 'pattern']`, up to the end of the statement."""
    name = cursor.name(what) if cursor.take_any("FROM", "IN") else None
    pattern = cursor.string("a pattern") if cursor.take("LIKE") or cursor.at_string() else None
    cursor.finish()
    return name, pattern
