"""Variants: of either engine, shredded or not, in files and inlined."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa

from .engines import Both, rows_of


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


OBJECTS = tuple(
    json.dumps(value)
    for value in (
        {"a": 1, "b": "x", "c": [1, 2], "n": {"m": 1}},
        {"a": 2, "b": "y", "c": [], "n": {"m": 2, "o": "z"}},
        {"a": 3, "b": None, "l": [{"p": 1}, {"p": 2, "q": "r"}], "n": {"m": "text"}},
        {"a": "text", "d.e": 1.25, 'f"g': True},
        {},
    )
)


def test_shredded_variants_of_spark_are_read_as_the_others(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    tables = {"objects": OBJECTS, "numbers": ("1", "2", "3"), "lists": ("[1]", "[2, 3]", "[]"), "mixed": ("1", '"x"')}
    for name, texts in tables.items():
        values = ", ".join(f"({i}, '{text}')" for i, text in enumerate(texts))
        rows = f"select i as id, parse_json(j) as v from values {values}, (99, null) as r(i, j)".replace('\\"', '\\\\"')
        lake.spark(f"create table {name} as {rows}")
        lake.spark(f"create table nested_{name} as select id, named_struct('v', v, 'l', array(v)) as s from {name}")
    with lake.connection() as connection:
        for name, texts in tables.items():
            expected = connection.execute(
                "select i, (j::json::variant)::varchar from (values "
                + ", ".join("(?, ?)" for _ in texts)
                + ", (99, null)) r(i, j) order by i",
                [part for pair in enumerate(texts) for part in pair],
            ).fetchall()
            for value, table in (("v", name), ("s.v", f"nested_{name}"), ("s.l[1]", f"nested_{name}")):
                found = connection.execute(f"select id, ({value})::varchar from {table} order by id").fetchall()
                assert found == expected, (name, value)
        path = connection.execute("select data_file from ducklake_list_files('lake', 'objects')").fetchone()
        assert path is not None
        leaves = connection.execute(f"select name from parquet_schema('{path[0]}')").fetchall()
        assert ("typed_value",) in leaves
        assert connection.execute("select count(*) from objects where v.a::varchar = '2'").fetchall() == [(1,)]
        assert connection.execute("select count(*) from numbers where v::int > 1").fetchall() == [(2,)]


def test_duckdb_loses_no_row_by_the_bounds_of_its_own_variants(lake: Both) -> None:
    lake.duckdb(
        "call lake.set_option('data_inlining_row_limit', 0)",
        "create table v (id int, x variant)",
        "insert into v select i, {'a': i, 'b': 'x'}::variant from range(5) r(i)",
    )
    lake.spark("""insert into v select 100, parse_json('{"a": 500, "b": "z"}')""")
    assert lake.duckdb_rows("select id from v where x.a::int > 100") == [(100,)]
    assert lake.duckdb_rows("select id from v where x.b::varchar = 'z'") == [(100,)]
    lake.duckdb("insert into v select 200, {'a': 700, 'b': 'q'}::variant")
    lake.spark("update v set id = id + 1 where id = 100", "delete from v where id = 0")
    assert lake.duckdb_rows("select id from v where x.a::int >= 500 order by id") == [(101,), (200,)]
    assert lake.spark_rows("select id from v where variant_get(x, '$.a', 'int') >= 500") == [(101,), (200,)]


INLINED = {
    "42": ("BIGINT", "42"),
    "'1'": ("STRING", '"1"'),
    "'null'": ("STRING", '"null"'),
    "'a\"b''c'": ("STRING", '"a\\"b\'c"'),
    "true": ("BOOLEAN", "true"),
    "1.5::decimal(4,2)": ("DECIMAL(2,1)", "1.5"),
    "170141183460469231731687303715884105::hugeint": ("DECIMAL(36,0)", "170141183460469231731687303715884105"),
    "1e300::double": ("DOUBLE", "1.0E300"),
    "'NaN'::double": ("DOUBLE", '"NaN"'),
    "date '2020-01-01'": ("DATE", '"2020-01-01"'),
    "timestamp '2020-01-01 01:02:03.456789'": ("TIMESTAMP_NTZ", '"2020-01-01 01:02:03.456789"'),
    "from_hex('00ff')": ("BINARY", '"AP8="'),
    "uuid '5d1c0fd1-9b0a-4c5c-a5ba-6d9d24b3a3a1'": ("UUID", '"5d1c0fd1-9b0a-4c5c-a5ba-6d9d24b3a3a1"'),
    "{'a': {'c': 'x'}, 'b': [1, null]}": (
        "OBJECT<a: OBJECT<c: STRING>, b: ARRAY<BIGINT>>",
        '{"a":{"c":"x"},"b":[1,null]}',
    ),
    "{'a': null}": ("OBJECT<a: VOID>", '{"a":null}'),
}


def test_inlined_variants_keep_their_types(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("duckdb")
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 100)")
    rows = ", ".join(f"({i}, ({value})::variant, {{'v': ({value})::variant}})" for i, value in enumerate(INLINED))
    lake.duckdb(
        "create table v (id int, x variant, s struct(v variant))", f"insert into v values {rows}, (99, null, null)"
    )
    assert lake.catalog_rows("select count(*) from {m}.ducklake_data_file") == [(0,)]
    found = lake.spark_rows(
        "select id, schema_of_variant(x), to_json(x), to_json(s.v) from v where id < 99 order by id"
    )
    assert [row[1:3] for row in found] == [(kind, _comparable(text)) for kind, text in INLINED.values()]
    assert all(row[2] == row[3] for row in found)
    before = lake.duckdb_rows("select id, x::varchar, s.v::varchar from v order by id")
    lake.spark("update v set id = id + 1000")
    assert lake.duckdb_rows("select id - 1000, x::varchar, s.v::varchar from v order by id") == before


def _comparable(text: str) -> object:
    """A text as `spark_rows` returns it."""
    return rows_of(pa.table({"text": [text]}))[0][0]
