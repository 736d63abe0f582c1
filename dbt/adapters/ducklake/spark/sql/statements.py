"""Parses one SQL statement to a frozen dataclass. The dialect is Spark's, with the statements that DuckLake adds.

Queries and expressions in it stay text. This module is the facade: with `from ..sql import statements as st`, every
statement is at hand as `st.Insert`, `st.CreateTable`, ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from .alter import Alter, parse_alter
from .ddl import (
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
    Passthrough,
    parse_comment,
    parse_create,
    parse_drop,
    parse_replace,
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
from .maintenance_statements import (
    Analyze,
    DescribeDetail,
    DescribeHistory,
    MaintenanceStatement,
    Optimize,
    Restore,
    UnreadStatement,
    Vacuum,
    parse_analyze,
    parse_optimize,
    parse_restore,
    parse_vacuum,
)
from .quoting import quoted
from .session_statements import (
    Argument,
    Begin,
    Call,
    Commit,
    Rollback,
    Use,
    parse_begin,
    parse_call,
    parse_commit,
    parse_rollback,
    parse_set_catalog,
    parse_use,
)
from .show_statements import (
    DescribeFunction,
    DescribeSchema,
    DescribeTable,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTableExtended,
    ShowTables,
    ShowUserFunctions,
    ShowViews,
    parse_describe,
    parse_show,
)
from .tokens import Cursor, Name, StatementError, tokenize

__all__ = [
    "Alter",
    "Analyze",
    "Argument",
    "Assignment",
    "Begin",
    "Call",
    "CommentOn",
    "Commit",
    "CreateFunction",
    "CreateSchema",
    "CreateTable",
    "CreateTableLike",
    "CreateTempView",
    "CreateView",
    "Delete",
    "DescribeDetail",
    "DescribeFunction",
    "DescribeHistory",
    "DescribeSchema",
    "DescribeTable",
    "Drop",
    "DropFunction",
    "DropSchema",
    "Insert",
    "MaintenanceStatement",
    "Merge",
    "MergeClause",
    "MergeDelete",
    "MergeInsert",
    "MergeUpdate",
    "Name",
    "Optimize",
    "Passthrough",
    "Query",
    "Restore",
    "Rollback",
    "ShowColumns",
    "ShowCreateTable",
    "ShowPartitions",
    "ShowProperties",
    "ShowSchemas",
    "ShowTableExtended",
    "ShowTables",
    "ShowUserFunctions",
    "ShowViews",
    "Statement",
    "StatementError",
    "Truncate",
    "UnreadStatement",
    "Update",
    "Use",
    "Vacuum",
    "parse",
    "parse_name",
    "split",
]

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
    | DescribeFunction
    | DescribeSchema
    | ShowSchemas
    | ShowTables
    | ShowUserFunctions
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
    | MaintenanceStatement
)

# Statements about the Spark session. Some hold text that is no SQL (a path, a setting), so it is passed on unread.
_PASSTHROUGH_KEYWORDS = (
    "ADD",
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
    """Returns the parts of a dotted name; raises StatementError for any other text."""
    cursor = Cursor(text)
    name = cursor.subject("a name")
    cursor.finish()
    return name


def split(sql: str) -> list[str]:
    """Splits a text into its statements, at the semicolons between them; a block of SQL scripting stays whole.

    A text without a statement is returned as it is, for `parse` to refuse.
    """
    tokens = list(tokenize(sql))
    is_script = len(tokens) > 1 and tokens[0].key == "BEGIN" and tokens[1].key not in (";", "TRANSACTION", "WORK")
    if is_script:
        return [sql]
    texts, start = [], 0
    for token in tokens:
        if token.key == ";":
            texts.append(sql[start : token.start])
            start = token.start + 1
    texts.append(sql[start:])
    return [text for text in texts if next(tokenize(text), None) is not None] or [sql]


def double_quoted_as_names(sql: str) -> str:
    r"""The text with names in backquotes where it has them in double quotes.

    For a session with `spark.sql.ansi.doubleQuotedIdentifiers`. Everywhere else, what is in double quotes is a string.

    >>> print(double_quoted_as_names('''select "end", \'say "hi"\' from t'''))
    select `end`, 'say "hi"' from t
    """
    parts: list[str] = []
    position = 0
    for token in tokenize(sql):
        if token.kind == "string" and sql[token.start] == '"':
            parts += [sql[position : token.start], quoted(sql[token.start + 1 : token.end - 1].replace('""', '"'))]
            position = token.end
    return "".join([*parts, sql[position:]])


def parse(sql: str) -> Statement:
    """Parses one statement; text that does not begin with the keyword of a command is a query."""
    tokens = tokenize(sql)
    first, second = next(tokens, None), next(tokens, None)
    if first is None or first.key == ";":
        raise StatementError("The statement is empty. Write one, without a ; before it.")
    if first.key == "SET" and second and second.key == "CATALOG" and "=" not in sql:
        return parse_set_catalog(Cursor(sql))
    if first.key in _PASSTHROUGH_KEYWORDS:
        return Passthrough(sql[first.start :].rstrip().rstrip(";").rstrip())
    cursor = Cursor(sql)
    parser = _PARSERS.get(first.key)
    return parser(cursor) if parser else Query(cursor.rest("a statement"))


_PARSERS: dict[str, Callable[[Cursor], Statement]] = {
    "ABORT": parse_rollback,
    "ALTER": parse_alter,
    "ANALYZE": parse_analyze,
    "BEGIN": parse_begin,
    "CALL": parse_call,
    "COMMENT": parse_comment,
    "COMMIT": parse_commit,
    "CREATE": parse_create,
    "DELETE": parse_delete,
    "DESC": parse_describe,
    "DESCRIBE": parse_describe,
    "DROP": parse_drop,
    "FROM": parse_from,
    "INSERT": parse_insert,
    "MERGE": parse_merge,
    "OPTIMIZE": parse_optimize,
    "REPLACE": parse_replace,
    "RESTORE": parse_restore,
    "ROLLBACK": parse_rollback,
    "SHOW": parse_show,
    "START": parse_begin,
    "TRUNCATE": parse_truncate,
    "UPDATE": parse_update,
    "USE": parse_use,
    "VACUUM": parse_vacuum,
    "WITH": parse_with,
}
