"""Names that come back: columns, fields and partition keys that are dropped, renamed, and added under old names.

A column is its id and not its name: what older files hold under a name never shows up in a later column of the name.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .engines import Both, both, each


def test_a_column_dropped_and_added_again_is_another_column(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each("create table t (id int, v int, s string)", "create table t (id int, v int, s varchar)"),
        both("insert into t values (1, 10, 'a'), (2, 20, 'b')"),
        both("alter table t drop column v"),
        both("insert into t values (3, 'c')"),
        each("alter table t add column v string", "alter table t add column v varchar"),
        both("insert into t values (4, 'd', 'new')"),
        both("update t set v = 'set' where id = 1"),
        both("delete from t where id = 2"),
    )
    lake.compare()
    lake.agree("select id, v from t", expected=[(1, "set"), (3, None), (4, "new")])
    lake.agree("select id from t where v is null", expected=[(3,)])
    lake.agree("select id from t where v > 'a'", expected=[(1,), (4,)])
    feed = "select snapshot_id, rowid, change_type, id, v from ducklake_table_changes({}, 6, 8)"
    lake.agree(feed.format("'main.t'"), feed.format("'lake', 'main', 't'"))
    feed += " where v is null"
    lake.agree(feed.format("'main.t'"), feed.format("'lake', 'main', 't'"))


def test_a_column_added_again_with_a_default_has_it_in_all_older_rows(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int, v int default 1)"),
        both("insert into t (id) values (1)"),
        both("alter table t drop column v"),
        both("insert into t values (2)"),
        both("alter table t add column v int default 7"),
        both("insert into t (id) values (3)"),
        both("insert into t values (4, null)"),
    )
    lake.compare()
    lake.agree("select id from t where v = 7", expected=[(1,), (2,), (3,)])
    lake.agree("select id from t where v = 1", expected=[])


def test_a_dropped_default_stays_in_the_rows_that_have_it(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int)"),
        both("insert into t values (1)"),
        both("alter table t add column v int default 5"),
        both("insert into t (id) values (2)"),
        both("alter table t alter column v drop default"),
        both("insert into t (id) values (3)"),
        both("alter table t alter column v set default 6"),
        both("insert into t (id) values (4)"),
        both("update t set id = id + 10 where v = 5"),
    )
    lake.compare()
    lake.agree("select * from t", expected=[(11, 5), (12, 5), (3, None), (4, 6)])


def test_a_renamed_column_keeps_its_values_when_its_old_name_is_added_again(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int, v int)"),
        both("insert into t values (1, 10), (2, 20)"),
        both("alter table t rename column v to w"),
        both("alter table t add column v int default -1"),
        both("insert into t values (3, 30, 33)"),
        both("update t set v = w + v where id = 2"),
        both("alter table t drop column w"),
        both("alter table t rename column v to w"),
        both("insert into t values (4, 44)"),
    )
    lake.compare()
    lake.agree("select id, w from t", expected=[(1, -1), (2, 19), (3, 33), (4, 44)])
    lake.agree("select id from t where w > 0", expected=[(2,), (3,), (4,)])


def test_a_filter_finds_values_under_swapped_names(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            "create table t (a int, b int, s struct<x: int, y: int>)",
            "create table t (a int, b int, s struct(x int, y int))",
        ),
        each(
            "insert into t values (1, 100, named_struct('x', 1, 'y', 100))",
            "insert into t values (1, 100, {'x': 1, 'y': 100})",
        ),
        both("alter table t rename column a to c"),
        both("alter table t rename column b to a"),
        both("alter table t rename column c to b"),
        both("alter table t rename column s.x to z"),
        both("alter table t rename column s.y to x"),
        both("alter table t rename column s.z to y"),
    )
    for condition in ("a = 100", "b = 1", "a > 50 and b < 50", "s.x = 100", "s.y = 1", "s.x > s.y"):
        lake.agree(f"select a, b from t where {condition}", expected=[(100, 1)])
    lake.agree("select a from t where a = 1 or b = 100 or s.x = 1", expected=[])


def test_names_change_and_are_filtered_in_one_transaction(lake: Both) -> None:
    lake.spark("create table t (a int, b int)")
    with lake.lake.transaction():
        lake.spark(
            "insert into t values (1, 100)",
            "alter table t rename column a to c",
            "alter table t rename column b to a",
            "insert into t values (2, 200)",
        )
        assert lake.spark_rows("select c, a from t where a = 100") == [(1, 100)]
        assert lake.spark_rows("select c, a from t where a > 50 and c = 2") == [(2, 200)]
    assert lake.agree("select c, a from t where a = 100") == [(1, 100)]


def test_names_are_swapped_in_the_transaction_that_creates_and_writes_a_table(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    with lake.lake.transaction():
        lake.spark("create table t (a int, b int, s struct<x: int, y: int>)")
        lake.spark("insert into t values (1, 100, named_struct('x', 1, 'y', 200))")
        lake.spark("alter table t rename column b to z", "alter table t rename column a to b")
        lake.spark("alter table t rename column z to a", "alter table t drop column s.x")
        lake.spark("alter table t rename column s.y to x")
        assert lake.spark_rows("select b from t where a = 100 and b = 1 and s.x = 200") == [(1,)]
    lake.compare()
    lake.agree("select b from t where a = 100 and b = 1 and s.x = 200", expected=[(1,)])


def test_a_column_does_not_get_the_id_of_one_that_its_transaction_dropped(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    with lake.lake.transaction():
        lake.spark("create table t as select 1 as a, 2 as b, named_struct('x', 3, 'y', 4) as s")
        lake.spark("alter table t drop column b", "alter table t drop column s.y")
    lake.spark("alter table t add column c int", "alter table t add column s.z int")
    lake.compare()
    lake.agree("select a, c, s.z as z from t", expected=[(1, None, None)])


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_a_name_that_only_the_creating_transaction_knew_is_added_later(
    open_lake: Callable[..., Both], engine: str
) -> None:
    """A file has the name for another column, and nothing in the catalog says so."""
    lake = open_lake("sqlite")
    text = "create table t as select 1 as a, 2 as d"
    changes = ("alter table t rename column a to b", "alter table t drop column d")
    if engine == "spark":
        with lake.lake.transaction():
            lake.spark(text, *changes)
    else:
        lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)", "begin", text, *changes, "commit")
    lake.spark("alter table t add column a int default 5", "alter table t add column d int")
    lake.spark("insert into t values (7, 6, 8)")
    lake.compare()
    lake.agree("select b from t where a = 5", expected=[(1,)])
    lake.agree("select b from t where d is null", expected=[(1,)])
    lake.agree("select b from t where a = 6 or d = 8", expected=[(7,)])


def test_a_widened_column_is_filtered_in_old_and_new_files(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int, i int, f float, d decimal(4, 1))"),
        both("insert into t values (1, 2147483647, 1.5, 999.9), (2, -5, -0.5, -1.5)"),
        each("alter table t alter column i type bigint", "alter table t alter column i set data type bigint"),
        each("alter table t alter column f type double", "alter table t alter column f set data type double"),
        both("insert into t values (3, 2147483648, 0.1, 0.1), (4, null, null, null)"),
        both("alter table t rename column i to j"),
        both("delete from t where j < 0"),
    )
    lake.compare()
    lake.agree("select id from t where j > 2147483646", expected=[(1,), (3,)])
    lake.agree("select id from t where j = 2147483647", expected=[(1,)])
    lake.agree("select id from t where f >= 0.1", expected=[(1,), (3,)])
    lake.agree("select id from t where d between 0 and 999.9 order by j", expected=[(1,), (3,)])


def test_a_field_dropped_and_added_again_is_another_field(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            "create table t (id int, s struct<a: int, b: int>)",
            "create table t (id int, s struct(a int, b int))",
        ),
        each("insert into t values (1, named_struct('a', 1, 'b', 2))", "insert into t values (1, {'a': 1, 'b': 2})"),
        both("alter table t drop column s.a"),
        each("insert into t values (2, named_struct('b', 22))", "insert into t values (2, {'b': 22})"),
        each("alter table t add column s.a string", "alter table t add column s.a varchar"),
        both("alter table t rename column s.b to c"),
        both("alter table t add column s.b int default 9"),
        each(
            "insert into t values (3, named_struct('c', 33, 'a', 'x', 'b', 3)), (4, null)",
            "insert into t values (3, {'c': 33, 'a': 'x', 'b': 3}), (4, null)",
        ),
    )
    lake.compare()
    lake.agree("select id from t where s.a is null", expected=[(1,), (2,), (4,)])
    lake.agree("select id, s.b, s.c from t", expected=[(1, 9, 2), (2, 9, 22), (3, 3, 33), (4, None, None)])


def test_a_field_in_a_list_comes_back_under_its_name(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            "create table t (id int, l array<struct<a: int, b: int>>)",
            "create table t (id int, l struct(a int, b int)[])",
        ),
        each(
            "insert into t values (1, array(named_struct('a', 1, 'b', 2), null))",
            "insert into t values (1, [{'a': 1, 'b': 2}, null])",
        ),
        both("alter table t drop column l.element.a"),
        both("alter table t rename column l.element.b to c"),
        each("alter table t add column l.element.a string", "alter table t add column l.element.a varchar"),
        both("alter table t add column l.element.b int"),
        each(
            "insert into t values (2, array(named_struct('c', 3, 'a', 'x', 'b', 4)))",
            "insert into t values (2, [{'c': 3, 'a': 'x', 'b': 4}])",
        ),
    )
    lake.compare()


def test_a_table_is_partitioned_by_changing_keys_and_by_the_first_ones_again(lake: Both, writer: str) -> None:
    rows = ", ".join(f"({i}, 'r{i % 2}', date '2024-0{1 + i % 3}-15')" for i in range(6))
    lake.write(
        writer,
        each("create table t (id int, r string, d date)", "create table t (id int, r varchar, d date)"),
        both("alter table t set partitioned by (r)"),
        both(f"insert into t values {rows}"),
        both("alter table t set partitioned by (month(d), bucket(2, id))"),
        both(f"insert into t values {rows}"),
        both("alter table t set partitioned by (r)"),
        both(f"insert into t values {rows}"),
        both("delete from t where r = 'r1' and id > 3"),
    )
    lake.compare()
    for condition in ("r = 'r1'", "d = date '2024-02-15'", "id = 3", "r = 'r0' and id in (0, 1)"):
        lake.agree(f"select * from t where {condition}")


def test_a_partition_column_is_renamed_and_its_old_name_is_added_again(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each("create table t (id int, r string)", "create table t (id int, r varchar)"),
        both("alter table t set partitioned by (r)"),
        both("insert into t values (1, 'a'), (2, 'b')"),
        both("alter table t rename column r to region"),
        each("alter table t add column r string", "alter table t add column r varchar"),
        both("insert into t values (3, 'a', 'other'), (4, null, 'a')"),
        both("alter table t set partitioned by (r)"),
        both("insert into t values (5, 'b', 'a'), (6, 'a', null)"),
    )
    lake.compare()
    lake.agree("select id from t where region = 'a'", expected=[(1,), (3,), (6,)])
    lake.agree("select id from t where r = 'a'", expected=[(4,), (5,)])
    lake.agree("select id from t where r is null", expected=[(1,), (2,), (6,)])


def test_a_partition_column_is_dropped_after_the_keys_and_partitions_again(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each("create table t (id int, r string)", "create table t (id int, r varchar)"),
        both("alter table t set partitioned by (r)"),
        both("insert into t values (1, 'a'), (2, 'b')"),
        both("alter table t reset partitioned by"),
        both("alter table t drop column r"),
        both("insert into t values (3)"),
        both("alter table t add column r int default 0"),
        both("alter table t set partitioned by (r)"),
        both("insert into t values (4, 1), (5, null)"),
        both("delete from t where id = 2"),
    )
    lake.compare()
    lake.agree("select id from t where r = 0", expected=[(1,), (3,)])
    lake.agree("select id, r from t where r is null or r = 1", expected=[(4, 1), (5, None)])


def test_a_widened_partition_column_splits_and_filters_as_before(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int, p int, n decimal(4, 2))"),
        both("alter table t set partitioned by (p, n, bucket(4, p))"),
        both("insert into t values (1, -1, 1.5), (2, 34, 99.99), (3, null, null)"),
        each("alter table t alter column p type bigint", "alter table t alter column p set data type bigint"),
        both("insert into t values (4, -1, 1.5), (5, 34, null), (6, 2147483648, 1.5)"),
        both("delete from t where id = 1"),
    )
    lake.compare()
    lake.agree("select id from t where p = -1", expected=[(4,)])
    lake.agree("select id from t where p = 34 or n = 99.99", expected=[(2,), (5,)])
    lake.agree("select id from t where n = 1.5 and p > 100", expected=[(6,)])


@pytest.mark.parametrize("engine", ["spark", "duckdb"])
def test_the_only_partition_or_sort_column_cannot_be_dropped(lake: Both, engine: str) -> None:
    """Whoever drops it gets an error, and the other engine still writes the table."""
    lake.spark("create table t (id int, r string, o int)", "alter table t set partitioned by (r)")
    with pytest.raises(Exception, match=r"(?i)partition"):
        (lake.spark if engine == "spark" else lake.duckdb)("alter table t drop column r")
    lake.spark("insert into t values (1, 'a', 1)")
    lake.duckdb("insert into t values (2, 'b', 2)")
    lake.compare()


def test_a_sort_column_is_renamed_and_its_old_name_is_added_again(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int, k int)"),
        both("alter table t set sorted by (k desc)"),
        both("insert into t values (1, 1), (2, 2)"),
        both("alter table t rename column k to key"),
        both("alter table t add column k int"),
        both("insert into t values (3, 3, 5), (4, 4, 1)"),
    )
    lake.compare()
    lake.agree("select id from t where key >= 2", expected=[(2,), (3,), (4,)])
    assert lake.catalog_rows(
        "select expression from {m}.ducklake_sort_expression e join {m}.ducklake_sort_info i"
        " using (sort_id) where i.end_snapshot is null"
    ) in ([("key",)], [('"key"',)])
