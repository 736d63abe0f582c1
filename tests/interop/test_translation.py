"""Views in both dialects: each case runs in both engines, through a real view of one and read by the other.

The cases are lines of the files in `view_cases`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import UnsupportedError

from ..lakes import LakeAddress
from .answers import differences, of_duckdb, of_spark
from .engines import Both, by_duckdb, by_spark, rows_of

CASES = Path(__file__).parent / "view_cases"
CHUNK = 20
"""So many expressions are columns of one view."""

TABLES = [
    by_spark(
        "create table nasty (id int, i int, ti tinyint, b bigint, f float, d double, small double, n decimal(10, 2),"
        " s string, w string, digits string, days string, stamps string, flags string, ok boolean, day date,"
        " moment timestamp, wall timestamp_ntz, tags array<string>, pair struct<a: int, b: string>, j string)"
    ),
    by_spark(
        """insert into nasty values
(1, 1, 1, 1, 1.5, 1.5, 0.5, 1.50, 'a', 'b', '1', '2024-02-29', '2024-02-29 10:00:00', 'true', true,
 date'2024-02-29', timestamp'2024-02-29 23:59:59.999999', timestamp_ntz'2024-02-29 10:30:15.5',
 array('a', 'b'), named_struct('a', 1, 'b', 'x'), '{"a": "x", "o": {"b": 1}}'),
(2, -7, -7, -9007199254740993, -2.5, -2.675, -0.5, -0.05, 'ab', 'a', ' -42 ', '2020-1-2', '2020-1-2', 'F', false,
 date'2020-01-31', timestamp'2020-11-01 05:30:00', timestamp_ntz'2020-01-31 00:00:00',
 array('z', null, 'a'), named_struct('a', null, 'b', ''), '{"a": 12, "o": {"b": "t\\\\"q"}}'),
(3, 7, 7, 9007199254740993, 0.1, 1e300, 2.5, 9999999.99, 'a,b,c', 'a,b,c', '+9', '1970-01-01', '1970-01-01T00:00:00',
 'T', null, date'1970-01-01', timestamp'1970-01-01 00:00:00', timestamp_ntz'1969-12-31 23:59:59.999999',
 array(), named_struct('a', -5, 'b', null), '{"a": true, "o": {}}'),
(4, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
 null),
(5, 0, 0, 0, 0, double('nan'), -1.5, 0.00, '', '', '007', '1999-12-31', '1999-12-31 23:59:59.9', '0', true,
 date'1999-12-31', timestamp'1900-03-01 12:00:00', timestamp_ntz'2021-03-14 02:30:00',
 array(''), named_struct('a', 0, 'b', 'é'), '{"a": null, "b": 1}'),
(6, 100, 50, 4000000000, 3.25, -0.0, 0.05, -9999999.99, 'Äß ñ日本😀', 'É', '2147483647', '0001-01-01',
 '9999-12-31 00:00:00', 'false', false, date'0001-01-01', timestamp'1600-02-29 00:00:01',
 timestamp_ntz'9999-12-31 23:00:00', array('日', 'b'), named_struct('a', 2147483647, 'b', '"'), '{"o": {"b": false}}'),
(7, 7, 3, -1, 1e10, 0.1, 1.005, 0.125, ' a  b ', 'a%b_\\\\c', '-0', '2016-12-31', '2016-12-31 12:00', '1', true,
 date'9999-12-30', timestamp'2021-03-14 06:59:59', timestamp_ntz'2016-12-31 12:00:00', array('a', 'a'),
 named_struct('a', 7, 'b', 'ab'), '{"a": "", "o": {"b": 9007199254740993}}'),
(8, -100, -5, 3, 2.5, 123456.789, -2.5, 12.34, 'a1b22,ab', 'ab', '12', '2023-10-29', '2023-10-29 01:30:00', 'f', null,
 date'2023-10-29', timestamp'2023-10-29 01:30:00', timestamp_ntz'2023-11-05 01:30:00', array('x,y'),
 named_struct('a', 8, 'b', 'y'), '{"a": "é😀"}'),
(9, 2, 2, 2, 1, 2, 1.5, 5.55, 'aab%\\\\x', 'B', '3', '2025-01-01', '2025-01-01', 't', false,
 date'2025-01-01', timestamp'2025-01-01 00:00:00', timestamp_ntz'2025-01-01 00:00:00.000001', array('q'),
 named_struct('a', 9, 'b', 'z'), '{"a": "b"}')"""
    ),
    by_spark("create table others as select id, s from nasty where id > 5"),
    by_spark("create schema stage"),
    by_spark('create table `odd names` (`a b` int, `select` string, `quo"te` int)'),
    by_spark("insert into `odd names` values (1, 'x', 2), (3, null, 4)"),
    by_spark("create view stage.`odd view` as select `a b` as id, `a b`, `select` from lake.main.`odd names`"),
    by_spark("create view named (n, total) as select 1, sum(i) from nasty"),
    by_duckdb("create table foreign_types (id int, small_unsigned utinyint, key uuid, huge hugeint)"),
    by_duckdb("insert into foreign_types values (1, 255, '5d1c0fd1-9b0a-4c5c-a5ba-6d9d24b3a3a1', 12)"),
]
"""The tables of the cases: each type, with NULL, negatives, leap days, changes of clocks, odd texts and big numbers."""


def cases(name: str) -> list[str]:
    lines = (CASES / f"{name}.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def nasty(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A lake with the tables of the cases."""
    folder = tmp_path_factory.mktemp("nasty")
    lake = Both(spark, LakeAddress("sqlite", f"sqlite:{folder}/catalog.sqlite", f"{folder}/data/"))
    lake.write("spark", *TABLES)
    yield lake
    lake.close()


def chunks(expressions: Sequence[str]) -> list[str]:
    """Returns queries with some expressions each as columns, whose names tell the line."""
    columns = [f"{expression} as c{number}" for number, expression in enumerate(expressions, start=1)]
    parts = [columns[start : start + CHUNK] for start in range(0, len(columns), CHUNK)]
    return [f"select id, {', '.join(part)} from nasty" for part in parts]


def differing(lake: Both, names: Sequence[str], zone: str) -> Iterator[str]:
    """Yields where the two engines read something else from views, in a time zone."""
    with lake.connection() as connection:
        connection.execute(f"set TimeZone = '{zone}'")
        theirs = [of_duckdb(connection, f"from main.{name}") for name in names]
    lake.lake.spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        with ThreadPoolExecutor(4) as pool:
            ours = list(pool.map(lambda name: of_spark(lake.lake, f"select * from {name}"), names))
        for name, *answers in zip(names, ours, theirs, strict=True):
            yield from differences(name, *answers)
    finally:
        lake.lake.spark.conf.set("spark.sql.session.timeZone", "UTC")


def check_views_of_spark(lake: Both, prefix: str, queries: Sequence[str], zone: str) -> None:
    """Creates a view for each query in Spark, and asserts that DuckDB reads the same."""
    names = [f"{prefix}_{number}" for number in range(1, len(queries) + 1)]
    with lake.lake.transaction():
        notes = [lake.lake.execute(f"create view {n} as {q}").notes for n, q in zip(names, queries, strict=True)]
    assert [query for query, note in zip(queries, notes, strict=True) if note] == []
    assert not (found := list(differing(lake, names, zone))), "\n".join(found)


def check_views_of_duckdb(lake: Both, prefix: str, queries: Sequence[str], zone: str) -> None:
    names = [f"{prefix}_{number}" for number in range(1, len(queries) + 1)]
    lake.duckdb(*(f"create view {name} as {query}" for name, query in zip(names, queries, strict=True)))
    assert not (found := list(differing(lake, names, zone))), "\n".join(found)


def test_duckdb_computes_the_expressions_of_sparks_views(nasty: Both) -> None:
    check_views_of_spark(nasty, "of_spark", chunks(cases("spark_expressions")), "America/New_York")


def test_spark_computes_the_expressions_of_duckdbs_views(nasty: Both) -> None:
    check_views_of_duckdb(nasty, "of_duckdb", chunks(cases("duckdb_expressions")), "America/New_York")


def test_duckdb_answers_the_queries_of_sparks_views(nasty: Both) -> None:
    check_views_of_spark(nasty, "query_of_spark", cases("spark_queries"), "UTC")


def test_spark_answers_the_queries_of_duckdbs_views(nasty: Both) -> None:
    check_views_of_duckdb(nasty, "query_of_duckdb", cases("duckdb_queries"), "UTC")


def test_what_only_spark_can_compute_says_so_and_is_an_error_in_duckdb(nasty: Both) -> None:
    queries = cases("spark_only")
    with nasty.lake.transaction():
        for number, query in enumerate(queries):
            assert nasty.lake.execute(f"create view s{number} as {query}").notes == ("Spark only",), query
    with nasty.connection() as connection:
        for number, query in enumerate(queries):
            for asked in (f"from main.s{number}", f"select count(*) from main.s{number}"):
                with pytest.raises(duckdb.Error) as raised:
                    connection.execute(asked).fetchall()
                message = f"view main.s{number} is written in Spark SQL, and only Spark can compute it ("
                assert message in str(raised.value), query
        assert [row[:2] for row in connection.execute("describe main.s0").fetchall()] == [("x", "VARCHAR")]


def test_what_only_duckdb_can_compute_is_an_error_that_names_the_view(nasty: Both) -> None:
    queries = cases("duckdb_only")
    nasty.duckdb(*(f"create view d{number} as {query}" for number, query in enumerate(queries)))
    for number, query in enumerate(queries):
        with pytest.raises(UnsupportedError) as raised:
            nasty.lake.sql(f"select * from d{number}")
        assert f"view main.d{number} is written in duckdb's SQL" in str(raised.value), query
    assert ("main", "d0", False) in nasty.spark_rows("show views")


def test_macros_of_the_lake_hide_functions_of_duckdb(nasty: Both) -> None:
    nasty.duckdb("create macro upper(x) as 'mine'", "create view v as select upper(s) as x from nasty")
    assert set(nasty.agree("select * from v")) == {("mine",)}
    nasty.duckdb("drop macro upper", "drop view v")


def test_a_spark_only_view_keeps_its_sentence_when_it_is_renamed(nasty: Both) -> None:
    nasty.spark("create view v as select hash(s) as x from nasty", "alter view v rename to stage.`it's`")
    with nasty.connection() as connection, pytest.raises(duckdb.Error, match="view stage.it's is written in Spark SQL"):
        connection.execute('from stage."it\'s"')
    nasty.spark("alter view stage.`it's` as select id as x from nasty")
    assert nasty.duckdb_rows('select * from stage."it\'s" where x = 1') == [(1,)]


def test_views_that_were_stored_in_sparks_dialect_are_read(nasty: Both) -> None:
    """As earlier versions stored the views that they could not translate."""
    query = "select id, upper(s) as u from nasty where id = 1"
    nasty.spark(f"create view old as {query}")
    with sqlite3.connect(nasty.address.catalog.removeprefix("sqlite:")) as connection:
        connection.execute("update ducklake_view set sql = ?, dialect = 'spark' where view_name = 'old'", (query,))
        view = "(select view_id from ducklake_view where view_name = 'old')"
        connection.execute(f"delete from ducklake_tag where key = 'spark_sql' and object_id = {view}")
    with LakeSession(nasty.address.catalog, data_path=nasty.data_path, spark=nasty.lake.spark) as later:
        later.execute("create view over_it as select u from old")
        assert rows_of(later.sql("select * from old join over_it using (u)").toArrow()) == [("A", 1)]
        assert later.execute("create or replace view old as " + query).notes == ()
    assert nasty.duckdb_rows("from lake.main.old") == [(1, "A")]


def test_views_name_their_lake_whatever_it_is_attached_as(lake: Both) -> None:
    lake.spark(
        "create table t as select 1 as id",
        "create schema s",
        "create view s.by_spark as select id + 1 as n from lake.main.t",
        "create view s.spark_only as select id, hash(id) is not null as h from lake.main.t where id = 1",
    )
    lake.duckdb(
        "create view lake.s.by_duckdb as select id + 2 as n, '{DUCKLAKE_CATALOG}.main' as c from lake.main.t",
        "create view lake.s.over as select a.n, b.n as m from lake.s.by_duckdb a, lake.s.by_spark b",
    )
    stored = lake.catalog_rows("select sql from {m}.ducklake_view where view_name in ('by_spark', 'by_duckdb')")
    assert all("FROM {DUCKLAKE_CATALOG}." in sql for (sql,) in stored)
    lake.spark("create view s.twice as select n from lake.s.over")
    with lake.connection() as connection:
        connection.execute("use memory")
        connection.execute("detach lake")
        options = f"DATA_PATH '{lake.data_path}'"
        connection.execute(f"attach 'ducklake:{lake.address.catalog}' as elsewhere ({options})")
        connection.execute("attach ':memory:' as s; attach ':memory:' as lake")
        assert connection.execute("from elsewhere.s.over").fetchall() == [(3, 2)]
        assert connection.execute("from elsewhere.s.twice").fetchall() == [(3,)]
    catalog, data_path = lake.address.catalog, lake.data_path
    with LakeSession(catalog, data_path=data_path, spark=lake.lake.spark, database="ours") as elsewhere:
        assert rows_of(elsewhere.sql("select * from s.over").toArrow()) == [(3, 2)]
        assert rows_of(elsewhere.sql("select n, c from ours.s.by_duckdb").toArrow()) == [(3, "{DUCKLAKE_CATALOG}.main")]
        assert rows_of(elsewhere.sql("select * from ours.s.spark_only").toArrow()) == [(1, True)]
