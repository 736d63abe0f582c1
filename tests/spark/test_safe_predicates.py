"""The safe part of a predicate: what Spark may evaluate before deleted rows are filtered out."""

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
from dbt.adapters.ducklake.spark.read.predicate_columns import predicate_column
from dbt.adapters.ducklake.spark.sql.safe_predicates import safe_part

from ..lakes import columns

COLUMNS = columns(
    id="int64", price="decimal(12,2)", name="varchar", note="json", day="date", at="timestamptz", s={"id": "int64"}
)


@pytest.mark.parametrize(
    ("predicate", "expected"),
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
def test_the_safe_part_of_a_predicate_becomes_a_spark_column(
    spark: SparkSession, predicate: Predicate | None, expected: str | None
) -> None:
    given = spark.createDataFrame([], "id long, price decimal(12,2), name string, day date")
    found = safe_part(predicate, COLUMNS)
    if expected is None:
        assert found is None
    else:
        assert found is not None
        assert given.select(predicate_column(found)).columns == [expected]
