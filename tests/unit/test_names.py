"""Where relations stand in a query, and what the query is once their names are others."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.spark.sql.names import (
    FunctionRef,
    Names,
    Ref,
    RelationRef,
    TimeTravel,
    find_names,
    name_parts,
)
from dbt.adapters.ducklake.spark.sql.rewriting import rewrite
from dbt.adapters.ducklake.spark.sql.virtual_columns import tables_asked


def named(sql: str) -> list[str]:
    return [".".join(ref.parts) for ref in find_names(sql).relations]


def replaced(sql: str, full_names: dict[str, tuple[str, ...]] | None = None, only: str = "") -> str:
    """The query with views v1, v2, ... in place of its relations, or of the one called `only`."""
    names = find_names(sql)
    chosen = [ref for ref in names.relations if not only or ".".join(ref.parts) == only]
    views = {ref: f"v{number}" for number, ref in enumerate(chosen, start=1)}
    full = {ref: full_names[ref.parts[-1]] for ref in chosen} if full_names else None
    return rewrite(sql, names, views, full)


# Where relations stand


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
    assert named(sql) == expected


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


# CTEs


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
    assert named(sql) == expected


# Time travel


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
    assert replaced(sql, only="main.t") == f"select * from v1{alias or ' AS `t`'} join u on true"


def test_words_of_time_travel_can_be_aliases() -> None:
    assert [ref.alias for ref in find_names("select * from a version, b timestamp").relations] == [
        "version",
        "timestamp",
    ]
    assert all(ref.time_travel is None for ref in find_names("select * from a version, b at").relations)


# Table functions


def test_a_table_function_is_given_with_its_arguments() -> None:
    sql = "select * from ducklake_list_files('main.orders', version => 3 + f(1, 2)) as f, range(10)"
    files, numbers = find_names(sql).functions
    assert (files.name, files.alias) == ("ducklake_list_files", "f")
    assert files.arguments == ((None, "'main.orders'"), ("version", "3 + f(1, 2)"))
    assert sql[files.start : files.end] == "ducklake_list_files('main.orders', version => 3 + f(1, 2))"
    assert numbers == FunctionRef("range", ((None, "10"),), sql.index("range"), len(sql), None)
    (listed,) = find_names("select * from f(['a', g(1, 2)], key => ['b', 'c'])").functions
    assert listed.arguments == ((None, "['a', g(1, 2)]"), ("key", "['b', 'c']"))


def test_a_table_function_is_replaced_with_all_its_arguments() -> None:
    sql = "select * from changes(table(a), 3) where x in (select y from b)"
    names = find_names(sql)
    views: dict[RelationRef | FunctionRef, str] = {names.functions[0]: "v1"}
    views |= dict.fromkeys(names.relations, "v2")
    assert rewrite(sql, names, views) == "select * from v1 where x in (select y from v2 AS `b`)"


# Functions of a lake


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


def test_a_call_keeps_its_arguments_under_another_name() -> None:
    sql = "select s . f (s.f(t.a), y => 1)from`t`"
    names = find_names(sql)
    views: dict[Ref, str] = dict.fromkeys(names.calls, "g") | dict.fromkeys(names.relations, "v1")
    assert rewrite(sql, names, views) == "select g (g(t.a), y => 1)from v1 AS `t`"


# Other names in their place


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select orders.id from main.orders", "select orders.id from v1 AS `orders`"),
        ("select o.id from main.orders o", "select o.id from v1 o"),
        (
            "select * from t tablesample (5 rows) where x",
            "select * from v1 tablesample (5 rows) AS `t` where x",
        ),
        ("select * from t tablesample (5 rows) u", "select * from v1 tablesample (5 rows) u"),
        ("select * from`a`b left join`c`on true", "select * from v1 b left join v2 AS `c`on true"),
        ("select * from `a``b`", "select * from v1 AS `a``b`"),
        ("table main.t", "table v1"),
        ("table main.t |> where main.t.x > t.y", "table v1 |> where `v1`.x > `v1`.y"),
        ("select * from f(table(main.t))", "select * from f(table(v1))"),
        (
            "select /*+ broadcast(t) */ 'main.t' -- main.t\nfrom main.t",
            "select /*+ broadcast(t) */ 'main.t' -- main.t\nfrom v1 AS `t`",
        ),
    ],
)
def test_only_the_names_change(sql: str, expected: str) -> None:
    assert replaced(sql) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select main.t.x from main.t", "select `t`.x from v1 AS `t`"),
        ("select main.t.* from main.t", "select `t`.* from v1 AS `t`"),
        ("select MAIN.`T`.x.y from main.t", "select `t`.x.y from v1 AS `t`"),
        ("select main.t.x, t.y from lake.main.t", "select `t`.x, t.y from v1 AS `t`"),
        ("select main.t.x from main.t as u", "select main.t.x from v1 as u"),
        ("select main.t.x from other.t", "select main.t.x from v1 AS `t`"),
        ("select main.t(x.y.z) from main.t", "select main.t(x.y.z) from v1 AS `t`"),
        ("select f(x).main.t.x, v:main.t.x from main.t", "select f(x).main.t.x, v:main.t.x from v1 AS `t`"),
        (
            "select 1 from main.t where exists (select 1 from u where main.t.x = u.x)",
            "select 1 from v1 AS `t` where exists (select 1 from v2 AS `u` where `t`.x = u.x)",
        ),
        (
            "select main.t.x from (select main.t.y from main.t) q",
            "select main.t.x from (select `t`.y from v1 AS `t`) q",
        ),
        (
            "select main.t.x from (values (1)) main(t), u",
            "select main.t.x from (values (1)) main(t), v1 AS `u`",
        ),
        (
            "select x from main.t group by main.t.x order by main.t.x",
            "select x from v1 AS `t` group by `t`.x order by `t`.x",
        ),
    ],
)
def test_columns_still_find_their_relation(sql: str, expected: str) -> None:
    assert replaced(sql) == expected


def test_a_relation_answers_to_its_full_name() -> None:
    sql = "select lake.main.t.x, main.t.*, t.y, other.t.z from t"
    assert replaced(sql, {"t": ("lake", "main", "t")}) == "select `t`.x, `t`.*, t.y, other.t.z from v1 AS `t`"


def test_relations_of_one_name_get_names_of_their_own() -> None:
    assert replaced("select a.t.x from a.t join b.t on a.t.id = b.t.id") == (
        "select `a_t`.x from v1 AS `a_t` join v2 AS `b_t` on `a_t`.id = `b_t`.id"
    )


def test_a_new_alias_is_no_name_the_query_uses() -> None:
    assert replaced("select a.t.x, a_t.y from a.t, b.t, a_t").endswith("from v1 AS `a_t_2`, v2 AS `t`, v3 AS `a_t`")


def test_a_relation_left_alone_still_makes_the_short_name_ambiguous() -> None:
    assert replaced("select a.t.x, b.t.x from a.t, b.t", only="a.t") == ("select `a_t`.x, b.t.x from v1 AS `a_t`, b.t")


def test_an_inner_alias_does_not_capture_an_outer_column() -> None:
    assert replaced("select t.y from main.t where exists (select 1 from u as t where main.t.x = t.x)") == (
        "select `main_t`.y from v1 AS `main_t` where exists (select 1 from v2 as t where `main_t`.x = t.x)"
    )


def test_nothing_replaced_is_nothing_changed() -> None:
    sql = "select a.t.x /* t */ from a.t, b.t where 'a.t' = a.t.x -- end"
    assert rewrite(sql, find_names(sql), {}) == sql


def test_a_dotted_name_is_taken_apart_only_when_it_is_one() -> None:
    assert name_parts("main.`odd.name`") == ("main", "odd.name")
    assert name_parts("main.t x") is None
    assert name_parts("") is None
    assert name_parts("main.") is None


# Any text


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
    assert replaced(sql) is not None


_WORDS = [
    *("select", "from", "with", "as", "table", "values", "insert", "into", "lateral", "view", "explain"),
    *("union", "except", "join", "on", "at", "version", "timestamp", "of", "for", "interval", "day", "case"),
    *("end", "tablesample", "pivot", "create", "where", "order", "by", "t", "a.b", "`c`", "'x'", "3", "f("),
    *("identifier('x')", "(", ")", ",", ".", "*", "|>", "=>", "::", ":", "[", "]", "'", '"', "`", "/*", "*/"),
    *("--", "\n"),
]


@given(
    st.lists(
        st.sampled_from(_WORDS),
        max_size=25,
    )
)
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
def test_a_long_query_takes_no_long_time(sql: str) -> None:
    start = time.perf_counter()
    replaced(sql)
    assert time.perf_counter() - start < 15


# Queries from pieces


_PLAIN = st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True).map(lambda word: f"n{word}")
_ODD = st.text(st.sampled_from("ab .`'\"-/*(,é漢FROM"), min_size=1, max_size=6)
_IDENTIFIERS = st.one_of(_PLAIN, _ODD)
_SPACE = st.sampled_from([" ", "\n", "\t ", " /* from x, y */ ", " -- join z on '\n", " /* a /* from b */ ' */ "])
_VALUES = st.sampled_from(
    [
        "1",
        "'from x'",
        '"join y"',
        "'it''s'",
        "'\\' from z'",
        "r'\\'",
        "f(1, 2)",
        "extract(year from c)",
        "(c)",
        "x.y",
    ]
)


def _quoted(part: str) -> str:
    plain = part.isidentifier() and part.startswith("n")
    return part if plain else "`" + part.replace("`", "``") + "`"


class _Pieces:
    """Builds a query from left to right, and remembers where it put which relation."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data
        self.sql = ""
        self.expected: list[tuple[tuple[str, ...], int, int]] = []

    def draw(self, strategy: st.SearchStrategy[str]) -> str:
        return self.data.draw(strategy)

    def choose(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def add(self, *texts: str) -> None:
        for text in texts:
            self.sql += text + self.draw(_SPACE)

    def name(self) -> None:
        parts = self.data.draw(st.lists(_IDENTIFIERS, min_size=1, max_size=3))
        text = ".".join(map(_quoted, parts))
        self.expected.append((tuple(parts), len(self.sql), len(self.sql) + len(text)))
        self.add(text)

    def relation(self, depth: int) -> None:
        kind = self.choose("name", "name", "query", "group", "function") if depth else "name"
        if kind == "name":
            self.name()
        elif kind == "function":
            self.add("range(", self.draw(_VALUES), ")")
        else:
            self.add("(")
            self.query(depth - 1) if kind == "query" else self.joined(depth - 1)
            self.add(")")
        if kind != "group":
            self.add(self.choose("", "q", "as `from x`"))

    def joined(self, depth: int) -> None:
        self.relation(depth)
        for _ in range(self.data.draw(st.integers(0, 2))):
            self.add(self.choose("join", "left outer join", "cross join", "left semi join", "natural join"))
            self.relation(depth)
            self.add(self.choose("", "on a.x = b.y and c in (1, 2)", "using (x, y)"))

    def condition(self, depth: int) -> None:
        self.add(self.draw(_VALUES), self.choose("=", "is distinct from", "<"), self.draw(_VALUES))
        if depth and self.choose("", "and"):
            self.add("and", self.choose("exists", "x in", "1 <"), "(")
            self.query(depth - 1)
            self.add(")")

    def query(self, depth: int) -> None:
        self.add("select", self.draw(_VALUES), ",", self.draw(_VALUES), "from")
        self.joined(depth)
        if self.choose("", ","):
            self.add(",")
            self.joined(depth)
        if self.choose("", "where"):
            self.add("where")
            self.condition(depth)
        self.add(self.choose("", "group by x, y having z", "order by x, y limit 3"))
        if depth and self.choose("", "union"):
            self.add(self.choose("union all", "except", "intersect", "minus"))
            self.query(depth - 1)


@given(st.data())
def test_exactly_the_relations_put_in_are_found_and_replaced(data: st.DataObject) -> None:
    pieces = _Pieces(data)
    pieces.query(2)
    sql, names = pieces.sql, find_names(pieces.sql)
    assert [(ref.parts, ref.start, ref.end) for ref in names.relations] == pieces.expected
    views = {ref: f"view_{number}" for number, ref in enumerate(names.relations)}
    expected, done = "", 0
    for ref, view in views.items():
        expected += sql[done : ref.start] + view
        expected += "" if ref.alias else f" AS {_always_quoted(ref)}"
        done = ref.end
    assert rewrite(sql, names, views) == expected + sql[done:]


def _always_quoted(ref: RelationRef) -> str:
    return "`" + ref.parts[-1].replace("`", "``") + "`"


def test_names_are_values() -> None:
    assert find_names("select * from t version as of 3") == find_names("select * from t version as of 3")
    assert isinstance(find_names("select 1"), Names)
    assert TimeTravel("version", "3") == TimeTravel("version", "3")


# Columns that are hidden

ALL = ("rowid", "snapshot_id")


def shown(sql: str, **tables: str) -> str:
    """The query with its names kept, and without virtual columns in its stars; tables have columns of their own."""
    names = find_names(sql, ALL)
    columns = {ref: tables[ref.parts[-1]].split() for ref in names.relations if ref.parts[-1] in tables}
    full = {ref: ("lake", "main", ref.parts[-1]) for ref in columns}
    asked = tables_asked(names, columns, full)
    views = {ref: ".".join(ref.parts).upper() for ref in asked}
    return rewrite(sql, names, views, full, dict.fromkeys(asked, ALL))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from t", None),
        ("select * from t where note = 'rowid' -- snapshot_id", None),
        ("select 'rowid' as x, `row id` from t", None),
        ("select rowid(1) from t", None),
        ("select rowid from t", "select rowid from T AS `t`"),
        ("select `ROWID` from t as x", "select `ROWID` from T as x"),
        ("select t.rowid from t join u", "select t.rowid from T AS `t` join u"),
        ("select main.t.rowid from main.t join u", "select `t`.rowid from MAIN.T AS `t` join u"),
        ("select rowid from t join u", "select rowid from T AS `t` join U AS `u`"),
        ("select s.snapshot_id, t.* from ducklake_snapshots() s join t on true", None),
        ("select o.rowid from t join o", None),
        ("select rowid from t join o", None),
        ("select t.rowid from t join o", "select t.rowid from T AS `t` join o"),
        ("select rowid from v", None),
        ("select t.s.rowid from t", None),
        (
            "select (select max(id) from u where u.id = rowid) from t",
            "select (select max(id) from U AS `u` where u.id = rowid) from t",
        ),
        (
            "select (select max(x) from v where x = t.rowid) from t",
            "select (select max(x) from v where x = t.rowid) from T AS `t`",
        ),
        (
            "select * from (select id from t where rowid = 1) q",
            "select * from (select id from T AS `t` where rowid = 1) q",
        ),
        ("with x as (select * from t) select rowid from x", None),
        ("from t |> where rowid = 1", "from T AS `t` |> where rowid = 1"),
    ],
)
def test_a_table_has_virtual_columns_where_they_are_named(sql: str, expected: str | None) -> None:
    assert shown(sql, t="id s", u="id", o="snapshot_id rowid") == (expected or sql)


LESS = "`t`.`rowid`, `t`.`snapshot_id`"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select *, rowid from t", f"select * except ({LESS}), rowid from T AS `t`"),
        ("select rowid, t.* from t", f"select rowid, t.* except ({LESS}) from T AS `t`"),
        (
            "select distinct * from t where rowid > 1",
            f"select distinct * except ({LESS}) from T AS `t` where rowid > 1",
        ),
        (
            "select * from t as x join v on x.rowid = v.id",
            "select * except (`x`.`rowid`, `x`.`snapshot_id`) from T as x join v on x.rowid = v.id",
        ),
        (
            "select * from t join u on t.rowid = u.rowid",
            f"select * except ({LESS}, `u`.`rowid`, `u`.`snapshot_id`)"
            " from T AS `t` join U AS `u` on t.rowid = u.rowid",
        ),
        ("select u.* from t join u on t.rowid = u.id", "select u.* from T AS `t` join u on t.rowid = u.id"),
        ("select * except (id) from t order by rowid", f"select * except ({LESS}, id) from T AS `t` order by rowid"),
        ("select * except (rowid, snapshot_id) from t", "select * except (rowid, snapshot_id) from T AS `t`"),
        ("select * except (T.ROWID) from t", "select * except (`t`.`snapshot_id`, T.ROWID) from T AS `t`"),
        ("select hash(*), rowid from t", f"select hash(* except ({LESS})), rowid from T AS `t`"),
        ("select count(*), 2 * rowid, id * id from t", "select count(*), 2 * rowid, id * id from T AS `t`"),
        ("select t.s.*, rowid from t", "select t.s.*, rowid from T AS `t`"),
        ("select * from t left semi join u on t.rowid = 1", "select * from T AS `t` left semi join u on t.rowid = 1"),
        (
            "select * from t left semi join u on u.id = t.rowid except select * from u",
            "select * from T AS `t` left semi join u on u.id = t.rowid except select * from u",
        ),
        (
            "select * from (select * from t where rowid = 1) q join u",
            f"select * from (select * except ({LESS}) from T AS `t` where rowid = 1) q join u",
        ),
    ],
)
def test_a_star_stands_for_no_virtual_columns(sql: str, expected: str) -> None:
    assert shown(sql, t="id s", u="id", o="snapshot_id rowid") == expected
