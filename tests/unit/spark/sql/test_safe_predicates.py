"""Which conditions never fail, whatever row they are asked of."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.sql.safe_predicates import is_harmless

from ....lakes import columns

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


@pytest.mark.parametrize(
    "condition",
    [
        "id = 1",
        "T.id <> -1 and (`t`.`ID` >= 5 or not n < x)",
        "id % 100 = 47",
        "mod(id, 7) in (1, 2)",
        "id in (1, 2.5, 3e10)",
        "price between 1 and 2.50",
        "name = 'x' or name <=> 'y' or name > name",
        "day >= date'2026-01-01' and day = day",
        "at < later",
        "ok and not (ok = true)",
        "name is null and day is not null",
        "true",
    ],
)
def test_columns_can_be_compared_with_what_is_of_their_kind(condition: str) -> None:
    assert is_harmless(condition, COLUMNS, "t")


@pytest.mark.parametrize(
    "condition",
    [
        "name = 5",  # the name becomes a number, or does not
        "id = '5'",
        "id / n > 1",
        "id % n = 1",
        "id % 0 = 1",
        "huge % 2 = 1",
        "x % 2 = 1",
        "id + 1 = 2",
        "-id = 2",
        "cast(name as int) = 1",
        "day = 'someday'",
        "day = cast('someday' as date)",
        "at > timestamp'2026-01-01 00:00:00'",
        "long = 1",
        "id = 99999999999999999999",
        "price > 0.0000000000000000000000000000000001",
        "id = null",
        "id in (1, null)",
        "id in (select id from u)",
        "exists (select 1 from u where u.id = t.id)",
        "s.id = 1",
        "u.id = 1",
        "main.t.id = 1",
        "nobody = 1",
        "rowid = 1",
        "name like '%\\'",
        "rand() < 0.5",
        "raise_error('x')",
        "name",
        "id",
        "note = 'x'",
        "ok = 1",
        "id =",
        "",
    ],
)
def test_what_may_fail_or_is_not_known_is_not_harmless(condition: str) -> None:
    assert not is_harmless(condition, COLUMNS, "t")
