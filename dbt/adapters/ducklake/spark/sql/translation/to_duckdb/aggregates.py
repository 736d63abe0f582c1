"""Aggregate and window functions, from Spark to DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql.types import ArrayType, DecimalType

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..scalars import AggregateCall
from .arithmetic import coerce, typed
from .casts import cast, type_name
from .words import string

_Rule = Callable[[AggregateCall], Expression]


def aggregate(call: AggregateCall) -> Expression:
    rule = WINDOW_FUNCTIONS.get(call.name) if call.over is not None else None
    rule = rule or AGGREGATES.get(call.name)
    if rule is None:
        raise Untranslatable(f"{call.name}()")
    if call.ignores_nulls and call.name not in _TAKES_IGNORE_NULLS:
        raise Untranslatable(f"{call.name}() IGNORE NULLS")
    if call.order and call.name not in _TAKES_ORDER:
        raise Untranslatable(f"{call.name}() with an order")
    if call.has_star and call.name != "count":
        raise Untranslatable(f"{call.name}(*)")
    if call.is_distinct and call.over is not None:
        raise Untranslatable(f"{call.name}(DISTINCT) over a window")
    if call.over is not None and call.name in _NEEDS_FRAMELESS and call.over.frame:
        raise Untranslatable(f"{call.name}() with a frame")
    return rule(call)


def _one(call: AggregateCall) -> Expression:
    if len(call.arguments) != 1:
        raise Untranslatable(f"{call.name}() with {len(call.arguments)} arguments")
    return call.arguments[0]


def _count(call: AggregateCall) -> Expression:
    if call.has_star:
        return Expression(call.text("count(*)"), t.LONG)
    if len(call.arguments) == 1:
        value = call.arguments[0]
        if not t.is_atomic_type(value.type) and call.is_distinct:
            raise Untranslatable(f"count(DISTINCT) of {value.type.simpleString()}")
        return Expression(call.text(f"count({{d}}{value.sql})"), t.LONG)
    # Rows in which one of several values is NULL are not counted.
    values = [v for v in call.arguments if t.is_atomic_type(v.type)]
    if len(values) != len(call.arguments) or not values:
        raise Untranslatable("count() of values that are not simple")
    complete = Expression(" AND ".join(f"{v.operand} IS NOT NULL" for v in values), t.BOOLEAN)
    row = ", ".join(v.sql for v in values)
    return Expression(call.text(f"count({{d}}row({row}))", complete), t.LONG)


def _sum(call: AggregateCall) -> Expression:
    value = _one(call)
    if t.is_integral(value.type):
        return Expression(f"CAST({call.text(f'sum({{d}}{value.sql})')} AS BIGINT)", t.LONG)
    if isinstance(value.type, DecimalType):
        result = DecimalType(min(t.MAX_PRECISION, value.type.precision + 10), value.type.scale)
        return Expression(f"CAST({call.text(f'sum({{d}}{value.sql})')} AS {type_name(result)})", result)
    double = coerce(value, t.DOUBLE) if t.is_fractional(value.type) or value.type == t.STRING else None
    if double is None:
        raise Untranslatable(f"sum() of {value.type.simpleString()}")
    return Expression(call.text(f"sum({{d}}{double.sql})"), t.DOUBLE)


def _avg(call: AggregateCall) -> Expression:
    value = _one(call)
    if isinstance(value.type, DecimalType):
        return _avg_of_decimals(call, value, value.type)
    if not t.is_numeric(value.type) and value.type != t.STRING:
        raise Untranslatable(f"avg() of {value.type.simpleString()}")
    return Expression(call.text(f"avg({{d}}{coerce(value, t.DOUBLE).sql})"), t.DOUBLE)


def _avg_of_decimals(call: AggregateCall, value: Expression, type_: DecimalType) -> Expression:
    """Returns the mean of decimals with four more digits, rounded half up."""
    scale = min(t.MAX_PRECISION, type_.scale + 4)
    result = DecimalType(min(t.MAX_PRECISION, type_.precision + 4), scale)
    if type_.precision + type_.scale + 14 > t.MAX_PRECISION:
        raise Untranslatable(f"avg() of {type_.simpleString()}")
    digits = f"CAST({call.text(f'sum({{d}}{value.sql})')} * {10**type_.scale} AS HUGEINT) * 10000"
    count = call.text(f"count({{d}}{value.sql})")
    half_up = f"CASE WHEN 2 * abs(({digits}) % {count}) >= {count} THEN sign({digits}) ELSE 0 END"
    point = f"CAST(0.{'1'.rjust(scale, '0')} AS DECIMAL({scale}, {scale}))"
    mean = f"CAST(({digits}) // {count} + {half_up} AS DECIMAL(38, 0)) * {point}"
    return Expression(f"CAST({mean} AS {type_name(result)})", result)


def _extreme(function: str) -> _Rule:
    def rule(call: AggregateCall) -> Expression:
        value = _one(call)
        if not t.is_atomic_type(value.type):
            raise Untranslatable(f"{function}() of {value.type.simpleString()}")
        return Expression(call.text(f"{function}({typed(value)})"), value.type)

    return rule


def _extreme_by(function: str) -> _Rule:
    def rule(call: AggregateCall) -> Expression:
        if len(call.arguments) != 2 or call.is_distinct or not t.is_atomic_type(call.arguments[1].type):
            raise Untranslatable(f"{call.name}() with such arguments")
        value, key = call.arguments
        return Expression(call.text(f"{function}({typed(value)}, {key.sql})"), value.type)

    return rule


def _boolean(function: str) -> _Rule:
    def rule(call: AggregateCall) -> Expression:
        return Expression(call.text(f"{function}({coerce(_one(call), t.BOOLEAN).sql})"), t.BOOLEAN)

    return rule


def _count_if(call: AggregateCall) -> Expression:
    condition = coerce(_one(call), t.BOOLEAN)
    if call.is_distinct:
        raise Untranslatable("count_if(DISTINCT)")
    return Expression(call.text("count(*)", condition), t.LONG)


def _edge(function: str) -> _Rule:
    """Returns the rule of first and last."""

    def rule(call: AggregateCall) -> Expression:
        ignores_nulls = call.ignores_nulls
        arguments = list(call.arguments)
        if len(arguments) == 2 and isinstance(arguments[1].constant, bool):
            ignores_nulls = ignores_nulls or arguments.pop().constant
        if len(arguments) != 1 or call.is_distinct:
            raise Untranslatable(f"{call.name}() with such arguments")
        value = arguments[0]
        if call.over is not None:
            nulls = " IGNORE NULLS" if ignores_nulls else ""
            return Expression(call.text(f"{function}_value({typed(value)}{nulls})"), value.type)
        present = Expression(f"{value.operand} IS NOT NULL", t.BOOLEAN) if ignores_nulls else None
        return Expression(call.text(f"{function}({typed(value)})", present), value.type)

    return rule


def _list(call: AggregateCall) -> Expression:
    value = _one(call)
    present = Expression(f"{value.operand} IS NOT NULL", t.BOOLEAN)
    found = call.text(f"list({{d}}{typed(value)})", present)
    return Expression(f"coalesce({found}, [])", ArrayType(value.type, False))


def _string_agg(call: AggregateCall) -> Expression:
    """Returns listagg, which leaves NULLs out and is NULL without any value."""
    if not call.arguments or len(call.arguments) > 2 or call.over is not None:
        raise Untranslatable(f"{call.name}() with such arguments")
    value = call.arguments[0]
    delimiter = call.arguments[1] if len(call.arguments) == 2 else Expression("''", t.STRING, "")
    if delimiter.type == t.NULL:
        delimiter = Expression("''", t.STRING, "")
    if not delimiter.is_constant or value.type == t.BINARY:
        raise Untranslatable(f"{call.name}() with such arguments")
    text = cast(value, t.STRING)
    keys = [(text if key.sql == value.sql else key, direction) for key, direction in call.order]
    if call.is_distinct and any(key.sql != text.sql for key, _ in keys):
        raise Untranslatable(f"{call.name}(DISTINCT) in another order")
    order = " ORDER BY " + ", ".join(f"{key.operand}{direction}" for key, direction in keys) if keys else ""
    return Expression(
        call.text(f"string_agg({{d}}{text.sql}, {string(str(delimiter.constant))}{{o}})", order=order), t.STRING
    )


def _grouping(call: AggregateCall) -> Expression:
    return Expression(f"CAST(grouping({_one(call).sql}) AS TINYINT)", t.BYTE)


# -- window functions


def _rank(function: str) -> _Rule:
    def rule(call: AggregateCall) -> Expression:
        if call.arguments or call.over is None:
            raise Untranslatable(f"{call.name}() with arguments")
        return Expression(f"CAST({call.text(f'{function}()')} AS INTEGER)", t.INT)

    return rule


def _share(function: str) -> _Rule:
    def rule(call: AggregateCall) -> Expression:
        return Expression(call.text(f"{function}()"), t.DOUBLE)

    return rule


def _ntile(call: AggregateCall) -> Expression:
    buckets = _one(call)
    if not isinstance(buckets.constant, int):
        raise Untranslatable("ntile() of something else than a literal")
    return Expression(f"CAST({call.text(f'ntile({buckets.sql})')} AS INTEGER)", t.INT)


def _shifted(function: str) -> _Rule:
    """Returns the rule of lag and lead."""

    def rule(call: AggregateCall) -> Expression:
        if not 1 <= len(call.arguments) <= 3:
            raise Untranslatable(f"{function}() with such arguments")
        value = call.arguments[0]
        parts = [typed(value)]
        if len(call.arguments) > 1:
            offset = call.arguments[1]
            if not isinstance(offset.constant, int):
                raise Untranslatable(f"{function}() with an offset that is no literal")
            parts.append(offset.sql)
        if len(call.arguments) > 2:
            default = call.arguments[2]
            if default.type != t.NULL and t.widest(value.type, default.type) != value.type:
                raise Untranslatable(f"{function}() with a default of another type")
            parts.append(coerce(default, value.type).sql)
        nulls = " IGNORE NULLS" if call.ignores_nulls else ""
        return Expression(call.text(f"{function}({', '.join(parts)}{nulls})"), value.type)

    return rule


def _nth_value(call: AggregateCall) -> Expression:
    if len(call.arguments) != 2 or not isinstance(call.arguments[1].constant, int):
        raise Untranslatable("nth_value() with such arguments")
    value, position = call.arguments
    nulls = " IGNORE NULLS" if call.ignores_nulls else ""
    return Expression(call.text(f"nth_value({typed(value)}, {position.sql}{nulls})"), value.type)


AGGREGATES: Mapping[str, _Rule] = {
    "count": _count,
    "sum": _sum,
    "avg": _avg,
    "mean": _avg,
    "min": _extreme("min"),
    "max": _extreme("max"),
    "min_by": _extreme_by("arg_min_null"),
    "max_by": _extreme_by("arg_max_null"),
    **{name: _boolean("bool_or") for name in ("bool_or", "any", "some")},
    **{name: _boolean("bool_and") for name in ("bool_and", "every")},
    "count_if": _count_if,
    **{name: _edge("first") for name in ("first", "first_value", "any_value")},
    **{name: _edge("last") for name in ("last", "last_value")},
    **dict.fromkeys(("collect_list", "array_agg"), _list),
    **dict.fromkeys(("listagg", "string_agg"), _string_agg),
    "grouping": _grouping,
}
WINDOW_FUNCTIONS: Mapping[str, _Rule] = {
    "row_number": _rank("row_number"),
    "rank": _rank("rank"),
    "dense_rank": _rank("dense_rank"),
    "percent_rank": _share("percent_rank"),
    "cume_dist": _share("cume_dist"),
    "ntile": _ntile,
    "lag": _shifted("lag"),
    "lead": _shifted("lead"),
    "nth_value": _nth_value,
}
_TAKES_IGNORE_NULLS = ("first", "first_value", "any_value", "last", "last_value", "lag", "lead", "nth_value")
_TAKES_ORDER = ("listagg", "string_agg")
_NEEDS_FRAMELESS = (*("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"),)
