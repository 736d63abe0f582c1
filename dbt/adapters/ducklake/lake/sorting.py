"""Sort orders: the order of rows in new files of a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SortKey:
    """A key of a sort order, as in a row of `ducklake_sort_expression`."""

    expression: str
    descending: bool = False
    nulls_first: bool = False
    dialect: str = "duckdb"


@dataclass(frozen=True)
class SortSpec:
    """The sort order of a table."""

    id: int
    keys: tuple[SortKey, ...]
