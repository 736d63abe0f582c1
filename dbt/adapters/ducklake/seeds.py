"""A seed's rows as one Arrow table."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import agate
import pyarrow as pa

from .lake.arrow_types import arrow_type, has_plain_type
from .lake.types import Column

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}")


def as_arrow(rows: agate.Table, columns: Sequence[Column]) -> pa.Table | None:
    """The rows in the types of the table's columns; None if a value needs a cast by Spark."""
    if not all(map(has_plain_type, columns)):
        return None
    arrays = []
    for column, name in zip(columns, rows.column_names, strict=True):
        values = list(rows.columns[name].values())
        try:
            arrays.append(_array(values, column))
        except (pa.ArrowException, ValueError, ArithmeticError):
            return None
    return pa.table(arrays, names=[c.name for c in columns])


def as_text_columns(rows: agate.Table) -> pa.Table:
    """The rows as the text of the file, for Spark to cast."""
    columns = [pa.array([_text(v) for v in rows.columns[n].values()], pa.string()) for n in rows.column_names]
    return pa.table(columns, names=list(rows.column_names))


def _array(values: Sequence[Any], column: Column) -> pa.Array:
    type_ = arrow_type(column)
    if pa.types.is_binary(type_):
        raise ValueError("Spark casts text to binary")
    if pa.types.is_timestamp(type_) and type_.tz:
        # Text without a zone is in the session's time zone: the machine's, unless Spark's configuration sets one.
        raise ValueError("only Spark knows the session's time zone")
    if pa.types.is_string(type_):
        return pa.array([_text(v) for v in values], type_)
    convert: Callable[[Any], Any]
    if pa.types.is_decimal(type_):
        unit = Decimal(1).scaleb(-type_.scale)
        convert = lambda value: _number(value).quantize(unit, rounding=ROUND_HALF_UP)  # noqa: E731
    elif pa.types.is_integer(type_):
        convert = _integer
    elif pa.types.is_floating(type_):
        convert = lambda value: float(_number(value))  # noqa: E731
    elif pa.types.is_boolean(type_):
        convert = _boolean
    elif pa.types.is_date(type_):
        convert = _date
    else:
        convert = _timestamp
    return pa.array([None if value is None else convert(value) for value in values], type_)


def _number(value: Any) -> Decimal:
    if isinstance(value, str) and not _NUMBER.fullmatch(value):
        raise ValueError(f"only Spark can cast {value!r} to a number")
    return Decimal(str(value))


def _integer(value: Any) -> int:
    number = _number(value)
    if number != int(number) or (isinstance(value, str) and not value.lstrip("+-").isdigit()):
        raise ValueError(f"{value!r} is not an integer")
    return int(number)


def _boolean(value: Any) -> bool:
    booleans = {True: True, False: False, "true": True, "false": False}
    if not isinstance(value, bool | str) or value not in booleans:
        raise ValueError(f"only Spark can cast {value!r} to a boolean")
    return booleans[value]


def _date(value: Any) -> datetime.date:
    # Not isinstance: datetime is a subclass of date.
    if type(value) is datetime.date:
        return value
    if isinstance(value, str) and _DATE.fullmatch(value):
        return datetime.date.fromisoformat(value)
    raise ValueError(f"only Spark can cast {value!r} to a date")


def _timestamp(value: Any) -> datetime.datetime:
    if type(value) is datetime.datetime and value.tzinfo is None:
        return value
    if isinstance(value, str) and _TIMESTAMP.fullmatch(value):
        return datetime.datetime.strptime(value[:19].replace("T", " "), "%Y-%m-%d %H:%M:%S")
    raise ValueError(f"only Spark can cast {value!r} to a timestamp")


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)
