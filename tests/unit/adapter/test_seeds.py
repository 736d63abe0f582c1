"""Seeds as Arrow tables: the values are those of a cast in Spark. Values that need Spark to cast give no table."""

from __future__ import annotations

import datetime
from decimal import Decimal

import agate
import pytest

from dbt.adapters.ducklake.seeds import as_arrow, as_text_columns

from ...lakes import column


def seed(*values: object) -> agate.Table:
    text = any(isinstance(v, str) for v in values)
    return agate.Table([[v] for v in values], ["c"], [agate.Text(cast_nulls=False)] if text else None)


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("int64", [1, None, -7], [1, None, -7]),
        ("int8", [Decimal("5")], [5]),
        ("float64", [1.5, None], [1.5, None]),
        ("decimal(6,2)", [Decimal("1.005"), Decimal("-2.5"), None], [Decimal("1.01"), Decimal("-2.50"), None]),
        ("varchar", ["x", "", None], ["x", "", None]),
        ("varchar", [1, 20], ["1", "20"]),
        ("boolean", [True, False, None], [True, False, None]),
        ("boolean", ["true", "false"], [True, False]),
        ("int32", ["7", "-8", "+9"], [7, -8, 9]),
        ("float64", ["1.5", "-2"], [1.5, -2.0]),
        ("date", [datetime.date(1969, 1, 2), None], [datetime.date(1969, 1, 2), None]),
        ("date", ["2020-02-29"], [datetime.date(2020, 2, 29)]),
        ("timestamp", ["2020-02-29 01:02:03"], [datetime.datetime(2020, 2, 29, 1, 2, 3)]),
        ("timestamp", [datetime.datetime(2020, 1, 1, 2, 3, 4)], [datetime.datetime(2020, 1, 1, 2, 3, 4)]),
    ],
)
def test_plain_values_need_no_spark(kind: str, given: list[object], expected: list[object]) -> None:
    rows = as_arrow(seed(*given), [column("c", kind)])
    assert rows is not None
    assert rows.column("c").to_pylist() == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int8", 300),
        ("int64", Decimal("1.5")),
        ("int64", "abc"),
        ("boolean", "yes"),
        ("date", datetime.datetime(2020, 1, 1, 5)),
        ("date", "2020-1-1"),
        ("date", "2021-02-29"),
        ("timestamp", "2020-01-01"),
        ("timestamp", "2020-01-01 01:02:03.5+01:00"),
        ("float64", "1e3"),
        ("int64", "1_000"),
        ("int64", "1.0"),
        ("timestamptz", datetime.datetime(2020, 1, 1)),
        ("decimal(4,2)", Decimal("12345.6")),
        ("uuid", "x"),
        (["int32"], "x"),
    ],
)
def test_what_needs_a_cast_is_left_to_spark(kind: object, value: object) -> None:
    assert as_arrow(seed(value), [column("c", kind)]) is None


def test_texts_are_as_spark_reads_them() -> None:
    rows = agate.Table([[True, Decimal("10"), datetime.date(2020, 1, 1), None]], ["a", "b", "c", "d"])
    assert as_text_columns(rows).to_pylist() == [{"a": "true", "b": "10", "c": "2020-01-01", "d": None}]
