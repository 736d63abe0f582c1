"""Functions on numbers, from DuckDB to Spark."""

from __future__ import annotations

import decimal
from collections.abc import Callable, Mapping

from pyspark.sql.types import DecimalType

from .. import types as t
from ..expressions import Expression, Untranslatable
from . import arithmetic
from .words import cast_to

_WHOLE = 2**52
"""From here on doubles are whole numbers."""


def number(text: str) -> Expression:
    """Returns the number of a literal, in the type that DuckDB gives it."""
    if text.lstrip("-").isdigit():
        value = int(text)
        if -(2**31) <= value < 2**31:
            return Expression(str(value), t.INT, value)
        if -(2**63) <= value < 2**63:
            return Expression(cast_to(str(value), t.LONG), t.LONG, value)
        raise Untranslatable("an integer of more than 64 bits")
    if "e" in text.lower():
        return Expression(f"double('{text}')", t.DOUBLE)
    digits = text.lstrip("-").replace(".", "")
    scale = len(text.rpartition(".")[2])
    type_ = DecimalType(len(digits), scale)
    if not digits.isdigit() or type_.precision > t.MAX_PRECISION:
        raise Untranslatable(f"the number {text}")
    return Expression(cast_to(text, type_), type_, decimal.Decimal(text))


def abs_(value: Expression) -> Expression:
    if not t.is_numeric(value.type):
        raise Untranslatable(f"abs() of {value.type.simpleString()}")
    return Expression(f"abs({value.sql})", value.type)


def round_(value: Expression, digits: Expression | None = None) -> Expression:
    """Returns a number rounded away from zero; of a double, the double that DuckDB multiplies and divides."""
    scale = 0 if digits is None else digits.constant
    if not isinstance(scale, int) or not 0 <= scale <= 15:
        raise Untranslatable("round() to a number of digits that is no literal from 0 to 15")
    if t.is_integral(value.type):
        return value
    if isinstance(value.type, DecimalType):
        kept = min(scale, value.type.scale)
        result = DecimalType(value.type.precision, kept)
        return Expression(cast_to(f"round({value.sql}, {kept})", result), result)
    if value.type != t.DOUBLE:
        raise Untranslatable(f"round() of {value.type.simpleString()}")
    factor = f"double('1e{scale}')"
    scaled = value.operand if scale == 0 else f"({value.operand} * {factor})"
    whole = f"double(floor(abs({scaled})))"
    rounded = f"signum({value.sql}) * ({whole} + if(abs({scaled}) - {whole} >= 0.5D, 1D, 0D))"
    unchanged = f"isnan({value.sql}) or abs({scaled}) = double('infinity')"
    whole_already = f"abs({scaled}) >= {_WHOLE}D"
    if scale:
        rounded, scaled = f"({rounded}) / {factor}", f"{scaled} / {factor}"
    text = f"when {unchanged} then {value.sql} when {whole_already} then {scaled} else {rounded}"
    return Expression(f"case {text} end", t.DOUBLE)


def _to_whole(function: str, opposite: str) -> Callable[[Expression], Expression]:
    """Returns the rule of floor or ceil, which leave doubles doubles."""

    def rule(value: Expression) -> Expression:
        if isinstance(value.type, DecimalType) and value.type.scale:
            result = DecimalType(value.type.precision, 0)
            return Expression(cast_to(f"{function}({value.sql})", result), result)
        if value.type in t.INTEGRAL_TYPES[:3]:
            return Expression(cast_to(value.sql, t.DOUBLE), t.DOUBLE)
        if value.type != t.DOUBLE:
            raise Untranslatable(f"{function}() of {value.type.simpleString()}")
        x = value.operand
        unchanged = f"{x} = 0 or isnan({x}) or abs({x}) >= {_WHOLE}D"
        # From below zero, so that -0.5 becomes -0.0.
        below = f"-double({opposite}(-{x}))"
        text = f"case when {unchanged} then {x} when {x} < 0 then {below} else double({function}({x})) end"
        return Expression(text, t.DOUBLE)

    return rule


def extreme(name: str) -> Callable[..., Expression]:
    """Returns the rule of greatest or least, which leave out NULL."""

    def rule(*values: Expression) -> Expression:
        type_ = arithmetic.common(values, f"{name}()")
        if len(values) < 2 or not t.is_atomic_type(type_):
            raise Untranslatable(f"{name}() of {type_.simpleString()}")
        return Expression(f"{name}({', '.join(arithmetic.coerce(v, type_).sql for v in values)})", type_)

    return rule


def nullif(value: Expression, other: Expression) -> Expression:
    equal = arithmetic.compare("=", value, other)
    if value.is_constant:
        raise Untranslatable("nullif() of a literal")
    return Expression(f"case when {equal.sql} then null else {value.sql} end", value.type)


FUNCTIONS: Mapping[str, Callable[..., Expression]] = {
    "abs": abs_,
    "round": round_,
    "floor": _to_whole("floor", "ceil"),
    "ceil": _to_whole("ceil", "floor"),
    "ceiling": _to_whole("ceil", "floor"),
    "greatest": extreme("greatest"),
    "least": extreme("least"),
    "nullif": nullif,
    "xor": arithmetic.xor,
    "mod": arithmetic.modulo,
}
