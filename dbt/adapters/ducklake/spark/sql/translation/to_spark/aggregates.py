"""Aggregate and window functions, from DuckDB to Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql.types import DecimalType

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..scalars import AggregateCall
from .arithmetic import coerce, is_integer_literal
from .casts import cast
from .words import cast_to

_Rule = Callable[[AggregateCall], Expression]
_HUGEINT = DecimalType(t.MAX_PRECISION, 0)


def aggregate(call: AggregateCall) -> Expression:
    rule = WINDOW_FUNCTIONS.get(call.name) if call.over is not None else None
    rule = rule or AGGREGATES.get(call.name)
    if rule is None:
        raise Untranslatable(f"{call.name}()")
    if call.ignores_nulls and call.name not in _TAKES_IGNORE_NULLS:
        raise Untranslatable(f"{call.name}() IGNORE NULLS")
    if call.order and call.name not in _TAKES_ORDER:
        raise Untranslatable(f"{call.name}() with an order")
    if call.over is not None and call.is_distinct:
        raise Untranslatable(f"{call.name}(DISTINCT) over a window")
    if call.over is not None and call.name in _FRAMELESS and call.over.frame:
        raise Untranslatable(f"{call.name}() with a frame")
    if call.over is not None and call.name in _FRAMELESS and not call.over.has_order:
        raise Untranslatable(f"{call.name}() without an order")
    return rule(call)


def _one(call: AggregateCall) -> Expression:
    if len(call.arguments) != 1:
        raise Untranslatable(f"{call.name}() with {len(call.arguments)} arguments")
    return call.arguments[0]


def _count(call: AggregateCall) -> Expression:
    if call.name == "count_star" or (not call.arguments and not call.is_distinct):
        return Expression(call.text("count(*)"), t.LONG)
    value = _one(call)
    if call.is_distinct and not t.is_atomic_type(value.type):
        raise Untranslatable(f"count(DISTINCT) of {value.type.simpleString()}")
    return Expression(call.text(f"count({{d}}{value.sql})"), t.LONG)


def _sum(call: AggregateCall) -> Expression:
    value = _one(call)
    if t.is_integral(value.type):
        return Expression(call.text(f"sum({{d}}{cast_to(value.sql, _HUGEINT)})"), _HUGEINT)
    if isinstance(value.type, DecimalType):
        result = DecimalType(t.MAX_PRECISION, value.type.scale)
        return Expression(cast_to(call.text(f"sum({{d}}{value.sql})"), result), result)
    if value.type != t.DOUBLE:
        raise Untranslatable(f"sum() of {value.type.simpleString()}")
    return Expression(call.text(f"sum({{d}}{value.sql})"), t.DOUBLE)


def _avg(call: AggregateCall) -> Expression:
    value = _one(call)
    if t.is_integral(value.type):
        total = cast(Expression(call.text(f"sum({{d}}{cast_to(value.sql, _HUGEINT)})"), _HUGEINT), t.DOUBLE)
        return Expression(f"{total.operand} / nullif({call.text(f'count({{d}}{value.sql})')}, 0)", t.DOUBLE)
    if value.type != t.DOUBLE:
        raise Untranslatable(f"avg() of {value.type.simpleString()}")
    return Expression(call.text(f"avg({{d}}{value.sql})"), t.DOUBLE)


def _extreme(function: str) -> _Rule:
    def rule(call: AggregateCall) -> Expression:
        value = _one(call)
        if not t.is_atomic_type(value.type):
            raise Untranslatable(f"{function}() of {value.type.simpleString()}")
        return Expression(call.text(f"{function}({value.sql})"), value.type)

    return rule


def _extreme_by(function: str) -> _Rule:
    """Returns the rule of arg_min and arg_max, which leave out rows in which either argument is NULL."""

    def rule(call: AggregateCall) -> Expression:
        if len(call.arguments) != 2 or call.is_distinct or call.over is not None:
            raise Untranslatable(f"{call.name}() with such arguments")
        value, key = call.arguments
        if not t.is_atomic_type(key.type):
            raise Untranslatable(f"{call.name}() by {key.type.simpleString()}")
        present = Expression(f"{value.operand} IS NOT NULL AND {key.operand} IS NOT NULL", t.BOOLEAN)
        return Expression(call.text(f"{function}({value.sql}, {key.sql})", present), value.type)

    return rule


def _boolean(call: AggregateCall) -> Expression:
    value = _one(call)
    if value.type != t.BOOLEAN:
        raise Untranslatable(f"{call.name}() of {value.type.simpleString()}")
    return Expression(call.text(f"{call.name}({value.sql})"), t.BOOLEAN)


def _edge(function: str, leaves_out_nulls: bool) -> _Rule:
    """Returns the rule of first, last and any_value."""

    def rule(call: AggregateCall) -> Expression:
        value = _one(call)
        if call.is_distinct:
            raise Untranslatable(f"{call.name}(DISTINCT)")
        if leaves_out_nulls:
            if call.over is not None:
                raise Untranslatable(f"{call.name}() over a window")
            present = Expression(f"{value.operand} IS NOT NULL", t.BOOLEAN)
            return Expression(call.text(f"{function}({value.sql})", present), value.type)
        flag = ", true" if call.ignores_nulls else ""
        return Expression(call.text(f"{function}({value.sql}{flag})"), value.type)

    return rule


def _string_agg(call: AggregateCall) -> Expression:
    if not 1 <= len(call.arguments) <= 2 or call.over is not None or call.arguments[0].type != t.STRING:
        raise Untranslatable(f"{call.name}() with such arguments")
    value = call.arguments[0]
    delimiter = call.arguments[1] if len(call.arguments) == 2 else Expression("','", t.STRING, ",")
    if not isinstance(delimiter.constant, str):
        raise Untranslatable(f"{call.name}() with a delimiter that is no literal")
    if call.is_distinct and any(key.sql != value.sql for key, _ in call.order):
        raise Untranslatable(f"{call.name}(DISTINCT) in another order")
    order = ", ".join(f"{key.operand}{direction}" for key, direction in call.order)
    within = f" WITHIN GROUP (ORDER BY {order})" if order else ""
    return Expression(call.text(f"listagg({{d}}{value.sql}, {delimiter.sql}){within}"), t.STRING)


# -- window functions


def _rank(function: str) -> _Rule:
    def rule(call: AggregateCall) -> Expression:
        if call.arguments:
            raise Untranslatable(f"{call.name}() with arguments")
        return Expression(cast_to(call.text(f"{function}()"), t.LONG), t.LONG)

    return rule


def _share(function: str) -> _Rule:
    def rule(call: AggregateCall) -> Expression:
        if call.arguments:
            raise Untranslatable(f"{call.name}() with arguments")
        return Expression(call.text(f"{function}()"), t.DOUBLE)

    return rule


def _ntile(call: AggregateCall) -> Expression:
    buckets = _one(call)
    if not is_integer_literal(buckets) or buckets.constant < 1:
        raise Untranslatable("ntile() of something else than a literal")
    return Expression(cast_to(call.text(f"ntile({buckets.sql})"), t.LONG), t.LONG)


def _shifted(function: str) -> _Rule:
    """Returns the rule of lag and lead."""

    def rule(call: AggregateCall) -> Expression:
        if not 1 <= len(call.arguments) <= 3:
            raise Untranslatable(f"{function}() with such arguments")
        value, *others = call.arguments
        parts = [value.sql]
        if others:
            if not is_integer_literal(others[0]) or others[0].constant < 0:
                raise Untranslatable(f"{function}() with an offset that is no literal")
            parts.append(others[0].sql)
        if others[1:]:
            parts.append(coerce(others[1], value.type).sql)
        nulls = " IGNORE NULLS" if call.ignores_nulls else ""
        over = call.over.sql if call.over is not None else ""
        return Expression(f"{function}({', '.join(parts)}){nulls}{over}", value.type)

    return rule


def _nth_value(call: AggregateCall) -> Expression:
    if len(call.arguments) != 2 or not is_integer_literal(call.arguments[1]) or call.ignores_nulls:
        raise Untranslatable("nth_value() with such arguments")
    value, position = call.arguments
    return Expression(call.text(f"nth_value({value.sql}, {position.sql})"), value.type)


AGGREGATES: Mapping[str, _Rule] = {
    "count": _count,
    "count_star": _count,
    "sum": _sum,
    "avg": _avg,
    "mean": _avg,
    "min": _extreme("min"),
    "max": _extreme("max"),
    **{name: _extreme_by("min_by") for name in ("arg_min", "argmin", "min_by")},
    **{name: _extreme_by("max_by") for name in ("arg_max", "argmax", "max_by")},
    "bool_or": _boolean,
    "bool_and": _boolean,
    "any_value": _edge("first", leaves_out_nulls=True),
    "first": _edge("first", leaves_out_nulls=False),
    "last": _edge("last", leaves_out_nulls=False),
    "first_value": _edge("first_value", leaves_out_nulls=False),
    "last_value": _edge("last_value", leaves_out_nulls=False),
    **dict.fromkeys(("string_agg", "listagg", "group_concat"), _string_agg),
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
_TAKES_IGNORE_NULLS = ("first_value", "last_value", "lag", "lead")
_TAKES_ORDER = ("string_agg", "listagg", "group_concat")
_FRAMELESS = ("row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead")
