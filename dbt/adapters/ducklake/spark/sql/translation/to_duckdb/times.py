"""Functions on dates and timestamps, from Spark to DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyspark.sql.types import DecimalType

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..signatures import table
from .arithmetic import add_days, negative_days
from .casts import YEARS, cast
from .words import instant_of_date, only_spark, string

_PARTS = {
    "year": "year",
    "month": "month",
    "day": "day",
    "dayofmonth": "day",
    "quarter": "quarter",
    "dayofyear": "dayofyear",
    "weekofyear": "weekofyear",
}
_CLOCK_PARTS = ("hour", "minute", "second")

TABLE = table(
    *((f"{name}(date) -> int", f"CAST({part}({{0}}) AS INTEGER)") for name, part in _PARTS.items()),
    ("dayofweek(date) -> int", "CAST(dayofweek({0}) + 1 AS INTEGER)"),
    ("weekday(date) -> int", "CAST(isodow({0}) - 1 AS INTEGER)"),
    *((f"{part}(timestamp) -> int", f"CAST({part}({{0}}) AS INTEGER)") for part in _CLOCK_PARTS),
    *((f"{part}(timestamp_ntz) -> int", f"CAST({part}({{0}}) AS INTEGER)") for part in _CLOCK_PARTS),
    ("current_date() -> date", "CAST(current_timestamp AS DATE)"),
    ("curdate() -> date", "CAST(current_timestamp AS DATE)"),
    ("current_timestamp() -> timestamp", "current_timestamp"),
    ("now() -> timestamp", "current_timestamp"),
    ("localtimestamp() -> timestamp_ntz", "CAST(current_timestamp AS TIMESTAMP)"),
    ("last_day(date) -> date", "last_day({0})"),
    ("add_months(date, int) -> date", "CAST({0} + to_months({1}) AS DATE)"),
    ("datediff(date, date) -> int", "CAST({0} - {1} AS INTEGER)"),
    ("date_diff(date, date) -> int", "CAST({0} - {1} AS INTEGER)"),
    ("unix_date(date) -> int", "CAST({0} - DATE '1970-01-01' AS INTEGER)"),
    ("date_from_unix_date(int) -> date", "DATE '1970-01-01' + {0}"),
    ("make_date(int, int, int) -> date", "make_date({0}, {1}, {2})"),
    ("unix_seconds(timestamp) -> bigint", "CAST(epoch(date_trunc('second', {0})) AS BIGINT)"),
    ("unix_micros(timestamp) -> bigint", "epoch_us({0})"),
    ("timestamp_seconds(bigint) -> timestamp", "make_timestamptz({0} * 1000000)"),
    ("timestamp_millis(bigint) -> timestamp", "make_timestamptz({0} * 1000)"),
    ("timestamp_micros(bigint) -> timestamp", "make_timestamptz({0})"),
)

_EXTRACTED = {
    **dict.fromkeys(("year", "y", "years", "yr", "yrs"), "year"),
    **dict.fromkeys(("quarter", "qtr"), "quarter"),
    **dict.fromkeys(("month", "mon", "mons", "months"), "month"),
    **dict.fromkeys(("week", "w", "weeks"), "weekofyear"),
    **dict.fromkeys(("day", "d", "days"), "day"),
    **dict.fromkeys(("dayofweek", "dow"), "dayofweek"),
    **dict.fromkeys(("dayofweek_iso", "dow_iso"), "weekday_iso"),
    "doy": "dayofyear",
    **dict.fromkeys(("hour", "h", "hours", "hr", "hrs"), "hour"),
    **dict.fromkeys(("minute", "m", "min", "mins", "minutes"), "minute"),
}
_SECONDS = ("second", "s", "sec", "seconds", "secs")


def extract(field: str, source: Expression, call: Callable[[str, list[Expression]], Expression]) -> Expression:
    """Returns a field of a date or timestamp; `call` translates functions."""
    if field in _SECONDS:
        moment = source if source.type == t.TIMESTAMP_NTZ else cast(source, t.TIMESTAMP)
        digits = f"epoch_us({moment.sql}) - epoch_us(date_trunc('minute', {moment.sql}))"
        return Expression(f"CAST(CAST({digits} AS DECIMAL(10, 0)) * 0.000001 AS DECIMAL(8, 6))", DecimalType(8, 6))
    name = _EXTRACTED.get(field)
    if name is None:
        raise Untranslatable(f"EXTRACT of {field.upper()}")
    if name == "weekday_iso":
        return Expression(f"CAST(isodow({cast(source, t.DATE).sql}) AS INTEGER)", t.INT)
    return call(name, [source])


# -- truncation

_DATE_UNITS = {
    **dict.fromkeys(("year", "yyyy", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month", "mm", "mon"), "month"),
    "week": "week",
}
_CLOCK_UNITS = ("minute", "second", "millisecond", "microsecond")


def date_trunc(unit: Expression, value: Expression) -> Expression:
    name = _literal(unit, "date_trunc() with a unit").lower()
    if name in _DATE_UNITS:
        day = cast(value, t.DATE)
        return Expression(instant_of_date(f"CAST(date_trunc('{_DATE_UNITS[name]}', {day.sql}) AS DATE)"), t.TIMESTAMP)
    if name in ("day", "dd") and value.type == t.DATE:
        return cast(value, t.TIMESTAMP)
    moment = cast(value, t.TIMESTAMP)
    if name in _CLOCK_UNITS:
        return Expression(f"date_trunc('{name}', {moment.sql})", t.TIMESTAMP)
    if name not in ("day", "dd", "hour"):
        raise Untranslatable(f"date_trunc() with the unit {name}")
    name = "day" if name == "dd" else name
    # Of two moments with the same local time, DuckDB takes the later one even if it is later than the value.
    plain = f"date_trunc('{name}', {moment.sql})"
    earlier = f"date_trunc('{name}', {moment.operand} - INTERVAL 1 DAY) + INTERVAL 1 DAY"
    return Expression(f"CASE WHEN {plain} > {moment.operand} THEN {earlier} ELSE {plain} END", t.TIMESTAMP)


def trunc(value: Expression, unit: Expression) -> Expression:
    name = _literal(unit, "trunc() with a unit").lower()
    if name not in _DATE_UNITS:
        raise Untranslatable(f"trunc() with the unit {name}")
    return Expression(f"CAST(date_trunc('{_DATE_UNITS[name]}', {cast(value, t.DATE).sql}) AS DATE)", t.DATE)


def _literal(value: Expression, what: str) -> str:
    if not isinstance(value.constant, str):
        raise Untranslatable(f"{what} that is no literal")
    return value.constant


# -- arithmetic


def date_add(date: Expression, days: Expression) -> Expression:
    return add_days(cast(date, t.DATE), _days(days))


def date_sub(date: Expression, days: Expression) -> Expression:
    return add_days(cast(date, t.DATE), negative_days(_days(days)))


def _days(days: Expression) -> Expression:
    if days.type == t.STRING or t.is_integral(days.type):
        return cast(days, t.INT) if days.type != t.LONG or days.is_constant else _refuse_long()
    raise Untranslatable(f"days of the type {days.type.simpleString()}")


def _refuse_long() -> Expression:
    raise Untranslatable("days of the type bigint")


_ADDED_UNITS = {
    "year": ("to_months", 12),
    "quarter": ("to_months", 3),
    "month": ("to_months", 1),
    "week": ("to_days", 7),
    "day": ("to_days", 1),
    "dayofyear": ("to_days", 1),
    "hour": ("to_microseconds", 3_600_000_000),
    "minute": ("to_microseconds", 60_000_000),
    "second": ("to_microseconds", 1_000_000),
    "millisecond": ("to_microseconds", 1_000),
    "microsecond": ("to_microseconds", 1),
}


def timestamp_add(unit: str, count: Expression, value: Expression) -> Expression:
    """Returns dateadd(unit, count, value)."""
    if unit not in _ADDED_UNITS or not t.is_integral(count.type):
        raise Untranslatable(f"dateadd() of {unit}")
    function, size = _ADDED_UNITS[unit]
    moment = value if value.type == t.TIMESTAMP_NTZ else cast(value, t.TIMESTAMP)
    if function == "to_microseconds":
        number = f"CAST({count.sql} AS BIGINT) * {size}"
    else:
        number = f"CAST({count.sql} AS INTEGER)" + (f" * {size}" if size > 1 else "")
    return Expression(f"{moment.operand} + {function}({number})", moment.type)


_DIFF_UNITS = {
    "week": 604_800_000_000,
    "day": 86_400_000_000,
    "hour": 3_600_000_000,
    "minute": 60_000_000,
    "second": 1_000_000,
    "millisecond": 1_000,
    "microsecond": 1,
}


def timestamp_diff(unit: str, start: Expression, end: Expression) -> Expression:
    """Returns datediff(unit, start, end): the number of whole units in between, on the local clock."""
    if unit not in _DIFF_UNITS:
        raise Untranslatable(f"datediff() in units of {unit}")
    one, other = (_local(value) for value in (start, end))
    return Expression(f"(epoch_us({other}) - epoch_us({one})) // {_DIFF_UNITS[unit]}", t.LONG)


def _local(value: Expression) -> str:
    # By way of a moment, as Spark does: clocks that are put forward do not show all local times.
    return cast(cast(value, t.TIMESTAMP), t.TIMESTAMP_NTZ).sql


def months_between(one: Expression, other: Expression, rounds: Expression | None = None) -> Expression:
    """Returns months_between() of two dates, with 31 days in each month."""
    if (rounds is not None and rounds.constant is not True) or one.type != t.DATE or other.type != t.DATE:
        raise Untranslatable("months_between() of something else than two dates")
    a, b = one.operand, other.operand
    months = f"(year({a}) - year({b})) * 12 + (month({a}) - month({b}))"
    same_day = f"day({a}) = day({b}) OR ({a} = last_day({a}) AND {b} = last_day({b}))"
    exact = f"({months}) + CAST((day({a}) - day({b})) * 86400 AS DOUBLE) / 2678400"
    rounded = f"floor(({exact}) * 1e8 + 0.5) / 1e8"
    return Expression(f"CASE WHEN {same_day} THEN CAST({months} AS DOUBLE) ELSE {rounded} END", t.DOUBLE)


# -- texts

_FORMATS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MMMM": "%B",
    "MMM": "%b",
    "MM": "%m",
    "M": "%-m",
    "dd": "%d",
    "d": "%-d",
    "EEEE": "%A",
    "EEE": "%a",
    "EE": "%a",
    "E": "%a",
    "HH": "%H",
    "H": "%-H",
    "hh": "%I",
    "h": "%-I",
    "mm": "%M",
    "m": "%-M",
    "ss": "%S",
    "s": "%-S",
    "SSS": "%g",
    "SSSSSS": "%f",
    "a": "%p",
}
_CLOCK_FORMATS = ("H", "I", "%M", "%-M", "%S", "%-S", "%g", "%f", "%p")


def strftime_format(pattern: str) -> str | None:
    """Returns the format of DuckDB's strftime for a pattern; None if there is none.

    >>> strftime_format("yyyy-MM-dd'T'HH:mm")
    '%Y-%m-%dT%H:%M'
    """
    text, position = "", 0
    while position < len(pattern):
        character = pattern[position]
        end = position + 1
        if character == "'":
            end = pattern.find("'", position + 1) + 1
            if end <= position + 1:
                return None
            quoted = pattern[position + 1 : end - 1]
            text += quoted.replace("%", "%%") if quoted else "'"
        elif character.isascii() and character.isalpha():
            while end < len(pattern) and pattern[end] == character:
                end += 1
            if pattern[position:end] not in _FORMATS:
                return None
            text += _FORMATS[pattern[position:end]]
        elif character in "[]{}#":
            return None
        else:
            text += character.replace("%", "%%")
        position = end
    return text


def date_format(value: Expression, pattern: Expression) -> Expression:
    format_ = strftime_format(_literal(pattern, "date_format() with a pattern"))
    if format_ is None:
        raise Untranslatable(f"date_format() with the pattern {pattern.constant}")
    has_clock = any(field in format_ for field in _CLOCK_FORMATS)
    # Clocks do not show all local times.
    moment = value if value.type == t.DATE and not has_clock else cast(value, t.TIMESTAMP)
    in_years = f"CAST({moment.sql} AS DATE) {YEARS}"
    text = f"strftime({moment.sql}, {string(format_)})"
    return Expression(f"CASE WHEN NOT {in_years} THEN {only_spark('the text')} ELSE {text} END", t.STRING)


_READ_DATES = {
    "yyyy-MM-dd": r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
    "yyyyMMdd": r"[0-9]{8}",
    "yyyy/MM/dd": r"[0-9]{4}/[0-9]{2}/[0-9]{2}",
    "MM/dd/yyyy": r"[0-9]{2}/[0-9]{2}/[0-9]{4}",
    "dd/MM/yyyy": r"[0-9]{2}/[0-9]{2}/[0-9]{4}",
    "dd.MM.yyyy": r"[0-9]{2}\.[0-9]{2}\.[0-9]{4}",
    "MM-dd-yyyy": r"[0-9]{2}-[0-9]{2}-[0-9]{4}",
    "dd-MM-yyyy": r"[0-9]{2}-[0-9]{2}-[0-9]{4}",
}


def to_date(value: Expression, pattern: Expression | None = None) -> Expression:
    if pattern is None:
        return cast(value, t.DATE)
    name = _literal(pattern, "to_date() with a pattern")
    if value.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return cast(value, t.DATE)
    if name not in _READ_DATES or value.type != t.STRING:
        raise Untranslatable(f"to_date() with the pattern {name}")
    if value.is_constant and name == "yyyy-MM-dd":
        return cast(value, t.DATE)
    digits = f"regexp_extract({value.sql}, {string(f'^({_READ_DATES[name]})$')}, 1)"
    return Expression(f"CAST(strptime({digits}, {string(str(strftime_format(name)))}) AS DATE)", t.DATE)


def to_timestamp(value: Expression, pattern: Expression | None = None) -> Expression:
    if pattern is None:
        return cast(value, t.TIMESTAMP)
    raise Untranslatable("to_timestamp() with a pattern")


def unix_timestamp(value: Expression) -> Expression:
    if value.type not in (t.DATE, t.TIMESTAMP):  # of a text Spark takes one form only
        raise Untranslatable(f"unix_timestamp() of {value.type.simpleString()}")
    return Expression(f"epoch_us({cast(value, t.TIMESTAMP).sql}) // 1000000", t.LONG)


def from_utc_timestamp(value: Expression, zone: Expression) -> Expression:
    name = _literal(zone, "from_utc_timestamp() with a time zone")
    if name != "UTC" and not (name.replace("/", "").replace("_", "").isalpha() and "/" in name):
        raise Untranslatable(f"from_utc_timestamp() with the time zone {name}")
    local = f"timezone({zone.sql}, {cast(value, t.TIMESTAMP).sql})"
    return Expression(f"timezone('UTC', {local})", t.TIMESTAMP)


FUNCTIONS: Mapping[str, Callable[..., Expression]] = {
    "date_trunc": date_trunc,
    "trunc": trunc,
    "date_add": date_add,
    "date_sub": date_sub,
    "months_between": months_between,
    "date_format": date_format,
    "to_date": to_date,
    "to_timestamp": to_timestamp,
    "to_unix_timestamp": unix_timestamp,
    "unix_timestamp": unix_timestamp,
    "from_utc_timestamp": from_utc_timestamp,
}
