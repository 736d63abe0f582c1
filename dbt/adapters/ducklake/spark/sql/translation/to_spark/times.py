"""Functions on dates and timestamps, from DuckDB to Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .. import types as t
from ..expressions import Expression, Untranslatable
from ..signatures import table
from .arithmetic import guarded
from .casts import YEARS, cast
from .words import cast_to, string

_DATE_PARTS = {
    **dict.fromkeys(("year", "years", "y"), "year({0})"),
    **dict.fromkeys(("month", "months", "mon"), "month({0})"),
    **dict.fromkeys(("day", "days", "d", "dayofmonth"), "day({0})"),
    **dict.fromkeys(("quarter", "quarters"), "quarter({0})"),
    **dict.fromkeys(("week", "weeks", "w", "weekofyear"), "weekofyear({0})"),
    **dict.fromkeys(("doy", "dayofyear"), "dayofyear({0})"),
    **dict.fromkeys(("dow", "dayofweek", "weekday"), "dayofweek({0}) - 1"),
    "isodow": "weekday({0}) + 1",
}
_CLOCK_PARTS = {
    **dict.fromkeys(("hour", "hours", "h"), "hour({0})"),
    **dict.fromkeys(("minute", "minutes", "m"), "minute({0})"),
    **dict.fromkeys(("second", "seconds", "s"), "second({0})"),
}

TABLE = table(
    ("last_day(date) -> date", "last_day({0})"),
    ("make_date(int, int, int) -> date", "make_date({0}, {1}, {2})"),
    ("current_date() -> date", "current_date()"),
    ("today() -> date", "current_date()"),
    ("current_timestamp() -> timestamp", "current_timestamp()"),
    ("now() -> timestamp", "current_timestamp()"),
    ("get_current_timestamp() -> timestamp", "current_timestamp()"),
    ("transaction_timestamp() -> timestamp", "current_timestamp()"),
    ("monthname(date) -> string", "date_format({0}, 'MMMM')"),
    ("dayname(date) -> string", "date_format({0}, 'EEEE')"),
)


def _local(value: Expression) -> Expression:
    """Returns a date or timestamp as a local time."""
    if not t.is_temporal(value.type):
        raise Untranslatable(f"a part of {value.type.simpleString()}")
    return cast(value, t.TIMESTAMP_NTZ)


def _day(value: Expression) -> Expression:
    if not t.is_temporal(value.type):
        raise Untranslatable(f"a part of {value.type.simpleString()}")
    return cast(value, t.DATE)


def date_part(part: Expression, value: Expression) -> Expression:
    return extract(_unit(part, "date_part"), value)


def extract(part: str, value: Expression) -> Expression:
    if part in _DATE_PARTS:
        return Expression(cast_to(_DATE_PARTS[part].format(_day(value).sql), t.LONG), t.LONG)
    if part in _CLOCK_PARTS:
        return Expression(cast_to(_CLOCK_PARTS[part].format(_local(value).sql), t.LONG), t.LONG)
    raise Untranslatable(f"EXTRACT of {part.upper()}")


def _part_function(part: str) -> Callable[[Expression], Expression]:
    return lambda value: extract(part, value)


def _unit(value: Expression, function: str) -> str:
    if not isinstance(value.constant, str):
        raise Untranslatable(f"{function}() with a unit that is no literal")
    return value.constant.lower()


def date_trunc(unit: Expression, value: Expression) -> Expression:
    """Returns the start of a unit, as a local time."""
    name = _unit(unit, "date_trunc")
    if value.type not in (t.DATE, t.TIMESTAMP_NTZ):
        raise Untranslatable(f"date_trunc() of {value.type.simpleString()}")
    day = _day(value).sql
    if name in ("year", "quarter", "month", "week"):
        return Expression(cast_to(f"trunc({day}, '{name}')", t.TIMESTAMP_NTZ), t.TIMESTAMP_NTZ)
    midnight = cast_to(day, t.TIMESTAMP_NTZ)
    if name == "day":
        return Expression(midnight, t.TIMESTAMP_NTZ)
    if name not in ("hour", "minute", "second"):
        raise Untranslatable(f"date_trunc() with the unit {name}")
    local = _local(value).sql
    parts = [f"{part}({local})" for part in ("hour", "minute", "second")]
    kept = parts[: ("hour", "minute", "second").index(name) + 1]
    return Expression(f"{midnight} + make_dt_interval(0, {', '.join(kept)})", t.TIMESTAMP_NTZ)


_CLOCK_UNITS = ("hour", "minute", "second")


def date_diff(unit: Expression, start: Expression, end: Expression) -> Expression:
    """Returns how many boundaries of a unit are between two local times."""
    name = _unit(unit, "date_diff")
    if any(v.type not in (t.DATE, t.TIMESTAMP_NTZ) for v in (start, end)):
        raise Untranslatable("date_diff() of something else than dates and timestamps")
    if name in _CLOCK_UNITS:
        one, other = (_units_since_epoch(_local(v), name) for v in (start, end))
        return Expression(f"({other}) - ({one})", t.LONG)
    a, b = _day(start).sql, _day(end).sql
    counts = {
        "day": f"datediff({b}, {a})",
        "month": f"(year({b}) - year({a})) * 12 + month({b}) - month({a})",
        "quarter": f"(year({b}) - year({a})) * 4 + quarter({b}) - quarter({a})",
        "year": f"year({b}) - year({a})",
    }
    if name not in counts:
        raise Untranslatable(f"date_diff() with the unit {name}")
    return Expression(cast_to(counts[name], t.LONG), t.LONG)


def _units_since_epoch(local: Expression, unit: str) -> str:
    """Returns how often a unit has begun since 1970. Spark's own timestampdiff goes by the clock of the time zone."""
    text = f"unix_date(cast({local.sql} as date)) * 24L + hour({local.sql})"
    for part in _CLOCK_UNITS[1 : _CLOCK_UNITS.index(unit) + 1]:
        text = f"({text}) * 60 + {part}({local.sql})"
    return text


_FORMATS = {
    "%Y": "yyyy",
    "%y": "yy",
    "%m": "MM",
    "%-m": "M",
    "%d": "dd",
    "%-d": "d",
    "%B": "MMMM",
    "%b": "MMM",
    "%A": "EEEE",
    "%a": "EEE",
}


def strftime(value: Expression, format_: Expression) -> Expression:
    """Returns the text of a date, in a format without clock time."""
    if not isinstance(format_.constant, str) or not t.is_temporal(value.type):
        raise Untranslatable("strftime() with such arguments")
    text, position, pattern = format_.constant, 0, ""
    while position < len(text):
        field = text[position : position + (3 if text[position : position + 2] == "%-" else 2)]
        if text[position] != "%":
            field = text[position]
            if field in "[]{}#'" or field.isalpha():
                raise Untranslatable(f"strftime() with the format {text}")
        elif field not in _FORMATS:
            raise Untranslatable(f"strftime() with the format {text}")
        pattern += _FORMATS.get(field, field)
        position += len(field)
    day = _day(value).operand
    written = f"date_format({day}, {string(pattern)})"
    return Expression(guarded(f"not {day} {YEARS}", "the text", written), t.STRING)


FUNCTIONS: Mapping[str, Callable[..., Expression]] = {
    **{part: _part_function(part) for part in (*_DATE_PARTS, *_CLOCK_PARTS) if len(part) > 3 and part[-1] != "s"},
    **{part: _part_function(part) for part in ("day",)},
    "date_part": date_part,
    "datepart": date_part,
    "date_trunc": date_trunc,
    "datetrunc": date_trunc,
    "date_diff": date_diff,
    "datediff": date_diff,
    "strftime": strftime,
}
