"""CAST from DuckDB to Spark: a function for each type of the value."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable

from pyspark.sql.types import DataType, DecimalType

from .. import types as t
from ..expressions import NOT_CONSTANT, Expression, Untranslatable
from .words import cast_to, instant, matched, only_duckdb, string

_STRICT_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_STRICT_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?")
_DATE = r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
_TIME = r"(?:[01]?[0-9]|2[0-3]):[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]{1,6})?)?"
_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_INTEGER = r"^[ \t\n\r\f\x0B]*[+-]?[0-9]+[ \t\n\r\f\x0B]*$"
_BOOLEANS = "(?i:t|true|f|false|1|0)"
_NUMBER_LIKE = (
    r"^[ \t\n\r\f\x0B]*(?:[+-]|[+-]?0[xXbBoO][0-9a-fA-F_]+|[+-]?[0-9_.]*[0-9][0-9_.]*(?:[eE][0-9_.+-]*)?)"
    r"[ \t\n\r\f\x0B]*$"
)
"""Texts that DuckDB may read as a number in a form of its own."""
_EXACT_DIGITS = 15
YEARS = "between date'0001-01-01' and date'9999-12-31'"


def cast(value: Expression, target: DataType) -> Expression:
    """Returns a value cast as DuckDB's CAST does."""
    if t.same_type(value.type, target):
        return value
    if value.type == t.NULL:
        return _plain(value, target, None)
    if value.is_constant and (constant := _constant(value, target)) is not None:
        return constant
    rule = _RULES.get(type(value.type))
    text = None if rule is None else rule(value, target)
    if text is None:
        raise Untranslatable(f"CAST from {value.type.simpleString()} to {target.simpleString()}")
    return Expression(text, target)


def try_cast(value: Expression, target: DataType) -> Expression:
    """Returns a value cast as DuckDB's TRY_CAST does."""
    if t.same_type(value.type, target) or value.type == t.NULL:
        return cast(value, target)
    tried = f"try_cast({value.sql} as {target.simpleString()})"
    if t.is_integral(target) and t.is_integral(value.type):
        return Expression(tried, target)
    if t.is_integral(target) and value.type == t.STRING:
        # DuckDB also reads 1.6, 1e3 and 0x1F.
        error = only_duckdb("the integer")
        plain = f"regexp_like({value.sql}, {string(_INTEGER)})"
        number_like = f"regexp_like({value.sql}, {string(_NUMBER_LIKE)})"
        return Expression(f"case when {plain} then {tried} when {number_like} then {error} end", target)
    raise Untranslatable(f"TRY_CAST from {value.type.simpleString()} to {target.simpleString()}")


def _plain(value: Expression, target: DataType, constant: object = NOT_CONSTANT) -> Expression:
    return Expression(cast_to(value.sql, target), target, constant)


def _constant(value: Expression, target: DataType) -> Expression | None:
    constant = value.constant
    if value.type == t.STRING:
        text = str(constant)
        if target == t.DATE and _STRICT_DATE.fullmatch(text):
            return Expression(f"date'{text}'", t.DATE)
        if target == t.TIMESTAMP_NTZ and (_STRICT_TIME.fullmatch(text) or _STRICT_DATE.fullmatch(text)):
            return Expression(f"timestamp_ntz'{text}'", t.TIMESTAMP_NTZ)
        if target == t.BOOLEAN and text in ("t", "f"):
            return Expression("true" if text == "t" else "false", t.BOOLEAN, text == "t")
        if t.is_numeric(target) and re.fullmatch(r"-?[0-9]{1,18}", text):
            return Expression(cast_to(text, target), target, int(text) if t.is_integral(target) else NOT_CONSTANT)
        return None
    if isinstance(constant, bool) or not isinstance(constant, int | decimal.Decimal):
        return None
    if t.is_integral(target) and isinstance(constant, int):
        return _plain(value, target, constant)
    if isinstance(target, DecimalType) and not isinstance(value.type, DecimalType):
        return _plain(value, target, constant)
    if target == t.DOUBLE and isinstance(constant, int) and abs(constant) < 2**53:
        return _plain(value, target)
    return None


def _from_string(value: Expression, target: DataType) -> str | None:
    if t.is_integral(target):
        return cast_to(value.sql, target)
    if target == t.DOUBLE:
        return cast_to(matched(value, f"{_DECIMAL}(?:[eE][+-]?[0-9]+)?"), target)
    if target == t.BOOLEAN:
        return cast_to(matched(value, _BOOLEANS), target)
    if isinstance(target, DecimalType):
        return cast_to(matched(value, _DECIMAL), target)
    if target == t.DATE:
        return cast_to(matched(value, _DATE), target)
    if target == t.TIMESTAMP_NTZ:
        return cast_to(matched(value, f"{_DATE}(?:[T ]{_TIME})?"), target)
    if target == t.TIMESTAMP:
        return instant(cast_to(matched(value, f"{_DATE}(?:[T ]{_TIME})?"), t.TIMESTAMP_NTZ))
    return None


def _from_integral(value: Expression, target: DataType) -> str | None:
    return cast_to(value.sql, target) if t.is_numeric(target) or target in (t.STRING, t.BOOLEAN) else None


def _from_boolean(value: Expression, target: DataType) -> str | None:
    return cast_to(value.sql, target) if t.is_numeric(target) or target == t.STRING else None


def _from_fractional(value: Expression, target: DataType) -> str | None:
    if t.is_integral(target):
        return cast_to(f"rint({value.sql})", target)  # to the even one of two
    return cast_to(value.sql, target) if target in (t.DOUBLE, t.BOOLEAN) else None


def _from_decimal(value: Expression, target: DataType) -> str | None:
    assert isinstance(value.type, DecimalType)
    if t.is_integral(target):
        return cast_to(f"round({value.sql})", target)
    if isinstance(target, DecimalType) or target in (t.STRING, t.BOOLEAN):
        return cast_to(value.sql, target)
    if target == t.DOUBLE:
        if value.type.precision <= _EXACT_DIGITS:
            return cast_to(value.sql, target)
        # A whole number of units up to 2**53 is divided without loss. Others may be rounded twice.
        limit = f"{decimal.Decimal(2**53).scaleb(-value.type.scale):f}"
        error = only_duckdb("the double")
        return f"case when abs({value.sql}) > {limit} then {error} else {cast_to(value.sql, target)} end"
    return None


def _from_date(value: Expression, target: DataType) -> str | None:
    if target == t.TIMESTAMP_NTZ:
        return cast_to(value.sql, target)
    if target == t.TIMESTAMP:
        return instant(cast_to(value.sql, t.TIMESTAMP_NTZ))
    if target == t.STRING:
        error = only_duckdb("the text")
        return f"case when not {value.operand} {YEARS} then {error} else {cast_to(value.sql, target)} end"
    return None


def _from_timestamp(value: Expression, target: DataType) -> str | None:
    return cast_to(value.sql, target) if target in (t.DATE, t.TIMESTAMP_NTZ) else None


def _from_timestamp_ntz(value: Expression, target: DataType) -> str | None:
    if target == t.DATE:
        return cast_to(value.sql, target)
    if target == t.TIMESTAMP:
        return instant(value.operand)
    if target == t.STRING:
        error = only_duckdb("the text")
        text = cast_to(value.sql, target)
        return f"case when not cast({value.sql} as date) {YEARS} then {error} else {text} end"
    return None


_RULES: dict[type[DataType], Callable[[Expression, DataType], str | None]] = {
    type(t.STRING): _from_string,
    type(t.BYTE): _from_integral,
    type(t.SHORT): _from_integral,
    type(t.INT): _from_integral,
    type(t.LONG): _from_integral,
    type(t.BOOLEAN): _from_boolean,
    type(t.FLOAT): _from_fractional,
    type(t.DOUBLE): _from_fractional,
    DecimalType: _from_decimal,
    type(t.DATE): _from_date,
    type(t.TIMESTAMP): _from_timestamp,
    type(t.TIMESTAMP_NTZ): _from_timestamp_ntz,
}
