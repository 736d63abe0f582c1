"""Translated expressions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import DataType


class Untranslatable(Exception):
    """A part of a query has no rule. The message names it."""


class NotConstant:
    """The constant of an expression whose value is not known."""


NOT_CONSTANT = NotConstant()


@dataclass(frozen=True)
class Expression:
    """An expression in the words of the other engine."""

    sql: str
    type: DataType
    """The type that it has in Spark: the one that Spark gives it, or the one in which Spark reads what DuckDB gives."""
    constant: Any = field(default=NOT_CONSTANT)
    """The value of a literal."""
    column: str | None = None
    """The name of the column, if the expression is nothing but a column."""

    is_opaque: bool = False
    """Whether DuckDB has it in a type of its own, for which no function is translated."""

    @property
    def operand(self) -> str:
        """The text as an operand, in parentheses where it needs some."""
        return self.sql if is_atomic(self.sql) else f"({self.sql})"

    @property
    def is_constant(self) -> bool:
        return not isinstance(self.constant, NotConstant)


_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|[()]|[^'"`()]+""")
_ATOM = re.compile(r"""[\w.]+|(?:"(?:[^"]|"")*"\.?)+|(?:`(?:[^`]|``)*`\.?)+|'(?:[^']|'')*'""")


def is_atomic(sql: str) -> bool:
    """Whether an expression binds more tightly than any operator.

    >>> is_atomic('lower("t"."a")'), is_atomic("f(a) + f(b)"), is_atomic("(a) OR (b)"), is_atomic("-1")
    (True, False, False, False)
    """
    if _ATOM.fullmatch(sql):
        return True
    if not sql.endswith(")") or not re.match(r"\w*\(", sql):
        return False
    depth = 0
    pieces = _PIECE.findall(sql)
    for index, piece in enumerate(pieces):
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if depth == 0 and piece == ")":
            return index == len(pieces) - 1
    return False
