"""Tables that change: old files and inlined rows of earlier schemas, read by both engines at every snapshot."""

from __future__ import annotations

from collections.abc import Callable

import duckdb
import pytest

from .engines import Both, both, by_duckdb, each

pytestmark = pytest.mark.usefixtures("interpreting_spark")


def test_columns_are_widened(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            "create table t (i int, f float, d decimal(4,2), y tinyint, s struct<a: int, b: string>, l array<int>)",
            "create table t (i int, f float, d decimal(4,2), y tinyint, s struct(a int, b varchar), l int[])",
        ),
        each(
            "insert into t values (1, 1.5, 99.99, 127, named_struct('a', 1, 'b', 'x'), array(1)),"
            " (null, null, null, null, null, null)",
            "insert into t values (1, 1.5, 99.99, 127, {'a': 1, 'b': 'x'}, [1]), (null, null, null, null, null, null)",
        ),
        each("alter table t alter column i type bigint", "alter table t alter column i set data type bigint"),
        each("alter table t alter column f type double", "alter table t alter column f set data type double"),
        each("alter table t alter column y type smallint", "alter table t alter column y set data type smallint"),
        each(
            "alter table t alter column s.a type bigint",
            "alter table t alter column s set data type struct(a bigint, b varchar)",
        ),
        each(
            "insert into t values (9223372036854775807, 1e300D, -1.25, 1000,"
            " named_struct('a', 9223372036854775807, 'b', 'y'), array(2))",
            "insert into t values (9223372036854775807, 1e300, -1.25, 1000, {'a': 9223372036854775807, 'b': 'y'}, [2])",
        ),
        by_duckdb("delete from t where i = 1"),
    )
    lake.compare()
    lake.agree("select * from t where i > 5 or f < 2")


def test_a_table_that_follows_its_source_is_read_at_every_version(lake: Both) -> None:
    lake.spark(
        "create table t as select id, named_struct('a', 1) as s from range(3)",
        "insert into t select 3, named_struct('a', 2)",
        "delete from t where id = 0",
    )
    merge = "merge with schema evolution into t using (select {}) as n on t.id = n.id"
    clauses = " when matched then update set * when not matched then insert *"
    lake.spark(merge.format("2 as id, named_struct('b', 'new') as s, 0.5D as rate") + clauses)
    lake.duckdb("update t set rate = 1.5 where id = 1", "insert into t values (9, {'a': 3, 'b': 'x'}, 2.5)")
    lake.spark(merge.format("9 as id, named_struct('a', 5000000000) as s, date'2026-01-01' as day") + clauses)
    lake.spark("insert with schema evolution into t by name select 10 as id, array('l') as tags")
    lake.compare()
    lake.agree("select * from t where s.a > 1 or rate > 1")
    lake.agree("select id, s.b, rate, day, tags from t where day is null")


def test_a_type_that_spark_does_not_know_stays_where_nothing_wider_comes(lake: Both) -> None:
    lake.duckdb("create table t (id int, n utinyint, s struct(u uinteger))", "insert into t values (1, 200, {'u': 7})")
    merge = "merge with schema evolution into t using (select {}) as n on t.id = n.id when matched then update set *"
    kinds = "select column_type from {m}.ducklake_column where column_name in ('n', 'u') and end_snapshot is null"
    lake.spark(merge.format("1 as id, 255S as n, named_struct('u', 4294967295L) as s"))
    assert lake.catalog_rows(f"{kinds} order by column_id") == [("uint8",), ("uint32",)]
    lake.spark(merge.format("1 as id, 70000 as n"))
    assert lake.catalog_rows(f"{kinds} order by column_id") == [("int32",), ("uint32",)]
    lake.compare()


def test_a_decimal_gets_more_digits(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (d decimal(4,2), e decimal(10,0))"),
        both("insert into t values (99.99, 1), (-99.99, null)"),
        each(
            "alter table t alter column d type decimal(20,2)",
            "alter table t alter column d set data type decimal(20,2)",
        ),
        both("insert into t values (123456789012345678.25, 2)"),
    )
    lake.compare()
    lake.agree("select * from t where d < 0")
    lake.agree("select * from t where d > 100")


def test_columns_and_fields_are_added_renamed_and_dropped(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            "create table t (id int, a string, s struct<x: int, y: string, z: struct<q: int>>)",
            "create table t (id int, a varchar, s struct(x int, y varchar, z struct(q int)))",
        ),
        each(
            "insert into t values (1, 'one', named_struct('x', 1, 'y', 'y1', 'z', named_struct('q', 1)))",
            "insert into t values (1, 'one', {'x': 1, 'y': 'y1', 'z': {'q': 1}})",
        ),
        both("alter table t rename column a to b"),
        both("alter table t rename column s.y to why"),
        each(
            "insert into t values (2, 'two', named_struct('x', 2, 'why', 'y2', 'z', null))",
            "insert into t values (2, 'two', {'x': 2, 'why': 'y2', 'z': null})",
        ),
        each("alter table t add column c string", "alter table t add column c varchar"),
        both("alter table t add column s.w int"),
        both("alter table t add column s.z.r int"),
        each(
            "insert into t values (3, 'three',"
            " named_struct('x', 3, 'why', 'y3', 'z', named_struct('q', 3, 'r', 33), 'w', 333), 'c3')",
            "insert into t values (3, 'three', {'x': 3, 'why': 'y3', 'z': {'q': 3, 'r': 33}, 'w': 333}, 'c3')",
        ),
        both("alter table t drop column s.x"),
        both("alter table t drop column b"),
        each(
            "insert into t values (4, named_struct('why', 'y4', 'z', null, 'w', 4), null), (5, null, 'c5')",
            "insert into t values (4, {'why': 'y4', 'z': null, 'w': 4}, null), (5, null, 'c5')",
        ),
        each("alter table t add column b int", "alter table t add column b int"),
        each("insert into t values (6, null, 'c6', 66)", "insert into t values (6, null, 'c6', 66)"),
        by_duckdb("delete from t where id = 2"),
    )
    lake.compare()
    lake.agree("select id, b from t", expected=[(1, None), (3, None), (4, None), (5, None), (6, 66)])


def test_a_swap_of_names_keeps_values_with_their_columns(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (a int, b int)"),
        both("insert into t values (1, 2)"),
        both("alter table t rename column a to c"),
        both("alter table t rename column b to a"),
        both("alter table t rename column c to b"),
        both("insert into t values (3, 4)"),
    )
    lake.compare()
    lake.agree("select a, b from t", expected=[(2, 1), (4, 3)])


DEFAULTS = {
    # column: (Spark's type, DuckDB's type, Spark's literal, DuckDB's literal)
    "b": ("boolean", "boolean", "true", "'true'"),
    "i": ("int", "int", "-7", "-7"),
    "l": ("bigint", "bigint", "9223372036854775807", "9223372036854775807"),
    "f": ("float", "float", "1.5", "1.5"),
    "d": ("double", "double", "-0.25", "-0.25"),
    "n": ("decimal(10,2)", "decimal(10,2)", "12.50", "12.50"),
    "s": ("string", "varchar", "'it\\'s 100% \\\\ é'", "'it''s 100% \\ é'"),
    "e": ("string", "varchar", "''", "''"),
    "y": ("binary", "blob", "X'00ff41'", "'\\x00\\xFFA'"),
    "t": ("date", "date", "date '2024-02-29'", "'2024-02-29'"),
    "ts": ("timestamp_ntz", "timestamp", "timestamp_ntz '1969-12-31 23:59:59.5'", "'1969-12-31 23:59:59.5'"),
    "tz": ("timestamp", "timestamptz", "timestamp '2024-01-01 00:00:00+00'", "'2024-01-01 00:00:00+00'"),
    "u": ("uuid", "uuid", "'7fffffff-0000-4000-8000-00000000000a'", "'7fffffff-0000-4000-8000-00000000000a'"),
    "ti": ("time", "time", "'12:30:00.5'", "'12:30:00.5'"),
}


def _defaults(engine: int) -> list[str]:
    return [f"{c} {d[engine]} default {d[2 + engine]}" for c, d in DEFAULTS.items()]


def test_a_row_without_a_value_gets_the_default_of_its_column(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            f"create table t (id int, {', '.join(_defaults(0))})", f"create table t (id int, {', '.join(_defaults(1))})"
        ),
        both("insert into t (id) values (1)"),
        both("insert into t (id) values (2)"),
        both("insert into t (id, i) values (3, null)"),
    )
    lake.compare()
    rows = lake.agree("select * from t where id < 3")
    assert rows[0][1:] == rows[1][1:]
    assert None not in rows[0]
    for engine in (lake.spark, lake.duckdb):  # whoever set the default, the other one follows it
        engine("insert into t (id) values (4)")
    lake.compare()


def test_an_added_column_gives_old_rows_its_default(lake: Both, writer: str) -> None:
    steps = [
        each(f"alter table t add column {a}", f"alter table t add column {b}")
        for a, b in zip(_defaults(0), _defaults(1), strict=True)
    ]
    lake.write(
        writer,
        both("create table t (id int)"),
        both("insert into t values (1)"),
        by_duckdb("insert into t from range(100, 120)"),
        *steps,
        both("insert into t (id) values (2)"),
        both("insert into t (id, s) values (3, null)"),
    )
    lake.compare(first=4 + len(DEFAULTS))
    rows = lake.agree("select * from t where id in (1, 2, 100)")
    assert rows[0][1:] == rows[1][1:] == rows[2][1:]
    assert None not in rows[0]
    lake.agree("select id from t where i = -7 and n = 12.50")
    lake.agree("select id from t where i <> -7")


def test_a_default_is_set_changed_and_dropped(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int, v int)"),
        both("alter table t alter column v set default 5"),
        both("insert into t (id) values (1)"),
        both("alter table t alter column v set default 6"),
        both("insert into t (id) values (2)"),
        both("alter table t alter column v drop default"),
        both("insert into t (id) values (3)"),
    )
    lake.compare()
    lake.agree("select * from t", expected=[(1, 5), (2, 6), (3, None)])


def test_a_default_can_be_computed(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            "create table t (id int, w timestamp default current_timestamp(), n int default 1 + 2)",
            "create table t (id int, w timestamptz default now(), n int default 1 + 2)",
        ),
        both("insert into t (id) values (1)"),
        both("insert into t (id) values (2)"),
    )
    lake.compare()
    lake.agree("select id, n, w is not null from t", expected=[(1, 3, True), (2, 3, True)])
    for engine in (lake.spark, lake.duckdb):
        engine("insert into t (id) values (3)")
    lake.agree("select count(*), count(w), sum(n) from t", expected=[(4, 4, 12)])


def test_not_null_holds_for_both(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int not null, v int)"),
        both("insert into t values (1, null)"),
        both("insert into t values (2, 2)"),
        both("alter table t alter column id drop not null"),
        both("insert into t values (null, 3)"),
    )
    lake.compare()


def test_tables_schemas_and_names_come_and_go(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create schema s2"),
        both("create table s2.t as select 1 as i"),
        both("create table u as select 2 as i"),
        both("alter table s2.t rename to t2"),
        both("insert into s2.t2 values (3)"),
        both("create table s2.t as select 'other' as name"),
        both("drop table s2.t"),
        both("create or replace table u as select 'x' as name, 5 as n"),
        both("insert into u values ('y', 6)"),
        both("create table if not exists u as select 1 as never"),
        both("drop table s2.t2"),
        both("drop schema s2"),
        both("drop table u"),
        both("create table u as select 'again' as i"),
    )
    lake.compare()


def test_a_table_is_emptied(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t as select 1 as i, 'a' as s"),
        both("insert into t values (2, 'b')"),
        each("truncate table t", "delete from t"),
        both("insert into t values (3, 'c')"),
        both("delete from t"),
        both("insert into t values (0, '')"),
    )
    lake.compare()
    lake.agree("select min(i), max(i), min(s), max(s), count(*) from t", expected=[(0, 0, "", "", 1)])


@pytest.mark.parametrize("inlined", [0, 10])
@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_a_nested_field_that_is_added_has_its_default_in_older_rows(
    open_lake: Callable[..., Both], engine: str, inlined: int
) -> None:
    lake = open_lake("duckdb" if inlined else "sqlite")
    alter = lake.spark if engine == "spark" else lake.duckdb
    lake.duckdb(
        f"call lake.set_option('data_inlining_row_limit', {inlined})",
        "create table t (id int, s struct(i int, n struct(a int)), l struct(x int)[], m map(varchar, struct(y int)))",
        "insert into t values (1, {'i': 1, 'n': {'a': 1}}, [{'x': 1}, null], map {'k': {'y': 1}})",
        "insert into t values (2, null, null, null), (3, {'i': null, 'n': null}, [], map {})",
    )
    alter("alter table t add column s.k int default 42", "alter table t add column s.n.b varchar default 'it''s'")
    alter("alter table t add column l.element.z int default 7", "alter table t add column m.value.z bigint default 8")
    lake.duckdb("insert into t values (4, {'i': 1, 'n': {'a': 1, 'b': null}, 'k': null}, [{'x': 1, 'z': 0}], null)")
    lake.compare()
    lake.agree("select id from t where s.k = 42")
    lake.spark("update t set id = id + 10 where id = 1", "delete from t where s.k = 42 and id = 3")
    alter("alter table t drop column s.i", "alter table t rename column s.k to kk")
    lake.spark("insert into t select id + 100, s, l, m from t")
    lake.compare()
    last = lake.duckdb_rows("select max(snapshot_id) from ducklake_snapshots('lake')")[0][0]
    lake.agree(
        f"select * from ducklake_table_changes('main.t', 1, {last})",
        f"select * from ducklake_table_changes('lake', 'main', 't', 1, {last})",
    )


def test_a_struct_of_which_a_file_has_no_field_is_not_null(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "call lake.set_option('data_inlining_row_limit', 0)",
        "create table t (id int, s struct(i int))",
        "insert into t values (1, {'i': 1}), (2, null), (3, {'i': null})",
        "alter table t add column s.k int default 42",
        "alter table t drop column s.i",
        "alter table t add column s.j int",
    )
    lake.compare()


def test_an_integer_promoted_to_uint64_is_read_from_older_files(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "call lake.set_option('data_inlining_row_limit', 0)",
        "create table t (a utinyint, b usmallint, c uinteger)",
        "insert into t values (255, 65535, 4294967295), (0, 1, 2147483648), (null, null, null)",
        *(f"alter table t alter {column} set data type ubigint" for column in "abc"),
        "insert into t values (18446744073709551615, 1, 2)",
    )
    lake.compare()
    lake.spark("update t set a = a - 1 where c = 4294967295", "delete from t where b = 1 and c > 2")
    lake.compare()


def test_a_table_that_duckdb_alters_and_renames_in_one_transaction_is_still_read(
    open_lake: Callable[..., Both],
) -> None:
    """DuckDB 1.5 leaves it under both names, forgets the change of the column, and opens the lake no more."""
    lake = open_lake("sqlite")
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)", "create table t (id bigint, a int)")
    lake.duckdb("insert into t values (1, 2)")
    lake.duckdb("begin; alter table t rename column a to b; alter table t rename to t2; commit")
    with pytest.raises(duckdb.CatalogException, match="Column with name id already exists"):
        lake.duckdb("from t2")
    assert lake.spark_rows("select id, a from t2") == [(1, 2)]
