"""Which columns of a query hold only the literals of its author: these are cast when they are inserted."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.sql.literal_columns import is_string_literal, literal_columns


@pytest.mark.parametrize(
    ("query", "count", "literal"),
    [
        # VALUES
        ("values ('a', 1), (null, 2)", 2, [0]),
        ("values ('a', upper('b'))", 2, [0]),
        ("values 'a', 'b'", 1, [0]),
        ("values (('a')), ((null)) limit 1", 1, [0]),
        ("(values ('a'))", 1, [0]),
        ("values ('a'), ('b') as t(x)", 1, [0]),
        # SELECT
        ("select 'x', id, 'y' as z from t where a = 1", 3, [0, 2]),
        ("select 'x' z, null, 5 from t", 3, [0, 1]),
        ("select distinct 'x' from t order by 1 limit 3", 1, [0]),
        ("select 'it''s', 'a, b', '(', r'\\', \"q\" from t", 5, [0, 1, 2, 3, 4]),
        ("select date'2020-01-01', X'00', 'a' 'b', ('q'), 'a'::int, 'a' || 'b'", 6, [2, 3]),
        ("select 'x' in ('y'), case when a then 'x' end, a is distinct from 'b', a * 3, 'z'", 5, [4]),
        ("/* c */ select /*+ broadcast(t) */ 'x' -- y\n from t", 1, [0]),
        ("with c as (select 1), d(a) as (select 2) select 'x' from c", 1, [0]),
        ("with c as (select 1) (select 'x' from c)", 1, [0]),
        # stars, before and behind which positions are known
        ("select *, 'x' from t", 4, [3]),
        ("select 'x', t.* from t", 4, [0]),
        ("select 'x', * except (a), 'y' from t", 5, [0, 4]),
        ("select *, 'x', * from t", 5, []),
        ("select inline(a), 'x' from t", 3, []),
        # UNION: each SELECT counts
        ("select 'x' union all select 'y' union (select null) order by 1", 1, [0]),
        ("select 'x', 'y' union all select a, 'z' from t", 2, [1]),
        ("select 'x' union by name select 'y'", 1, []),
        ("select 'x' except select 'y'", 1, []),
        # columns of a VALUES, as dbt_artifacts selects them
        ("select col1, col3, nullif(col2, '') from values ('a', 'b', 'c')", 3, [0, 1]),
        ("select v.b, a as q from (values ('a', 'b'), ('c', null)) as v(a, b) where a > 'a'", 2, [0, 1]),
        ("select * from values ('a', 2)", 2, [0]),
        ("select a from values ('a') as t(a) join u on true", 1, []),
        ("select a from values ('a') as t(a), u", 1, []),
        # columns of a query
        ("select a from (select 'x' as a)", 1, []),
        ("with c as (select 'x' as a) select a from c", 1, []),
        ("from t select 'x'", 1, []),
        ("select 'x' |> select 'y'", 1, []),
        ("table t", 1, []),
        ("", 1, []),
        ("select", 1, []),
        ("values", 1, []),
    ],
)
def test_literals_are_found_where_their_author_wrote_them(query: str, count: int, literal: list[int]) -> None:
    assert sorted(literal_columns(query, count)) == literal


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("'a'", True),
        (" ( 'a' 'b' ) ", True),
        ('"a"', True),
        ("null", False),
        ("('a') || ('b')", False),
        ("date'2020-01-01'", False),
        ("a", False),
        ("", False),
    ],
)
def test_a_string_literal_is_told_from_an_expression(expression: str, expected: bool) -> None:
    assert is_string_literal(expression) is expected
