"""Pieces of DuckDB's SQL that several rules are made of."""

from __future__ import annotations

from ..expressions import Expression, Untranslatable

CONTROL = r"[\x00-\x20\x7F]*"
"""The characters that Spark strips from a text before it casts it, as a regular expression."""


def quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def string(value: str) -> str:
    """Returns a string literal."""
    if "\0" in value:
        raise Untranslatable("a string with the character zero")
    return "'" + value.replace("'", "''") + "'"


def matched(text: Expression, pattern: str) -> str:
    """Returns the group of a regular expression in a text; '' if the whole text does not match.

    No type that this is cast to accepts '', so that the cast fails for texts that Spark does not accept either.
    """
    return f"regexp_extract({text.sql}, {string(f'^{CONTROL}({pattern}){CONTROL}$')}, 1)"


def only_spark(what: str) -> str:
    """Returns the error for a value that the engines treat differently."""
    return f"error({string(f'only Spark can compute {what} of this value')})"


def instant(local: str, day_before: str) -> str:
    """Returns the moment of a local time in the session's time zone.

    When clocks are put back a local time comes twice. DuckDB takes the later moment and Spark the earlier one, which a
    day after the same time of the day before leads to.
    """
    return f"least(CAST({local} AS TIMESTAMPTZ), CAST({day_before} AS TIMESTAMPTZ) + INTERVAL 1 DAY)"


def instant_of_date(date: str) -> str:
    return instant(date, f"{date} - 1")


def instant_of_local(timestamp: str) -> str:
    return instant(timestamp, f"{timestamp} - INTERVAL 1 DAY")
