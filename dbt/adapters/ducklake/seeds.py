"""A seed's rows as Arrow, so that they reach the lake in one piece."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import agate
import pyarrow as pa

from .lake.inlined import arrow_type
from .lake.types import Column
from .spark.local import is_simple


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
    if pa.types.is_decimal(type_):
        return pa.array([None if v is None else _rounded(Decimal(str(v)), type_.scale) for v in values], type_)
    if pa.types.is_integer(type_):
        return pa.array([None if v is None else _whole(v) for v in values], type_)
    if pa.types.is_floating(type_):
        return pa.array([None if v is None else float(v) for v in values], type_)
    wanted = {"bool": bool, "date32[day]": datetime.date, "timestamp[us]": datetime.datetime}[str(type_)]
    for value in values:
        # A moment is no day, though Python takes it for one.
        if value is not None and type(value) is not wanted:
            raise ValueError(f"{value!r} is cast by Spark")
    return pa.array(values, type_)


def _rounded(number: Decimal, scale: int) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-scale), rounding="ROUND_HALF_UP")


def _whole(value: Any) -> int:
    number = Decimal(str(value))
    if number != int(number):
        raise ValueError(f"{value!r} is no whole number")
    return int(number)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)
