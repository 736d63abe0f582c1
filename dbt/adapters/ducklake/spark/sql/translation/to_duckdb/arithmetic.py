"""Operators from Spark to DuckDB: arithmetic, comparisons, LIKE."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql.types import DataType, DecimalType
from sqlglot import exp

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..nodes import Node
from .casts import cast, type_name
from .intervals import Interval, shift
from .words import string


def coerce(value: Expression, target: DataType) -> Expression:
    """Returns a value cast as Spark casts it without being asked; the type is one that `widest` allows."""
    return cast(value, target)


def typed(value: Expression) -> str:
    """Returns a value whose type DuckDB cannot choose: a bare integer takes that of its surroundings."""
    return f"CAST({value.sql} AS {type_name(value.type)})" if value.is_constant and "(" not in value.sql else value.sql


def compare(operator: str, left: Expression, right: Expression) -> Expression:
    if isinstance(left.constant, str) and isinstance(right.constant, str) and operator in ("=", "<>"):
        is_true = (left.constant == right.constant) == (operator == "=")
        return Expression("TRUE" if is_true else "FALSE", t.BOOLEAN, is_true)
    type_ = t.widest(left.type, right.type)
    if type_ is None or not (t.is_atomic_type(type_) or type_ == t.NULL):
        raise Untranslatable(f"a comparison of {left.type.simpleString()} and {right.type.simpleString()}")
    if not (t.is_integral(left.type) and t.is_integral(right.type)):
        left, right = coerce(left, type_), coerce(right, type_)
    return Expression(f"{left.operand} {operator} {right.operand}", t.BOOLEAN)


def negative(value: Expression) -> Expression:
    if not t.is_numeric(value.type):
        raise Untranslatable(f"- of {value.type.simpleString()}")
    return Expression(f"-{_sized(value)}", value.type)


def bitwise_not(value: Expression) -> Expression:
    if not t.is_integral(value.type):
        raise Untranslatable(f"~ of {value.type.simpleString()}")
    return Expression(f"~{_sized(value)}", value.type)


def _sized(value: Expression) -> str:
    text = typed(value)
    return value.operand if text == value.sql else text


def binary(operator: type[Node], left: Expression, right: Expression) -> Expression:
    if isinstance(left, Interval) or isinstance(right, Interval):
        return _with_interval(operator, left, right)
    if operator is exp.DPipe:
        return concat([left, right])
    if operator in (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor):
        return _bitwise(operator, left, right)
    if t.DATE in (left.type, right.type):
        return _with_date(operator, left, right)
    for one, other in ((left, right), (right, left)):
        if one.type == t.STRING and t.is_numeric(other.type):
            wider = t.widest(t.STRING, other.type)
            assert wider is not None
            cast_one = coerce(one, wider)
            left, right = (cast_one, other) if one is left else (other, cast_one)
    if left.type == t.NULL:
        left = coerce(left, right.type)
    if right.type == t.NULL:
        right = coerce(right, left.type)
    rule = _NUMERIC.get(operator)
    if rule is None or not (t.is_numeric(left.type) and t.is_numeric(right.type)):
        raise Untranslatable(f"{operator.key} of {left.type.simpleString()} and {right.type.simpleString()}")
    return rule(left, right)


def concat(values: list[Expression]) -> Expression:
    """Returns texts in a row; NULL if one of them is NULL."""
    if any(v.type == t.BINARY or not (t.is_atomic_type(v.type) or v.type == t.NULL) for v in values):
        raise Untranslatable(f"concat of {', '.join(v.type.simpleString() for v in values)}")
    constants = [v.constant for v in values]
    if all(isinstance(constant, str) for constant in constants):
        text = "".join(map(str, constants))
        return Expression(string(text), t.STRING, text)
    return Expression(" || ".join(coerce(v, t.STRING).operand for v in values), t.STRING)


# -- dates


def _with_interval(operator: type[Node], left: Expression, right: Expression) -> Expression:
    if operator is exp.Add and isinstance(left, Interval) and not isinstance(right, Interval):
        left, right = right, left
    if operator in (exp.Add, exp.Sub) and isinstance(right, Interval):
        if isinstance(left, Interval):
            return left.plus(right if operator is exp.Add else right.negative())
        return shift(left, right if operator is exp.Add else right.negative())
    raise Untranslatable("arithmetic with an INTERVAL")


def _with_date(operator: type[Node], left: Expression, right: Expression) -> Expression:
    if operator is exp.Add and right.type == t.DATE:
        left, right = right, left
    if operator in (exp.Add, exp.Sub) and right.type in t.INTEGRAL_TYPES[:3]:
        return add_days(left, right if operator is exp.Add else negative_days(right))
    raise Untranslatable(f"{operator.key} of {left.type.simpleString()} and {right.type.simpleString()}")


def negative_days(days: Expression) -> Expression:
    return negative(coerce(days, t.INT))


def add_days(date: Expression, days: Expression) -> Expression:
    return Expression(f"{date.operand} + {coerce(days, t.INT).operand}", t.DATE)


# -- numbers


def _bitwise(operator: type[Node], left: Expression, right: Expression) -> Expression:
    type_ = t.widest(left.type, right.type)
    if type_ is None or not t.is_integral(type_):
        raise Untranslatable(f"{operator.key} of {left.type.simpleString()} and {right.type.simpleString()}")
    one, other = _sized(coerce(left, type_)), _sized(coerce(right, type_))
    if operator is exp.BitwiseXor:
        return Expression(f"xor({one}, {other})", type_)
    return Expression(f"{one} {'&' if operator is exp.BitwiseAnd else '|'} {other}", type_)


def _plus_or_minus(symbol: str) -> Callable[[Expression, Expression], Expression]:
    def rule(left: Expression, right: Expression) -> Expression:
        decimals = _decimals(left, right)
        if decimals is not None:
            one, other = decimals
            a, b = _decimal_type(one), _decimal_type(other)
            scale = max(a.scale, b.scale)
            precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
            result = _checked_decimal(precision, scale)
            if max(a.precision, b.precision) <= 18 < precision:
                # DuckDB does not widen decimals past 18 digits by itself.
                one, other = cast(one, result), cast(other, result)
                return _in_decimal(f"{one.operand} {symbol} {other.operand}", result)
            return Expression(f"{one.operand} {symbol} {other.operand}", result)
        return _in_widest(symbol, left, right)

    return rule


def _times(left: Expression, right: Expression) -> Expression:
    decimals = _decimals(left, right)
    if decimals is None:
        return _in_widest("*", left, right)
    one, other = decimals
    a, b = _decimal_type(one), _decimal_type(other)
    result = _checked_decimal(a.precision + b.precision + 1, a.scale + b.scale)
    if a.precision <= 18 and b.precision <= 18 < a.precision + b.precision:
        one = cast(one, DecimalType(19, a.scale))
    return _in_decimal(f"{one.operand} * {other.operand}", result)


def divide(left: Expression, right: Expression) -> Expression:
    """Returns a quotient, which is an error for a divisor of zero."""
    decimals = _decimals(left, right)
    if decimals is not None:
        return _divide_decimals(*decimals)
    one, other = coerce(left, t.DOUBLE), coerce(right, t.DOUBLE)
    return _unless_zero(one, other, f"{one.operand} / {other.operand}", t.DOUBLE, right)


def _divide_decimals(one: Expression, other: Expression) -> Expression:
    a, b = _decimal_type(one), _decimal_type(other)
    scale = max(6, a.scale + b.precision + 1)
    precision = a.precision - a.scale + b.scale + scale
    if precision > t.MAX_PRECISION:
        digits = precision - scale
        precision, scale = t.MAX_PRECISION, max(t.MAX_PRECISION - digits, min(scale, 6))
    # Both are made integers, so that the quotient has the digits of the result.
    zeros = scale - a.scale + b.scale
    if zeros < 0 or a.precision + max(a.scale, zeros) >= t.MAX_PRECISION or b.precision + b.scale >= t.MAX_PRECISION:
        raise Untranslatable(f"a division of {a.simpleString()} by {b.simpleString()}")
    dividend, divisor = f"{_digits(one)} * {10**zeros}", _digits(other)
    half_up = (
        f"CASE WHEN 2 * abs(({dividend}) % {divisor}) >= abs({divisor})"
        f" THEN sign({dividend}) * sign({divisor}) ELSE 0 END"
    )
    point = f"CAST(0.{'1'.rjust(scale, '0')} AS DECIMAL({scale}, {scale}))"
    result = DecimalType(precision, scale)
    quotient = f"CAST(({dividend}) // {divisor} + {half_up} AS DECIMAL(38, 0)) * {point}"
    return _unless_zero(one, other, f"CAST({quotient} AS {type_name(result)})", result, other)


def _digits(value: Expression) -> str:
    """Returns a decimal as the integer of its digits."""
    scale = _decimal_type(value).scale
    return f"CAST({value.operand} * {10**scale} AS HUGEINT)" if scale else f"CAST({value.sql} AS HUGEINT)"


def integer_divide(left: Expression, right: Expression) -> Expression:
    if not (t.is_integral(left.type) and t.is_integral(right.type)):
        raise Untranslatable(f"DIV of {left.type.simpleString()} and {right.type.simpleString()}")
    one, other = coerce(left, t.LONG), coerce(right, t.LONG)
    return _unless_zero(one, other, f"{one.operand} // {other.operand}", t.LONG, right)


def modulo(left: Expression, right: Expression) -> Expression:
    decimals = _decimals(left, right)
    if decimals is not None:
        one, other = decimals
        a, b = _decimal_type(one), _decimal_type(other)
        scale = max(a.scale, b.scale)
        result = DecimalType(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)
        common = _checked_decimal(max(a.precision - a.scale, b.precision - b.scale) + scale, scale)
        one, other = cast(one, common), cast(other, common)
        text = f"CAST({one.operand} % {other.operand} AS {type_name(result)})"
        return _unless_zero(one, other, text, result, right)
    type_ = t.widest(left.type, right.type)
    assert type_ is not None
    one, other = coerce(left, type_), coerce(right, type_)
    return _unless_zero(one, other, f"{_sized(one)} % {_sized(other)}", type_, right)


def _unless_zero(
    dividend: Expression, divisor: Expression, text: str, type_: DataType, written: Expression
) -> Expression:
    """Returns a quotient that is an error for a divisor of zero, as in Spark, where DuckDB has NULL or infinity."""
    if is_never_zero(written):
        return Expression(text, type_)
    error = f"error({string('Division by zero')})"
    is_zero = f"{divisor.operand} = 0"
    if not dividend.is_constant:
        is_zero += f" AND {dividend.operand} IS NOT NULL"
    return Expression(f"CASE WHEN {is_zero} THEN {error} ELSE {text} END", type_)


def is_never_zero(value: Expression) -> bool:
    """Whether a divisor is a number other than zero, or nullif(x, 0)."""
    if value.is_constant:
        return value.constant is not None and value.constant != 0
    return value.sql.startswith("nullif(") and value.sql.endswith(", 0)")


def _decimals(left: Expression, right: Expression) -> tuple[Expression, Expression] | None:
    """Returns both operands as decimals, if Spark computes with them as such."""
    if not (isinstance(left.type, DecimalType) or isinstance(right.type, DecimalType)):
        return None
    if t.is_fractional(left.type) or t.is_fractional(right.type):
        return None
    return _as_decimal(left), _as_decimal(right)


def _as_decimal(value: Expression) -> Expression:
    if value.is_constant and isinstance(value.constant, int) and t.is_integral(value.type):
        return cast(value, t.decimal_of_literal(value.constant))
    decimal = t.as_decimal(value.type)
    assert decimal is not None
    return cast(value, decimal)


def _decimal_type(value: Expression) -> DecimalType:
    assert isinstance(value.type, DecimalType)
    return value.type


def _checked_decimal(precision: int, scale: int) -> DecimalType:
    if precision > t.MAX_PRECISION:
        raise Untranslatable(f"arithmetic that needs decimals of {precision} digits")
    return DecimalType(precision, scale)


def _in_decimal(text: str, result: DecimalType) -> Expression:
    return Expression(f"CAST({text} AS {type_name(result)})", result)


def _in_widest(symbol: str, left: Expression, right: Expression) -> Expression:
    type_ = t.widest(left.type, right.type)
    assert type_ is not None
    one, other = _as_operand(left, type_), _as_operand(right, type_)
    if left.is_constant and right.is_constant:
        one = typed(coerce(left, type_))
    return Expression(f"{one} {symbol} {other}", type_)


def _as_operand(value: Expression, type_: DataType) -> str:
    """Returns an operand in the type of the result. A bare integer takes it from the other operand."""
    if value.is_constant and t.is_integral(type_) and value.type == t.INT:
        return value.operand
    return coerce(value, type_).operand


_NUMERIC: dict[type[Node], Callable[[Expression, Expression], Expression]] = {
    exp.Add: _plus_or_minus("+"),
    exp.Sub: _plus_or_minus("-"),
    exp.Mul: _times,
    exp.Div: divide,
    exp.IntDiv: integer_divide,
    exp.Mod: modulo,
}


# -- LIKE


def like(value: Expression, pattern: Expression, escape: str | None) -> Expression:
    """Returns LIKE, whose pattern Spark reads with \\ as the escape character."""
    if value.type != t.STRING or pattern.type != t.STRING:
        value, pattern = coerce(value, t.STRING), coerce(pattern, t.STRING)
    if not pattern.is_constant or not isinstance(pattern.constant, str):
        raise Untranslatable("LIKE with a pattern that is no literal")
    character = "\\" if escape is None else escape
    if len(character) != 1:
        raise Untranslatable("LIKE with such an ESCAPE")
    text = f"{value.operand} LIKE {pattern.sql}"
    return Expression(f"{text} ESCAPE {string(character)}" if character in pattern.constant else text, t.BOOLEAN)
