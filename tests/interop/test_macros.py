"""Macros that DuckDB created, called from Spark: the same values as DuckDB's, or an error that says why not."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.lake.errors import UnsupportedError

from ..lakes import LakeAddress
from .engines import CATALOGS, Both

SETUP = (
    "create table t (a int, b varchar, d double, n decimal(10, 2), s struct(i int))",
    "insert into t values (1, 'x', 1.5, 1.25, {'i': 1}), (2, 'Y', 2.5, -3.5, {'i': null}),"
    " (null, null, null, null, null)",
    "create schema other",
    "create table other.t as select 77 as a",
    "create macro twice(x) as x * 2",
    "create macro plus(x, y := 10) as x + y",
    "create macro sized(x) as 'one', (x, y) as 'two' || y, (x, y, z) as x || y || z",
    "create macro typed(x integer) as x + 1, (x varchar) as upper(x)",
    "create macro with_defaults(x, y := 1.5, z := 'it''s', f := true, w := date '2020-02-29')"
    " as case when f then z || x || year(w) else z end",
    "create macro mean(x) as sum(x) / count(x)",
    "create macro quadruple(x) as twice(twice(x))",
    "create macro field(x) as x.i",
    "create macro difference(x) as x - x",
    "create macro below(p) as (select count(*) from t where t.a < p)",
    "create macro known(p) as p in (select a from t)",
    "create macro other.inner_macro(x) as x + 100",
    "create macro by_full_name(x) as lake.other.inner_macro(x) + main.twice(x)",
    "create macro size_of(x) as case when x > 1 then 'big' when x is null then 'none' else 'small' end",
    "create macro up_to(most) as table select a, b from t where a <= most",
    "create macro shifted(most, m := 3) as table select a + m as z from up_to(most)",
    "create macro listed(x) as table (select x as v), (x, y) as table (select x + y as v, 'two' as w)",
    "create macro current_a() as table select max(a) as a from t",
    "create macro named_as_a_column(n) as table select a from t where a <= n",
    'create macro "Odd Name"("a b") as "a b" + 1',
)


@pytest.fixture(scope="module", params=CATALOGS)
def macros(
    request: pytest.FixtureRequest, spark: SparkSession, new_module_lake: Callable[[str], LakeAddress]
) -> Iterator[Both]:
    """A lake with the macros, on each kind of catalog database."""
    lake = Both(spark, new_module_lake(request.param))
    lake.duckdb(*SETUP)
    yield lake
    lake.close()


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("select main.twice(a) as k from t", None),
        ("select lake.main.twice(a) as k, main.twice(n) as l, main.twice(d) as m from t", None),
        ("select main.twice(21) as k, main.twice(1.5) as l, main.twice(cast(100 as smallint)) as m", None),
        ("select main.plus(a) as k, main.plus(a, 2) as l, main.plus(n, d) as m from t", None),
        (
            "select main.plus(a, y => 2) as k, main.plus(y => a, x => n) as l from t",
            "select plus(a, y := 2) as k, plus(y := a, x := n) as l from t",
        ),
        ("select main.sized(a) as k, main.sized(a, b) as l, main.sized(b, b, b) as m from t", None),
        ("select main.typed(a) as k, main.typed(b) as l, main.typed(cast(7 as tinyint)) as m from t", None),
        ("select main.with_defaults(b) as k from t", None),
        (
            "select main.with_defaults(b, f => false, z => 'no') as k from t",
            "select with_defaults(b, f := false, z := 'no') as k from t",
        ),
        ("select main.mean(a) as k, main.mean(d) as l from t", None),
        ("select b, main.mean(a) as k from t group by b having main.mean(a) > 1 order by main.mean(a)", None),
        ("select main.quadruple(a) as k, main.twice(main.plus(main.twice(a), a)) as l from t", None),
        ("select main.field(s) as k from t", None),
        ("select main.below(2) as k, main.below(o.a) as l from t o", None),
        ("select main.known(o.a + 1) as k from t o", None),
        ("select main.by_full_name(a) as k from t", None),
        ("select a from t where main.size_of(a) = 'big' order by main.twice(a)", None),
        ("select main.size_of(a) as k, count(*) as c from t group by main.size_of(a)", None),
        ("select x.k + 1 as l from (select main.twice(a) as k from t) x where x.k > 2", None),
        ("select u.a from t u join t v on u.a = main.twice(v.a)", None),
        ("select max(k) as m from (with c as (select main.twice(a) as k from t) select k from c)", None),
        ("select (select max(main.twice(v.a)) from t v where v.a <= u.a) as k from t u", None),
        ("select main.twice(count(*)) as k from t", None),
        ("select main.`Odd Name`(a) as k from t", 'select "Odd Name"(a) as k from t'),
        ("select * from main.up_to(1)", None),
        ("select u.b from lake.main.up_to(1 + 1) as u where u.a > 1", None),
        ("select * from main.named_as_a_column(1)", None),
        ("select * from main.shifted(2)", None),
        ("select * from main.shifted(2, m => 100)", "select * from shifted(2, m := 100)"),
        ("select l.v, t.a from main.listed(2) l join t on t.a = l.v", None),
        ("select v, w from main.listed(main.twice(1), 40)", None),
    ],
)
def test_a_macro_gives_spark_what_it_gives_duckdb(macros: Both, ours: str, theirs: str | None) -> None:
    macros.agree(ours, theirs)


def test_columns_are_named_after_the_macro(macros: Both) -> None:
    query = "select main.twice(a), main.mean(a) over_all, main.twice(2) from t group by a"
    assert macros.lake.sql(query).columns == ["twice(a)", "over_all", "twice(2)"]


def test_views_of_both_engines_call_macros(macros: Both) -> None:
    macros.duckdb(
        "create or replace view of_duckdb as select twice(a) as k, lake.other.inner_macro(a) as l, mean(a) as m"
        " from up_to(2) where known(a) and plus(a, y := 1) > 1 group by all",
        "create or replace view with_rows as select z, plus(z) as p from shifted(1, m := 5)",
    )
    macros.spark("create or replace view of_spark as select main.twice(a) as k, main.below(o.a) as l from t o")
    assert macros.agree("select z, p from with_rows") == [(6, 16)]
    assert sorted(macros.spark_rows("select * from of_spark"), key=repr) == [(2, 0), (4, 1), (None, 0)]
    macros.agree("select * from of_duckdb")


def test_tables_are_made_and_changed_with_macros(macros: Both) -> None:
    macros.spark(
        "create or replace table made as select main.twice(a) as k, main.twice(a) from t where a is not null",
        "insert into made select main.plus(5), main.twice(main.plus(5))",
        "update made set k = main.plus(k, 1) where main.size_of(k) = 'big'",
        "delete from made where k = main.plus(2)",
        "merge into made using (select 16 as k) as s on made.k = main.plus(s.k, 0)"
        " when matched then update set k = main.twice(s.k)",
    )
    assert macros.agree("select * from made") == [(3, 2), (32, 30), (5, 4)]
    assert macros.lake.sql("select * from made").columns == ["k", "twice(a)"]


def test_functions_of_spark_call_macros(macros: Both) -> None:
    macros.spark(
        "create or replace function main.sixfold(x int) returns int return main.twice(x) * main.plus(1, y => 2)"
    )
    assert macros.spark_rows("select main.sixfold(a) as k from t where a = 2") == [(12,)]


def test_names_in_a_body_are_those_of_where_it_is_called(macros: Both) -> None:
    macros.agree("select * from main.current_a()", expected=[(2,)])
    macros.spark("use other")
    try:
        assert macros.spark_rows("select * from main.current_a()") == [(77,)]
    finally:
        macros.spark("use main")
    with macros.connection() as connection:
        assert connection.execute("use lake.other; select * from main.current_a()").fetchall() == [(77,)]


def test_each_mention_of_a_parameter_is_evaluated(macros: Both) -> None:
    """DuckDB puts the text of the argument in the place of its parameter."""
    assert macros.duckdb_rows("select difference(random()) = 0 as k") == [(False,)]
    assert macros.spark_rows("select main.difference(rand()) = 0 as k") == [(False,)]
    assert macros.spark_rows("select main.size_of(main.twice(rand() * 0) + 2) as k") == [("big",)]


@pytest.mark.parametrize(
    ("macro", "call", "reason"),
    [
        ("refused(x) as hash(x)", "main.refused(1)", r"main.refused is a macro of DuckDB's that.*hash\(\)"),
        ("refused(x) as x + 1", "main.refused(a, 2)", r"no implementation for \(int, int\)"),
        ("refused(x) as x + 1", "main.refused(y => a)", r"no implementation for \(y := int\)"),
        ("refused(x) as x, (x, y := 1) as x + y", "main.refused(a)", "several implementations that fit"),
        ("refused(x integer) as x", "main.refused(b)", r"no implementation for \(string\)"),
        ("refused(x) as x + 1", "main.refused(interval '1' day)", "an argument of type interval"),
        ("refused(p) as (select count(*) from t where t.a = p)", "main.refused(a)", "another alias"),
        ("refused(x) as lower(x)", "main.refused(a + 1)", r"lower\(\) of int"),
        ("refused(x) as bar(x)", "main.refused(1)", r"calls itself"),
        ("refused(x) as table select x as k", "main.refused(1)", "call it in FROM"),
        ("refused(x) as twice(x) - x", "main.refused(rand())", "not deterministic"),
    ],
)
def test_the_error_of_a_call_names_the_macro_and_the_reason(macros: Both, macro: str, call: str, reason: str) -> None:
    macros.duckdb("drop macro if exists refused", "drop macro table if exists refused")
    if "bar(" in macro:
        macros.duckdb(
            "create or replace macro bar(x) as x",
            f"create macro {macro}",
            "create or replace macro bar(x) as refused(x)",
        )
    else:
        macros.duckdb(f"create macro {macro}")
    with pytest.raises(UnsupportedError, match=reason):
        macros.lake.sql(f"select {call} as k from t")


def test_macros_are_listed_and_described(macros: Both) -> None:
    listed = [row[0] for row in macros.lake.sql("show user functions in main like 'shift*|up_to'").collect()]
    assert listed == ["lake.main.shifted", "lake.main.up_to"]
    lines = [row[0] for row in macros.lake.sql("describe function extended main.with_defaults").collect()]
    assert lines[:2] == ["Function: lake.main.with_defaults", "Type: SCALAR"]
    assert "Input: (x, y := 1.5, z := 'it\\'s', f := true, w := 2020-02-29)" in lines
    assert [line for line in lines if line.startswith("Body: CASE")]
    lines = [row[0] for row in macros.lake.sql("describe function lake.main.listed").collect()]
    assert lines[1] == "Type: TABLE"
    assert [line for line in lines if line.startswith("Input")] == ["Input: (x)", "Input: (x, y)"]
    assert "abs" in macros.lake.sql("describe function abs").collect()[0][0]


def test_a_scalar_macro_in_from_is_refused(macros: Both) -> None:
    with pytest.raises(UnsupportedError, match=r"main.twice gives no rows"):
        macros.lake.sql("select * from main.twice(1)")
    with pytest.raises(AnalysisException, match="UNRESOLVED_COLUMN"):
        macros.lake.sql("select * from t, main.up_to(t.a)")
    with pytest.raises(AnalysisException, match="nowhere"):
        macros.lake.sql("select main.twice(nowhere) from t")


def test_a_query_of_the_past_calls_the_macro_of_its_snapshot(macros: Both) -> None:
    macros.duckdb(
        "create or replace macro changing(x) as x + 1",
        "create or replace view past as select changing(a) as k from t",
    )
    version = macros.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0][0]
    macros.duckdb("create or replace macro changing(x) as x + 1000")
    assert max(macros.agree("select k from past where k is not null")) == (1002,)
    at = f"at (version => {version})"
    assert max(macros.spark_rows(f"select k from past {at} where k is not null")) == (3,)
