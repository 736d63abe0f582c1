"""Durations such as `7 days`, as the options of a lake have them, and how long ago they are."""

from __future__ import annotations

import calendar
import datetime
import re

_PART = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*"
    r"(us|microseconds?|ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?|w|weeks?"
    r"|mons?|months?|quarters?|y|years?)(?![a-z])\s*",
    re.IGNORECASE,
)
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.IGNORECASE)
_MICROSECONDS = {
    unit: factor
    for units, factor in (
        (("us", "microsecond"), 1),
        (("ms", "millisecond"), 1_000),
        (("s", "sec", "second"), 1_000_000),
        (("m", "min", "minute"), 60_000_000),
        (("h", "hour"), 3_600_000_000),
        (("d", "day"), 86_400_000_000),
        (("w", "week"), 7 * 86_400_000_000),
    )
    for unit in units
}
_MONTHS = {"mon": 1, "month": 1, "quarter": 3, "y": 12, "year": 12}
_DAYS_OF_PART_OF_A_MONTH = 30
_BEFORE_EVERYTHING = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)


def is_duration(text: str) -> bool:
    """Whether a text is a duration such as `7 days` or `1 month 12 hours`."""
    return _DURATION.fullmatch(text) is not None


def moment_before(now: datetime.datetime, duration: str) -> datetime.datetime:
    """The moment that lies a duration such as `7 days` before another one. Months and years are those of the calendar.

    The day is the month's last one if the month is shorter. A fraction of a month counts as that of 30 days.
    """
    if not is_duration(duration):
        raise ValueError("a duration such as 7 days")
    months, microseconds = 0.0, 0.0
    for number, unit in _PART.findall(duration):
        unit = unit.lower() if unit.lower() in ("us", "ms", "s") else unit.lower().removesuffix("s")
        if unit in _MONTHS:
            months += float(number) * _MONTHS[unit]
        else:
            microseconds += float(number) * _MICROSECONDS[unit]
    whole_months = int(months)
    microseconds += (months - whole_months) * _DAYS_OF_PART_OF_A_MONTH * _MICROSECONDS["day"]
    year, month = divmod(now.year * 12 + now.month - 1 - whole_months, 12)
    if year < _BEFORE_EVERYTHING.year:
        return _BEFORE_EVERYTHING
    day = min(now.day, calendar.monthrange(year, month + 1)[1])
    try:
        moment = now.replace(year=year, month=month + 1, day=day) - datetime.timedelta(microseconds=microseconds)
    except OverflowError:
        return _BEFORE_EVERYTHING
    return max(moment, _BEFORE_EVERYTHING)
