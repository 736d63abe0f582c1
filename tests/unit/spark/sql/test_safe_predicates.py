"""Safe predicates: conditions that raise no error, whatever the values of a row."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.sql.safe_predicates import is_safe

from ....lakes import columns
from .helpers import fixture_lines

COLUMNS = columns(
    id="int64",
    n="uint8",
    huge="int128",
    x="float64",
    price="decimal(12,2)",
    long="decimal(38,2)",
    name="varchar",
    note="json",
    day="date",
    at="timestamptz",
    later="timestamptz",
    ok="boolean",
    s={"id": "int64"},
)


@pytest.mark.parametrize("condition", fixture_lines("safe_predicates.sql"))
def test_comparisons_between_values_of_one_kind_are_safe(condition: str) -> None:
    assert is_safe(condition, COLUMNS, "t")


@pytest.mark.parametrize("condition", [*fixture_lines("unsafe_predicates.sql"), ""])
def test_conditions_that_may_fail_or_are_unknown_are_not_safe(condition: str) -> None:
    assert not is_safe(condition, COLUMNS, "t")
