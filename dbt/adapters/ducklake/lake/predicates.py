"""Predicates for file pruning: conditions on a table's rows that file statistics can decide.

A predicate here may be weaker than the condition of the query, never stronger. `Unknown` stands for a condition
that has no form here.
"""

from __future__ import annotations

import datetime
import decimal
from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = bool | int | float | decimal.Decimal | str | bytes | datetime.date | datetime.datetime
Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
ColumnPath: TypeAlias = tuple[str, ...]
"""The name of a column, or the names that lead to a field inside a struct column."""


@dataclass(frozen=True)
class Comparison:
    column: ColumnPath
    operator: Operator
    value: Value


@dataclass(frozen=True)
class In:
    column: ColumnPath
    values: tuple[Value, ...]


@dataclass(frozen=True)
class StartsWith:
    column: ColumnPath
    prefix: str


@dataclass(frozen=True)
class IsNull:
    column: ColumnPath


@dataclass(frozen=True)
class IsNotNull:
    column: ColumnPath


@dataclass(frozen=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Unknown:
    """A condition of which nothing is known: it may hold for any row, so it keeps every file."""


Predicate: TypeAlias = Comparison | In | StartsWith | IsNull | IsNotNull | And | Or | Unknown


@dataclass(frozen=True)
class ReadPredicate:
    """The rows of a table that a transaction read: all of them satisfy the predicate."""

    predicate: Predicate
    time_zone: str = "UTC"
    """The time zone of naive datetimes in the predicate."""

    def union(self, other: ReadPredicate) -> ReadPredicate:
        """A predicate for the rows of both reads."""
        if self.time_zone != other.time_zone:
            return ReadPredicate(Unknown())
        return ReadPredicate(Or((self.predicate, other.predicate)), self.time_zone)


def referenced_columns(predicate: Predicate) -> set[ColumnPath]:
    if isinstance(predicate, And | Or):
        return {column for part in predicate.parts for column in referenced_columns(part)}
    if isinstance(predicate, Unknown):
        return set()
    return {predicate.column}
