"""Key pruning: the key values of a source become a predicate on the table, which skips files without a match."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import sqlglot
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...lake.predicates import And, Comparison, In, Or, Predicate
from ...lake.snapshot import Table

_MAX_VALUES = 1_000
"""The predicate lists up to this many values of a key. More values become ranges."""
_BUCKETS = 1_000
_MAX_RANGES = 64

_NUMBER_SQL: Mapping[type[s.DataType], str] = {
    s.ByteType: "cast({} as double)",
    s.ShortType: "cast({} as double)",
    s.IntegerType: "cast({} as double)",
    s.LongType: "cast({} as double)",
    s.FloatType: "cast({} as double)",
    s.DoubleType: "{}",
    s.DecimalType: "cast({} as double)",
    s.DateType: "cast(unix_date({}) as double)",
    s.TimestampType: "cast(unix_micros({}) as double)",
}
"""The SQL that maps a value to a double in the same order."""


_SAFE_NODES = (
    *(exp.Column, exp.Identifier, exp.Paren, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul),
    *(exp.Cast, exp.DataType, exp.Lower, exp.Upper),
)
"""What a key expression may contain: deterministic nodes that sqlglot prints as they were written."""


@dataclass(frozen=True)
class EqualityKey:
    """A column of the table that must equal an expression over the source."""

    column: str
    expression: str


def equality_keys(
    condition: str, table: Table, qualifier: str, source_qualifier: str | None, source_columns: Sequence[str]
) -> list[EqualityKey]:
    """The columns of the table that `condition` requires to equal an expression over the source alone.

    The qualifiers are the names of the two sides. An unqualified column is the source's only if the table has no
    column of that name.
    """
    try:
        parsed = sqlglot.parse_one(condition, read="spark")
    except (SqlglotError, RecursionError):
        return []
    sides = _JoinSides(
        {c.name.lower(): c.name for c in table.columns},
        qualifier.lower(),
        {name.lower() for name in source_columns},
        source_qualifier,
    )
    keys = []
    for part in parsed.flatten() if isinstance(parsed, exp.And) else [parsed]:
        node = part.unnest()
        if not isinstance(node, exp.EQ):
            continue
        left, right = node.args["this"], node.args["expression"]
        for one, other in ((left, right), (right, left)):
            column = sides.target_column(one.unnest())
            if column is not None and sides.is_over_source(other):
                keys.append(EqualityKey(column, other.sql(dialect="spark")))
                break
    return keys


@dataclass(frozen=True)
class _JoinSides:
    """The columns of both sides of a join, and what may qualify them."""

    target_columns: Mapping[str, str]
    """The table's columns by their names in lower case."""
    target_qualifier: str
    source_columns: set[str]
    source_qualifier: str | None

    def target_column(self, node: exp.Expression) -> str | None:
        """The table's column that an expression is; None if it is something else."""
        if not isinstance(node, exp.Column) or node.args.get("db"):
            return None
        name, qualifier = node.name.lower(), node.table.lower()
        if name not in self.target_columns or (not qualifier and name in self.source_columns):
            return None
        return self.target_columns[name] if qualifier in ("", self.target_qualifier) else None

    def is_over_source(self, expression: exp.Expression) -> bool:
        """Whether an expression uses columns of the source alone and can be evaluated apart from the condition."""
        if not all(isinstance(node, _SAFE_NODES) for node in expression.walk()):
            return False
        columns = list(expression.find_all(exp.Column))
        return bool(columns) and all(self._is_source_column(column) for column in columns)

    def _is_source_column(self, column: exp.Column) -> bool:
        name, qualifier = column.name.lower(), column.table.lower()
        if column.args.get("db") or name not in self.source_columns:
            return False
        if not qualifier:
            return name not in self.target_columns
        return self.source_qualifier is not None and qualifier == self.source_qualifier.lower()


def key_predicate(source: DataFrame, source_qualifier: str | None, keys: Sequence[EqualityKey]) -> Predicate | None:
    """A predicate that holds for every row of the table that a source row can match by these keys."""
    if not keys:
        return None
    rows = source.alias(source_qualifier) if source_qualifier else source
    try:
        predicates = [predicate for predicate in _predicates(rows, keys) if predicate is not None]
    except PySparkException:
        return None  # an expression fails on a source row, which may match no row of the table
    return And(tuple(predicates)) if predicates else None


def _predicates(rows: DataFrame, keys: Sequence[EqualityKey]) -> Iterator[Predicate | None]:
    """A predicate for each key, from one query over the source for the bounds of all keys."""
    aggregates = []
    for i, key in enumerate(keys):
        e = key.expression
        aggregates += [f"min({e}) as low_{i}", f"max({e}) as high_{i}", f"approx_count_distinct({e}) as many_{i}"]
    types = [f.dataType for f in rows.selectExpr(*(f"{key.expression} as k{i}" for i, key in enumerate(keys))).schema]
    bounds = rows.selectExpr(*aggregates).toArrow().to_pylist()[0]
    for i, (key, data_type) in enumerate(zip(keys, types, strict=True)):
        yield _predicate(rows, key, data_type, bounds[f"low_{i}"], bounds[f"high_{i}"], bounds[f"many_{i}"])


def _predicate(
    rows: DataFrame, key: EqualityKey, data_type: s.DataType, low: Any, high: Any, distinct_values: int
) -> Predicate | None:
    path, e = (key.column,), key.expression
    if low is None:
        return In(path, ())  # the key is NULL in all source rows
    if isinstance(high, float) and not (math.isfinite(low) and math.isfinite(high)):
        return None
    if distinct_values <= _MAX_VALUES:
        values = rows.selectExpr(f"{e} as value").where("value is not null").distinct().toArrow()
        return In(path, tuple(values.column(0).to_pylist()))
    number_sql = _NUMBER_SQL.get(type(data_type))
    if number_sql is None or low == high:
        return _between(path, low, high)
    # The values may lie in clusters with gaps between them: cut their range into buckets of equal width.
    number = number_sql.format(f"({e})")
    numbers = rows.selectExpr(f"min({number}) as low", f"max({number}) as high").collect()[0]
    width = (numbers["high"] - numbers["low"]) / _BUCKETS
    if width == 0:
        return _between(path, low, high)
    bucket = f"floor(({number} - {numbers['low']!r}D) / {width!r}D)"
    values = rows.selectExpr(f"{e} as value", f"{bucket} as bucket").where("value is not null")
    buckets = values.groupBy("bucket").agg(F.min("value").alias("low"), F.max("value").alias("high")).toArrow()
    ranges = list(zip(buckets.column("low").to_pylist(), buckets.column("high").to_pylist(), strict=True))
    return Or(tuple(_between(path, *bounds) for bounds in _merge_ranges(ranges)))


def _merge_ranges(ranges: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Merges the ranges with the smallest gaps between them until at most `_MAX_RANGES` are left."""
    ordered = sorted(ranges)
    gaps = sorted((after[0] - before[1] for before, after in pairwise(ordered)), reverse=True)
    widest_merged = gaps[_MAX_RANGES - 1] if len(gaps) >= _MAX_RANGES else None
    result = [ordered[0]]
    for low, high in ordered[1:]:
        if widest_merged is None or low - result[-1][1] > widest_merged:
            result.append((low, high))
        else:
            result[-1] = (result[-1][0], high)
    return result


def _between(path: tuple[str, ...], low: Any, high: Any) -> Predicate:
    return And((Comparison(path, ">=", low), Comparison(path, "<=", high)))
