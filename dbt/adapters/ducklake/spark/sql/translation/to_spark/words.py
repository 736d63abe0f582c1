"""Pieces of Spark's SQL that several rules are made of."""

from __future__ import annotations

from pyspark.sql.types import DataType

from ...quoting import quoted, string_literal
from ..expressions import Expression

quote = quoted
string = string_literal
_BLANKS = r"[ \t\n\r\f\x0B]*"
"""The characters that DuckDB strips from a text before it casts it."""


def cast_to(sql: str, type_: DataType) -> str:
    return f"cast({sql} as {type_.simpleString()})"


def only_duckdb(what: str) -> str:
    """Returns the error for a value that the engines treat differently."""
    return f"raise_error({string(f'only DuckDB can compute {what} of this value')})"


def matched(text: Expression, pattern: str) -> str:
    """Returns the group of a regular expression in a text; '' if the whole text does not match."""
    return f"regexp_extract({text.sql}, {string(f'^{_BLANKS}({pattern}){_BLANKS}$')}, 1)"


def instant(local: str) -> str:
    """Returns the moment of a local time in the session's time zone: of two, the later one, as DuckDB takes it."""
    day_after = f"cast({local} + interval '1' day as timestamp) - interval '1' day"
    return f"greatest(cast({local} as timestamp), {day_after})"
