"""What is answered from statistics is what a full scan answers: MIN, MAX and COUNT, and filters."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .engines import Both
from .test_types import KINDS, Kind, _create, _rows

FULL = "(select * from t limit 1000000)"
"""A subquery that no statistics answer for."""

AGGREGATED = tuple(k for k in KINDS if k.name != "json")


def _load(lake: Both, writer: str) -> None:
    """Several files, each with a part of the values."""
    run = lake.spark if writer == "spark" else lake.duckdb
    engine = 0 if writer == "spark" else 1
    run(_create(KINDS, writer, "t"))
    if writer == "duckdb":
        run("call lake.set_option('data_inlining_row_limit', 0)")
    rows = _rows(KINDS, engine)
    for part in (rows[:2], rows[2:5], rows[5:]):
        run(f"insert into t values {', '.join(part)}")


def _answers(lake: Both) -> dict[str, tuple[object, object]]:
    """The columns whose MIN, MAX or COUNT DuckDB answers otherwise than it does by looking at every row."""
    wrong = {}
    with lake.connection() as connection:
        names = [r[0] for r in connection.execute("describe t").fetchall()]
        for name in names:
            ask = f"select min({name}), max({name}), count({name}), count(*) from "
            quick, full = (connection.execute(ask + source).fetchall() for source in ("t", FULL))
            if repr(quick) != repr(full):
                wrong[name] = (repr(quick)[:200], repr(full)[:200])
    return wrong


@pytest.mark.parametrize("writer", ["spark", "duckdb"])
def test_minimum_and_maximum_are_those_of_the_rows(open_lake: Callable[..., Both], writer: str) -> None:
    lake = open_lake("sqlite")
    _load(lake, writer)
    assert _answers(lake) == {}
    lake.spark("insert into t (id) values (null)")
    assert _answers(lake) == {}
    lake.duckdb("delete from t where id < 3")
    assert _answers(lake) == {}


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb"])
def test_statistics_follow_what_spark_does_to_a_table(open_lake: Callable[..., Both], kind: str) -> None:
    lake = open_lake(kind)
    for statement in (
        "create table t (i int, s string, d double, n decimal(10,2))",
        "insert into t values (5, 'm', 1.5D, 5.25), (-5, 'b', double('NaN'), -1), (null, null, null, null)",
        "insert into t values (100, repeat('z', 3000), 2.5D, 100), (7, repeat('a', 3000), 0, 0)",
        "insert into t values (1, 'x', 0, 1)",
        "insert overwrite t values (3, 'c', 0.5D, 3)",
        "insert into t values (4, 'd', -1, 4)",
        "truncate table t",
        "insert into t values (9, 'q', 9, 9)",
        "create or replace table t (i bigint, s string) ",
        "insert into t values (77, 'seven')",
        "create or replace table t as select 'text' as i, 1 as s",
        "insert into t values ('', -1)",
        "alter table t add column k int default 8",
        "insert into t values ('z', 5, 1)",
        "alter table t drop column s",
        "alter table t add column s int",
        "insert into t values ('y', 2, 3)",
    ):
        lake.spark(statement)
        assert _answers(lake) == {}, statement
    lake.duckdb("insert into t values ('zz', 99, -99)", "delete from t where i = 'zz'")
    assert _answers(lake) == {}
    lake.compare()


def test_long_strings_keep_their_rows(lake: Both) -> None:
    lake.spark(
        "create table t (id int, s string)",
        "insert into t select id, concat(repeat('k', 2500), id) from range(5)",
        "insert into t values (10, 'short'), (11, repeat('é', 1500)), (12, repeat('\\U0001F600', 1000))",
    )
    assert _answers(lake) == {}
    for text in ("repeat('k', 2500) || '3'", "repeat('é', 1500)", "repeat('😀', 1000)", "'short'"):
        for operator in ("=", ">=", "<="):
            lake.agree(f"select id from t where s {operator} {text}")
    lake.agree("select id from t where s > 'z'")
    lake.agree("select id from t where s like 'kkk%'")


@pytest.mark.parametrize("writer", ["spark", "duckdb"])
def test_a_filter_loses_no_row(open_lake: Callable[..., Both], writer: str) -> None:
    lake = open_lake("sqlite" if writer == "spark" else "duckdb")
    _load(lake, writer)
    lost = []
    with lake.connection() as connection:
        for kind in AGGREGATED:
            for _, literal in kind.values[:4]:
                for operator in ("=", "<=", ">"):
                    condition = f"c_{kind.name} {operator} {_typed(kind, literal)}"
                    found = [
                        connection.execute(f"select id from {source} where {condition} order by id").fetchall()
                        for source in ("t", FULL)
                    ]
                    if found[0] != found[1]:
                        lost.append(("duckdb", condition[:80], found))
    questions = {}
    for kind in AGGREGATED:
        for (literal, _), (word, operator) in zip(kind.values, (("eq", "="), ("gt", ">")), strict=False):
            questions[f"{word}_{kind.name}"] = f"c_{kind.name} {operator} {literal}"
    every = lake.spark_rows(
        "select " + ", ".join(f"sum(if({c}, 1, 0)) as {n}" for n, c in questions.items()) + " from t"
    )[0]
    # One query for all of them, each with files pruned by its own condition.
    counted = lake.spark_rows(
        " union all ".join(f"select '{n}' as name, count(*) as n from t where {c}" for n, c in questions.items())
    )
    expected = {name: number or 0 for name, number in zip(questions, every, strict=True)}
    found_rows = dict(counted)
    lost += [("spark", questions[n], found_rows[n], expected[n]) for n in questions if found_rows[n] != expected[n]]
    assert not lost, lost[:20]


def _typed(kind: Kind, literal: str) -> str:
    return f"cast({literal} as {kind.duckdb})"
