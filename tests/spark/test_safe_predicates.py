"""What is asked of rows before it is known which of them are deleted."""

from __future__ import annotations

import datetime
import decimal

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.lake.predicates import (
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    Unknown,
)
from dbt.adapters.ducklake.spark.sql.safe_predicates import harmless_part

from ..lakes import columns

COLUMNS = columns(
    id="int64", price="decimal(12,2)", name="varchar", note="json", day="date", at="timestamptz", s={"id": "int64"}
)


@pytest.mark.parametrize(
    ("predicate", "asked"),
    [
        (Comparison(("id",), "<", 5), "(id < 5)"),
        (Comparison(("name",), "<>", "x"), "(NOT (name = x))"),
        (Comparison(("day",), ">=", datetime.date(2026, 1, 1)), "(day >= DATE '2026-01-01')"),
        (In(("price",), (1, decimal.Decimal("2.5"))), "(price IN (1, 2.5))"),
        (IsNull(("name",)), "(name IS NULL)"),
        (And((Unknown(), IsNull(("id",)), IsNotNull(("day",)))), "((id IS NULL) AND (day IS NOT NULL))"),
        (Or((IsNull(("id",)), Comparison(("id",), "=", 1))), "((id IS NULL) OR (id = 1))"),
        (Or((Unknown(), IsNull(("id",)))), None),
        (Comparison(("id",), "<", "5"), None),
        (Comparison(("name",), "=", 5), None),
        (Comparison(("s", "id"), "=", 5), None),
        (Comparison(("nobody",), "=", 5), None),
        (Comparison(("at",), "<", datetime.datetime(2026, 1, 1)), None),
        (In(("price",), (1, "x")), None),
        (IsNotNull(("note",)), None),
        (StartsWith(("name",), "x"), None),
        (None, None),
    ],
)
def test_what_a_query_says_is_asked_first_where_it_can_not_fail(
    spark: SparkSession, predicate: Predicate | None, asked: str | None
) -> None:
    given = spark.createDataFrame([], "id long, price decimal(12,2), name string, day date")
    found = harmless_part(predicate, COLUMNS)
    if asked is None:
        assert found is None
    else:
        assert found is not None
        assert given.select(found).columns == [asked]
