"""Operators from DuckDB to Spark: arithmetic, comparisons, LIKE, and the types in which DuckDB combines values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from pyspark.sql.types import DataType, DecimalType
from sqlglot import exp

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..nodes import Node
from . import casts
from .intervals import Interval, shift
from .words import cast_to, only_duckdb, string

_RANGES: dict[DataType, int] = {t.BYTE: 2**7, t.SHORT: 2**15, t.INT: 2**31, t.LONG: 2**63}
_DIGITS: dict[DataType, int] = {t.BYTE: 3, t.SHORT: 5, t.INT: 10, t.LONG: 19}
_NARROW_DIGITS = 18
"""DuckDB does not widen decimals past so many digits by itself."""
_HUGEINT = DecimalType(t.MAX_PRECISION, 0)
_EXACT_FLOAT = 2**24


def is_integer_literal(value: Expression) -> bool:
    """Whether a value is a bare integer, which takes an integral type that it fits from the other operand."""
    return isinstance(value.constant, int) and not isinstance(value.constant, bool) and t.is_integral(value.type)


def coerce(value: Expression, target: DataType) -> Expression:
    """Returns a value cast as DuckDB casts it without being asked."""
    if t.same_type(value.type, target):
        return value
    if value.type == t.STRING and not value.is_constant:
        raise Untranslatable(f"a text in place of {target.simpleString()}")
    if is_integer_literal(value) and target == t.FLOAT and abs(value.constant) <= _EXACT_FLOAT:
        return Expression(cast_to(value.sql, target), target)
    return casts.cast(value, target)


def common(values: Sequence[Expression], what: str) -> DataType:
    """Returns the type in which DuckDB combines values.

    Texts that are literals and NULL take the type of the others.
    """
    known = [v for v in values if v.type != t.NULL]
    typed = [v for v in known if v.type != t.STRING or not v.is_constant]
    if not typed:
        return t.STRING if known else t.NULL
    return reduce(lambda one, other: _merge(one, other, what), typed).type


def _merge(one: Expression, other: Expression, what: str) -> Expression:
    for literal, value in ((one, other), (other, one)):
        if is_integer_literal(literal) and not is_integer_literal(value):
            limit = _RANGES.get(value.type)
            if limit is not None and -limit <= literal.constant < limit:
                return value
            if value.type == t.FLOAT and abs(literal.constant) <= _EXACT_FLOAT:
                return value
    type_ = widest(one.type, other.type)
    if type_ is None:
        raise Untranslatable(f"{what} with the types {one.type.simpleString()} and {other.type.simpleString()}")
    both_literals = is_integer_literal(one) and is_integer_literal(other)
    return Expression("", type_, one.constant) if both_literals else Expression("", type_)


def widest(one: DataType, other: DataType) -> DataType | None:
    """Returns the type in which DuckDB combines two types that are no literals; None if it is not known to.

    >>> widest(t.INT, DecimalType(9, 2)), widest(t.DATE, t.TIMESTAMP_NTZ)
    (DecimalType(12,2), TimestampNTZType())
    """
    if t.same_type(one, other):
        return one
    if t.is_integral(one) and t.is_integral(other):
        return max(one, other, key=t.INTEGRAL_TYPES.index)
    if t.is_numeric(one) and t.is_numeric(other):
        if t.DOUBLE in (one, other):
            return t.DOUBLE
        if t.FLOAT in (one, other):
            return None
        a, b = as_decimal(one), as_decimal(other)
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale
        return DecimalType(precision, scale) if precision <= t.MAX_PRECISION else None
    if t.is_temporal(one) and t.is_temporal(other):
        return t.TIMESTAMP if t.TIMESTAMP in (one, other) else t.TIMESTAMP_NTZ
    return None


def as_decimal(type_: DataType) -> DecimalType:
    """Returns the decimal type that DuckDB makes of an exact number's type."""
    return type_ if isinstance(type_, DecimalType) else DecimalType(_DIGITS[type_], 0)


def compare(operator: str, left: Expression, right: Expression) -> Expression:
    type_ = common([left, right], "a comparison")
    if not (t.is_atomic_type(type_) or type_ == t.NULL):
        raise Untranslatable(f"a comparison of {type_.simpleString()}")
    if not (t.is_integral(left.type) and t.is_integral(right.type)):
        left, right = coerce(left, type_), coerce(right, type_)
    # IS DISTINCT FROM has no words of its own in every release of Spark.
    if operator in ("IS NOT DISTINCT FROM", "IS DISTINCT FROM"):
        same = f"{left.operand} <=> {right.operand}"
        return Expression(same if operator == "IS NOT DISTINCT FROM" else f"NOT ({same})", t.BOOLEAN)
    return Expression(f"{left.operand} {operator} {right.operand}", t.BOOLEAN)


def negative(value: Expression) -> Expression:
    if not t.is_numeric(value.type):
        raise Untranslatable(f"- of {value.type.simpleString()}")
    return Expression(f"-{value.operand}", value.type)


def bitwise_not(value: Expression) -> Expression:
    if not t.is_integral(value.type):
        raise Untranslatable(f"~ of {value.type.simpleString()}")
    return Expression(f"~{value.operand}", value.type)


def binary(operator: type[Node], left: Expression, right: Expression) -> Expression:
    if isinstance(left, Interval) or isinstance(right, Interval):
        return _with_interval(operator, left, right)
    if operator is exp.DPipe:
        return _concat(left, right)
    if t.is_temporal(left.type) or t.is_temporal(right.type):
        return _with_date(operator, left, right)
    if left.type == t.NULL or right.type == t.NULL:
        raise Untranslatable(f"{operator.key} of NULL")
    rule = _NUMERIC.get(operator)
    if rule is None or not (t.is_numeric(left.type) and t.is_numeric(right.type)):
        raise Untranslatable(f"{operator.key} of {left.type.simpleString()} and {right.type.simpleString()}")
    return rule(left, right)


def _concat(left: Expression, right: Expression) -> Expression:
    if not all(v.type == t.NULL or (t.is_atomic_type(v.type) and v.type != t.BINARY) for v in (left, right)):
        raise Untranslatable(f"|| of {left.type.simpleString()} and {right.type.simpleString()}")
    return Expression(f"{casts.cast(left, t.STRING).operand} || {casts.cast(right, t.STRING).operand}", t.STRING)


def _with_interval(operator: type[Node], left: Expression, right: Expression) -> Expression:
    if operator is exp.Add and isinstance(left, Interval) and not isinstance(right, Interval):
        left, right = right, left
    if operator in (exp.Add, exp.Sub) and isinstance(right, Interval) and not isinstance(left, Interval):
        return shift(left, right, "+" if operator is exp.Add else "-")
    raise Untranslatable("arithmetic with an INTERVAL")


def _with_date(operator: type[Node], left: Expression, right: Expression) -> Expression:
    if operator is exp.Add and right.type == t.DATE:
        left, right = right, left
    if operator is exp.Sub and left.type == right.type == t.DATE:
        return Expression(f"cast(datediff({left.sql}, {right.sql}) as bigint)", t.LONG)
    if operator in (exp.Add, exp.Sub) and left.type == t.DATE and right.type in t.INTEGRAL_TYPES[:3]:
        name = "date_add" if operator is exp.Add else "date_sub"
        return Expression(f"{name}({left.sql}, {right.sql})", t.DATE)
    raise Untranslatable(f"{operator.key} of {left.type.simpleString()} and {right.type.simpleString()}")


# -- numbers


def _in_common_type(symbol: str) -> Callable[[Expression, Expression], Expression]:
    """Returns the rule of +, - or *."""

    def rule(left: Expression, right: Expression) -> Expression:
        type_ = common([left, right], symbol)
        if isinstance(type_, DecimalType):
            return _with_decimals(symbol, left, right)
        one, other = coerce(left, type_), coerce(right, type_)
        return Expression(f"{one.operand} {symbol} {other.operand}", type_)

    return rule


def _with_decimals(symbol: str, left: Expression, right: Expression) -> Expression:
    a, b = as_decimal(left.type), as_decimal(right.type)
    if a.precision == t.MAX_PRECISION or b.precision == t.MAX_PRECISION:
        if a.scale or b.scale:
            raise Untranslatable(f"{symbol} of {a.simpleString()} and {b.simpleString()}")
        one, other = coerce(left, _HUGEINT), coerce(right, _HUGEINT)
        return Expression(cast_to(f"{one.operand} {symbol} {other.operand}", _HUGEINT), _HUGEINT)
    if symbol == "*":
        precision, scale = a.precision + b.precision, a.scale + b.scale
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    if precision > _NARROW_DIGITS and max(a.precision, b.precision) <= _NARROW_DIGITS:
        precision = _NARROW_DIGITS
    if max(a.precision, b.precision) + min(a.precision, b.precision) >= t.MAX_PRECISION or scale > precision:
        raise Untranslatable(f"{symbol} of {a.simpleString()} and {b.simpleString()}")
    result = DecimalType(precision, scale)
    one, other = casts.cast(left, a), casts.cast(right, b)
    return Expression(cast_to(f"{one.operand} {symbol} {other.operand}", result), result)


def divide(left: Expression, right: Expression) -> Expression:
    """Returns a quotient as a double, which for a divisor of zero is infinity or NaN."""
    if t.FLOAT in (left.type, right.type):
        raise Untranslatable("a division of floats")
    one, other = coerce(left, t.DOUBLE), coerce(right, t.DOUBLE)
    quotient = f"{one.operand} / {other.operand}"
    if right.is_constant and right.constant:
        return Expression(quotient, t.DOUBLE)
    infinity = "double('infinity')"
    if right.type == t.DOUBLE:
        infinity = f"if(string({other.sql}) = '-0.0', -{infinity}, {infinity})"
    by_zero = f"{one.operand} * {infinity}"
    return Expression(f"case when {other.operand} = 0 then {by_zero} else {quotient} end", t.DOUBLE)


def integer_divide(left: Expression, right: Expression) -> Expression:
    """Returns // of integers, which is NULL for a divisor of zero."""
    if not (t.is_integral(left.type) and t.is_integral(right.type)):
        raise Untranslatable(f"// of {left.type.simpleString()} and {right.type.simpleString()}")
    type_ = common([left, right], "//")
    return Expression(cast_to(f"{left.operand} div {_nullif_zero(right)}", type_), type_)


def modulo(left: Expression, right: Expression) -> Expression:
    """Returns % of integers, which is NULL for a divisor of zero."""
    if not (t.is_integral(left.type) and t.is_integral(right.type)):
        raise Untranslatable(f"% of {left.type.simpleString()} and {right.type.simpleString()}")
    type_ = common([left, right], "%")
    one, other = coerce(left, type_), coerce(right, type_)
    return Expression(f"{one.operand} % {_nullif_zero(other)}", type_)


def _nullif_zero(value: Expression) -> str:
    return value.operand if value.is_constant and value.constant else f"nullif({value.sql}, {cast_to('0', value.type)})"


def _bitwise(symbol: str) -> Callable[[Expression, Expression], Expression]:
    def rule(left: Expression, right: Expression) -> Expression:
        if not (t.is_integral(left.type) and t.is_integral(right.type)):
            raise Untranslatable(f"{symbol} of {left.type.simpleString()} and {right.type.simpleString()}")
        type_ = common([left, right], symbol)
        return Expression(f"{coerce(left, type_).operand} {symbol} {coerce(right, type_).operand}", type_)

    return rule


xor = _bitwise("^")

_NUMERIC: dict[type[Node], Callable[[Expression, Expression], Expression]] = {
    exp.Add: _in_common_type("+"),
    exp.Sub: _in_common_type("-"),
    exp.Mul: _in_common_type("*"),
    exp.Div: divide,
    exp.IntDiv: integer_divide,
    exp.Mod: modulo,
    exp.BitwiseAnd: _bitwise("&"),
    exp.BitwiseOr: _bitwise("|"),
}


# -- LIKE


def like(value: Expression, pattern: Expression, escape: str | None) -> Expression:
    """Returns LIKE, whose pattern has no escape character in DuckDB without ESCAPE."""
    if value.type != t.STRING or not isinstance(pattern.constant, str):
        raise Untranslatable("LIKE with a pattern that is no literal")
    text = pattern.constant
    if escape:
        if len(escape) != 1 or escapes_other(text, escape):
            raise Untranslatable("LIKE with such an ESCAPE")
        return Expression(f"{value.operand} LIKE {string(text)} ESCAPE {string(escape)}", t.BOOLEAN)
    return Expression(f"{value.operand} LIKE {string(text.replace(chr(92), chr(92) * 2))}", t.BOOLEAN)


def escapes_other(pattern: str, escape: str) -> bool:
    """Whether a pattern escapes something else than a wildcard or the escape character, which Spark refuses."""
    position = 0
    while (position := pattern.find(escape, position)) >= 0:
        if pattern[position + 1 : position + 2] not in ("%", "_", escape):
            return True
        position += 2
    return False


def guarded(condition: str, what: str, sql: str) -> str:
    """Returns an expression that raises an error for values that only DuckDB can compute it of."""
    return f"case when {condition} then {only_duckdb(what)} else {sql} end"
