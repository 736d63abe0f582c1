"""Rewriting: relations, table functions and calls of a query get other names, and its columns still resolve."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.spark.sql.name_reader import find_names
from dbt.adapters.ducklake.spark.sql.names import FunctionRef, Ref, RelationRef
from dbt.adapters.ducklake.spark.sql.rewriting import rewrite

from .helpers import fixture_pairs, with_views


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        *fixture_pairs("relations.sql"),
        (
            "select /*+ broadcast(t) */ 'main.t' -- main.t\nfrom main.t",
            "select /*+ broadcast(t) */ 'main.t' -- main.t\nfrom v1 AS `t`",
        ),
    ],
)
def test_only_the_names_change(sql: str, expected: str) -> None:
    assert with_views(sql) == expected


@pytest.mark.parametrize(("sql", "expected"), fixture_pairs("columns.sql"))
def test_columns_still_find_their_relation(sql: str, expected: str) -> None:
    assert with_views(sql) == expected


def test_a_relation_answers_to_its_full_name() -> None:
    sql = "select lake.main.t.x, main.t.*, t.y, other.t.z from t"
    assert with_views(sql, {"t": ("lake", "main", "t")}) == "select `t`.x, `t`.*, t.y, other.t.z from v1 AS `t`"


def test_relations_of_one_name_get_names_of_their_own() -> None:
    assert with_views("select a.t.x from a.t join b.t on a.t.id = b.t.id") == (
        "select `a_t`.x from v1 AS `a_t` join v2 AS `b_t` on `a_t`.id = `b_t`.id"
    )


def test_a_new_alias_is_no_name_the_query_uses() -> None:
    assert with_views("select a.t.x, a_t.y from a.t, b.t, a_t").endswith("from v1 AS `a_t_2`, v2 AS `t`, v3 AS `a_t`")


def test_a_relation_left_alone_still_makes_the_short_name_ambiguous() -> None:
    assert with_views("select a.t.x, b.t.x from a.t, b.t", only="a.t") == (
        "select `a_t`.x, b.t.x from v1 AS `a_t`, b.t"
    )


def test_an_inner_alias_captures_no_outer_column() -> None:
    assert with_views("select t.y from main.t where exists (select 1 from u as t where main.t.x = t.x)") == (
        "select `main_t`.y from v1 AS `main_t` where exists (select 1 from v2 as t where `main_t`.x = t.x)"
    )


def test_nothing_replaced_is_nothing_changed() -> None:
    sql = "select a.t.x /* t */ from a.t, b.t where 'a.t' = a.t.x -- end"
    assert rewrite(sql, find_names(sql), {}) == sql


def test_a_table_function_is_replaced_with_all_its_arguments() -> None:
    sql = "select * from changes(table(a), 3) where x in (select y from b)"
    names = find_names(sql)
    views: dict[RelationRef | FunctionRef, str] = {names.functions[0]: "v1"}
    views |= dict.fromkeys(names.relations, "v2")
    assert rewrite(sql, names, views) == "select * from v1 where x in (select y from v2 AS `b`)"


def test_a_call_keeps_its_arguments_under_another_name() -> None:
    sql = "select s . f (s.f(t.a), y => 1)from`t`"
    names = find_names(sql)
    views: dict[Ref, str] = dict.fromkeys(names.calls, "g") | dict.fromkeys(names.relations, "v1")
    assert rewrite(sql, names, views) == "select g (g(t.a), y => 1)from v1 AS `t`"


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
    """Builds a query from left to right and remembers the position of each relation."""

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
def test_exactly_the_relations_of_a_generated_query_are_found_and_replaced(data: st.DataObject) -> None:
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
