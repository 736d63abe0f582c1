"""Functions on numbers, from Spark to DuckDB."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping

from pyspark.sql.types import DecimalType

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..signatures import table
from .arithmetic import coerce, modulo, negative
from .casts import type_name

TABLE = table(
    ("abs(integral) -> integral", "abs({0})"),
    ("abs(fractional) -> fractional", "abs({0})"),
    ("abs(decimal) -> decimal", "abs({0})"),
    ("ceil(integral) -> bigint", "CAST({0} AS BIGINT)"),
    ("floor(integral) -> bigint", "CAST({0} AS BIGINT)"),
    ("isnan(fractional) -> boolean", "coalesce(isnan({0}), FALSE)"),
    ("sqrt(double) -> double", "CASE WHEN {0} < 0 THEN CAST('nan' AS DOUBLE) ELSE sqrt({0}) END"),
    ("e() -> double", "CAST(2.718281828459045 AS DOUBLE)"),
    ("pi() -> double", "CAST(3.141592653589793 AS DOUBLE)"),
    ("bit_count(integral) -> int", "CAST(bit_count(CAST({0} AS BIGINT)) AS INTEGER)"),
)
_MAX_SCALE = 20


def _whole(function: str) -> Callable[[Expression], Expression]:
    """Returns the rule of ceil or floor, which make doubles and decimals whole numbers."""

    def rule(value: Expression) -> Expression:
        if isinstance(value.type, DecimalType):
            digits = value.type.precision - value.type.scale + 1
            result = DecimalType(min(t.MAX_PRECISION, digits), 0) if value.type.scale else value.type
            return Expression(f"CAST({function}({value.sql}) AS {type_name(result)})", result)
        if t.is_integral(value.type):
            return Expression(f"CAST({value.sql} AS BIGINT)", t.LONG)
        double = coerce(value, t.DOUBLE)
        whole = f"CAST({function}({double.sql}) AS BIGINT)"
        return Expression(f"CASE WHEN isnan({double.sql}) THEN 0 ELSE {whole} END", t.LONG)

    return rule


def round_(value: Expression, digits: Expression | None = None) -> Expression:
    """Returns a number rounded half up, a double by its shortest text."""
    scale = 0 if digits is None else digits.constant
    if not isinstance(scale, int) or not 0 <= scale <= _MAX_SCALE:
        raise Untranslatable("round() to a number of digits that is no literal from 0 to 20")
    if t.is_integral(value.type):
        return value
    if isinstance(value.type, DecimalType):
        new_scale = min(value.type.scale, scale)
        precision = min(value.type.precision - value.type.scale + 1 + new_scale, t.MAX_PRECISION)
        result = DecimalType(precision, new_scale)
        return Expression(f"CAST(round({value.sql}, {new_scale}) AS {type_name(result)})", result)
    if value.type != t.DOUBLE:
        raise Untranslatable(f"round() of {value.type.simpleString()}")
    rounded = f"CAST(CAST({value.sql} AS VARCHAR) AS DECIMAL(38, {scale}))"
    tiny = f"WHEN abs({value.sql}) < 5e-{scale + 1} THEN 0"
    inner = f"WHEN abs({value.sql}) < 1e16 THEN CAST(CAST({rounded} AS VARCHAR) AS DOUBLE)"
    return Expression(f"CASE {tiny} {inner} ELSE {value.sql} END", t.DOUBLE)


def power(base: Expression, exponent: Expression) -> Expression:
    """Returns a power of two or of ten, which is the same double everywhere; other powers may differ in a digit."""
    if not isinstance(base.constant, int) or not isinstance(exponent.constant, int):
        raise Untranslatable("power() of something else than literals")
    value = base.constant**exponent.constant if 0 <= exponent.constant <= 62 else 2**60
    if abs(value) > 2**53:
        raise Untranslatable("power() with so large a result")
    return Expression(f"CAST({value} AS DOUBLE)", t.DOUBLE)


def pmod(value: Expression, divisor: Expression) -> Expression:
    if not (t.is_integral(value.type) and t.is_integral(divisor.type)):
        raise Untranslatable("pmod() of something else than integers")
    rest = modulo(value, divisor)
    type_ = rest.type
    other = coerce(divisor, type_)
    text = f"CASE WHEN {rest.operand} < 0 THEN ({rest.operand} + {other.operand}) % {other.operand} ELSE {rest.sql} END"
    return Expression(text, type_)


def sign(value: Expression) -> Expression:
    if not t.is_integral(value.type):
        raise Untranslatable(f"sign() of {value.type.simpleString()}")
    return Expression(f"CAST(sign({value.sql}) AS DOUBLE)", t.DOUBLE)


FUNCTIONS: Mapping[str, Callable[..., Expression]] = {
    "ceil": _whole("ceil"),
    "ceiling": _whole("ceil"),
    "floor": _whole("floor"),
    "round": round_,
    "power": power,
    "pow": power,
    "mod": modulo,
    "pmod": pmod,
    "sign": sign,
    "signum": sign,
    "negative": negative,
    "positive": lambda value: value,
}


def number(text: str) -> Expression:
    """Returns the number of a literal, in the type that Spark gives it."""
    if text.lstrip("-").isdigit():
        value = int(text)
        if -(2**31) < value < 2**31:
            return Expression(str(value), t.INT, value)
        for type_, limit in ((t.INT, 2**31), (t.LONG, 2**63)):
            if -limit <= value < limit:
                return Expression(f"CAST({value} AS {type_name(type_)})", type_, value)
        return _decimal(decimal.Decimal(value))
    if "e" in text.lower():
        return Expression(text, t.DOUBLE)
    return _decimal(decimal.Decimal(text))


def _decimal(value: decimal.Decimal) -> Expression:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = max(0, -exponent)
    significant = len("".join(map(str, digits)).lstrip("0")) or 1
    type_ = DecimalType(max(significant, scale), scale)
    if type_.precision > t.MAX_PRECISION:
        raise Untranslatable("a number with more than 38 digits")
    return Expression(f"CAST({value:f} AS {type_name(type_)})", type_, value)
