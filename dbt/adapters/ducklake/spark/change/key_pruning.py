"""What the keys of a source say of the rows of a table that it can match: so other files stay unread."""

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
from ..sql.types import quoted

_MOST_VALUES = 1_000
"""Up to so many values of a key are looked for one by one."""
_BUCKETS = 1_000
_MOST_RANGES = 64

_NUMBER_OF: Mapping[type[s.DataType], str] = {
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
"""How a value becomes a number that grows with it."""


_PLAIN = (
    *(exp.Column, exp.Identifier, exp.Paren, exp.Literal, exp.Neg, exp.Add, exp.Sub, exp.Mul),
    *(exp.Cast, exp.DataType, exp.Lower, exp.Upper),
)
"""What a key may be made of: what has one value for a row, and comes out of sqlglot as it went in."""


BROADCAST_BYTES = 64 * 2**20
"""Rows of up to this size are sent to every task, so that the table that they are joined to stays where it is."""


def fits_broadcast(rows: DataFrame) -> bool:
    """Whether rows are so few that each task may have them all.

    They are computed already; of such rows Spark knows no size, and would sort and move both sides of a join.
    """
    if (rows.sparkSession.conf.get("spark.sql.autoBroadcastJoinThreshold") or "").startswith("-"):
        return False
    sizes = ["8", *(_size(f) for f in rows.schema.fields)]
    try:
        found = rows.selectExpr(f"sum({' + '.join(sizes)}) as bytes").toArrow().column(0)[0].as_py()
    except PySparkException:
        return False  # a nested value that has no JSON
    return (found or 0) <= BROADCAST_BYTES


def _size(field: s.StructField) -> str:
    """The SQL for about how many bytes a value takes."""
    name = quoted(field.name)
    if isinstance(field.dataType, s.StringType | s.BinaryType):
        return f"coalesce(octet_length({name}), 0) + 8"
    if isinstance(field.dataType, s.StructType | s.ArrayType | s.MapType | s.VariantType):
        return f"coalesce(octet_length(to_json(named_struct('v', {name}))), 0)"
    return "8"


@dataclass(frozen=True)
class Key:
    """A column of the table that a condition wants equal to something of the source."""

    column: str
    expression: str


def keys_of(condition: str, table: Table, label: str, source_label: str | None, names: Sequence[str]) -> list[Key]:
    """The columns that `condition` wants equal to an expression over the source alone.

    The labels are what qualifies the columns of either side; without one, a column is the source's
    if its name is none of the table's.
    """
    try:
        parsed = sqlglot.parse_one(condition, read="spark")
    except (SqlglotError, RecursionError):
        return []
    sides = _Sides(
        {c.name.lower(): c.name for c in table.columns}, label.lower(), source_label, {name.lower() for name in names}
    )
    keys = []
    for part in parsed.flatten() if isinstance(parsed, exp.And) else [parsed]:
        node = part.unnest()
        if not isinstance(node, exp.EQ):
            continue
        left, right = node.args["this"], node.args["expression"]
        for one, other in ((left, right), (right, left)):
            column = sides.target(one.unnest())
            if column is not None and sides.is_source(other):
                keys.append(Key(column, other.sql(dialect="spark")))
                break
    return keys


@dataclass(frozen=True)
class _Sides:
    columns: Mapping[str, str]
    label: str
    source_label: str | None
    names: set[str]

    def target(self, node: exp.Expression) -> str | None:
        """The table's column that an expression is, if it is one."""
        if not isinstance(node, exp.Column) or node.args.get("db"):
            return None
        name, qualifier = node.name.lower(), node.table.lower()
        if name not in self.columns or (not qualifier and name in self.names):
            return None
        return self.columns[name] if qualifier in ("", self.label) else None

    def is_source(self, expression: exp.Expression) -> bool:
        """Whether an expression is computed of the source alone, by what sqlglot says as it was written."""
        if not all(isinstance(node, _PLAIN) for node in expression.walk()):
            return False
        columns = list(expression.find_all(exp.Column))
        return bool(columns) and all(self._is_source_column(column) for column in columns)

    def _is_source_column(self, column: exp.Column) -> bool:
        name, qualifier = column.name.lower(), column.table.lower()
        if column.args.get("db") or name not in self.names:
            return False
        if not qualifier:
            return name not in self.columns
        return self.source_label is not None and qualifier == self.source_label.lower()


def asked_of_target(source: DataFrame, source_label: str | None, keys: Sequence[Key]) -> Predicate | None:
    """What holds for every row of the table that a row of the source can match, by these keys."""
    if not keys:
        return None
    rows = source.alias(source_label) if source_label else source
    try:
        known = [asked for asked in _each(rows, keys) if asked is not None]
    except PySparkException:
        return None  # a value that can not be computed may belong to a row that meets none
    return And(tuple(known)) if known else None


def _each(rows: DataFrame, keys: Sequence[Key]) -> Iterator[Predicate | None]:
    facts = []
    for i, key in enumerate(keys):
        e = key.expression
        facts += [f"min({e}) as low_{i}", f"max({e}) as high_{i}", f"approx_count_distinct({e}) as many_{i}"]
    kinds = [f.dataType for f in rows.selectExpr(*(f"{key.expression} as k{i}" for i, key in enumerate(keys))).schema]
    found = rows.selectExpr(*facts).toArrow().to_pylist()[0]
    for i, (key, kind) in enumerate(zip(keys, kinds, strict=True)):
        low, high = found[f"low_{i}"], found[f"high_{i}"]
        yield _asked(rows, key, kind, low, high, found[f"many_{i}"])


def _asked(rows: DataFrame, key: Key, kind: s.DataType, low: Any, high: Any, many: int) -> Predicate | None:
    path, e = (key.column,), key.expression
    if low is None:
        return In(path, ())  # no row of the source has a value
    if isinstance(high, float) and not (math.isfinite(low) and math.isfinite(high)):
        return None
    if many <= _MOST_VALUES:
        values = rows.selectExpr(f"{e} as value").where("value is not null").distinct().toArrow()
        return In(path, tuple(values.column(0).to_pylist()))
    number = _NUMBER_OF.get(type(kind))
    if number is None or low == high:
        return _range((low, high), path)
    # The source's values lie in parts of their range, perhaps: the bounds of each part that has some.
    position = number.format(f"({e})")
    spread = rows.selectExpr(f"min({position}) as low", f"max({position}) as high").collect()[0]
    width = (spread["high"] - spread["low"]) / _BUCKETS
    if width == 0:
        return _range((low, high), path)
    part = f"floor(({position} - {spread['low']!r}D) / {width!r}D)"
    values = rows.selectExpr(f"{e} as value", f"{part} as part").where("value is not null")
    bounds = values.groupBy("part").agg(F.min("value").alias("low"), F.max("value").alias("high")).toArrow()
    ranges = list(zip(bounds.column("low").to_pylist(), bounds.column("high").to_pylist(), strict=True))
    return Or(tuple(_range(found, path) for found in _joined(ranges)))


def _joined(ranges: Sequence[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The ranges in order, those joined that have the least between them until they are few."""
    ordered = sorted(ranges)
    gaps = sorted((after[0] - before[1] for before, after in pairwise(ordered)), reverse=True)
    least = gaps[_MOST_RANGES - 1] if len(gaps) >= _MOST_RANGES else None
    result = [ordered[0]]
    for low, high in ordered[1:]:
        if least is None or low - result[-1][1] > least:
            result.append((low, high))
        else:
            result[-1] = (result[-1][0], high)
    return result


def _range(bounds: tuple[Any, Any], path: tuple[str, ...]) -> Predicate:
    return And((Comparison(path, ">=", bounds[0]), Comparison(path, "<=", bounds[1])))
