"""Functions that Spark made, called by DuckDB."""

from __future__ import annotations

import duckdb
import pytest

from .engines import Both


def test_duckdb_calls_what_means_the_same(lake: Both) -> None:
    lake.spark(
        "create schema s",
        "create function s.twice(x int) returns bigint return x * 2",
        "create function s.size(n int, `it's big` string default 'it''s') returns string\n"
        "  return case when n > 9 then `it's big` else lower('SMALL') end -- and no more",
        "create function s.add(x double, y double default 3) return select x + y",
        "create function s.between(d date, a date, b date) returns boolean return d between a and b",
        "create function s.cut(x int) returns int return x * 1.5",  # DuckDB by itself would round
        "create function s.packed(x decimal(10,2)) returns struct<a: int> return named_struct('a', 1)",
        "create function s.none() returns int comment 'it''s 1' return 1",
    )
    for query in (
        "select s.twice(21) as a, s.twice(cast(null as int)) as b",
        "select s.size(10) as a, s.size(1) as b, s.size(10, 'x') as c",
        "select s.add(cast(1.5 as double)) as a, s.add(1, 2) as b, s.none() as c",
        "select s.cut(1) as a, s.cut(-3) as b, s.packed(2) as c",
        "select s.between(date '2026-01-02', date '2026-01-01', date '2026-01-03') as a",
    ):
        lake.agree(query)


@pytest.mark.parametrize(
    "function",
    [
        "f(x int) returns int return hash(x)",
        "f(x int) return select max(a) from t where a < x",
        "f(x array<int>) returns array<int> return x",
        "f(x tinyint, y tinyint default 300) returns int return x",
        "f(x int, y date default current_date()) returns int return x",
        "f(x variant) return x",
        "f(x decimal(10,2)) returns struct<a: int> return named_struct('a', hash(x))",
        "f(x timestamp, y string default upper('a'), z binary default x'00') return null",
    ],
)
def test_what_only_spark_can_compute_says_so_and_nothing_else_breaks(lake: Both, function: str) -> None:
    lake.spark("create table t as select 1 as a", f"create function {function.replace('f(', 'main.f(', 1)}")
    with lake.connection() as connection:
        assert connection.execute("select a from t").fetchall() == [(1,)]
        with pytest.raises(duckdb.Error, match="f is a function that only Spark can compute"):
            connection.execute("select f(1)").fetchall()


def test_either_engine_replaces_and_drops_what_the_other_made(lake: Both) -> None:
    lake.spark("create function main.f(x int) returns int return x + 1")
    lake.duckdb("create or replace macro f(x) as x + 2")
    assert lake.agree("select main.f(1) as a") == [(3,)]
    lake.spark("create or replace function main.f(x int) returns int return x + 3")
    assert lake.agree("select main.f(1) as a") == [(4,)]
    lake.duckdb("drop macro f")
    lake.spark("create function main.f() returns int return 5", "drop function main.f")
    with lake.connection() as connection, pytest.raises(duckdb.Error, match="f does not exist"):
        connection.execute("select f()")


def test_the_snapshots_tell_of_functions(lake: Both) -> None:
    lake.spark("create function main.f() returns int return 1", "drop function main.f")
    told = lake.lake.sql("select changes from ducklake_snapshots() order by snapshot_id").collect()
    theirs = lake.catalog_rows("select changes from lake.snapshots() order by snapshot_id")
    assert [row[0] for row in told] == [row[0] for row in theirs]
    assert list(told[1][0]) == ["scalar_macros_created"]
