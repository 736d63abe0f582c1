"""Literals of predicates as intervals that compare with the bounds of a column as Spark compares them.

Mostly such an interval is a single value. It is wider if it is open which value Spark compares: a number as a
32-bit or a 64-bit float, or a local time that occurred twice when the clocks changed.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from .predicates import Operator, Value
from .types import FLOATS, INTEGER_RANGES, TIMESTAMPS, decimal_parts
from .values import NANOSECONDS_PER_DAY, float32, nanoseconds_per_unit, parse_value

Bounds: TypeAlias = tuple[Any, Any]
BoundParser: TypeAlias = Callable[[str], Bounds | None]
"""Parses the catalog's text of a bound to the lowest and highest value that it may stand for."""

_INTEGER = re.compile(r"\s*[+-]?\d+\s*")
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?")
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class LiteralInterval:
    """A literal beside a column of one type: the value that Spark compares lies between `low` and `high`."""

    low: Any
    high: Any
    parse_bound: BoundParser
    """Parses the column's bounds to values that compare with `low` and `high`."""
    is_day: bool = False
    """Whether it is a day, counted since 1970. Other dates and times are in nanoseconds."""

    @property
    def is_point(self) -> bool:
        return bool(self.low == self.high)

    def parse_bounds(self, low: str | None, high: str | None) -> Bounds:
        return parse_bounds(self.parse_bound, low, high)

    def may_match(self, operator: Operator, low: Any, high: Any) -> bool:
        """Whether `value <operator> literal` can hold for a value from `low` to `high`; None is no bound."""
        if operator == "<>":
            return not (low is not None and low == high == self.low == self.high)
        if operator in ("=", "<=") and low is not None and low > self.high:
            return False
        if operator in ("=", ">=") and high is not None and high < self.low:
            return False
        if operator == "<" and low is not None:
            return bool(low < self.high)
        if operator == ">" and high is not None:
            return bool(high > self.low)
        return True


def parse_bounds(parse_bound: BoundParser, low: str | None, high: str | None) -> Bounds:
    """The lowest and highest value that a pair of bounds allows; None for a bound that is missing or unreadable."""
    lowest = parse_bound(low) if low is not None else None
    highest = lowest if high == low else (parse_bound(high) if high is not None else None)
    return (lowest[0] if lowest else None), (highest[1] if highest else None)


def literal_interval(value: Value, type_: str, zone: datetime.tzinfo | None) -> LiteralInterval | None:
    """The literal beside a column of the type; None if it is uncertain how Spark compares the two."""
    try:
        if type_ in INTEGER_RANGES or decimal_parts(type_) or type_ in FLOATS:
            return _number_interval(value, type_)
        if type_ == "date" or type_ in TIMESTAMPS:
            return _time_interval(value, type_, zone)
    except (ValueError, OverflowError):  # no such day, or a day outside of Python's range
        return None
    if type_ == "boolean":
        return _point(value, type_) if isinstance(value, bool) else None
    if type_ in ("varchar", "json"):
        return _point(value, type_) if isinstance(value, str) else None
    if type_ == "blob":
        return _point(value, type_) if isinstance(value, bytes) else None
    if type_ == "uuid" and isinstance(value, bytes) and len(value) == 16:
        return _point(str(uuid.UUID(bytes=value)), type_)
    return _point(value, type_) if type_ == "uuid" and isinstance(value, str) else None


def _point(value: Any, type_: str) -> LiteralInterval:
    return LiteralInterval(value, value, bound_parser(type_))


def _number_interval(value: Value, type_: str) -> LiteralInterval | None:
    if isinstance(value, bool | bytes | datetime.date):
        return None
    if isinstance(value, str):
        # Spark casts the string to an integer beside an integer column, and to a double beside other numbers.
        if not (_INTEGER if type_ in INTEGER_RANGES else _NUMBER).fullmatch(value):
            return None
        value = int(value) if type_ in INTEGER_RANGES else float(value)
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        return None
    if type_ in FLOATS or isinstance(value, float):
        return None if math.isnan(value) else LiteralInterval(*_float_bounds(value), _parse_float_bound)
    return _point(value, type_) if _has_exact_common_type(decimal.Decimal(value), type_) else None


def _has_exact_common_type(value: decimal.Decimal, type_: str) -> bool:
    """Whether Spark has a decimal type that holds both the literal and the column's values without rounding."""
    parts = decimal_parts(type_)
    integer_digits, scale = (parts[0] - parts[1], parts[1]) if parts else (20, 0)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return max(integer_digits, len(digits) + exponent) + max(scale, -exponent) <= 38


def _float_bounds(number: float | decimal.Decimal) -> tuple[float, float]:
    """The number as a 64-bit and as a 32-bit float, the lower one first: Spark may compare either."""
    try:
        double = float(number)
    except OverflowError:
        double = math.copysign(math.inf, number)
    single = float32(double)
    return (double, single) if double <= single else (single, double)


def _time_interval(value: Value, type_: str, zone: datetime.tzinfo | None) -> LiteralInterval | None:
    if isinstance(value, str):
        parsed = _parse_date_or_timestamp(value)
        if parsed is None or (type_ == "date" and isinstance(parsed, datetime.datetime)):
            return None
        value = parsed
    if not isinstance(value, datetime.date):
        return None
    if type_ == "date" and not isinstance(value, datetime.datetime):
        days = (value - _EPOCH.date()).days
        return LiteralInterval(days, days, bound_parser("date"), is_day=True)
    moment = value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
    if type_ == "timestamptz":
        low, high = _instants(moment, zone)
    elif moment.tzinfo is not None:
        return None
    else:
        # Spark may compare two local times, or their instants in its time zone. Both give the same result unless
        # the zone's UTC offset changes nearby.
        margin = 0 if zone is not None and _has_constant_offset(moment, zone) else NANOSECONDS_PER_DAY
        low, high = _nanoseconds(moment) - margin, _nanoseconds(moment) + margin
    return LiteralInterval(low, high, _parse_date_as_midnight if type_ == "date" else bound_parser(type_))


def _parse_date_or_timestamp(text: str) -> datetime.date | None:
    if _DATE.fullmatch(text):
        return datetime.date.fromisoformat(text)
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return None
    day = datetime.date.fromisoformat(match[1])
    clock = datetime.time(int(match[2]), int(match[3]), int(match[4]), int((match[5] or "").ljust(6, "0")))
    return datetime.datetime.combine(day, clock)


def _instants(moment: datetime.datetime, zone: datetime.tzinfo | None) -> tuple[int, int]:
    """The first and last instant, in nanoseconds, that a local time in the zone may be."""
    if moment.tzinfo is not None:
        offset = moment.utcoffset() or datetime.timedelta()
        instant = _nanoseconds(moment.replace(tzinfo=None) - offset)
        return instant, instant
    if zone is None:
        raise ValueError("the session's time zone is unknown")
    offsets = [moment.replace(tzinfo=zone, fold=fold).utcoffset() or datetime.timedelta() for fold in (0, 1)]
    first, last = sorted(_nanoseconds(moment - offset) for offset in offsets)
    return first, last


def _has_constant_offset(moment: datetime.datetime, zone: datetime.tzinfo) -> bool:
    """Whether the zone's UTC offset stays the same from two days before the local time to two days after it."""
    nearby = (moment + datetime.timedelta(days=days) for days in (-2, -1, 0, 1, 2))
    return len({time.replace(tzinfo=zone, fold=fold).utcoffset() for time in nearby for fold in (0, 1)}) == 1


def _nanoseconds(moment: datetime.datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def session_time_zone(name: str) -> datetime.tzinfo | None:
    """The time zone of a Spark session by its name; None if it is unknown on this machine."""
    match = _OFFSET.fullmatch(name)
    if match:
        offset = datetime.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return datetime.timezone(offset if match[1] == "+" else -offset)
    try:
        return datetime.timezone.utc if name in ("UTC", "GMT", "Z") else ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not in the machine's time zone database
        return None


@lru_cache(maxsize=1024)
def bound_parser(type_: str) -> BoundParser:
    """The parser for bounds of a column that is compared in its own type. The same type gives the same parser."""

    def parse_bound(text: str) -> Bounds | None:
        value = parse_value(text, type_)
        if value is None:
            return None
        if type_ == "timestamp_ns" and isinstance(value, int):
            return value - 999, value + 999  # Spark reads timestamps as microseconds
        if type_ in TIMESTAMPS and isinstance(value, int) and value % (unit := nanoseconds_per_unit(type_)):
            return value - unit, value + unit  # a finer value of a file that was added; readers round it
        return value, value

    return parse_bound


def _parse_float_bound(text: str) -> Bounds | None:
    # The text of a 32-bit float is another number in 64 bits, so the interval covers both.
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else _float_bounds(number)


def _parse_date_as_midnight(text: str) -> Bounds | None:
    days: Any = parse_value(text, "date")
    return None if days is None else (days * NANOSECONDS_PER_DAY, days * NANOSECONDS_PER_DAY)
