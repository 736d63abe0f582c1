"""Conditions that have an answer for any row: none that could fail on one that is deleted already."""

from __future__ import annotations

import datetime
import decimal
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, cast

import sqlglot
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...lake.predicates import And, Comparison, In, IsNotNull, IsNull, Operator, Or, Predicate, Unknown
from ...lake.types import FLOATS, INTEGER_BITS, Column, decimal_parts
from .pushdown import literal_value
from .types import quoted

_KINDS: Mapping[str, str] = {
    **{kind: "number" for kind in (*INTEGER_BITS, *FLOATS) if "128" not in kind},
    "boolean": "boolean",
    "varchar": "text",
    "date": "date",
    "timestamp": "moment",
    "timestamptz": "instant",
}
_COMPARISONS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EXACT = 18
"""Decimals of so many digits are compared with any number without becoming too long."""

_MOST = 100
"""More values, each a call of Spark's, take longer than they save."""


def harmless_part(predicate: Predicate | None, columns: Sequence[Column]) -> SparkColumn | None:
    """What a predicate asks that may be asked of any row of these columns, as Spark's; None if it is nothing."""
    known = {c.name: c for c in columns}

    def part(asked: Predicate) -> SparkColumn | None:
        if isinstance(asked, And | Or):
            parts = [found for each in asked.parts if (found := part(each)) is not None]
            if not parts or len(parts) > _MOST or (isinstance(asked, Or) and len(parts) < len(asked.parts)):
                return None
            joined = operator.and_ if isinstance(asked, And) else operator.or_
            return reduce(joined, parts)
        if isinstance(asked, Unknown) or len(asked.column) > 1 or asked.column[0] not in known:
            return None
        column = known[asked.column[0]]
        kind, value = _kind_of_column(column), F.col(quoted(column.name))
        match asked:
            case IsNull() if kind:
                return value.isNull()
            case IsNotNull() if kind:
                return value.isNotNull()
            case Comparison() if kind and kind == _kind_of_literal(asked.value):
                return cast(SparkColumn, _COMPARISONS[asked.operator](value, F.lit(asked.value)))
            case In() if kind and len(asked.values) <= _MOST and all(kind == _kind_of_literal(v) for v in asked.values):
                return value.isin(*asked.values)
        return None

    return None if predicate is None else part(predicate)


def is_harmless(condition: str, columns: Sequence[Column], label: str) -> bool:
    """Whether a condition over columns of one relation, qualified with the label or not, never fails.

    That is: columns compared with literals of their kind, or with each other. What is not known to be
    harmless may well be.
    """
    try:
        tree = cast(exp.Expression, sqlglot.parse_one(condition, read="spark"))
    except (SqlglotError, RecursionError):
        return False
    return _Condition({c.name.lower(): c for c in columns}, label.lower()).holds(tree)


@dataclass(frozen=True)
class _Condition:
    columns: Mapping[str, Column]
    label: str

    def holds(self, tree: exp.Expression) -> bool:
        """Whether an expression is a condition that never fails."""
        rest = [tree]
        while rest:
            node = rest.pop()
            if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
                rest += list(node.iter_expressions())
            elif not self._is_plain(node):
                return False
        return True

    def _is_plain(self, node: exp.Expression) -> bool:
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.NullSafeEQ():
                return self._of_one_kind(node.this, node.expression)
            case exp.In() if not any(node.args.get(key) for key in ("query", "unnest", "field")):
                return self._of_one_kind(node.this, *node.expressions)
            case exp.Between() if not node.args.get("symmetric"):
                return self._of_one_kind(node.this, node.args["low"], node.args["high"])
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._kind(node.this) is not None
        return self._kind(node) == "boolean"

    def _of_one_kind(self, *nodes: exp.Expression) -> bool:
        kinds = {self._kind(node) for node in nodes}
        return len(kinds) == 1 and None not in kinds

    def _kind(self, node: exp.Expression) -> str | None:
        while isinstance(node, exp.Paren):
            node = node.this
        if isinstance(node, exp.Column):
            column = self._column(node)
            return _kind_of_column(column) if column else None
        if isinstance(node, exp.Mod):
            by = literal_value(node.expression)
            of = self._column(node.this.unnest())
            whole = of is not None and of.type in INTEGER_BITS and _kind_of_column(of) == "number"
            return "number" if whole and type(by) is int and by != 0 else None
        return _kind_of_literal(literal_value(node))

    def _column(self, node: exp.Expression) -> Column | None:
        if not isinstance(node, exp.Column) or node.args.get("db"):
            return None
        return self.columns.get(node.name.lower()) if node.table.lower() in ("", self.label) else None


def _kind_of_column(column: Column) -> str | None:
    digits = decimal_parts(column.type)
    if digits is not None:
        return "number" if digits[0] <= _EXACT else None
    return _KINDS.get(column.type)


def _kind_of_literal(value: object) -> str | None:
    match value:
        case bool():
            return "boolean"
        case int():
            return "number" if abs(value) < 2**63 else None
        case float():
            return "number"
        case decimal.Decimal():
            _, digits, exponent = value.as_tuple()
            return "number" if max(len(digits), -int(exponent)) <= _EXACT else None
        case str():
            return "text"
        case datetime.datetime():
            return None  # of which kind depends on its word, and on settings
        case datetime.date():
            return "date"
    return None
