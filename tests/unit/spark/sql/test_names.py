"""Names in a query: relations, their aliases and versions, table functions and calls."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.spark.sql.name_reader import find_names
from dbt.adapters.ducklake.spark.sql.names import FunctionRef, Names, TimeTravel, name_parts
from dbt.adapters.ducklake.spark.sql.rewriting import rewrite

from .helpers import with_views


def relation_names(sql: str) -> list[str]:
    """Returns the dotted names of the relations of a query."""
    return [".".join(ref.parts) for ref in find_names(sql).relations]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select 1", []),
        ("", []),
        ("select * from t", ["t"]),
        ("select * from lake.main.t", ["lake.main.t"]),
        ("select changes from t", ["t"]),
        ("select x from t changes from version 1 join u changes from timestamp now()", ["t", "u"]),
        ("select * from a, b, c.d", ["a", "b", "c.d"]),
        (
            "select * from a join b on a.x = b.x left outer join c using (x) cross join d",
            ["a", "b", "c", "d"],
        ),
        ("select * from a natural full join b", ["a", "b"]),
        ("select * from a left semi join b on true left anti join c on true", ["a", "b", "c"]),
        ("select * from a asof join b match_condition (a.t >= b.t) on a.x = b.x", ["a", "b"]),
        ("select * from a join b on left(a.x, 1) = b.group join c on true", ["a", "b", "c"]),
        ("select * from (a join (b join c on true) on true) join d on true", ["a", "b", "c", "d"]),
        ("select * from (select * from a) x, (b) y", ["a", "b"]),
        ("select * from ((select 1 from a) union (select 2 from b)) q", ["a", "b"]),
        ("((select 1 from a) union all select 2 from b) except table c", ["a", "b", "c"]),
        ("select * from ((select 1 from a) q join b on true)", ["a", "b"]),
        (
            "select (select max(x) from a), x in (select y from b), exists (select 1 from c) from d",
            list("abcd"),
        ),
        ("select * from a where (x, y) in (table b)", ["a", "b"]),
        ("table a", ["a"]),
        ("from a select x", ["a"]),
        ("from a join b on true select x where exists (from c select 1)", ["a", "b", "c"]),
        ("from a |> where x > 1 |> left join b on true |> union all table c |> order by x", ["a", "b", "c"]),
        ("table a |> join b using (x) |> aggregate sum(x) as from_x group by y", ["a", "b"]),
        ("select * from a, lateral (select * from b where b.x = a.x), lateral explode(a.y)", ["a", "b"]),
        ("select * from a lateral view explode(x) e as p, q where y in (select z from b)", ["a", "b"]),
        ("select * from a lateral view outer explode(x) e as p lateral view explode(y) f", ["a"]),
        ("select * from a pivot (sum(x) for y in (1, 2)), b", ["a", "b"]),
        ("select * from a unpivot (x for y in (p, q)) as u join b on true", ["a", "b"]),
        ("select * from a tablesample (10 percent) repeatable (1) x, b tablesample (3 rows)", ["a", "b"]),
        ("select * from values (1), (2) as v(x), a", ["a"]),
        ("select * from values (1, 'a'), (2, 'b') v join a on true", ["a"]),
        ("select * from values 1, 2 where exists (select 1 from a)", ["a"]),
        ("values (1), ((select max(x) from a))", ["a"]),
        ("select * from a window w as (order by x), w2 as (order by y)", ["a"]),
        ("select x from a group by x, y order by x, y limit 3", ["a"]),
        ("select * except (b) from a except select * from c", ["a", "c"]),
        ("select a.*, b.* except (x) from a, b minus select 1 from c", ["a", "b", "c"]),
        ("select extract(year from ts), trim(both from s), substring(s from 1) from a", ["a"]),
        ("select x is distinct from y, x is not distinct from z from a", ["a"]),
        ("select 'from b', \"from c\", r'\\', x -- from d\n/* from e /* from f */ */ from a", ["a"]),
        ("select 'it''s from b', 'it\\' from c' from a", ["a"]),
        ("select /*+ broadcast(b) */ * from a", ["a"]),
        ("select v:from.b::string from a", ["a"]),
        ("select * from parquet.`/path/to.file`", ["parquet./path/to.file"]),
        ("select * from identifier('main.`odd name`') where x", ["main.odd name"]),
        ("select * from identifier(:name)", []),
        ("select * from range(10)", []),
        ("select * from f(table(a.b), table c, (select 1 from d))", ["a.b", "c", "d"]),
        ("explain formatted select * from a", ["a"]),
        ("describe query select * from a", ["a"]),
        ("insert into table x (p, q) select * from a", ["a"]),
        ("insert overwrite x partition (p = 1) table a", ["a"]),
        ("with c as (select * from a) insert into x select * from c, b", ["a", "b"]),
        ("create table x using parquet as select * from a", ["a"]),
        ("delete from x where y in (select z from a)", ["a"]),
        ("show columns from x", []),
    ],
)
def test_relations_are_found_where_they_stand(sql: str, expected: list[str]) -> None:
    assert relation_names(sql) == expected


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("select * from `main`.`or``der.s`", ("main", "or`der.s")),
        ("select * from `größe und mehr`", ("größe und mehr",)),
        ("select * from Größe.Œuvre", ("Größe", "Œuvre")),
        ("select * from main . /* here */ `t`", ("main", "t")),
        ("select * from 2024_orders", ("2024_orders",)),
        ("select*from`t`", ("t",)),
    ],
)
def test_a_name_is_given_without_its_quotes(sql: str, parts: tuple[str, ...]) -> None:
    assert [ref.parts for ref in find_names(sql).relations] == [parts]


@pytest.mark.parametrize(
    ("rest", "alias"),
    [
        ("", None),
        ("o", "o"),
        ("as `an alias`", "an alias"),
        ("o (x, y)", "o"),
        ("tablesample (5 rows) o", "o"),
        ("version as of 3 o", "o"),
        ("left join u on true", None),
        ("pivot (sum(x) for y in (1)) p", None),
        ("where x", None),
        ("order by x", None),
        ("window w as (order by x)", None),
        ("limit 3", None),
        ("lateral view explode(x) e", None),
        ("|> as p", None),
    ],
)
def test_a_relation_has_the_alias_the_query_gives_it(rest: str, alias: str | None) -> None:
    assert find_names(f"select * from t {rest}").relations[0].alias == alias


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("with c as (select * from a) select * from c", ["a"]),
        ("with c as (select * from a), d as (select * from c) select * from d, C, `c`", ["a"]),
        ("with d as (select * from c), c as (select 1) select * from c", ["c"]),
        ("with c as (select * from c) select * from c", ["c"]),
        ("with recursive c(n) as (select 1 union all select n + 1 from c join a) select * from c", ["a"]),
        ("with recursive c max recursion level 5 as (select 1 from c) select * from c", []),
        ("with c (select * from a) select * from c", ["a"]),
        ("with c as (select 1) select * from main.c", ["main.c"]),
        ("select * from (with c as (select 1) select * from c), c", ["c"]),
        ("with c as (select 1) select * from x where exists (select 1 from c)", ["x"]),
        ("with c as (with d as (select 1 from a) select * from d) select * from c, d", ["a", "d"]),
        ("with c as (select 1) select * from c union all select * from c", []),
        ("with recursive as (select 1) select * from recursive", []),
    ],
)
def test_a_cte_hides_a_table_where_spark_sees_the_cte(sql: str, expected: list[str]) -> None:
    assert relation_names(sql) == expected


@pytest.mark.parametrize(
    ("clause", "kind", "expression"),
    [
        ("version as of 3", "version", "3"),
        ("for version as of 3", "version", "3"),
        ("FOR SYSTEM_VERSION AS OF '3'", "version", "'3'"),
        ("timestamp as of '2024-01-01'", "timestamp", "'2024-01-01'"),
        ("timestamp as of date '2024-01-01'", "timestamp", "date '2024-01-01'"),
        ("for system_time as of date_sub(current_date(), 7)", "timestamp", "date_sub(current_date(), 7)"),
        ("timestamp as of now() - interval 1 day", "timestamp", "now() - interval 1 day"),
        ("timestamp as of now() - interval '1-2' year to month", "timestamp", None),
        ("timestamp as of (select 1)", "timestamp", "(select 1)"),
        ("timestamp as of '2024-01-01'::timestamp", "timestamp", "'2024-01-01'::timestamp"),
        ("timestamp as of case when true then now() end", "timestamp", "case when true then now() end"),
        ("timestamp as of -- when\n current_date", "timestamp", "current_date"),
        ("at (version => 3)", "version", "3"),
        ("at (timestamp => now() - interval '1' day)", "timestamp", "now() - interval '1' day"),
    ],
)
@pytest.mark.parametrize("alias", ["", " x", " as x"])
def test_time_travel_belongs_to_the_relation(clause: str, kind: str, expression: str | None, alias: str) -> None:
    sql = f"select * from main.t {clause}{alias} join u on true"
    ref, other = find_names(sql).relations
    assert ref.time_travel is not None
    assert ref.time_travel.kind == kind
    assert ref.time_travel.expression == (expression or clause.removeprefix("timestamp as of "))
    assert sql[ref.start : ref.end] == f"main.t {clause}"
    assert sql[ref.start : ref.name_end] == "main.t"
    assert ref.alias == ("x" if alias else None)
    assert other.parts == ("u",)
    assert with_views(sql, only="main.t") == f"select * from v1{alias or ' AS `t`'} join u on true"


def test_words_of_time_travel_can_be_aliases() -> None:
    assert [ref.alias for ref in find_names("select * from a version, b timestamp").relations] == [
        "version",
        "timestamp",
    ]
    assert all(ref.time_travel is None for ref in find_names("select * from a version, b at").relations)


def test_a_table_function_is_given_with_its_arguments() -> None:
    sql = "select * from ducklake_list_files('main.orders', version => 3 + f(1, 2)) as f, range(10)"
    files, numbers = find_names(sql).functions
    assert (files.name, files.alias) == ("ducklake_list_files", "f")
    assert files.arguments == ((None, "'main.orders'"), ("version", "3 + f(1, 2)"))
    assert sql[files.start : files.end] == "ducklake_list_files('main.orders', version => 3 + f(1, 2))"
    assert numbers == FunctionRef("range", ((None, "10"),), sql.index("range"), len(sql), None)
    (listed,) = find_names("select * from f(['a', g(1, 2)], key => ['b', 'c'])").functions
    assert listed.arguments == ((None, "['a', g(1, 2)]"), ("key", "['b', 'c']"))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select f(1), t.a, abs(b.c) from t", []),
        ("select s.f(1)", ["s.f"]),
        ("select `a b`.`c``d` (x) from t where lake.s.g(t.a, s.h(1)) > 0", ["a b.c`d", "lake.s.g", "s.h"]),
        ("select x from s.rows(s.f(1)) where x in (select s.g(y) from u)", ["s.f", "s.g"]),
        ("select * from t join u on s.f(t.a) = u.a order by s.g(b)", ["s.f", "s.g"]),
        ("insert into s.t (a, b) select s.f(1), 's.g(1)' -- s.h(1)", ["s.f"]),
        ("create table s.t as with a (b) as (select s.f(1)) select * from a", ["s.f"]),
        ("x + s.f(x) * (select max(a) from t)", ["s.f"]),
        ("(x int default s.f(1), y decimal(1,0)) returns struct<a: int>", ["s.f"]),
    ],
)
def test_calls_with_a_dotted_name_are_found(sql: str, expected: list[str]) -> None:
    assert [".".join(call.parts) for call in find_names(sql).calls] == expected


def test_only_a_whole_dotted_name_has_parts() -> None:
    assert name_parts("main.`odd.name`") == ("main", "odd.name")
    assert name_parts("main.t x") is None
    assert name_parts("") is None
    assert name_parts("main.") is None


def test_names_are_values() -> None:
    assert find_names("select * from t version as of 3") == find_names("select * from t version as of 3")
    assert isinstance(find_names("select 1"), Names)
    assert TimeTravel("version", "3") == TimeTravel("version", "3")


@pytest.mark.parametrize(
    "sql",
    [
        "select * from",
        "select * from (",
        "from ((((",
        "select 'unclosed from t",
        "select `unclosed from t",
        "/* /* */ select * from t",
        "with",
        "with c as",
        "with c as (select",
        "select * from t version as of",
        "select * from t timestamp as of interval",
        "select * from t at (version =>",
        "select * from t tablesample",
        "insert into",
        "explain",
        "describe",
        "lateral view",
        "select * from f(",
        "select * from values",
        "select * from t timestamp as of case",
        ") from t",
    ],
)
def test_a_broken_query_gives_an_answer(sql: str) -> None:
    assert with_views(sql) is not None


WORDS = [
    *("select", "from", "with", "as", "table", "values", "insert", "into", "lateral", "view", "explain"),
    *("union", "except", "join", "on", "at", "version", "timestamp", "of", "for", "interval", "day", "case"),
    *("end", "tablesample", "pivot", "create", "where", "order", "by", "t", "a.b", "`c`", "'x'", "3", "f("),
    *("identifier('x')", "(", ")", ",", ".", "*", "|>", "=>", "::", ":", "[", "]", "'", '"', "`", "/*", "*/"),
    *("--", "\n"),
]


@given(st.lists(st.sampled_from(WORDS), max_size=25))
def test_any_words_give_an_answer(words: list[str]) -> None:
    sql = " ".join(words)
    names = find_names(sql)
    assert rewrite(sql, names, {}) == sql
    for ref in names.relations:
        assert ref.start < ref.name_end <= ref.end <= len(sql)
    rewrite(sql, names, dict.fromkeys((*names.relations, *names.functions, *names.calls), "v"))


@pytest.mark.parametrize(
    "sql",
    [
        "select * from " + "(select * from " * 4000 + "t" + ")" * 4000,
        "select " + "(" * 30000 + "1" + ")" * 30000 + " from t",
        "select " + ", ".join(f"main.t.c{i}" for i in range(12000)) + " from main.t",
        "with " + ", ".join(f"c{i} as (select * from t join c{i - 1})" for i in range(3000)) + " select 1",
        "select * from t " + " ".join(f"join main.u{i} on main.u{i}.x = 1" for i in range(4000)),
        "select '" + "a''" * 60000,
        "/*" * 90000,
    ],
    ids=["nested queries", "parentheses", "columns", "ctes", "joins", "string", "comments"],
)
@pytest.mark.large
def test_a_long_query_takes_no_long_time(sql: str) -> None:
    start = time.perf_counter()
    with_views(sql)
    assert time.perf_counter() - start < 15
