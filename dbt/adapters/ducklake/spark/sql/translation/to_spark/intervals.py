"""Intervals that are added to dates and timestamps, from DuckDB to Spark."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import DataType, NullType

from .. import types as t
from ..expressions import NOT_CONSTANT, Expression, Untranslatable
from . import casts

_UNITS = {
    "year": ("month", 12),
    "quarter": ("month", 3),
    "month": ("month", 1),
    "week": ("day", 7),
    "day": ("day", 1),
    "hour": ("hour", 1),
    "minute": ("minute", 1),
    "second": ("second", 1),
}
FUNCTIONS = {f"to_{unit}s": unit for unit in _UNITS}
_TEXT = re.compile(r"(-?\d{1,6}) ([a-z]+?)s?", re.IGNORECASE)
_CONSTRUCTORS = {
    "month": "make_ym_interval(0, {})",
    "day": "make_dt_interval({})",
    "hour": "make_dt_interval(0, {})",
    "minute": "make_dt_interval(0, 0, {})",
    "second": "make_dt_interval(0, 0, 0, {})",
}
_MOST_OF_A_DAY = {"hour": 23, "minute": 23 * 60, "second": 23 * 3600}
"""Longer intervals of clock time are days for Spark, which in a time zone can be longer or shorter."""


@dataclass(frozen=True)
class Interval(Expression):
    """An interval of one unit."""

    sql: str = ""
    type: DataType = field(default_factory=NullType)
    constant: Any = NOT_CONSTANT
    unit: str = "day"
    count: str = "0"
    is_short: bool = True
    """Whether it is known to be shorter than a day."""


def interval(unit: str, count: Expression) -> Interval:
    """Returns an interval of so many units."""
    if unit not in _UNITS or count.type not in t.INTEGRAL_TYPES[:3]:
        raise Untranslatable(f"INTERVAL of {count.type.simpleString()} in {unit}s")
    base, factor = _UNITS[unit]
    number = count.operand if factor == 1 else f"{count.operand} * {factor}"
    is_short = isinstance(count.constant, int) and abs(count.constant) <= _MOST_OF_A_DAY.get(base, 0)
    return Interval(unit=base, count=number, is_short=is_short)


def parse_interval(text: str) -> Interval:
    """Returns the interval of a text such as `2 months`."""
    match = _TEXT.fullmatch(text.strip())
    if match is None:
        raise Untranslatable(f"INTERVAL '{text}'")
    return interval(match[2].lower(), Expression(str(int(match[1])), t.INT, int(match[1])))


def shift(value: Expression, distance: Interval, sign: str) -> Expression:
    """Returns a date or timestamp plus or minus an interval; of a date, a timestamp."""
    if value.type == t.DATE:
        value = casts.cast(value, t.TIMESTAMP_NTZ)
    is_clock = distance.unit in _MOST_OF_A_DAY
    if value.type != t.TIMESTAMP_NTZ and not (value.type == t.TIMESTAMP and is_clock and distance.is_short):
        raise Untranslatable(f"an INTERVAL added to {value.type.simpleString()}")
    text = _CONSTRUCTORS[distance.unit].format(distance.count)
    return Expression(f"{value.operand} {sign} {text}", value.type)
