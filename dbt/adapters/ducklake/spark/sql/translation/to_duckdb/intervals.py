"""INTERVAL literals, which are added to dates and timestamps."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql.types import DataType, NullType

from .. import types as t
from ..expressions import NOT_CONSTANT, Expression, Untranslatable
from .casts import cast

DAY = 86_400_000_000
INTERVAL_UNITS: dict[str, tuple[int, int]] = {
    "year": (12, 0),
    "quarter": (3, 0),
    "month": (1, 0),
    "week": (0, 7 * DAY),
    "day": (0, DAY),
    "hour": (0, 3_600_000_000),
    "minute": (0, 60_000_000),
    "second": (0, 1_000_000),
    "millisecond": (0, 1_000),
    "microsecond": (0, 1),
}
"""Months and microseconds of a unit."""
_PART = re.compile(r"\s*([+-]?)\s*(\d+)(?:\.(\d{1,6}))?\s+([a-z]+?)s?(?=\s|$)", re.IGNORECASE)


@dataclass(frozen=True)
class Interval(Expression):
    """An interval: either months, or days and what is less than a day."""

    sql: str = ""
    type: DataType = field(default_factory=NullType)
    constant: Any = NOT_CONSTANT
    months: int = 0
    microseconds: int = 0
    has_clock: bool = False
    """Whether it is written with hours or less: then a date plus the interval is a timestamp."""

    def negative(self) -> Interval:
        return replace(self, months=-self.months, microseconds=-self.microseconds)

    def plus(self, other: Interval) -> Interval:
        return Interval(
            months=self.months + other.months,
            microseconds=self.microseconds + other.microseconds,
            has_clock=self.has_clock or other.has_clock,
        )


def parse_interval(value: str, unit: str | None) -> Interval:
    """Returns the interval of a literal: `1` and `DAY`, or `1 day 2 hours`."""
    text = value if unit is None else f"{value.strip()} {unit}"
    position, interval = 0, Interval()
    while position < len(text.rstrip()):
        match = _PART.match(text, position)
        units = match and INTERVAL_UNITS.get(match[4].lower())
        if match is None or units is None or (match[3] and match[4].lower() != "second"):
            raise Untranslatable(f"INTERVAL '{text}'")
        months, microseconds = units
        count = int(match[2])
        fraction = int((match[3] or "").ljust(6, "0"))
        sign = -1 if match[1] == "-" else 1
        part = Interval(
            months=sign * count * months,
            microseconds=sign * (count * microseconds + fraction),
            has_clock=0 < microseconds < DAY,
        )
        interval = interval.plus(part)
        position = match.end()
    if (interval.months and interval.microseconds) or not text.strip():
        raise Untranslatable(f"INTERVAL '{text}'")
    return interval


def shift(value: Expression, interval: Interval) -> Expression:
    """Returns a date or timestamp plus an interval."""
    if interval.months and interval.microseconds:
        raise Untranslatable("an INTERVAL of months and days")
    if value.type == t.STRING:
        value = cast(value, t.TIMESTAMP)
    if value.type == t.DATE:
        return _shift_date(value, interval)
    if value.type not in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        raise Untranslatable(f"an INTERVAL added to {value.type.simpleString()}")
    if interval.months:
        return Expression(f"{value.operand} + {_interval(interval.months, 'MONTH')}", value.type)
    sign = -1 if interval.microseconds < 0 else 1
    days, rest = divmod(abs(interval.microseconds), DAY)
    text = value.operand
    # First the days, which are as long as they are in the time zone. Days that an island left out are no days here.
    if days:
        text = f"{text} + {_interval(sign * days, 'DAY')}"
    if rest:
        text = f"{f'({text})' if days else text} + {_clock(sign * rest)}"
    return Expression(text, value.type)


def _shift_date(value: Expression, interval: Interval) -> Expression:
    if interval.months:
        return Expression(f"CAST({value.operand} + {_interval(interval.months, 'MONTH')} AS DATE)", t.DATE)
    if interval.has_clock:
        return shift(cast(value, t.TIMESTAMP), interval)
    return Expression(f"{value.operand} + {_number(interval.microseconds // DAY)}", t.DATE)


def _interval(count: int, unit: str) -> str:
    return f"INTERVAL {_number(count)} {unit}"


def _clock(microseconds: int) -> str:
    for unit in ("hour", "minute", "second"):
        size = INTERVAL_UNITS[unit][1]
        if microseconds % size == 0:
            return _interval(microseconds // size, unit.upper())
    return _interval(microseconds, "MICROSECOND")


def _number(count: int) -> str:
    return str(count) if count >= 0 else f"({count})"
