"""The column types of DuckLake, as values.

A column's type is the text that the catalog holds (`int64`, `decimal(10,2)`, `struct`); the shape
of a nested type is in the column's children. `Column` is therefore all there is to say of a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

NESTED = ("list", "struct", "map")

INTEGER_BITS = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "int128": (-(2**127), 2**127 - 1),
    "uint8": (0, 2**8 - 1),
    "uint16": (0, 2**16 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
    "uint128": (0, 2**128 - 1),
}
FLOATS = ("float32", "float64")
TIMESTAMPS = ("timestamp", "timestamp_us", "timestamptz", "timestamp_s", "timestamp_ms", "timestamp_ns")

_OTHERS = ("boolean", "varchar", "json", "blob", "uuid", "date", "time", "time_ns", "timetz", "interval")
PRIMITIVES = frozenset([*INTEGER_BITS, *FLOATS, *TIMESTAMPS, *_OTHERS, "variant", "geometry"])

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Column:
    """One version of a column or nested field: what `ducklake_column` says of it."""

    id: int
    name: str
    type: str
    nulls_allowed: bool = True
    children: tuple[Column, ...] = ()
    initial_default: str | None = None
    default_value: str | None = None
    default_value_type: str = "literal"
    default_value_dialect: str = "duckdb"
    tags: tuple[tuple[str, str], ...] = field(default=())

    @property
    def comment(self) -> str | None:
        return dict(self.tags).get("comment")

    def child(self, name: str) -> Column | None:
        """The nested field of that name, found as Spark finds names: without regard to case."""
        return next((c for c in self.children if c.name.lower() == name.lower()), None)

    def walk(self) -> Iterator[Column]:
        """This column and every field below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def with_child(self, new: Column) -> Column:
        """This column with the child of the same id replaced."""
        return replace(self, children=tuple(new if c.id == new.id else c for c in self.children))

    def same_shape(self, other: Column) -> bool:
        """Whether both hold the same values: type and nested fields, whatever their ids."""
        return (
            self.type == other.type
            and len(self.children) == len(other.children)
            and all(
                a.name.lower() == b.name.lower() and a.same_shape(b)
                for a, b in zip(self.children, other.children, strict=True)
            )
        )

    def type_text(self) -> str:
        """The whole type in words, for people: `struct<a: int32, b: list<varchar>>`."""
        if self.type == "list":
            return f"list<{self.children[0].type_text()}>"
        if self.type == "map":
            return f"map<{self.children[0].type_text()}, {self.children[1].type_text()}>"
        if self.type == "struct":
            return "struct<" + ", ".join(f"{c.name}: {c.type_text()}" for c in self.children) + ">"
        return self.type


@lru_cache(maxsize=1024)
def decimal_parts(type_: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type; None for any other type."""
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def is_known(type_: str) -> bool:
    return type_ in PRIMITIVES or type_ in NESTED or decimal_parts(type_) is not None


def promotes(source: str, target: str) -> bool:
    """Whether a column of type `source` may become `target`: every old value stays what it was."""
    if source in INTEGER_BITS and target in INTEGER_BITS and "128" not in source + target:
        low, high = INTEGER_BITS[source]
        target_low, target_high = INTEGER_BITS[target]
        return source != target and target_low <= low and high <= target_high
    if (source, target) == ("float32", "float64"):
        return True
    narrow, wide = decimal_parts(source), decimal_parts(target)
    if narrow and wide:
        return narrow != wide and wide[1] >= narrow[1] and wide[0] - wide[1] >= narrow[0] - narrow[1]
    return False


def renumber(column: Column, next_id: int) -> tuple[Column, int]:
    """The column with fresh ids for itself and its fields, in the reference's order; and the next id."""
    own, next_id = next_id, next_id + 1
    children = []
    for child in column.children:
        child, next_id = renumber(child, next_id)
        children.append(child)
    return replace(column, id=own, children=tuple(children)), next_id


def find_path(columns: tuple[Column, ...], path: tuple[str, ...]) -> tuple[Column, ...] | None:
    """The columns from the top level down to the field at `path`, or None."""
    found: list[Column] = []
    level: Any = columns
    for name in path:
        step = next((c for c in level if c.name.lower() == name.lower()), None)
        if step is None:
            return None
        found.append(step)
        level = step.children
    return tuple(found)
