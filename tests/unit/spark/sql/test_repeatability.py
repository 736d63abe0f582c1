"""Which queries give the same rows again, as far as their text tells."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.sql.repeatability import called_functions, normalized, unrepeatable_function


@pytest.mark.parametrize(
    ("query", "function"),
    [
        ("select current_timestamp() as at", "current_timestamp"),
        ("select Current_Date as day", "current_date"),
        ("select id, rand() from t", "rand"),
        ("select uuid()", "uuid"),
        ("select first(a) from t", "first"),
        ("select collect_list(a) from t", "collect_list"),
        ("select * from t tablesample (10 percent)", "tablesample"),
        ("select * from ducklake_snapshots()", "ducklake_snapshots"),
        ("select current_user", "current_user"),
        ("select * from t where at < now ( )", "now"),
    ],
)
def test_functions_of_the_moment_of_chance_and_of_order_are_found(query: str, function: str) -> None:
    assert unrepeatable_function(query) == function


@pytest.mark.parametrize(
    "query",
    [
        "select 'now()' as text, `rand` from t -- uuid()",
        "select t.current_date, a as user from t /* rand() */",
        "select sum(n), max(at) from t group by id order by first",
        "select * from ducklake_table_changes('t', 3, 7)",
        "select now from t",
    ],
)
def test_names_comments_and_texts_call_nothing(query: str) -> None:
    assert unrepeatable_function(query) is None


@pytest.mark.parametrize(
    ("query", "called"),
    [
        ("select my_udf(a), b.c(d) from t", ["my_udf"]),
        ("with a (x) as (select 1) select cast(x as decimal(10, 2)), x::varchar(3) from a", ["a", "cast"]),
        ("select * from (values (1)) as v(id) join (values (2)) w(id) using (id)", []),
        ("select count(*) filter (where a in (1)) over (partition by b) from t where exists (select 1)", ["count"]),
    ],
)
def test_only_calls_are_taken_for_functions(query: str, called: list[str]) -> None:
    assert list(called_functions(query)) == called


def test_comments_hints_and_white_space_do_not_count_but_texts_do() -> None:
    assert normalized("select  1 -- one\n, /* two */ 'a  b'") == normalized("select 1, 'a  b'")
    assert normalized("select 'a  b'") != normalized("select 'a b'")
    assert normalized("select /*+ broadcast(t) */ 1") == normalized("select 1")
