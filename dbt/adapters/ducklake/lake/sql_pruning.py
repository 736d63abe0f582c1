"""File pruning by the catalog database: it leaves out most files, whose statistics then need not be read.

What it decides is weaker than the test of `pruning`, to which the files that it leaves are put: it compares integers,
texts and days, and keeps a file wherever a bound is missing or is written in another way.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from .databases.base import Database
from .literals import LiteralInterval, literal_interval
from .predicates import And, Comparison, In, IsNotNull, IsNull, Or, Predicate, Value
from .pruning import find_column
from .stats import TYPES_WITHOUT_BOUNDS
from .types import INTEGER_RANGES, NESTED, TIMESTAMPS, Column
from .values import NANOSECONDS_PER_DAY

_MAX_ALTERNATIVES = 5
"""Of more values of an IN, only the lowest and the highest one are compared."""
_MAX_INTEGER = 2**63 - 1
_DAYS_OF_ZONES = 2
"""A timestamp and the text of a bound may be days of different time zones."""

_Bound = Callable[[sa.ColumnElement[Any]], sa.ColumnElement[Any]]


@dataclass(frozen=True)
class SqlPruning:
    """Makes conditions on files that stand in one row with their statistics."""

    database: Database
    columns: Sequence[Column]
    stats: Mapping[int, sa.FromClause]
    """The statistics of each column that a predicate names, by its id."""
    zone: datetime.tzinfo | None

    def may_match(self, predicate: Predicate) -> sa.ColumnElement[bool] | None:
        """The condition that holds for all files that may have a matching row; None if it would hold for every file."""
        if isinstance(predicate, And):
            parts = [part for p in predicate.parts if (part := self.may_match(p)) is not None]
            return sa.and_(*parts) if parts else None
        if isinstance(predicate, Or):
            alternatives = [part for p in predicate.parts if (part := self.may_match(p)) is not None]
            return sa.or_(*alternatives) if len(alternatives) == len(predicate.parts) else None
        if isinstance(predicate, Comparison | In | IsNull | IsNotNull):
            column = find_column(self.columns, predicate.column)
            if column is not None and column.type not in NESTED:
                return self._column_condition(predicate, column)
        return None

    def _column_condition(
        self, predicate: Comparison | In | IsNull | IsNotNull, column: Column
    ) -> sa.ColumnElement[bool] | None:
        if isinstance(predicate, IsNull):
            stats = self.stats[column.id]
            return _unless(sa.and_(stats.c.null_count == 0, stats.c.value_count > 0))
        if isinstance(predicate, IsNotNull):
            stats = self.stats[column.id]
            return _unless(sa.and_(stats.c.value_count == 0, stats.c.null_count > 0))
        if column.type in TYPES_WITHOUT_BOUNDS:
            return None
        if isinstance(predicate, Comparison):
            return self._comparison(column, predicate.operator, [predicate.value])
        return self._comparison(column, "=", predicate.values)

    def _comparison(self, column: Column, operator: str, values: Sequence[Value]) -> sa.ColumnElement[bool] | None:
        bound = self._bound_of(column.type)
        if bound is None:
            return None
        literals = [literal_interval(value, column.type, self.zone) for value in values]
        known = [
            found for literal in literals if literal is not None and (found := _range(literal, column.type)) is not None
        ]
        if operator == "<>" or not known or len(known) < len(values):
            return None
        if len(known) > _MAX_ALTERNATIVES:
            known = [(min(low for low, _ in known), max(high for _, high in known))]
        stats = self.stats[column.id]
        lowest, highest = bound(stats.c.min_value), bound(stats.c.max_value)
        conditions = []
        for low, high in known:
            too_high, too_low = lowest > self._literal(high), highest < self._literal(low)
            outside = {"<": too_high, "<=": too_high, ">": too_low, ">=": too_low}.get(operator)
            conditions.append(_unless(sa.or_(too_high, too_low) if outside is None else outside))
        return sa.or_(*conditions)

    def _bound_of(self, type_: str) -> _Bound | None:
        """How the text of a bound becomes what is compared. It becomes NULL if it is written in another way."""
        if type_ in INTEGER_RANGES:
            return self.database.integer_of_text
        if type_ == "date" or type_ in TIMESTAMPS:
            return lambda text: sa.case((_begins_with_day(text), self.database.text_by_code_points(text)))
        return self.database.text_by_code_points if type_ in ("varchar", "json") else None

    def _literal(self, value: Any) -> sa.ColumnElement[Any]:
        literal = sa.literal(value)
        return self.database.text_by_code_points(literal) if isinstance(value, str) else literal


def _unless(excluded: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Whether the condition is false or unknown."""
    return sa.case((excluded, 0), else_=1) == 1


def _begins_with_day(text: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Whether a text begins with a day of a year of four digits after Christ, as all but far ones do."""
    return sa.and_(text.like("____-__-__%"), sa.not_(text.like("%B%")), sa.not_(text.like("-%")))


def _range(literal: LiteralInterval | None, type_: str) -> tuple[Any, Any] | None:
    """The lowest and the highest value that a literal may stand for, as the database compares it; None if unknown."""
    if literal is None:
        return None
    try:
        if type_ in INTEGER_RANGES:
            low, high = math.floor(literal.low), math.ceil(literal.high)
            return (low, high) if low >= -_MAX_INTEGER and high <= _MAX_INTEGER else None
        if type_ == "date" or type_ in TIMESTAMPS:
            return _days(literal)
    except (OverflowError, ValueError):  # infinite, or a year that has more digits
        return None
    return None if "\0" in literal.low else (literal.low, literal.high)


def _days(literal: LiteralInterval) -> tuple[str, str]:
    """The first and the last day of the interval, the last one followed by what is greater than any time of it."""
    low, high = literal.low, literal.high
    if not literal.is_day:
        low = low // NANOSECONDS_PER_DAY - _DAYS_OF_ZONES
        high = high // NANOSECONDS_PER_DAY + _DAYS_OF_ZONES
    epoch = datetime.date(1970, 1, 1).toordinal()
    first, last = datetime.date.fromordinal(epoch + low), datetime.date.fromordinal(epoch + high)
    return first.isoformat(), last.isoformat() + "~"
