"""Predicates as Spark columns."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, cast

from pyspark.sql import Column
from pyspark.sql import functions as F

from ...lake.predicates import And, Comparison, In, IsNotNull, IsNull, Operator, Or, Predicate
from ..sql.quoting import quoted_name

_COMPARISONS: Mapping[Operator, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def predicate_column(predicate: Predicate) -> Column:
    """Returns a safe predicate as a condition of Spark."""
    match predicate:
        case And():
            return reduce(operator.and_, map(predicate_column, predicate.parts))
        case Or():
            return reduce(operator.or_, map(predicate_column, predicate.parts))
        case Comparison():
            value = F.col(quoted_name(predicate.column))
            return cast(Column, _COMPARISONS[predicate.operator](value, F.lit(predicate.value)))
        case In():
            return F.col(quoted_name(predicate.column)).isin(*predicate.values)
        case IsNull():
            return F.col(quoted_name(predicate.column)).isNull()
        case IsNotNull():
            return F.col(quoted_name(predicate.column)).isNotNull()
    raise ValueError(f"{type(predicate).__name__} is no safe predicate")
