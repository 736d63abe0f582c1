"""Literals in statements, options and arguments of functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from .tokens import Cursor, StatementError

Value: TypeAlias = "str | bool | int | float | Decimal | bytes | tuple[Value, ...] | None"


@dataclass(frozen=True)
class LiteralValue:
    """The value of a literal, which may be None for NULL; a list of literals is a tuple."""

    value: Value


def parse_literal(text: str) -> LiteralValue | None:
    """Parses an expression that is a literal; returns None for any other expression.

    >>> parse_literal("['a', 1.5]")
    LiteralValue(value=('a', Decimal('1.5')))
    >>> parse_literal("1 + 1") is None
    True
    """
    cursor = Cursor(text, "literal")
    try:
        value = literal_at(cursor)
    except StatementError:
        return None
    return LiteralValue(value) if cursor.at_end() else None


def literal_at(cursor: Cursor) -> Value:
    """Parses the literal at the cursor. Raises a StatementError if there is none."""
    if cursor.at_string():
        return cursor.string("a literal")
    if cursor.take("["):
        return _literal_list(cursor, "]")
    if cursor.take("ARRAY", "("):
        return _literal_list(cursor, ")")
    if cursor.at("X") and cursor.peek(1).kind == "string":
        cursor.index += 1
        return _bytes(cursor)
    if word := cursor.take_any("TRUE", "FALSE", "NULL"):
        return {"TRUE": True, "FALSE": False, "NULL": None}[word]
    sign = "-" if cursor.take("-") else ""
    cursor.take("+")
    if cursor.token.kind != "number":
        raise cursor.unexpected("a literal")
    text = cursor.sql[cursor.token.start : cursor.token.end]
    cursor.index += 1
    return _number(sign + text.lower())


def _literal_list(cursor: Cursor, closing: str) -> tuple[Value, ...]:
    if cursor.take(closing):
        return ()
    values = cursor.comma_separated(lambda: literal_at(cursor))
    cursor.expect(closing)
    return values


def _number(text: str) -> Value:
    """Parses a number as Spark does: digits with a point are a decimal; an exponent, F or D makes it a float."""
    if re.fullmatch(r"-?\d+[lsy]?", text):
        return int(text.rstrip("lsy"))
    if text.endswith("bd"):
        return Decimal(text[:-2])
    if "e" in text or text[-1] in "fd":
        return float(text.rstrip("fd"))
    return Decimal(text)


def _bytes(cursor: Cursor) -> bytes:
    text = cursor.string("hexadecimal digits")
    try:
        return bytes.fromhex(text.zfill(len(text) + len(text) % 2))
    except ValueError:
        raise cursor.error(f"X'{text}' holds more than hexadecimal digits") from None
