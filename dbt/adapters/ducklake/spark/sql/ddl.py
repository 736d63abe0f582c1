"""CREATE, DROP and COMMENT ON statements for schemas, tables, views and functions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ...lake.types import Column
from .definitions import (
    ColumnDefinition,
    PartitionKey,
    Properties,
    SortKey,
    column_definitions,
    column_type,
    partition_keys,
    properties,
    sort_keys,
)
from .tokens import Cursor, Name

RelationKind: TypeAlias = Literal["table", "view"]
CommentKind: TypeAlias = Literal["schema", "table", "view", "column"]

SCHEMA_KEYWORDS = ("SCHEMA", "DATABASE", "NAMESPACE")
_LOCATION_HINT = "the lake chooses where files go, below its data path. Leave it out"
_CLUSTERING_HINT = "say PARTITIONED BY (bucket(n, column)) or SORTED BY (column)"


@dataclass(frozen=True)
class Passthrough:
    """A statement about the Spark session, which Spark runs as written."""

    text: str


@dataclass(frozen=True)
class CreateTempView:
    """CREATE TEMPORARY VIEW, which Spark runs; its query may read tables of the lake."""

    text: str
    query_start: int
    """Where the query begins in the text."""


@dataclass(frozen=True)
class CreateSchema:
    name: Name
    if_not_exists: bool = False
    comment: str | None = None


@dataclass(frozen=True)
class DropSchema:
    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class CreateTable:
    """CREATE TABLE with columns, a query, or both."""

    name: Name
    columns: tuple[ColumnDefinition, ...] = ()
    query: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False
    must_exist: bool = False
    """REPLACE TABLE without CREATE."""
    partition_keys: tuple[PartitionKey, ...] = ()
    sort_keys: tuple[SortKey, ...] = ()
    comment: str | None = None
    properties: Properties = ()


@dataclass(frozen=True)
class CreateTableLike:
    name: Name
    source: Name
    if_not_exists: bool = False
    properties: Properties = ()


@dataclass(frozen=True)
class ViewColumn:
    name: str
    comment: str | None = None


@dataclass(frozen=True)
class CreateView:
    name: Name
    query: str
    columns: tuple[ViewColumn, ...] = ()
    or_replace: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    properties: Properties = ()


@dataclass(frozen=True)
class FunctionParameter:
    name: str
    column: Column
    default: str | None


@dataclass(frozen=True)
class CreateFunction:
    """CREATE FUNCTION with a body in SQL."""

    name: Name
    parameters: tuple[FunctionParameter, ...]
    returns: Column | None
    signature: str
    """The text between the name and RETURN."""
    body: str
    comment: str | None = None
    or_replace: bool = False
    if_not_exists: bool = False


@dataclass(frozen=True)
class DropFunction:
    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class Drop:
    kind: RelationKind
    name: Name
    if_exists: bool = False


@dataclass(frozen=True)
class CommentOn:
    kind: CommentKind
    name: Name
    """For a column, the name of its table and then its own."""
    comment: str | None
    """None removes the comment."""


CreateStatement: TypeAlias = (
    CreateSchema | CreateTable | CreateTableLike | CreateView | CreateTempView | CreateFunction | Passthrough
)


def parse_create(cursor: Cursor) -> CreateStatement:
    cursor.begin("CREATE")
    or_replace = cursor.take("OR", "REPLACE")
    if cursor.at_any(*SCHEMA_KEYWORDS) and not or_replace:
        return _create_schema(cursor)
    if cursor.at("TABLE"):
        return _create_table(cursor, or_replace, must_exist=False)
    if cursor.at("VIEW"):
        return _create_view(cursor, or_replace)
    cursor.take("GLOBAL")
    temporary = cursor.take_any("TEMP", "TEMPORARY")
    if temporary and cursor.at("VIEW"):
        return _create_temp_view(cursor)
    if cursor.at("FUNCTION"):
        # Temporary functions and functions written in Java belong to Spark.
        function = None if temporary else _create_function(cursor, or_replace)
        return function or Passthrough(cursor.whole_text())
    if temporary or cursor.at("EXTERNAL"):
        raise cursor.refused(
            temporary or "EXTERNAL",
            "a lake's tables stay, in its own files. What is for a session is a TEMPORARY VIEW",
        )
    raise cursor.unexpected("SCHEMA, TABLE, VIEW, TEMPORARY VIEW or FUNCTION")


def parse_replace(cursor: Cursor) -> CreateStatement:
    cursor.begin("REPLACE")
    return _create_table(cursor, or_replace=True, must_exist=True)


def _create_function(cursor: Cursor, or_replace: bool) -> CreateFunction | None:
    """Parses a function whose body is SQL; returns None for any other, which Spark creates."""
    cursor.begin("FUNCTION")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.subject("a function")
    if not cursor.at("("):
        return None
    if or_replace and if_not_exists:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other. Keep one of them")
    first = cursor.index
    cursor.expect("(")
    parameters = () if cursor.at(")") else cursor.comma_separated(lambda: _function_parameter(cursor))
    cursor.expect(")")
    returns = comment = None
    while not cursor.at("RETURN"):
        if cursor.at_end():
            return None
        if cursor.take("RETURNS"):
            if cursor.at("TABLE"):
                raise cursor.refused("RETURNS TABLE", "a lake keeps functions that give one value. Write a view")
            returns = column_type(cursor, name)
        elif cursor.take("COMMENT"):
            comment = cursor.string("a comment")
        else:  # a characteristic for Spark, such as DETERMINISTIC
            cursor.index += 1
    signature = cursor.text_since(first)
    cursor.expect("RETURN")
    body = cursor.rest("a body")
    return CreateFunction(name, parameters, returns, signature, body, comment, or_replace, if_not_exists)


def _function_parameter(cursor: Cursor) -> FunctionParameter:
    name = cursor.identifier("a parameter")
    column = column_type(cursor, (name,))
    default = cursor.expression("a default", "COMMENT") if cursor.take("DEFAULT") else None
    if cursor.take("COMMENT"):
        cursor.string("a comment")
    return FunctionParameter(name, column, default)


def parse_drop(cursor: Cursor) -> DropSchema | Drop | DropFunction | Passthrough:
    cursor.begin("DROP")
    if cursor.at_any("TEMPORARY", "TEMP"):
        return Passthrough(cursor.whole_text())
    if cursor.at("FUNCTION"):
        cursor.begin("FUNCTION")
        if_exists = cursor.take("IF", "EXISTS")
        name = cursor.subject("a function")
        cursor.finish()
        return DropFunction(name, if_exists)
    kind = cursor.token.key
    if kind not in ("TABLE", "VIEW", *SCHEMA_KEYWORDS):
        raise cursor.unexpected("SCHEMA, TABLE or VIEW")
    cursor.begin(kind)
    if_exists = cursor.take("IF", "EXISTS")
    name = cursor.subject("a name")
    if kind in SCHEMA_KEYWORDS:
        cascade = cursor.take_any("CASCADE", "RESTRICT") == "CASCADE"
        cursor.finish()
        return DropSchema(name, if_exists, cascade)
    if kind == "TABLE":
        cursor.take("PURGE")  # has no effect: files stay until the snapshots that need them expire
    cursor.finish()
    return Drop("table" if kind == "TABLE" else "view", name, if_exists)


def parse_comment(cursor: Cursor) -> CommentOn:
    cursor.begin("COMMENT", "ON")
    kinds: dict[str, CommentKind] = {"TABLE": "table", "VIEW": "view", "COLUMN": "column"}
    kinds.update((word, "schema") for word in SCHEMA_KEYWORDS)
    word = cursor.token.key
    if word not in kinds:
        raise cursor.unexpected("SCHEMA, TABLE, VIEW or COLUMN")
    cursor.begin(word)
    name = cursor.subject("a name")
    if word == "COLUMN" and len(name) == 1:
        raise cursor.error("the column's table is missing; write COMMENT ON COLUMN table.column")
    cursor.expect("IS")
    comment = None if cursor.take("NULL") else cursor.string("a comment or NULL")
    cursor.finish()
    return CommentOn(kinds[word], name, comment)


def refuse_storage(cursor: Cursor) -> None:
    """Raises if a clause about the location or the format of files stands here: a lake decides on both itself."""
    if cursor.at_any("LOCATION", "MANAGED"):
        raise cursor.refused("LOCATION", _LOCATION_HINT)
    if cursor.at_any("CLUSTERED", "CLUSTER"):
        raise cursor.refused(f"{cursor.token.key} BY", _CLUSTERING_HINT)
    if cursor.at("STORED") or cursor.at("ROW", "FORMAT") or cursor.at_any("SERDE", "SERDEPROPERTIES"):
        raise cursor.refused(cursor.token.key, "a lake keeps its rows in Parquet files. Leave it out")
    if cursor.at("DEFAULT", "COLLATION"):
        raise cursor.refused("DEFAULT COLLATION", "DuckLake compares text by its bytes. Leave it out")


def _create_schema(cursor: Cursor) -> CreateSchema:
    cursor.begin(cursor.token.key)
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.subject("a schema")
    comment = None
    while not cursor.at_end():
        if comment is None and cursor.take("COMMENT"):
            comment = cursor.string("a comment")
            continue
        refuse_storage(cursor)
        if cursor.at("WITH"):
            raise cursor.refused("WITH DBPROPERTIES", "a DuckLake schema has no properties. Leave it out")
        raise cursor.unexpected("COMMENT or the end of the statement")
    return CreateSchema(name, if_not_exists, comment)


def _create_table(cursor: Cursor, or_replace: bool, must_exist: bool) -> CreateTable | CreateTableLike:
    cursor.begin("TABLE")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.subject("a table")
    if or_replace and if_not_exists:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other. Keep one of them")
    if cursor.take("LIKE"):
        if or_replace:
            raise cursor.error("LIKE makes a new table. Drop the old one first")
        return _create_table_like(cursor, name, if_not_exists)
    # A column may be called `values` or `table`, so fewer keywords begin a query here than elsewhere.
    has_columns = cursor.at("(") and cursor.peek(1).key not in ("SELECT", "WITH", "(")
    columns = column_definitions(cursor) if has_columns else ()
    table = CreateTable(name, columns, or_replace=or_replace, if_not_exists=if_not_exists, must_exist=must_exist)
    seen: set[str] = set()
    while not (cursor.at_end() or cursor.at("AS") or cursor.at("(") or cursor.at_query()):
        clause = cursor.token.key
        if clause in seen:
            raise cursor.error(f"{clause} at {cursor.position()} is there twice. Keep one of them")
        seen.add(clause)
        table = _table_clause(cursor, table)
    if cursor.take("AS") or not cursor.at_end():
        return replace(table, query=cursor.query())
    if not columns:
        raise cursor.unexpected("a list of columns, or AS and a query")
    return table


def _table_clause(cursor: Cursor, table: CreateTable) -> CreateTable:
    """Parses the next clause of a CREATE TABLE, which come in any order, and returns the table with it."""
    refuse_storage(cursor)
    if cursor.take("USING"):
        _expect_ducklake(cursor)
        return table
    if cursor.take("PARTITIONED", "BY"):
        return replace(table, partition_keys=partition_keys(cursor))
    if cursor.take("SORTED", "BY"):
        return replace(table, sort_keys=sort_keys(cursor))
    if cursor.take("COMMENT"):
        return replace(table, comment=cursor.string("a comment"))
    if cursor.take_any("TBLPROPERTIES", "OPTIONS"):
        return replace(table, properties=table.properties + properties(cursor))
    raise cursor.unexpected("PARTITIONED BY, SORTED BY, COMMENT, TBLPROPERTIES, or AS and a query")


def _expect_ducklake(cursor: Cursor) -> None:
    if not cursor.take("DUCKLAKE"):
        raise cursor.refused(
            f"USING {cursor.found()}", "a lake's tables are its own. Write USING ducklake, or leave it out"
        )


def _create_table_like(cursor: Cursor, name: Name, if_not_exists: bool) -> CreateTableLike:
    source = cursor.name("the table to copy the columns of")
    table_properties: Properties = ()
    while not cursor.at_end():
        refuse_storage(cursor)
        if cursor.take("USING"):
            _expect_ducklake(cursor)
        elif cursor.take("TBLPROPERTIES"):
            table_properties += properties(cursor)
        else:
            raise cursor.unexpected("TBLPROPERTIES or the end of the statement")
    return CreateTableLike(name, source, if_not_exists, table_properties)


def _create_view(cursor: Cursor, or_replace: bool) -> CreateView:
    cursor.begin("VIEW")
    if_not_exists = cursor.take("IF", "NOT", "EXISTS")
    name = cursor.subject("a view")
    if or_replace and if_not_exists:
        raise cursor.error("OR REPLACE and IF NOT EXISTS exclude each other. Keep one of them")
    columns = cursor.parenthesized(lambda: _view_column(cursor)) if cursor.at("(") else ()
    comment: str | None = None
    view_properties: Properties = ()
    while not cursor.take("AS"):
        if comment is None and cursor.take("COMMENT"):
            comment = cursor.string("a comment")
        elif cursor.take("TBLPROPERTIES"):
            view_properties += properties(cursor)
        else:
            raise cursor.unexpected("COMMENT, TBLPROPERTIES or AS and a query")
    return CreateView(name, cursor.query(), columns, or_replace, if_not_exists, comment, view_properties)


def _view_column(cursor: Cursor) -> ViewColumn:
    name = cursor.identifier("a column name")
    return ViewColumn(name, cursor.string("a comment") if cursor.take("COMMENT") else None)


def _create_temp_view(cursor: Cursor) -> CreateTempView | Passthrough:
    cursor.begin("VIEW")
    cursor.take("IF", "NOT", "EXISTS")
    cursor.subject("a view")
    while not (cursor.at_end() or cursor.at("AS")):  # columns, COMMENT, TBLPROPERTIES; or USING and OPTIONS
        if cursor.at("("):
            cursor.skip_parentheses()
        else:
            cursor.index += 1
    if not cursor.take("AS"):
        return Passthrough(cursor.whole_text())
    start = cursor.token.start - cursor.tokens[0].start
    cursor.query()
    return CreateTempView(cursor.whole_text(), start)
