"""Columns and their types.

A type is the text in the catalog: `int64`, `decimal(10,2)`, `struct`. The parts of a nested type are the children of
the column, so only a `Column` describes a type completely.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

NESTED = ("list", "struct", "map")

INTEGER_RANGES = {
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

_OTHER_PRIMITIVES = ("boolean", "varchar", "json", "blob", "uuid", "date", "time", "time_ns", "timetz", "interval")
PRIMITIVES = frozenset([*INTEGER_RANGES, *FLOATS, *TIMESTAMPS, *_OTHER_PRIMITIVES, "variant", "geometry"])

_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True)
class Column:
    """One version of a column or nested field: a row of `ducklake_column` with its children."""

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
    position: int | None = None
    """The `column_order`, where another engine gave the column one that is not its id."""

    @property
    def comment(self) -> str | None:
        return dict(self.tags).get("comment")

    def child(self, name: str) -> Column | None:
        """The nested field with the name, which is case-insensitive as in Spark."""
        return next((c for c in self.children if c.name.lower() == name.lower()), None)

    def walk(self) -> Iterator[Column]:
        """This column and all nested fields, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def leaves(self) -> Iterator[Column]:
        """This column or its nested fields: those that hold values, and so have statistics of their own."""
        return (field for field in self.walk() if field.type not in NESTED)

    def with_child(self, new: Column) -> Column:
        """This column with the child of the same id replaced."""
        return replace(self, children=tuple(new if c.id == new.id else c for c in self.children))

    def same_shape(self, other: Column) -> bool:
        """Whether both columns have the same type and the same nested fields, ignoring ids."""
        return (
            self.type == other.type
            and len(self.children) == len(other.children)
            and all(
                a.name.lower() == b.name.lower() and a.same_shape(b)
                for a, b in zip(self.children, other.children, strict=True)
            )
        )

    def type_text(self) -> str:
        """The complete type as readable text: `struct<a: int32, b: list<varchar>>`."""
        if self.type == "list":
            return f"list<{self.children[0].type_text()}>"
        if self.type == "map":
            return f"map<{self.children[0].type_text()}, {self.children[1].type_text()}>"
        if self.type == "struct":
            return "struct<" + ", ".join(f"{c.name}: {c.type_text()}" for c in self.children) + ">"
        return self.type


@lru_cache(maxsize=1024)
def decimal_parts(type_: str) -> tuple[int, int] | None:
    """The precision and scale of a decimal type; None for other types."""
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


def is_known_type(type_: str) -> bool:
    return type_ in PRIMITIVES or type_ in NESTED or decimal_parts(type_) is not None


def can_promote(source: str, target: str) -> bool:
    """Whether a column of type `source` may change to `target`, which must hold every old value unchanged."""
    if source in INTEGER_RANGES and target in INTEGER_RANGES and "128" not in source + target:
        low, high = INTEGER_RANGES[source]
        target_low, target_high = INTEGER_RANGES[target]
        return source != target and target_low <= low and high <= target_high
    if (source, target) == ("float32", "float64"):
        return True
    narrow, wide = decimal_parts(source), decimal_parts(target)
    if narrow and wide:
        return narrow != wide and wide[1] >= narrow[1] and wide[0] - wide[1] >= narrow[0] - narrow[1]
    return False


def with_new_ids(column: Column, next_id: int) -> tuple[Column, int]:
    """The column with new ids for itself and its nested fields, in the reference's order, and the next free id."""
    column_id, next_id = next_id, next_id + 1
    children = []
    for child in column.children:
        child, next_id = with_new_ids(child, next_id)
        children.append(child)
    return replace(column, id=column_id, children=tuple(children)), next_id


def find_path(columns: tuple[Column, ...], path: tuple[str, ...]) -> tuple[Column, ...] | None:
    """The columns from the top level down to the field at `path`; None if there is none."""
    found: list[Column] = []
    level = columns
    for name in path:
        column = next((c for c in level if c.name.lower() == name.lower()), None)
        if column is None:
            return None
        found.append(column)
        level = column.children
    return tuple(found)
