"""What a table holds, in a few values that do not depend on the system that computed them."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def answer(rows: Iterable[Sequence[Any]]) -> list[Any]:
    """The number of rows, then for each column the sum of its numbers or of its values' checksums."""
    rows = list(rows)
    columns = [_column(values) for values in zip(*rows, strict=True)]
    return [len(rows), *columns]


def _column(values: Sequence[Any]) -> float | int:
    if all(isinstance(value, (int, float, Decimal)) or value is None for value in values):
        return math.fsum(float(value) for value in values if value is not None)
    return sum(zlib.crc32(_text(value).encode()) for value in values)


def _text(value: Any) -> str:
    # agate has dates as dates or as moments, by what the adapter gave it.
    if isinstance(value, datetime):
        return value.date().isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)


class Disagreement(Exception):
    """Two systems have different answers."""


def compare(step: str, ours: dict[str, list[Any]], theirs: dict[str, list[Any]], names: tuple[str, str]) -> None:
    """Raises a Disagreement unless the answers are the same. Sums of floating point numbers may differ by rounding."""
    found = []
    for table in sorted(ours.keys() | theirs.keys()):
        a, b = ours.get(table), theirs.get(table)
        same = a is not None and b is not None and len(a) == len(b) and all(map(_equal, a, b))
        if not same:
            found.append(f"  {table}: {names[0]} {a}, {names[1]} {b}")
    if found:
        raise Disagreement(f"{names[0]} and {names[1]} differ after the step {step!r}:\n" + "\n".join(found))


def _equal(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
