"""CAST from Spark to DuckDB: a function for each type of the value."""

from __future__ import annotations

import datetime
import decimal
import re
from collections.abc import Callable

from pyspark.sql.types import DataType, DecimalType

from .. import types as t
from ..expressions import NOT_CONSTANT, Expression, Untranslatable
from .words import instant_of_date, instant_of_local, matched, only_spark, string

_INTEGER = r"[+-]?[0-9]+"
_DECIMAL = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)"
_BOOLEANS = "(?i:t|true|y|yes|1|f|false|n|no|0)"
_DATE = r"-?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}"
_TIME = r"(?:[01]?[0-9]|2[0-3]):[0-9]{1,2}(?::[0-9]{1,2}(?:\.[0-9]*)?)?"
_ZONE = r"(?:Z|[+-](?:0[0-9]|1[0-7]):[0-9]{2})"
_STRICT_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
_STRICT_TIME = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})?))?")
_EXACT_DIGITS = 15
"""A decimal of so many digits is a double without loss, however the engine computes it."""
YEARS = "BETWEEN DATE '0001-01-01' AND DATE '9999-12-31'"
"""The dates that both engines write alike."""


def cast(value: Expression, target: DataType) -> Expression:
    """Returns a value cast as Spark's CAST in ANSI mode does."""
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
    """Returns a value cast as Spark's TRY_CAST does."""
    if t.same_type(value.type, target) or value.type == t.NULL:
        return cast(value, target)
    # Here texts have to be accepted in every form that Spark accepts, and not just in the usual ones.
    if value.type == t.STRING and (t.is_integral(target) or target == t.BOOLEAN):
        return _try(cast(Expression(value.sql, value.type), target), target)
    if (t.is_integral(value.type) or value.type == t.BOOLEAN) and (
        t.is_numeric(target) or target in (t.STRING, t.BOOLEAN)
    ):
        return _try(cast(Expression(value.sql, value.type), target), target)
    if isinstance(value.type, DecimalType) and (t.is_integral(target) or isinstance(target, DecimalType)):
        return _try(cast(value, target), target)
    if t.is_temporal(value.type) and t.is_temporal(target):
        return cast(value, target)
    raise Untranslatable(f"TRY_CAST from {value.type.simpleString()} to {target.simpleString()}")


def _try(expression: Expression, target: DataType) -> Expression:
    assert expression.sql.startswith("CAST("), expression.sql
    return Expression(f"TRY_{expression.sql}", target)


def type_name(type_: DataType) -> str:
    name = t.duckdb_type(type_)
    if name is None:
        raise Untranslatable(f"the type {type_.simpleString()}")
    return name


def _plain(value: Expression, target: DataType, constant: object = NOT_CONSTANT) -> Expression:
    return Expression(f"CAST({value.sql} AS {type_name(target)})", target, constant)


def _to(value: str, target: DataType) -> str:
    return f"CAST({value} AS {type_name(target)})"


# -- constants


def _constant(value: Expression, target: DataType) -> Expression | None:
    """Returns a literal of another type, if the value has one."""
    constant = value.constant
    if value.type == t.STRING:
        return _string_constant(str(constant), target)
    if isinstance(constant, bool) or not isinstance(constant, int | decimal.Decimal):
        return None
    if t.is_integral(target) and isinstance(constant, int):
        return _plain(value, target, constant)
    if isinstance(target, DecimalType):
        return _plain(value, target, decimal.Decimal(constant))
    if target == t.DOUBLE and isinstance(constant, int) and abs(constant) < 2**53:
        return _plain(value, target)
    return None


def _string_constant(text: str, target: DataType) -> Expression | None:
    stripped = text.strip(" ")
    if target == t.DATE and (match := _STRICT_DATE.fullmatch(stripped)):
        try:
            day = datetime.date(*map(int, match.groups()))
        except ValueError:
            return None
        return Expression(f"DATE '{day.isoformat()}'", t.DATE, day)
    if target == t.TIMESTAMP_NTZ and _STRICT_TIME.fullmatch(stripped):
        return Expression(f"TIMESTAMP {string(stripped)}", target, stripped)
    if target == t.TIMESTAMP and (match := _STRICT_TIME.fullmatch(stripped)):
        local = f"TIMESTAMP '{match[1]} {match[2] or '00:00:00'}'"
        return Expression(instant_of_local(local), t.TIMESTAMP)
    if t.is_integral(target) and re.fullmatch(r"-?[0-9]{1,18}", stripped):
        return Expression(_to(str(int(stripped)), target), target, int(stripped))
    return None


# -- values


def _from_string(value: Expression, target: DataType) -> str | None:
    if t.is_integral(target):
        return _to(matched(value, _INTEGER), target)
    if target in (t.FLOAT, t.DOUBLE):
        pattern = rf"{_DECIMAL}(?:[eE][+-]?[0-9]+)?|(?i:[+-]?inf|[+-]?infinity|nan)"
        return _to(matched(value, pattern), target)
    if isinstance(target, DecimalType):
        return _to(matched(value, _DECIMAL), target)  # with an exponent DuckDB rounds wrongly
    if target == t.BOOLEAN:
        return _to(matched(value, _BOOLEANS), target)
    if target == t.DATE:
        return f"CAST(split_part(replace({matched(value, f'{_DATE}(?:[T ].*)?')}, 'T', ' '), ' ', 1) AS DATE)"
    if target == t.TIMESTAMP_NTZ:
        return _to(matched(value, f"{_DATE}(?:[T ]{_TIME})?"), target)
    if target == t.TIMESTAMP:
        with_zone = matched(value, f"{_DATE}[T ]{_TIME}{_ZONE}")
        local = _to(matched(value, f"{_DATE}(?:[T ]{_TIME})?"), t.TIMESTAMP_NTZ)
        return f"CASE WHEN {with_zone} <> '' THEN CAST({with_zone} AS TIMESTAMPTZ) ELSE {instant_of_local(local)} END"
    return f"encode({value.sql})" if target == t.BINARY else None


def _from_integral(value: Expression, target: DataType) -> str | None:
    if t.is_numeric(target) or target in (t.STRING, t.BOOLEAN):
        return _to(value.sql, target)
    if target == t.TIMESTAMP:
        return f"make_timestamptz(CAST({value.sql} AS BIGINT) * 1000000)"
    return None


def _from_boolean(value: Expression, target: DataType) -> str | None:
    return _to(value.sql, target) if t.is_numeric(target) or target == t.STRING else None


def _from_fractional(value: Expression, target: DataType) -> str | None:
    if t.is_integral(target):
        return _to(f"trunc({value.sql})", target)
    if target in (t.FLOAT, t.DOUBLE, t.BOOLEAN):
        return _to(value.sql, target)
    if isinstance(target, DecimalType):
        double = value if value.type == t.DOUBLE else _plain(value, t.DOUBLE)
        return double_as_decimal(double, target)
    return None


def double_as_decimal(double: Expression, target: DecimalType) -> str:
    """Returns a double as Spark makes it a decimal: by its shortest text, rounded half up."""
    # DuckDB rounds texts with an exponent wrongly. It writes small doubles with one.
    tiny = f"WHEN abs({double.sql}) < 5e-{target.scale + 1} THEN {_to('0', target)}"
    huge = f" WHEN abs({double.sql}) >= 9e15 THEN {only_spark('a decimal')}"  # whose text depends on Java's version
    huge = huge if target.precision - target.scale > _EXACT_DIGITS else ""
    return f"CASE {tiny}{huge} ELSE {_to(f'CAST({double.sql} AS VARCHAR)', target)} END"


def _from_decimal(value: Expression, target: DataType) -> str | None:
    assert isinstance(value.type, DecimalType)
    if t.is_integral(target):
        return _to(f"trunc({value.sql})", target)
    if isinstance(target, DecimalType) or target in (t.STRING, t.BOOLEAN):
        return _to(value.sql, target)
    if target in (t.FLOAT, t.DOUBLE):
        exact = target == t.DOUBLE and value.type.precision <= _EXACT_DIGITS
        return _to(value.sql if exact else f"CAST({value.sql} AS VARCHAR)", target)
    return None


def _from_date(value: Expression, target: DataType) -> str | None:
    if target == t.TIMESTAMP:
        return instant_of_date(value.operand)
    if target == t.TIMESTAMP_NTZ:
        return _to(value.sql, target)
    if target == t.STRING:
        written = _to(value.sql, target)
        return f"CASE WHEN NOT {value.operand} {YEARS} THEN {only_spark('the text')} ELSE {written} END"
    return None


def _from_timestamp(value: Expression, target: DataType) -> str | None:
    if target in (t.DATE, t.TIMESTAMP_NTZ):
        return _to(value.sql, target)
    if target == t.STRING:
        return _moment_as_text(value)
    if target == t.LONG:
        return f"CAST(epoch(date_trunc('second', {value.sql})) AS BIGINT)"
    if target == t.DOUBLE:
        return f"(epoch_us({value.sql}) / 1000000)"
    return None


def _from_timestamp_ntz(value: Expression, target: DataType) -> str | None:
    if target == t.DATE:
        return _to(value.sql, target)
    if target == t.TIMESTAMP:
        return instant_of_local(value.operand)
    return _moment_as_text(value) if target == t.STRING else None


def _moment_as_text(value: Expression) -> str:
    """Returns the text of a moment, without zeros at the end of its fraction."""
    text = f"rtrim(rtrim(strftime({value.sql}, '%Y-%m-%d %H:%M:%S.%f'), '0'), '.')"
    in_years = f"CAST({value.sql} AS DATE) {YEARS}"
    return f"CASE WHEN NOT {in_years} THEN {only_spark('the text')} ELSE {text} END"


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
