"""The order that a table's files are written in."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SortKey:
    """One key of a sort order: a row of `ducklake_sort_expression`."""

    expression: str
    descending: bool = False
    nulls_first: bool = False
    dialect: str = "duckdb"


@dataclass(frozen=True)
class SortSpec:
    id: int
    keys: tuple[SortKey, ...]
