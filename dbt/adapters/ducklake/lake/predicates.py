"""What a query asks of one table's rows, in the few words that statistics can answer.

Anything else a query says is left out: a predicate here may be weaker than the query's, never
stronger. `Unknown` stands for what can not be said, and keeps every file.
"""

from __future__ import annotations

import datetime
import decimal
from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = bool | int | float | decimal.Decimal | str | bytes | datetime.date | datetime.datetime
Operator: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">="]
Path: TypeAlias = tuple[str, ...]  # a column, or a field inside a struct column


@dataclass(frozen=True)
class Comparison:
    column: Path
    operator: Operator
    value: Value


@dataclass(frozen=True)
class In:
    column: Path
    values: tuple[Value, ...]


@dataclass(frozen=True)
class StartsWith:
    column: Path
    prefix: str


@dataclass(frozen=True)
class IsNull:
    column: Path


@dataclass(frozen=True)
class IsNotNull:
    column: Path


@dataclass(frozen=True)
class And:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or:
    parts: tuple[Predicate, ...]


@dataclass(frozen=True)
class Unknown:
    """Holds for any row, as far as anybody can tell."""


Predicate: TypeAlias = Comparison | In | StartsWith | IsNull | IsNotNull | And | Or | Unknown


@dataclass(frozen=True)
class Read:
    """The rows of a table that a transaction looked at: those that the predicate holds for."""

    predicate: Predicate
    time_zone: str = "UTC"
    """Where its naive datetimes are."""

    def or_(self, other: Read) -> Read:
        if self.time_zone != other.time_zone:
            return Read(Unknown())
        return Read(Or((self.predicate, other.predicate)), self.time_zone)


def columns_of(predicate: Predicate) -> set[Path]:
    if isinstance(predicate, And | Or):
        return {column for part in predicate.parts for column in columns_of(part)}
    if isinstance(predicate, Unknown):
        return set()
    return {predicate.column}
