"""Predicate pushdown: the predicates that a query allows to apply to each of its relations.

Every row that can influence the result satisfies them.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Sequence

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake.predicates import (
    And,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Or,
    Predicate,
    StartsWith,
    Value,
)
from dbt.adapters.ducklake.spark.sql.name_reader import find_names
from dbt.adapters.ducklake.spark.sql.names import RelationRef
from dbt.adapters.ducklake.spark.sql.pushdown import pushdown_predicates

COLUMNS = {"t": ["a", "b", "S"], "u": ["x", "y", "k"], "w": ["k", "m"]}


def known_columns(ref: RelationRef) -> Sequence[str] | None:
    return COLUMNS.get(ref.parts[-1])


def pushed_down(sql: str) -> dict[str, Predicate]:
    """Returns the predicates that are pushed down, by the alias or the last name of the relation."""
    return {ref.alias or ref.parts[-1]: predicate for ref, predicate in pushdown_predicates(sql, known_columns).items()}


def condition(text: str) -> Predicate | None:
    """Returns the predicate that is pushed down from a condition on the table t."""
    return pushed_down(f"select * from t where {text}").get("t")


def equals(column: str, value: Value) -> Comparison:
    return Comparison((column,), "=", value)


# Conditions


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("(5)", 5),
        ("5L", 5),
        ("5S", 5),
        ("5Y", 5),
        ("1.50", decimal.Decimal("1.50")),
        ("-.5", decimal.Decimal("-0.5")),
        ("1e3", 1000.0),
        ("1.5D", 1.5),
        ("1.1F", 1.100000023841858),
        ("'x'", "x"),
        ('"x"', "x"),
        ("'2024-01-01'", "2024-01-01"),
        ("true", True),
        ("X'1fA0'", b"\x1f\xa0"),
        ("date '2024-01-31'", datetime.date(2024, 1, 31)),
        ("date('2024-1-31')", datetime.date(2024, 1, 31)),
        ("to_date('2024-01-31')", datetime.date(2024, 1, 31)),
        ("cast('2024-01-31' as date)", datetime.date(2024, 1, 31)),
        ("'2024-01-31'::date", datetime.date(2024, 1, 31)),
        ("timestamp '2024-01-31'", datetime.datetime(2024, 1, 31)),
        ("timestamp '2024-01-31 10:20'", datetime.datetime(2024, 1, 31, 10, 20)),
        ("timestamp_ntz '2024-01-31T10:20:30.5'", datetime.datetime(2024, 1, 31, 10, 20, 30, 500000)),
        (
            "timestamp '2024-01-31 10:20:30Z'",
            datetime.datetime(2024, 1, 31, 10, 20, 30, 0, datetime.timezone.utc),
        ),
        (
            "timestamp '2024-01-31 10:20:30-03:30'",
            datetime.datetime(2024, 1, 31, 13, 50, 30, 0, datetime.timezone.utc),
        ),
        ("cast('2024-01-31 10:20:30' as timestamp)", datetime.datetime(2024, 1, 31, 10, 20, 30)),
    ],
)
def test_a_literal_has_the_value_that_spark_reads(literal: str, value: Value) -> None:
    predicate = condition(f"a = {literal}")
    assert predicate == equals("a", value)
    assert isinstance(predicate, Comparison)
    assert type(predicate.value) is type(value)


@pytest.mark.parametrize(
    "literal",
    [
        "null",
        "b",
        "1 + 1",
        "current_date",
        "rand()",
        ":parameter",
        "'it''s'",
        r"'a\tb'",
        r"r'a\tb'",
        "'x' 'y'",
        "0x1F",
        "x'f'",
        "1.5BD",
        "cast(5 as string)",
        "cast('5' as int)",
        "cast('5' as decimal)",
        "date '2024-02-30'",
        "date '2024'",
        "to_date('2024-01-31', 'yyyy-MM-dd')",
        "timestamp '2024-01-31 10:20:30 Europe/Berlin'",
        "timestamp_ntz '2024-01-31 10:20:30Z'",
        "interval 1 day",
        "(select 1)",
        "'x' collate utf8_lcase",
        "200::tinyint",
    ],
)
def test_an_uncertain_literal_is_not_pushed_down(literal: str) -> None:
    assert condition(f"a = {literal}") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < 1", Comparison(("a",), "<", 1)),
        ("1 < a", Comparison(("a",), ">", 1)),
        ("1 >= a", Comparison(("a",), "<=", 1)),
        ("a != 1", Comparison(("a",), "<>", 1)),
        ("a <=> 1", equals("a", 1)),
        ("1 is not distinct from a", equals("a", 1)),
        ("a in (1, 2, null)", In(("a",), (1, 2))),
        ("a between 1 and 5", And((Comparison(("a",), ">=", 1), Comparison(("a",), "<=", 5)))),
        ("a between b and 5", Comparison(("a",), "<=", 5)),
        ("a is null", IsNull(("a",))),
        ("a is not null", IsNotNull(("a",))),
        ("not (a is null)", IsNotNull(("a",))),
        ("a like 'abc%'", StartsWith(("a",), "abc")),
        ("a like 'a_c%d'", StartsWith(("a",), "a")),
        ("a like 'abc'", equals("a", "abc")),
        ("startswith(a, 'x')", StartsWith(("a",), "x")),
        ("s.f.g = 1", Comparison(("S", "f", "g"), "=", 1)),
        ("t.s.f = 1", Comparison(("S", "f"), "=", 1)),
        ("A = 1", equals("a", 1)),
        ("`a` = 1", equals("a", 1)),
        ("a = 1 and (b = 2 and rand() < 1)", And((equals("a", 1), equals("b", 2)))),
        ("a = 1 or b = 2 or a is null", Or((equals("a", 1), equals("b", 2), IsNull(("a",))))),
        ("a = 1 or (b = 2 and f(a))", Or((equals("a", 1), equals("b", 2)))),
    ],
)
def test_a_condition_becomes_a_predicate(text: str, expected: Predicate) -> None:
    assert condition(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 or rand() < 1",
        "not a = 1",
        "!(a = 1)",
        "a not in (1, 2)",
        "a in (1, 'x')",
        "a in (1, b)",
        "a in (null)",
        "a in (select x from u)",
        "a not between 1 and 2",
        "a not like 'x%'",
        "a ilike 'x%'",
        "a rlike 'x'",
        "a like '%x'",
        "a like 'x/%%' escape '/'",
        r"a like 'x\\%'",
        "a like any ('x%')",
        "startswith('x', a)",
        "a <=> null",
        "a + 1 = 2",
        "a[0] = 1",
        "f(a) = 1",
        "a = 1 = true",
        "a::string = 'x'",
        "unheard_of = 1",
    ],
)
def test_any_other_condition_is_not_pushed_down(text: str) -> None:
    assert condition(text) is None
    assert condition(f"({text}) and b = 2") == equals("b", 2)


# Which relation a condition belongs to


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from t, u where a = 1 and x = 2", {"t": equals("a", 1), "u": equals("x", 2)}),
        ("select * from u, w where k = 1", {}),
        ("select * from u, w where u.k = 1 and w.k = 2", {"u": equals("k", 1), "w": equals("k", 2)}),
        ("select * from main.t where main.t.a = 1", {"t": equals("a", 1)}),
        ("select * from t q where q.a = 1 and t.b = 2", {"q": equals("a", 1)}),
        ("select * from t p join t q on p.a = 1 and q.a = 2", {"p": equals("a", 1), "q": equals("a", 2)}),
        ("select * from t q (b, a, c) where a = 1 and q.a = 2", {}),
        ("select * from t, unknown where a = 1 and t.b = 2", {"t": equals("b", 2)}),
        ("select * from t, (select 1 as z) where a = 1 and t.b = 2", {"t": equals("b", 2)}),
        ("select * from t, range(3) where a = 1 and t.b = 2", {"t": equals("b", 2)}),
        ("select * from t lateral view explode(s) where a = 1 and t.b = 2", {"t": equals("b", 2)}),
        (
            "select * from t where exists (select 1 from u where a = 1 and x = 2 and t.b = 3)",
            {"u": equals("x", 2)},
        ),
        (
            "select * from t where a in (select k from w where m = 1) and b = 2",
            {"t": equals("b", 2), "w": equals("m", 1)},
        ),
        ("select b as a from t where a = 1", {"t": equals("a", 1)}),
        ("select a from t group by a having a = 1", {}),
        ("with t as (select 1 as a) select * from t where a = 1", {}),
        ("with c as (select * from t where a = 1) select * from c where b = 2", {"t": equals("a", 1)}),
        ("select * from (select * from t limit 3) where a = 1", {}),
        ("insert into z select * from t where a = 1", {"t": equals("a", 1)}),
        ("explain select * from t where a = 1", {"t": equals("a", 1)}),
        ("select * from t version as of 3 where a = 1", {"t": equals("a", 1)}),
        ("select * from t at (timestamp => now()) q /* from u */ where a = 1 -- b", {"q": equals("a", 1)}),
    ],
)
def test_a_condition_is_pushed_to_the_relation_that_has_its_column(sql: str, expected: dict[str, Predicate]) -> None:
    assert pushed_down(sql) == expected


def test_each_reference_to_a_relation_has_its_own_predicate() -> None:
    sql = "select * from t where a = 1 union all select * from t where a = 2 union all select * from t"
    first, second, third = find_names(sql).relations
    assert pushdown_predicates(sql, known_columns) == {first: equals("a", 1), second: equals("a", 2)}
    assert third not in pushdown_predicates(sql, known_columns)


# Joins


@pytest.mark.parametrize(
    ("join", "on_t", "on_u", "where_t", "where_u"),
    [
        ("join", True, True, True, True),
        ("left join", False, True, True, True),
        ("right outer join", True, False, True, True),
        ("full join", False, False, True, True),
        ("left semi join", True, True, True, False),
        ("left anti join", False, True, True, False),
    ],
)
def test_the_kind_of_a_join_decides_which_conditions_are_pushed_down(
    join: str, on_t: bool, on_u: bool, where_t: bool, where_u: bool
) -> None:
    on = pushed_down(f"select * from t {join} u on t.a = 1 and u.x = 2")
    pushed_on = [("t", equals("a", 1), on_t), ("u", equals("x", 2), on_u)]
    assert on == {name: predicate for name, predicate, is_pushed in pushed_on if is_pushed}
    where = pushed_down(f"select * from t {join} u on t.s = u.k where t.a = 1 and u.x = 2")
    pushed_where = [("t", equals("a", 1), where_t), ("u", equals("x", 2), where_u)]
    assert where == {name: predicate for name, predicate, is_pushed in pushed_where if is_pushed}


@pytest.mark.parametrize("test", ["u.x is null", "u.x is null or u.y = 1"])
def test_a_where_that_accepts_nulls_is_not_pushed_to_the_side_that_gets_them(test: str) -> None:
    assert pushed_down(f"select * from t left join u on t.a = u.k where {test}") == {}
    assert pushed_down(f"select * from t left join u on t.a = u.k join w on {test}") == {}
    assert pushed_down(f"select * from u left join t on t.a = u.k where {test}").keys() == {"u"}


def test_an_on_condition_applies_to_the_relations_since_the_comma() -> None:
    assert pushed_down("select * from t, u left join w on a = 1 and x = 2 and m = 3") == {"w": equals("m", 3)}


@pytest.mark.parametrize(
    "sql",
    [
        "select * from t tablesample (10 rows) where a = 1",
        "select * from t pivot (sum(a) for b in (1)) where a = 1",
        "select * from t join u on true unpivot (a for b in (x, y)) where a = 1",
        "select * from t asof join u match_condition (t.a >= u.x) where t.a = 1",
        "from t |> limit 3 |> where a = 1",
        "select * from t where a = 1 and and",
        "select * from (t) where a = 1",
        "delete from t where a = 1",
        "",
    ],
)
def test_nothing_is_pushed_down_from_a_query_that_is_not_understood(sql: str) -> None:
    assert pushed_down(sql) == {}


@pytest.mark.large
def test_a_long_chain_of_conditions_stays_flat() -> None:
    predicate = condition(" or ".join(f"a = {number}" for number in range(3000)))
    assert isinstance(predicate, Or)
    assert len(predicate.parts) == 3000


# Generated queries: the result is the same without the rows that do not satisfy the predicates


TABLES = {"r0": ("a", "b"), "r1": ("b", "c"), "r2": ("c", "d")}
_ROWS = st.lists(st.tuples(*[st.sampled_from([None, 1, 2])] * 2), max_size=5)


def _sql(predicate: Predicate) -> str:
    """Returns the predicate as SQL of DuckDB."""
    if isinstance(predicate, And | Or):
        word = " AND " if isinstance(predicate, And) else " OR "
        return "(" + word.join(map(_sql, predicate.parts)) + ")"
    if isinstance(predicate, Comparison):
        return f"{predicate.column[0]} {predicate.operator} {predicate.value}"
    if isinstance(predicate, In):
        return f"{predicate.column[0]} IN ({', '.join(map(str, predicate.values))})"
    assert isinstance(predicate, IsNull | IsNotNull)
    return f"{predicate.column[0]} IS {'NOT ' if isinstance(predicate, IsNotNull) else ''}NULL"


@st.composite
def _conditions(draw: st.DrawFn, tables: list[str], depth: int = 2) -> str:
    kind = draw(st.sampled_from(["and", "or", "test", "test", "not"] if depth else ["test"]))
    if kind == "not":
        return f"not ({draw(_conditions(tables, depth - 1))})"
    if kind != "test":
        left, right = draw(_conditions(tables, depth - 1)), draw(_conditions(tables, depth - 1))
        return f"({left} {kind} {right})"
    table = draw(st.sampled_from(tables))
    column = f"{table}.{draw(st.sampled_from(TABLES[table]))}"
    owners = [name for name in tables if column.split(".")[1] in TABLES[name]]
    if owners == [table] and draw(st.booleans()):
        column = column.split(".")[1]
    tests = [
        "= 1",
        "<> 2",
        "> 1",
        "<= 1",
        "is null",
        "is not null",
        "in (2, null)",
        "between 1 and 1",
        "not in (1)",
    ]
    return f"{column} {draw(st.sampled_from(tests))}"


@st.composite
def _queries(draw: st.DrawFn) -> str:
    sql, visible, since_comma = "select * from r0", ["r0"], ["r0"]
    for table in ["r1", "r2"][: draw(st.integers(0, 2))]:
        kinds = ["join", "left join", "right join", "full join", "semi join", "anti join", "cross join", ","]
        kind = draw(st.sampled_from(kinds))
        sql += f" {kind} {table}"
        if kind == ",":
            since_comma = []
        elif kind != "cross join":
            column = TABLES[table][0]
            linked = [name for name in since_comma if column in TABLES[name]]
            sql += f" on {linked[0]}.{column} = {table}.{column}" if linked else " on true"
            if draw(st.booleans()):
                sql += f" and {draw(_conditions([*since_comma, table]))}"
        if kind not in ("semi join", "anti join"):
            visible, since_comma = [*visible, table], [*since_comma, table]
    if draw(st.booleans()):
        sql += f" where {draw(_conditions(visible))}"
    return sql


@settings(max_examples=200, deadline=None)
@given(_queries(), st.fixed_dictionaries(dict.fromkeys(TABLES, _ROWS)))
def test_rows_that_do_not_satisfy_the_predicates_do_not_change_the_result(
    sql: str, rows: dict[str, list[tuple[int | None, int | None]]]
) -> None:
    pushed = pushdown_predicates(sql, lambda ref: TABLES[ref.parts[0]])
    with duckdb.connect() as lake:
        for name, columns in TABLES.items():
            lake.execute(f"CREATE TABLE {name} ({columns[0]} INT, {columns[1]} INT)")
            if rows[name]:
                lake.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows[name])
        before = lake.sql(f"{sql} order by all").fetchall()
        for ref, predicate in pushed.items():
            lake.execute(f"DELETE FROM {ref.parts[0]} WHERE ({_sql(predicate)}) IS NOT TRUE")
        assert lake.sql(f"{sql} order by all").fetchall() == before
