"""Z-order: one sort key that keeps rows together which are close in several columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow.compute as pc
from pyspark.sql import DataFrame

from ...lake.errors import LakeError, NotFoundError
from ...lake.snapshot import Table
from ..sql.quoting import quoted, string_literal

_BITS = 6
"""Each column is cut into 64 ranges of about as many rows."""
_SAMPLE_ROWS = 20_000
_MAX_COLUMNS = 10
_UNORDERED = frozenset(("variant", "geometry", "blob", "boolean"))


def check_z_order_columns(table: Table, names: Sequence[str]) -> tuple[str, ...]:
    """The names as the table spells them. Raises if it has no such columns, or if they have no order."""
    if len(names) > _MAX_COLUMNS:
        raise LakeError(f"ZORDER BY takes at most {_MAX_COLUMNS} columns, not {len(names)}")
    columns = {c.name.lower(): c for c in table.columns}
    for name in names:
        column = columns.get(name.lower())
        if column is None:
            raise NotFoundError(f"table {table.name} has no column {name} to ZORDER BY; it has {', '.join(columns)}")
        if column.children or column.type in _UNORDERED:
            raise LakeError(
                f"ZORDER BY takes columns of numbers, texts and times;"
                f" {column.name} of table {table.name} is of the type {column.type_text()}"
            )
    return tuple(columns[name.lower()].name for name in names)


def z_order_expression(rows: DataFrame, names: Sequence[str], row_count: int) -> str:
    """Spark's SQL for the z-value of a row: the bits of its range in each column, interleaved.

    The ranges are those of a sample.
    """
    selected = rows.select(*(quoted(name) for name in names))
    sample = selected.sample(fraction=min(1.0, _SAMPLE_ROWS / max(row_count, 1)), seed=42).toArrow()
    types = [field.dataType.simpleString() for field in selected.schema.fields]
    parts = []
    for position, (name, type_) in enumerate(zip(names, types, strict=True)):
        bounds = _bounds(sample.column(position))
        literals = [f"cast({string_literal(_text(bound))} as {type_})" for bound in bounds]
        parts.append(_range_sql(quoted(name), literals, 0, len(names), position))
    return " | ".join(f"coalesce({part}, 0L)" for part in parts)


def _bounds(values: Any) -> list[Any]:
    """At most 63 values that cut the sample into ranges of about as many rows."""
    known = values.drop_null()
    in_order = known.take(pc.sort_indices(known))
    count = len(in_order)
    return list(dict.fromkeys(in_order[count * i // 2**_BITS].as_py() for i in range(1, 2**_BITS))) if count else []


def _text(value: Any) -> str:
    return value.isoformat(" ") if hasattr(value, "hour") else str(value)


def _range_sql(value: str, bounds: Sequence[str], first: int, step: int, offset: int) -> str:
    """A binary search: the number of the range of a value, with its bits spread by `step`, from `offset` on."""
    if not bounds:
        return f"{_spread(first, step, offset)}L"
    middle = len(bounds) // 2
    below = _range_sql(value, bounds[:middle], first, step, offset)
    above = _range_sql(value, bounds[middle + 1 :], first + middle + 1, step, offset)
    return f"if({value} < {bounds[middle]}, {below}, {above})"


def _spread(number: int, step: int, offset: int) -> int:
    """The bits of a number, moved apart.

    >>> bin(_spread(0b101, 3, 1))
    '0b10000010'
    """
    return sum(1 << (bit * step + offset) for bit in range(_BITS) if number >> bit & 1)
