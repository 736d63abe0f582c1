"""Variants, which both engines read and write, and geometries, which Spark reads."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.ducklake.lake.errors import UnsupportedError

from .engines import Both


def test_variants_go_both_ways(lake: Both) -> None:
    lake.spark(
        "create table v (id int, x variant)",
        """insert into v select 1, parse_json('{"a": 1, "b": [1, "x", null]}')
           union all select 2, parse_json('42') union all select 3, null""",
    )
    lake.duckdb("insert into v select i, {'a': i}::variant from range(10, 30) r(i)")
    assert lake.duckdb_rows("select id, x::varchar from v where id <= 3 order by id") == [
        (1, "{'a': 1, 'b': [1, x, NULL]}"),
        (2, "42"),
        (3, None),
    ]
    found = lake.spark_rows("select id, variant_get(x, '$.a', 'int') from v where id <> 2 order by id")
    assert found == [(1, 1), (3, None), *((i, i) for i in range(10, 30))]


def test_variants_are_copied_by_sql(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb("create table v (id int, x variant)", "insert into v select i, {'a': i}::variant from range(3) r(i)")
    lake.spark(
        "insert into v select * from v",
        "insert into v select id + 10, x from v where id = 1",
        "create table w as select * from v",
        "create table n as select id, named_struct('x', x, 'l', array(x)) as s from v",
        "insert into n select * from n",
        "merge into v using w on v.id = w.id + 100 when not matched then insert *",
    )
    copies = "select id, x::varchar from v where id < 10 order by all"
    expected = [(i, f"{{'a': {i}}}") for i in range(3)]
    assert sorted(set(lake.duckdb_rows(copies))) == expected
    assert lake.duckdb_rows("select count(*) from v") == [(16,)]
    assert sorted(set(lake.duckdb_rows("select id, s.x::varchar from n where id < 10"))) == expected
    assert lake.spark_rows("select count(variant_get(s.l[0], '$.a', 'int')) from n") == [(16,)]


def test_geometries_are_read_as_wkb_and_not_written(lake: Both) -> None:
    lake.duckdb(
        "create table g (id int, g geometry)", "insert into g select i, 'POINT(1 2)'::geometry from range(20) r(i)"
    )
    ((wkb,),) = lake.spark_rows("select distinct g from g")
    assert wkb[:5] == b"\x01\x01\x00\x00\x00"
    with pytest.raises(UnsupportedError, match="can read but not write yet"):
        lake.spark("insert into g select 99, X'00'")
