"""Safe predicates: those that cannot raise an error, whatever row they are evaluated on.

Rows that are already deleted may hold anything, so a query's own predicate can fail on them (`100 / n = 20`). A safe
predicate may be evaluated before deleted rows are removed.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from ...lake.predicates import And, Comparison, In, IsNotNull, IsNull, Or, Predicate, StartsWith, Unknown
from ...lake.types import FLOATS, INTEGER_RANGES, Column, decimal_parts
from .predicate_literals import literal_value, without_parentheses

_KINDS: Mapping[str, str] = {
    **{type_: "number" for type_ in (*INTEGER_RANGES, *FLOATS) if "128" not in type_},
    "boolean": "boolean",
    "varchar": "text",
    "date": "date",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
}
"""The kind of each type: Spark compares values of one kind without a cast that can fail."""

_MAX_DIGITS = 18
"""Decimals with more digits can overflow when Spark compares them with numbers of other types."""

_MAX_VALUES = 100
"""Each value or operand costs a call to Spark; more take longer than they save."""


def safe_part(predicate: Predicate | None, columns: Sequence[Column]) -> Predicate | None:
    """Returns the part of a predicate on these columns that is safe; None if no part is.

    >>> columns = [Column(1, "id", "int64"), Column(2, "name", "varchar")]
    >>> safe_part(And((Comparison(("id",), "<", 5), Comparison(("name",), "<", 5))), columns)
    And(parts=(Comparison(column=('id',), operator='<', value=5),))
    >>> safe_part(Or((Comparison(("id",), "<", 5), Comparison(("name",), "<", 5))), columns) is None
    True
    """
    known = {c.name: c for c in columns}

    def safe(part: Predicate) -> Predicate | None:
        if isinstance(part, And | Or):
            parts = tuple(found for operand in part.parts if (found := safe(operand)) is not None)
            if not parts or len(parts) > _MAX_VALUES or (isinstance(part, Or) and len(parts) < len(part.parts)):
                return None
            return And(parts) if isinstance(part, And) else Or(parts)
        if isinstance(part, Unknown) or len(part.column) > 1 or part.column[0] not in known:
            return None
        return part if _is_safe_on_column(part, known[part.column[0]]) else None

    return None if predicate is None else safe(predicate)


def _is_safe_on_column(predicate: Comparison | In | StartsWith | IsNull | IsNotNull, column: Column) -> bool:
    kind = _kind_of_column(column)
    if kind is None:
        return False
    match predicate:
        case IsNull() | IsNotNull():
            return True
        case Comparison():
            return kind == _kind_of_literal(predicate.value)
        case In():
            return len(predicate.values) <= _MAX_VALUES and all(kind == _kind_of_literal(v) for v in predicate.values)
    return False


def is_safe(condition: str, columns: Sequence[Column], qualifier: str) -> bool:
    """Whether a condition on these columns is known to be safe; columns may have the qualifier.

    Safe are comparisons of columns with literals of their kind, and with each other.

    >>> columns = [Column(1, "id", "int64"), Column(2, "name", "varchar")]
    >>> is_safe("t.id % 7 = 1 or name is null", columns, "t")
    True
    >>> is_safe("100 / id = 20", columns, "t"), is_safe("name = 5", columns, "t")
    (False, False)
    """
    try:
        tree = cast(exp.Expression, sqlglot.parse_one(condition, read="spark"))
    except (SqlglotError, RecursionError):
        return False
    return _ConditionCheck({c.name.lower(): c for c in columns}, qualifier.lower()).is_safe(tree)


@dataclass(frozen=True)
class _ConditionCheck:
    columns: Mapping[str, Column]
    qualifier: str

    def is_safe(self, tree: exp.Expression) -> bool:
        rest = [tree]
        while rest:
            node = rest.pop()
            if isinstance(node, exp.And | exp.Or | exp.Not | exp.Paren):
                rest += list(node.iter_expressions())
            elif not self._is_safe_operand(node):
                return False
        return True

    def _is_safe_operand(self, node: exp.Expression) -> bool:
        match node:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE() | exp.NullSafeEQ():
                return self._are_of_one_kind(node.this, node.expression)
            case exp.In() if not any(node.args.get(key) for key in ("query", "unnest", "field")):
                return self._are_of_one_kind(node.this, *node.expressions)
            case exp.Between() if not node.args.get("symmetric"):
                return self._are_of_one_kind(node.this, node.args["low"], node.args["high"])
            case exp.Is() if isinstance(node.expression, exp.Null):
                return self._kind(node.this) is not None
        return self._kind(node) == "boolean"

    def _are_of_one_kind(self, *nodes: exp.Expression) -> bool:
        kinds = {self._kind(node) for node in nodes}
        return len(kinds) == 1 and None not in kinds

    def _kind(self, node: exp.Expression) -> str | None:
        """Returns the kind of a column, a literal, or an integer column modulo a literal; None for anything else."""
        node = without_parentheses(node)
        if isinstance(node, exp.Column):
            column = self._column(node)
            return _kind_of_column(column) if column else None
        if isinstance(node, exp.Mod):
            divisor = literal_value(node.expression)
            dividend = self._column(node.this.unnest())
            is_integer = (
                dividend is not None and dividend.type in INTEGER_RANGES and _kind_of_column(dividend) == "number"
            )
            return "number" if is_integer and type(divisor) is int and divisor != 0 else None
        return _kind_of_literal(literal_value(node))

    def _column(self, node: exp.Expression) -> Column | None:
        if not isinstance(node, exp.Column) or node.args.get("db"):
            return None
        return self.columns.get(node.name.lower()) if node.table.lower() in ("", self.qualifier) else None


def _kind_of_column(column: Column) -> str | None:
    decimal_type = decimal_parts(column.type)
    if decimal_type is not None:
        return "number" if decimal_type[0] <= _MAX_DIGITS else None
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
            return "number" if max(len(digits), -int(exponent)) <= _MAX_DIGITS else None
        case str():
            return "text"
        case datetime.datetime():
            return None  # its type depends on the keyword of the literal and on the session's settings
        case datetime.date():
            return "date"
    return None
