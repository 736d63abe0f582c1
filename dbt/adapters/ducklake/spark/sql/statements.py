"""What a statement asks for: the text of one SQL statement as a value that says everything it wants.

The dialect is Spark's, with what DuckLake adds. Queries and expressions stay the text they were.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from .alter import (
    AddColumn,
    Alter,
    AlterAction,
    ChangeType,
    DropColumn,
    DropDefault,
    DropNotNull,
    MoveColumn,
    Position,
    RenameColumn,
    RenameRelation,
    SetColumnComment,
    SetDefault,
    SetNotNull,
    SetPartitionKeys,
    SetProperties,
    SetSortKeys,
    SetViewQuery,
    UnsetProperties,
    parse_alter,
)
from .ddl import (
    SCHEMA_WORDS,
    CommentOn,
    CreateFunction,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateTempView,
    CreateView,
    Drop,
    DropFunction,
    DropSchema,
    FunctionParameter,
    Passthrough,
    ViewColumn,
    parse_comment,
    parse_create,
    parse_drop,
    parse_replace,
)
from .definitions import (
    ColumnDefinition,
    Literal,
    PartitionKey,
    SortKey,
    parse_literal,
    parse_partition_keys,
    parse_sort_keys,
    parse_type,
    property_key,
)
from .dml import (
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeClause,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    PartitionValue,
    Query,
    Truncate,
    Update,
    parse_delete,
    parse_from,
    parse_insert,
    parse_merge,
    parse_truncate,
    parse_update,
    parse_with,
)
from .tokens import QUERY_WORDS, Cursor, Name, StatementError, quote, quote_name, quote_string, scan, split_statements

__all__ = [
    "AddColumn",
    "Alter",
    "AlterAction",
    "Argument",
    "Assignment",
    "Begin",
    "Call",
    "ChangeType",
    "ColumnDefinition",
    "CommentOn",
    "Commit",
    "CreateFunction",
    "CreateSchema",
    "CreateTable",
    "CreateTableLike",
    "CreateTempView",
    "CreateView",
    "Delete",
    "DescribeSchema",
    "DescribeTable",
    "Drop",
    "DropColumn",
    "DropDefault",
    "DropFunction",
    "DropNotNull",
    "DropSchema",
    "FunctionParameter",
    "Insert",
    "Literal",
    "Merge",
    "MergeClause",
    "MergeDelete",
    "MergeInsert",
    "MergeUpdate",
    "MoveColumn",
    "Name",
    "PartitionKey",
    "PartitionValue",
    "Passthrough",
    "Position",
    "Query",
    "RenameColumn",
    "RenameRelation",
    "Rollback",
    "SetColumnComment",
    "SetDefault",
    "SetNotNull",
    "SetPartitionKeys",
    "SetProperties",
    "SetSortKeys",
    "SetViewQuery",
    "ShowColumns",
    "ShowCreateTable",
    "ShowPartitions",
    "ShowProperties",
    "ShowSchemas",
    "ShowTableExtended",
    "ShowTables",
    "ShowViews",
    "SortKey",
    "Statement",
    "StatementError",
    "Truncate",
    "UnsetProperties",
    "Update",
    "Use",
    "ViewColumn",
    "parse",
    "parse_literal",
    "parse_partition_keys",
    "parse_sort_keys",
    "parse_type",
    "quote",
    "quote_name",
    "quote_string",
    "split_statements",
]

UseKind: TypeAlias = OneOf["schema", "catalog"]


@dataclass(frozen=True)
class DescribeTable:
    """DESCRIBE of a table or view, or of one of its columns."""

    name: Name
    extended: bool = False
    column: Name | None = None


@dataclass(frozen=True)
class DescribeSchema:
    name: Name
    extended: bool = False


@dataclass(frozen=True)
class ShowSchemas:
    """SHOW SCHEMAS, of one catalog or of the current one."""

    catalog: Name | None = None
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


@dataclass(frozen=True)
class Use:
    """A change of the current schema, or catalog; a name of one part without a word may be either."""

    name: Name
    kind: UseKind | None = None  # where the statement says which


@dataclass(frozen=True)
class Begin:
    """BEGIN of a transaction: from here on, one snapshot."""


@dataclass(frozen=True)
class Commit:
    """COMMIT of the transaction."""


@dataclass(frozen=True)
class Rollback:
    """ROLLBACK of the transaction."""


@dataclass(frozen=True)
class Argument:
    """One argument of a CALL, by position or by name; `literal` where it needs no computing."""

    name: str | None
    text: str
    literal: Literal | None = None


@dataclass(frozen=True)
class Call:
    name: Name
    arguments: tuple[Argument, ...] = ()


Statement: TypeAlias = (
    Query
    | Passthrough
    | CreateTempView
    | CreateFunction
    | CreateSchema
    | DropSchema
    | CreateTable
    | CreateTableLike
    | CreateView
    | Drop
    | DropFunction
    | Alter
    | CommentOn
    | Insert
    | Update
    | Delete
    | Merge
    | Truncate
    | DescribeTable
    | DescribeSchema
    | ShowSchemas
    | ShowTables
    | ShowViews
    | ShowTableExtended
    | ShowColumns
    | ShowCreateTable
    | ShowProperties
    | ShowPartitions
    | Use
    | Begin
    | Commit
    | Rollback
    | Call
)

# Statements about the Spark session. Some hold text that is no SQL (a path, a setting), so none is read.
_SPARKS_OWN = (
    "ADD",
    "ANALYZE",
    "CACHE",
    "CLEAR",
    "DECLARE",
    "LIST",
    "LOAD",
    "MSCK",
    "REFRESH",
    "REPAIR",
    "RESET",
    "SET",
    "UNCACHE",
)


def parse_name(text: str) -> tuple[str, ...]:
    """The parts of a dotted name."""
    cursor = Cursor(text)
    name = cursor.subject("a name")
    cursor.finish()
    return name


def split(sql: str) -> list[str]:
    """The statements of a text, at the semicolons between them; a block of SQL scripting stays whole."""
    tokens = list(scan(sql))
    block = len(tokens) > 1 and tokens[0].key == "BEGIN" and tokens[1].key not in (";", "TRANSACTION", "WORK")
    if block:
        return [sql]
    found, start = [], 0
    for token in tokens:
        if token.key == ";":
            found.append(sql[start : token.start])
            start = token.start + 1
    found.append(sql[start:])
    return [text for text in found if next(scan(text), None) is not None] or [sql]


def parse(sql: str) -> Statement:
    """What one statement asks for; what is none of the lake's commands is a query."""
    tokens = scan(sql)
    first, second = next(tokens, None), next(tokens, None)
    if first is None or first.key == ";":
        raise StatementError("The statement is empty. Write one, without a ; before it.")
    if first.key == "SET" and second and second.key == "CATALOG" and "=" not in sql:
        return _parse_set_catalog(Cursor(sql))
    if first.key in _SPARKS_OWN:
        return Passthrough(sql[first.start :].rstrip().rstrip(";").rstrip())
    cursor = Cursor(sql)
    parser = _PARSERS.get(first.key)
    return parser(cursor) if parser else Query(cursor.rest("a statement"))


def _parse_set_catalog(cursor: Cursor) -> Use:
    cursor.begin("SET", "CATALOG")
    name = (cursor.string("a catalog"),) if cursor.at_string() else cursor.name("a catalog")
    cursor.finish()
    return Use(name, "catalog")


def _parse_use(cursor: Cursor) -> Use:
    cursor.begin("USE")
    word = cursor.take_any("CATALOG", *SCHEMA_WORDS) if cursor.look(1).kind in ("word", "quoted") else ""
    kind: UseKind | None = "catalog" if word == "CATALOG" else "schema" if word else None
    name = cursor.subject("a schema")
    if len(name) > (1 if kind == "catalog" else 2):
        raise cursor.error("too many parts; write a schema, or a catalog and its schema")
    cursor.finish()
    return Use(name, kind)


def _parse_begin(cursor: Cursor) -> Begin:
    if cursor.at("START"):
        cursor.begin("START", "TRANSACTION")
    else:
        cursor.begin("BEGIN")
        cursor.take_any("TRANSACTION", "WORK")
    cursor.finish()
    return Begin()


def _parse_commit(cursor: Cursor) -> Commit:
    cursor.begin("COMMIT")
    cursor.take_any("TRANSACTION", "WORK")
    cursor.finish()
    return Commit()


def _parse_rollback(cursor: Cursor) -> Rollback:
    cursor.begin(cursor.token.key)
    cursor.take_any("TRANSACTION", "WORK")
    cursor.finish()
    return Rollback()


def _parse_call(cursor: Cursor) -> Call:
    cursor.begin("CALL")
    name = cursor.subject("a procedure")

    def one() -> Argument:
        named = cursor.at_name() and cursor.look(1).key == "=" and cursor.look(2).key == ">"
        argument = cursor.part("an argument's name") if named and not _comparison(cursor) else None
        if argument is not None:
            cursor.expect("=", ">")
        text = cursor.expression("an argument")
        return Argument(argument, text, parse_literal(text))

    arguments: tuple[Argument, ...] = ()
    if not cursor.take("(", ")"):
        arguments = cursor.parenthesised(one)
    cursor.finish()
    return Call(name, arguments)


def _comparison(cursor: Cursor) -> bool:
    """Whether the = and > ahead are two words, which is no arrow."""
    return cursor.look(1).end != cursor.look(2).start


def _parse_describe(cursor: Cursor) -> DescribeTable | DescribeSchema | Query | Passthrough:
    cursor.begin(cursor.token.key)
    if cursor.at("FUNCTION") and cursor.look(1).kind != "end":
        return Passthrough(_whole_text(cursor))
    asks_query = cursor.at("QUERY") and cursor.look(1).key in QUERY_WORDS
    if asks_query or cursor.at("(") or (cursor.at_query() and not cursor.at("TABLE")):
        return Query(_whole_text(cursor))
    schema = cursor.at_any(*SCHEMA_WORDS) and cursor.look(1).kind in ("word", "quoted")
    if schema:
        cursor.begin(cursor.token.key)
    elif cursor.look(1).kind in ("word", "quoted"):
        cursor.take("TABLE")
    extended = cursor.look(1).kind in ("word", "quoted") and cursor.take_any("EXTENDED", "FORMATTED") != ""
    name = cursor.subject("a schema" if schema else "a table")
    if schema:
        cursor.finish()
        return DescribeSchema(name, extended)
    if cursor.at("PARTITION") and cursor.look(1).key == "(":
        raise cursor.refused("PARTITION", "a lake's partitions are values of rows. Query the table instead")
    column = cursor.name("a column") if cursor.at_name() and not cursor.at("AS") else None
    cursor.finish()
    return DescribeTable(name, extended, column)


def _parse_show(cursor: Cursor) -> Statement:
    cursor.begin("SHOW")
    if cursor.at_any("SCHEMAS", "DATABASES", "NAMESPACES"):
        cursor.begin(cursor.token.key)
        return ShowSchemas(*_where_and_pattern(cursor, "a catalog"))
    if cursor.at("TABLES"):
        cursor.begin("TABLES")
        return ShowTables(*_where_and_pattern(cursor, "a schema"))
    if cursor.at("VIEWS"):
        cursor.begin("VIEWS")
        return ShowViews(*_where_and_pattern(cursor, "a schema"))
    if cursor.at("TABLE", "EXTENDED"):
        cursor.begin("TABLE", "EXTENDED")
        schema, pattern = _where_and_pattern(cursor, "a schema")
        if pattern is None:
            raise cursor.unexpected("LIKE and a pattern in quotes")
        return ShowTableExtended(pattern, schema)
    if cursor.at("COLUMNS"):
        return _show_columns(cursor)
    if cursor.at("CREATE", "TABLE"):
        cursor.begin("CREATE", "TABLE")
        return ShowCreateTable(_last_name(cursor))
    if cursor.at("PARTITIONS"):
        cursor.begin("PARTITIONS")
        return ShowPartitions(_last_name(cursor))
    if cursor.at("TBLPROPERTIES"):
        cursor.begin("TBLPROPERTIES")
        name = cursor.subject("a table")
        keys = cursor.parenthesised(lambda: property_key(cursor)) if cursor.at("(") else (None,)
        cursor.finish()
        return ShowProperties(name, keys[0])
    return Passthrough(_whole_text(cursor))


def _last_name(cursor: Cursor) -> Name:
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


def _where_and_pattern(cursor: Cursor, what: str) -> tuple[Name | None, str | None]:
    """`[FROM|IN name] [[LIKE] 'pattern']`, to the statement's end."""
    where = cursor.name(what) if cursor.take_any("FROM", "IN") else None
    pattern = cursor.string("a pattern") if cursor.take("LIKE") or cursor.at_string() else None
    cursor.finish()
    return where, pattern


def _whole_text(cursor: Cursor) -> str:
    cursor.index = 0
    return cursor.rest("a statement")


_PARSERS: dict[str, Callable[[Cursor], Statement]] = {
    "ABORT": _parse_rollback,
    "ALTER": parse_alter,
    "BEGIN": _parse_begin,
    "CALL": _parse_call,
    "COMMENT": parse_comment,
    "COMMIT": _parse_commit,
    "CREATE": parse_create,
    "DELETE": parse_delete,
    "DESC": _parse_describe,
    "DESCRIBE": _parse_describe,
    "DROP": parse_drop,
    "FROM": parse_from,
    "INSERT": parse_insert,
    "MERGE": parse_merge,
    "REPLACE": parse_replace,
    "ROLLBACK": _parse_rollback,
    "SHOW": _parse_show,
    "START": _parse_begin,
    "TRUNCATE": parse_truncate,
    "UPDATE": parse_update,
    "USE": _parse_use,
    "WITH": parse_with,
}
