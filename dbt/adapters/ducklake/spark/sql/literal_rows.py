"""The rows of a VALUES of literals, as Arrow: inserting them needs no Spark.

Only literals are read whose value in a column no setting of Spark's session changes. For all others there is Spark,
which also raises the errors.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, Inexact
from typing import Any

import pyarrow as pa

from ...lake.arrow_types import arrow_type, has_plain_type
from ...lake.types import INTEGER_RANGES, Column, decimal_parts
from .literals import Value, literal_at
from .tokens import Cursor, StatementError, tokenize

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d{1,6})?", re.ASCII)
_TYPED = {"DATE": "date", "TIMESTAMP_NTZ": "timestamp"}
_LARGEST_EXACT = 2**53
_EXACT = Context(prec=38, traps=[Inexact])


class _NotRead(ValueError):
    """What only Spark can read."""


def literal_rows(query: str, columns: Sequence[Column]) -> pa.Table | None:
    """The rows of a query for these columns, in order; None if it is more than a VALUES of literals.

    >>> literal_rows("values (1), (null)", [Column(1, "id", "int32")]).to_pylist()
    [{'id': 1}, {'id': None}]
    """
    first = next(tokenize(query), None)
    if first is None or first.key != "VALUES" or not all(map(has_plain_type, columns)):
        return None
    try:
        cursor = Cursor(query, "VALUES")
        cursor.expect("VALUES")
        rows = cursor.comma_separated(lambda: cursor.parenthesized(lambda: _literal(cursor)))
        cursor.finish()
        if any(len(row) != len(columns) for row in rows):
            return None
        arrays = [
            pa.array([_value(row[i], column) for row in rows], arrow_type(column)) for i, column in enumerate(columns)
        ]
    except (StatementError, ValueError, ArithmeticError, pa.ArrowException):
        return None
    return pa.table(arrays, names=[c.name for c in columns])


def _literal(cursor: Cursor) -> tuple[Value, str | None]:
    """A literal, and the type that a word in front of it gives it."""
    kind = _TYPED.get(cursor.token.key) if cursor.peek(1).kind == "string" else None
    if kind is not None:
        cursor.index += 1
    if cursor.at_string():
        token = cursor.token
        # Settings decide what an escape stands for, and whether double quotes are those of a name.
        if cursor.sql[token.start] != "'" or "\\" in cursor.sql[token.start : token.end]:
            raise _NotRead
    return literal_at(cursor), kind


def _value(literal: tuple[Value, str | None], column: Column) -> Any:
    value, kind = literal
    if value is None and kind is None:
        return None
    if kind not in (None, column.type):
        raise _NotRead
    if column.type in INTEGER_RANGES:
        return _integer(value, *INTEGER_RANGES[column.type])
    if decimal := decimal_parts(column.type):
        return _EXACT.quantize(_number(value, int, Decimal), Decimal(1).scaleb(-decimal[1]))
    return _READERS[column.type](value)


def _number(value: Value, *kinds: type) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, kinds):
        raise _NotRead
    return Decimal(str(value))


def _integer(value: Value, low: int, high: int) -> int:
    number = int(_number(value, int))
    if not low <= number <= high:
        raise _NotRead
    return number


def _double(value: Value) -> float:
    number = _number(value, int, float, Decimal)
    if isinstance(value, int) and abs(value) > _LARGEST_EXACT:
        raise _NotRead
    return float(number)


def _of(kind: type) -> Callable[[Value], Any]:
    def read(value: Value) -> Any:
        if not isinstance(value, kind):
            raise _NotRead
        return value

    return read


def _matching(pattern: re.Pattern[str], parse: Callable[[str], Any]) -> Callable[[Value], Any]:
    def read(value: Value) -> Any:
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise _NotRead
        return parse(value)

    return read


def _only_spark(value: Value) -> Any:
    raise _NotRead


_READERS: Mapping[str, Callable[[Value], Any]] = {
    "boolean": _of(bool),
    "float32": _only_spark,
    "float64": _double,
    "varchar": _of(str),
    "json": _of(str),
    "blob": _of(bytes),
    "date": _matching(_DATE, datetime.date.fromisoformat),
    "timestamp": _matching(_TIMESTAMP, datetime.datetime.fromisoformat),
    "timestamptz": _only_spark,  # a time without a zone is in that of the session
}
