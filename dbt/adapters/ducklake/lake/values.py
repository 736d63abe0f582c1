"""Encoding of scalar values: text in the catalog, comparable values in Python.

Statistics and partition values are text in the catalog. `parse_value` converts such a text to a Python value that
sorts as the column does. `render_value` writes the text as the reference writes it.

==================  ============================================================
type                comparable value
==================  ============================================================
integers, decimals  int, Decimal
floats              float; a float32 is exactly the number in its four bytes
boolean             bool
date                int, days since 1970; -inf and inf for infinite dates
timestamps          int, nanoseconds since 1970, of timestamptz in UTC; -inf and inf
time, time_ns       int, nanoseconds since midnight
uuid                str in lower case
varchar, json       str
blob                bytes
==================  ============================================================
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import struct
import uuid
from typing import Any, TypeAlias

from .types import FLOATS, INTEGER_RANGES, TIMESTAMPS, decimal_parts

Comparable: TypeAlias = bool | int | float | decimal.Decimal | str | bytes

NANOSECONDS_PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
NANOSECONDS_PER_DAY = 86_400 * 10**9

_TIMESTAMP_UNIT = {
    "timestamp": "us",
    "timestamp_us": "us",
    "timestamptz": "us",
    "timestamp_s": "s",
    "timestamp_ms": "ms",
    "timestamp_ns": "ns",
}
_EPOCH = datetime.datetime(1970, 1, 1)
_INTEGER = re.compile(r"[+-]?\d+")
_DATE = re.compile(r"(\d{4,})-(\d\d)-(\d\d)( \(BC\))?")
_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?")
_OFFSET = re.compile(r"([+-])(\d\d)(?::(\d\d))?(?::(\d\d))?")
_INFINITY = {"infinity": math.inf, "-infinity": -math.inf}


def nanoseconds_per_unit(type_: str) -> int:
    """The resolution of a timestamp or time type, in nanoseconds."""
    return NANOSECONDS_PER_UNIT["ns" if type_ == "time_ns" else _TIMESTAMP_UNIT.get(type_, "us")]


def parse_value(text: str, type_: str) -> Comparable | None:
    """The value of a text in a column of the type; None if the text is invalid."""
    try:
        return _parse(text, type_)
    except (ValueError, ArithmeticError):
        return None


def _parse(text: str, type_: str) -> Comparable | None:
    if type_ in ("varchar", "json"):
        return text
    if type_ in INTEGER_RANGES:
        return int(text) if _INTEGER.fullmatch(text) else None
    if type_ in FLOATS:
        number = float(text)
        return float32(number) if type_ == "float32" else number
    if decimal_parts(type_):
        exact = decimal.Decimal(text)
        return exact if exact.is_finite() else None
    if type_ == "boolean":
        return {"0": False, "1": True, "false": False, "true": True}.get(text)
    if type_ == "uuid":
        return str(uuid.UUID(text))
    if type_ == "blob":
        return bytes.fromhex(text)
    if text in _INFINITY and (type_ == "date" or type_ in TIMESTAMPS):
        return _INFINITY[text]
    if type_ == "date":
        days, rest = _parse_days(text)
        return days if not rest else None
    if type_ in TIMESTAMPS:
        days, rest = _parse_days(text)
        if not rest:
            return days * NANOSECONDS_PER_DAY
        clock, zone = _parse_clock(rest[1:]) if rest[0] in " T" else (None, "")
        offset = _parse_offset(zone)
        if clock is None or offset is None or (zone and type_ != "timestamptz"):
            return None
        return days * NANOSECONDS_PER_DAY + clock - offset
    if type_ in ("time", "time_ns"):
        clock, rest = _parse_clock(text)
        return clock if not rest else None
    return None


def _parse_days(text: str) -> tuple[int, str]:
    match = _DATE.match(text)
    if not match:
        raise ValueError(text)
    year = 1 - int(match[1]) if match[4] else int(match[1])
    return days_from_civil(year, int(match[2]), int(match[3])), text[match.end() :]


def _parse_clock(text: str) -> tuple[int | None, str]:
    match = _TIME.match(text)
    if not match:
        return None, text
    seconds = int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3])
    return seconds * 10**9 + int((match[4] or "").ljust(9, "0")), text[match.end() :]


def _parse_offset(zone: str) -> int | None:
    if zone in ("", "Z"):
        return 0
    match = _OFFSET.fullmatch(zone)
    if not match:
        return None
    seconds = int(match[2]) * 3600 + int(match[3] or 0) * 60 + int(match[4] or 0)
    return (seconds if match[1] == "+" else -seconds) * 10**9


def comparable_value(value: Any, type_: str) -> Any:
    """The comparable value of a Python value: days of a date, nanoseconds of a timestamp or time."""
    if isinstance(value, str) and type_ not in ("varchar", "json"):
        return parse_value(value, type_)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        since = value - _EPOCH
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    if isinstance(value, datetime.date):
        days = (value - _EPOCH.date()).days
        return days if type_ == "date" else days * NANOSECONDS_PER_DAY
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    if isinstance(value, bool) and type_ in INTEGER_RANGES:
        return int(value)
    if isinstance(value, int | float) and decimal_parts(type_):
        return decimal.Decimal(value)
    return value


def render_value(value: Comparable, type_: str) -> str:
    """The text of a comparable value in the catalog, as the reference writes statistics."""
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, bytes):
        return value.hex().upper()
    if isinstance(value, decimal.Decimal):
        return _decimal_text(value, type_)
    if isinstance(value, float) and type_ in FLOATS:
        return _float_text(value, single=type_ == "float32")
    if isinstance(value, float):
        return "infinity" if value > 0 else "-infinity"
    if isinstance(value, int):
        return _render_integer(value, type_)
    return value


def _render_integer(value: int, type_: str) -> str:
    if type_ == "date":
        return "{}{}".format(*_date_text(value))
    if type_ in TIMESTAMPS:
        days, clock = divmod(value, NANOSECONDS_PER_DAY)
        date, era = _date_text(days)
        return f"{date}{era} {_clock_text(clock)}{'+00' if type_ == 'timestamptz' else ''}"
    if type_ in ("time", "time_ns"):
        return _clock_text(value)
    return str(value)


def _float_text(value: float, single: bool) -> str:
    if math.isinf(value) or math.isnan(value) or not single:
        return repr(value)
    # The shortest text that reads back as the same four bytes. It is shorter than that of a 64-bit float.
    for digits in range(1, 10):
        short = float(f"{value:.{digits}g}")
        if float32(short) == value:
            return repr(short)
    return repr(value)


def _decimal_text(value: decimal.Decimal, type_: str) -> str:
    parts = decimal_parts(type_)
    if parts is None:
        return f"{value:f}"
    text = f"{value:.{parts[1]}f}"
    # If the type has no digits before the point, the reference writes none.
    return text.replace("0.", ".", 1) if parts[0] == parts[1] else text


def _date_text(days: int) -> tuple[str, str]:
    """The text of a date, and the era that follows it before year 1."""
    year, month, day = civil_from_days(days)
    return f"{year if year > 0 else 1 - year:04}-{month:02}-{day:02}", "" if year > 0 else " (BC)"


def _clock_text(nanoseconds: int) -> str:
    seconds, fraction = divmod(nanoseconds, 10**9)
    whole = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{whole}.{fraction:09}".rstrip("0") if fraction else whole


def float32(value: float) -> float:
    """The nearest 32-bit float."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def days_from_civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, for any year."""
    if not (1 <= month <= 12 and 1 <= day <= 31):
        raise ValueError(f"no such day: {year}-{month}-{day}")
    year -= month <= 2  # in years that begin in March the leap day is the last day
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year - 719_468


def civil_from_days(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01."""
    era, day_of_era = divmod(days + 719_468, 146_097)
    year_of_era = (day_of_era - day_of_era // 1460 + day_of_era // 36_524 - day_of_era // 146_096) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    month = shifted + (3 if shifted < 10 else -9)
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    return year_of_era + era * 400 + (month <= 2), month, day
