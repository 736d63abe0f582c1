"""Column statistics of files and of whole tables.

The catalog stores bounds as text. Readers prune files by them. The reference also answers MIN and MAX from the
bounds of a table, which sets two traps for a writer:

1. The reference takes a NULL bound of a table for "no value yet". Its next insert replaces the bound by its own
   range, although older files may have values outside of it. So an unknown bound is written as the widest bound of the
   type (`widest_bounds`).
2. The reference answers MIN and MAX from the bounds of a table whenever `ducklake_table_stats.record_count` equals
   the number of live rows. Bounds may be loose, because deletes do not narrow them and writers truncate strings. So
   `record_count` only ever grows, and a commit that makes bounds inexact also makes it differ.
"""

from __future__ import annotations

import decimal
import uuid
from dataclasses import dataclass, field, replace
from typing import Any

from .geometry_stats import parse_geometry_stats
from .types import FLOATS, INTEGER_RANGES, NESTED, TIMESTAMPS, decimal_parts
from .values import parse_value, render_value

# The reference stores no bounds for these types, so none are stored here either.
TYPES_WITHOUT_BOUNDS = frozenset(["int128", "uint128", "interval", "timetz", "variant", "geometry"])


@dataclass(frozen=True)
class ColumnStats:
    """Statistics of a column in one file. None means unknown."""

    column_size_bytes: int
    value_count: int | None
    """The number of values that are not NULL, as the reference counts them."""
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None
    extra_stats: str | None = None
    exact: bool = False
    """Whether the bounds are the lowest and the highest value themselves."""


UNKNOWN_STATS = ColumnStats(0, None, None, None, None, None)


@dataclass(frozen=True)
class TableColumnStats:
    """Statistics of a column over all files of a table. No bounds mean no values yet."""

    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None
    extra_stats: str | None = None
    exact: bool = field(default=True, compare=False)
    """Whether the last widening kept the bounds as exact as they were."""


def merge_column_stats(current: ColumnStats, new: ColumnStats, type_: str) -> ColumnStats:
    """The statistics of the rows of two files together."""
    if new.value_count == 0 or current.value_count == 0:
        bounds = current if new.value_count == 0 else new
        low, high, exact = bounds.min_value, bounds.max_value, bounds.exact
    else:
        low = _outer_bound(current.min_value, new.min_value, type_, lower=True)
        high = _outer_bound(current.max_value, new.max_value, type_, lower=False)
        exact = current.exact and new.exact and low is not None and high is not None
    return ColumnStats(
        column_size_bytes=current.column_size_bytes + new.column_size_bytes,
        value_count=_sum(current.value_count, new.value_count),
        null_count=_sum(current.null_count, new.null_count),
        min_value=low,
        max_value=high,
        contains_nan=_any_true(current.contains_nan, new.contains_nan),
        extra_stats=_merged_extra_stats(current.extra_stats, new.extra_stats, type_),
        exact=exact,
    )


def widen_table_stats(current: TableColumnStats | None, file: ColumnStats, type_: str) -> TableColumnStats:
    """The table's statistics with one more file. Unknown bounds of the file become the widest bounds.

    If the result is not `exact`, the reference must not answer MIN and MAX from it (see the module's docstring).
    """
    nulls = None if file.null_count is None else file.null_count > 0
    nans = file.contains_nan
    extra = file.extra_stats if current is None else _merged_extra_stats(current.extra_stats, file.extra_stats, type_)
    if current is None:
        current = TableColumnStats(nulls, nans, None, None)
    current = replace(current, extra_stats=extra)
    nulls, nans = _any_true(current.contains_null, nulls), _any_true(current.contains_nan, nans)
    lowest, highest = widest_bounds(type_)
    if file.value_count == 0 or lowest is None or highest is None:
        return replace(current, contains_null=nulls, contains_nan=nans, exact=True)

    low = lowest if file.min_value is None else file.min_value
    high = highest if file.max_value is None else file.max_value
    exact = file.exact
    if current.min_value is not None or current.max_value is not None:
        # If only one bound is missing, the reference does not know it.
        old = (
            lowest if current.min_value is None else current.min_value,
            highest if current.max_value is None else current.max_value,
        )
        outer = _outer_bound(old[0], low, type_, lower=True), _outer_bound(old[1], high, type_, lower=False)
        low = lowest if outer[0] is None else outer[0]
        high = highest if outer[1] is None else outer[1]
        both_known = None not in (current.min_value, current.max_value)
        exact = both_known and (file.exact or (low, high) == old)
    # The reference never answers MIN and MAX of blobs, or of floats that may be NaN, from these bounds.
    never_answered = type_ == "blob" or (type_ in FLOATS and nans is not False)
    return TableColumnStats(nulls, nans, low, high, current.extra_stats, exact or never_answered)


def _merged_extra_stats(current: str | None, new: str | None, type_: str) -> str | None:
    """The `extra_stats` of both together.

    Those of variants bound shredded fields, by which the reference prunes. None says nothing about any field.
    """
    if type_ == "geometry":
        return parse_geometry_stats(current).union(parse_geometry_stats(new)).text()
    return current if current == new else None


def widest_bounds(type_: str) -> tuple[str | None, str | None]:
    """Bounds, as text, that hold for every value of the type; None for a type without bounds."""
    if type_ in TYPES_WITHOUT_BOUNDS or type_ in NESTED:
        return None, None
    if type_ in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_]
        return str(low), str(high)
    if parts := decimal_parts(type_):
        limit = decimal.Decimal((0, (9,) * parts[0], -parts[1]))
        return render_value(limit.copy_negate(), type_), render_value(limit, type_)
    if type_ in FLOATS:
        return "-inf", "inf"
    if type_ == "date" or type_ in TIMESTAMPS:
        return "-infinity", "infinity"
    return {
        "boolean": ("0", "1"),
        "time": ("00:00:00", "24:00:00"),
        "time_ns": ("00:00:00", "24:00:00"),
        "varchar": ("", "\U0010ffff" * 16),
        "json": ("", "\U0010ffff" * 16),
        "uuid": (str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))),
        "blob": ("", "FF" * 64),
    }.get(type_, (None, None))


def _outer_bound(current: str | None, new: str | None, type_: str, lower: bool) -> str | None:
    """The lower or upper bound that holds for both; None if either is unknown."""
    if current is None or new is None:
        return None
    a: Any = parse_value(current, type_)
    b: Any = parse_value(new, type_)
    if a is None or b is None:
        return None
    return new if (b < a if lower else b > a) else current


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _any_true(a: bool | None, b: bool | None) -> bool | None:
    """Logical OR with None as unknown."""
    if a or b:
        return True
    return None if a is None or b is None else False
