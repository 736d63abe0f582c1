"""Literals in predicates: the Python value of a parsed SQL literal, as Spark reads it."""

from __future__ import annotations

import datetime
import decimal
import re
import struct
from typing import cast

from sqlglot import exp

from ...lake.predicates import Value

UNCERTAIN = "\ue000"
"""A character that callers put into strings whose value depends on escapes or settings: they have no literal value."""

_INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "BIGINT": 64}
_TIMESTAMPS = {"TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ"}
_DATE = re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4}-\d{1,2}-\d{1,2})"
    r"(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,6}))?)?"
    r" ?(Z|UTC|GMT|[+-]\d{1,2}:\d{2})?)?",
    re.ASCII,
)


def without_parentheses(node: exp.Expression) -> exp.Expression:
    while isinstance(node, exp.Paren):
        node = node.this
    return node


def literal_value(expression: exp.Expression) -> Value | None:
    """Returns the value of a literal; None for a NULL and for anything that is no literal.

    A timestamp without a zone is a naive datetime, which is in the session's time zone.
    """
    node = without_parentheses(expression)
    if isinstance(node, exp.Neg):
        value = literal_value(node.this)
        is_number = isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)
        return -cast(int, value) if is_number else None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if isinstance(node, exp.HexString):
        digits = str(node.this)
        return bytes.fromhex(digits) if re.fullmatch(r"(?:[0-9a-fA-F]{2})*", digits) else None
    if isinstance(node, exp.Literal):
        return _string(node) if node.is_string else _number(node.name)
    if isinstance(node, exp.Cast):
        return _cast(node)
    if isinstance(node, exp.Date | exp.TsOrDsToDate) and isinstance(node.this, exp.Literal):
        has_format = any(argument for key, argument in node.args.items() if key not in ("this", "safe"))
        return None if has_format else _date(_string(node.this))
    return None


def _string(node: exp.Expression) -> str | None:
    if not isinstance(node, exp.Literal) or not node.is_string or UNCERTAIN in node.name:
        return None
    return node.name


def _number(text: str) -> Value | None:
    if re.fullmatch(r"\d+", text, re.ASCII):
        return int(text)
    if re.fullmatch(r"\d+\.\d*|\.\d+", text, re.ASCII):
        return decimal.Decimal(text)
    if re.fullmatch(r"(?:\d+\.?\d*|\.\d+)[eE][+-]?\d+", text, re.ASCII):
        return float(text)
    return None


def _cast(node: exp.Cast) -> Value | None:
    """Returns the value of `date '...'`, `'...'::timestamp`, `5L`, `1.5D` and all that sqlglot parses to the same."""
    kind = node.to.this.name if isinstance(node.to.this, exp.DataType.Type) else ""
    literal = without_parentheses(node.this)
    if node.args.get("format") or node.to.expressions or not isinstance(literal, exp.Literal):
        return None
    if literal.is_string:
        if kind == "DATE":
            return _date(_string(literal))
        return _timestamp(_string(literal), kind) if kind in _TIMESTAMPS else None
    value = _number(literal.name)
    if kind in _INTEGERS and isinstance(value, int):
        return value if value < 2 ** (_INTEGERS[kind] - 1) else None
    if kind == "DOUBLE" and value is not None:
        return float(literal.name)
    if kind == "FLOAT" and value is not None:
        try:
            return cast(float, struct.unpack("f", struct.pack("f", float(literal.name)))[0])
        except OverflowError:
            return None
    return None


def _date(text: str | None) -> datetime.date | None:
    match = _DATE.fullmatch(text or "")
    if not match:
        return None
    try:
        return datetime.date(*map(int, match.groups()))
    except ValueError:
        return None


def _timestamp(text: str | None, kind: str) -> datetime.datetime | None:
    match = _TIMESTAMP.fullmatch(text or "")
    day = _date(match[1]) if match else None
    if match is None or day is None:
        return None
    hour, minute, second = (int(match[group] or 0) for group in (2, 3, 4))
    microsecond = int((match[5] or "").ljust(6, "0"))
    zone = match[6]
    if zone is not None and kind == "TIMESTAMPNTZ":
        return None
    try:
        moment = datetime.datetime(day.year, day.month, day.day, hour, minute, second, microsecond)
        return moment if zone is None else moment.replace(tzinfo=_zone(zone))
    except ValueError:
        return None


def _zone(zone: str) -> datetime.timezone:
    if zone[0] not in "+-":
        return datetime.timezone.utc
    hours, minutes = zone[1:].split(":")
    offset = datetime.timedelta(hours=int(hours), minutes=int(minutes))
    return datetime.timezone(-offset if zone[0] == "-" else offset)
