"""A seed's rows as Arrow, so that they reach the lake in one piece."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import agate
import pyarrow as pa

from .lake.inlined import arrow_type
from .lake.types import Column
from .spark.write.local_files import is_simple

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}")


def as_arrow(rows: agate.Table, columns: Sequence[Column]) -> pa.Table | None:
    """The rows with the types of a table's columns; None where only Spark can say what a text means."""
    if not all(map(is_simple, columns)):
        return None
    arrays = []
    for column, name in zip(columns, rows.column_names, strict=True):
        values = list(rows.columns[name].values())
        try:
            arrays.append(_array(values, column))
        except (pa.ArrowException, ValueError, ArithmeticError):
            return None
    return pa.table(arrays, names=[c.name for c in columns])


def as_texts(rows: agate.Table) -> pa.Table:
    """The rows as they stood in the file, for Spark to cast."""
    columns = [pa.array([_text(v) for v in rows.columns[n].values()], pa.string()) for n in rows.column_names]
    return pa.table(columns, names=list(rows.column_names))


def _array(values: Sequence[Any], column: Column) -> pa.Array:
    type_ = arrow_type(column)
    if pa.types.is_timestamp(type_) and type_.tz:
        # A moment without a zone is one of the session's, which is the machine's unless Spark is told otherwise.
        raise ValueError("only Spark knows the zone")
    if pa.types.is_string(type_):
        return pa.array([_text(v) for v in values], type_)
    make: Callable[[Any], Any]
    if pa.types.is_decimal(type_):
        make = lambda value: _number(value).quantize(Decimal(1).scaleb(-type_.scale), rounding="ROUND_HALF_UP")  # noqa: E731
    elif pa.types.is_integer(type_):
        make = _whole
    elif pa.types.is_floating(type_):
        make = lambda value: float(_number(value))  # noqa: E731
    elif pa.types.is_boolean(type_):
        make = _flag
    elif pa.types.is_date(type_):
        make = _date
    else:
        make = _moment
    return pa.array([None if value is None else make(value) for value in values], type_)


def _number(value: Any) -> Decimal:
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError(f"only Spark knows what number {value!r} is")
    return Decimal(str(value))


def _whole(value: Any) -> int:
    number = _number(value)
    if number != int(number) or (isinstance(value, str) and not value.lstrip("+-").isdigit()):
        raise ValueError(f"{value!r} is no whole number")
    return int(number)


def _flag(value: Any) -> bool:
    known = {True: True, False: False, "true": True, "false": False}
    if not isinstance(value, bool | str) or value not in known:
        raise ValueError(f"only Spark knows what {value!r} says")
    return known[value]


def _date(value: Any) -> datetime.date:
    # A moment is no day, though Python takes it for one.
    if type(value) is datetime.date:
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        return datetime.date.fromisoformat(value)
    raise ValueError(f"only Spark knows what day {value!r} is")


def _moment(value: Any) -> datetime.datetime:
    if type(value) is datetime.datetime and value.tzinfo is None:
        return value
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        return datetime.datetime.strptime(value[:19].replace("T", " "), "%Y-%m-%d %H:%M:%S")
    raise ValueError(f"only Spark knows what moment {value!r} is")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)
