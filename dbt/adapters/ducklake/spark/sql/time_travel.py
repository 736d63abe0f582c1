"""Time travel clauses in a query: `version as of 3`, `timestamp as of ...`, DuckDB's `at (version => 3)`."""

from __future__ import annotations

from typing import Literal, TypeAlias

from .names import TimeTravel
from .query_tokens import QueryTokens

_Kind: TypeAlias = Literal["version", "timestamp"]

_KINDS: dict[str, _Kind] = {
    "VERSION": "version",
    "SYSTEM_VERSION": "version",
    "TIMESTAMP": "timestamp",
    "SYSTEM_TIME": "timestamp",
}
_ARITHMETIC = {"+", "-", "*", "/", "%", "|", "&", "^"}
_INTERVAL_UNITS = {
    unit + plural
    for unit in ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
    for plural in ("", "S")
} | {"QUARTER", "QUARTERS"}


def read_time_travel(tokens: QueryTokens, i: int, stop: int) -> tuple[TimeTravel | None, int]:
    """Returns the time travel clause at `i`, if there is one, and the index behind it."""
    if tokens.word(i) == "AT" and tokens[i + 1].text == "(" and tokens[i + 3].text == "=>":
        return _read_at_clause(tokens, i)
    first = i + 1 if tokens.word(i) == "FOR" else i
    if tokens.word(first + 1) != "AS" or tokens.word(first + 2) != "OF":
        return None, i
    kind = _KINDS.get(tokens.word(first))
    after = _value_end(tokens, first + 3, stop)
    if kind is None or after == first + 3:
        return None, i
    return TimeTravel(kind, tokens.source(first + 3, after - 1)), after


def _read_at_clause(tokens: QueryTokens, i: int) -> tuple[TimeTravel | None, int]:
    """Reads `at (version => 3)`."""
    closing = tokens.closing[i + 1]
    keyword = tokens.word(i + 2).lower()
    if i + 4 < closing < tokens.count and (keyword == "version" or keyword == "timestamp"):
        kind: _Kind = "version" if keyword == "version" else "timestamp"
        return TimeTravel(kind, tokens.source(i + 4, closing - 1)), closing + 1
    return None, i


def _value_end(tokens: QueryTokens, i: int, stop: int) -> int:
    """Returns the index behind the value expression at `i`: operands with arithmetic between them."""
    i = _operand_end(tokens, i, stop)
    while i < stop and _is_operator(tokens, i):
        while i < stop and _is_operator(tokens, i):
            i += 1
        i = _operand_end(tokens, i, stop)
    return min(i, stop)


def _is_operator(tokens: QueryTokens, i: int) -> bool:
    return tokens[i].text in _ARITHMETIC or tokens.word(i) == "DIV"


def _operand_end(tokens: QueryTokens, i: int, stop: int) -> int:
    while tokens[i].text in ("-", "+", "~"):
        i += 1
    word = tokens.word(i)
    if i >= stop:
        return i
    if word == "INTERVAL" and tokens[i + 1].text not in (",", ")", "("):
        i = _interval_end(tokens, i + 1)
    elif word == "CASE":
        i = _case_end(tokens, i, stop)
    elif tokens[i].text == "(":
        i = tokens.closing[i] + 1
    elif tokens.is_identifier(i):
        i = tokens.dotted_name(i)[-1] + 1
        # A typed literal (date '2024-01-01') or a call.
        i = i + 1 if tokens[i].kind == "string" else tokens.past_parentheses(i)
    elif tokens[i].kind in ("number", "string") or tokens[i].text == "?":
        i += 1
        while tokens[i].kind == "string":
            i += 1
    elif tokens[i].text == ":" and tokens.is_identifier(i + 1):
        i += 2
    return _suffix_end(tokens, i, stop)


def _case_end(tokens: QueryTokens, i: int, stop: int) -> int:
    depth = 0
    while i < stop:
        depth += {"CASE": 1, "END": -1}.get(tokens.word(i), 0)
        i += 1
        if depth == 0:
            break
    return i


def _suffix_end(tokens: QueryTokens, i: int, stop: int) -> int:
    """Returns the index behind the fields, casts and subscripts of an operand."""
    while tokens[i].text in (".", "::", "[") and i < stop:
        if tokens[i].text == "[":
            while i < stop and tokens[i].text != "]":
                i += 1
            i += 1
        else:
            i = tokens.past_parentheses(i + 2)
    return i


def _interval_end(tokens: QueryTokens, i: int) -> int:
    while True:
        value = i + 1 if tokens[i].text in ("-", "+") else i
        if tokens[value].kind not in ("number", "string"):
            return i
        i = value + 1
        if tokens.word(i) in _INTERVAL_UNITS:
            i += 1
        if tokens.word(i) == "TO" and tokens.word(i + 1) in _INTERVAL_UNITS:
            i += 2
