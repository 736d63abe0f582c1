"""Parses queries of both dialects with sqlglot, into trees whose functions are named as they are written.

sqlglot would replace functions by nodes of its own, which stand for functions of several dialects with different
meanings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import sqlglot
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError

from ..tokens import Token, decode_string, tokenize
from .expressions import Untranslatable
from .nodes import Node

_SPECIAL_SYNTAX = ("CAST", "TRY_CAST", "EXTRACT", "TRIM", "SUBSTRING", "SUBSTR", "POSITION")
"""Functions whose arguments are not just separated by commas."""
_MARK = "\ue000"
"""Begins the text that stands for a string literal, so that no reader of escapes but our own meets it."""
SOURCE_TEXT = "source text"
"""The key of what a node of a DuckDB query was parsed from."""
LAKE_PLACEHOLDER = "{DUCKLAKE_CATALOG}."
"""Stands for the lake of a view, whatever it is attached as, where DuckDB names it."""
_DUCKDB_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|\{DUCKLAKE_CATALOG\}\.|(?<![\w)\]"])\.\d|.""", re.DOTALL)


_SparkParser: Any = Spark.Parser
_DuckDBParser: Any = DuckDB.Parser


class PlainSpark(Spark):
    """Spark's dialect, with functions as they are written."""

    class Parser(_SparkParser):  # type: ignore[misc]
        STRICT_CAST = True  # else CAST and TRY_CAST are the same
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS = {k: v for k, v in Spark.Parser.FUNCTION_PARSERS.items() if k in _SPECIAL_SYNTAX}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}


class PlainDuckDB(DuckDB):
    """DuckDB's dialect, with functions as they are written."""

    INDEX_OFFSET = 0  # leaves indexes as they are written

    class Parser(_DuckDBParser):  # type: ignore[misc]
        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS = {k: v for k, v in DuckDB.Parser.FUNCTION_PARSERS.items() if k in ("CAST", "TRY_CAST")}
        NO_PAREN_FUNCTIONS: ClassVar[dict[Any, Any]] = {}

        def _parse_expression(self) -> Any:
            """Parses a column of SELECT, and keeps its text: where it has no alias, that is its name."""
            start = self._curr.start if self._curr else 0
            node = super()._parse_expression()
            if node is not None and self._prev:
                node.meta[SOURCE_TEXT] = self.sql[start : self._prev.end + 1]
            return node


class Parsed:
    """The tree of a query, and the values of its string literals."""

    def __init__(self, tree: Node, strings: list[str]) -> None:
        self.tree = tree
        self._strings = strings

    def string(self, literal: exp.Literal) -> str:
        """Returns the value of a string literal of the tree."""
        text = str(literal.this)
        return self._strings[int(text[1:])] if text.startswith(_MARK) else text


def parse_spark(sql: str, double_quoted_identifiers: bool = False) -> Parsed:
    """Parses a query that Spark has accepted."""
    strings: list[str] = []
    return Parsed(_parse("".join(_marked(sql, strings, double_quoted_identifiers)), PlainSpark), strings)


def _marked(sql: str, strings: list[str], double_quoted_identifiers: bool) -> Iterator[str]:
    """Yields the pieces of a Spark query with marks in place of its string literals; adjacent literals are one."""
    tokens = [*tokenize(sql), Token("end", "", len(sql), len(sql))]
    position, literal = 0, ""
    for before, token, after in zip([tokens[-1], *tokens], tokens, tokens[1:], strict=False):
        text = sql[token.start : token.end]
        if token.kind != "string" or (before.key == "X" and before.end == token.start):
            continue
        if text[0] == '"' and double_quoted_identifiers:
            yield sql[position : token.start] + "`" + decode_string(text).replace("`", "``") + "`"
            position = token.end
            continue
        if before.kind != "string":
            yield sql[position : token.start]
        literal += decode_string(text)
        position = token.end
        if after.kind != "string":
            # sqlglot reads the text of an interval.
            is_interval = before.key == "INTERVAL"
            yield _sql_string(literal) if is_interval else f"'{_MARK}{_index(strings, literal)}'"
            literal = ""
    yield sql[position:]


def _index(strings: list[str], value: str) -> int:
    """Returns where a value is in a list, and adds it if it is not."""
    if value not in strings:
        strings.append(value)
    return strings.index(value)


def _sql_string(value: str) -> str:
    return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"


def parse_duckdb(sql: str, lake: str) -> Parsed:
    """Parses the query of a view as DuckDB stores it, with a placeholder for the view's own lake."""
    pieces = _DUCKDB_PIECE.findall(sql)
    if any(piece[0] == "." and len(piece) > 1 for piece in pieces):
        raise Untranslatable("a number that begins with its point")  # whose type sqlglot does not tell from 0.5's
    name = '"' + lake.replace('"', '""') + '".'
    return Parsed(_parse("".join(name if piece == LAKE_PLACEHOLDER else piece for piece in pieces), PlainDuckDB), [])


def _parse(sql: str, dialect: type[sqlglot.Dialect]) -> Any:
    try:
        return sqlglot.parse_one(sql, read=dialect)
    except SqlglotError as error:
        raise Untranslatable(f"its syntax ({str(error).splitlines()[0]})") from error


def only(node: Node, names: Iterable[str], what: str = "") -> None:
    """Raises if a node has other arguments than these."""
    known = set(names)
    for name, value in node.args.items():
        if value not in (None, False, []) and name.rstrip("_") not in known:
            raise Untranslatable(what or f"{name.strip('_').replace('_', ' ').upper()} in {node.key.upper()}")
