"""Taking tables back to a version: as DuckDB reads them, with the change feed that tells of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.ducklake.lake.errors import ConflictError, LakeError, NotFoundError

from .engines import Both, both, each
from .test_change_feed import agree_on_feed, first_of, newest

STORY = [
    each(
        "create table t as select id, concat('v', id) as v, cast(id % 3 as int) as g from range(30)",
        "create table t as select i as id, 'v' || i as v, (i % 3)::int as g from range(30) r(i)",
    ),
    both("insert into t values (100, 'few', 0), (101, null, null)"),
    both("delete from t where id = 3"),
    both("update t set v = 'up' where g = 1"),
    both("insert into t values (200, 'x', 1)"),
    both("alter table t add column n int default 7"),
    both("update t set n = n + 1, v = 'again' where id in (0, 4, 100, 200)"),
    both("alter table t rename column v to w"),
    each("alter table t alter column g type bigint", "alter table t alter column g set data type bigint"),
    both("insert into t (id, g) values (300, 5000000000)"),
    both("alter table t drop column w"),
    each("alter table t set partitioned by (g)", "alter table t set partitioned by (g)"),
    both("delete from t where id % 2 = 0"),
    both("delete from t"),
    both("insert into t (id, g) values (1, 1)"),
]


def content(lake: Both, at: int, table: str = "t") -> list[tuple[Any, ...]]:
    return sorted(lake.duckdb_rows(f"from {table} at (version => {at})"), key=repr)


def columns(lake: Both, table: str = "t") -> list[tuple[Any, ...]]:
    return [row[:2] for row in lake.duckdb_rows(f"from (describe {table})")]


def test_a_table_is_again_what_it_was_at_any_version(lake: Both, writer: str) -> None:
    lake.write(writer, *STORY)
    first, last = first_of(lake), newest(lake)
    ids = dict(lake.spark_rows(f"select id, rowid from t version as of {first + 1}"))
    for version in (last - 1, first + 6, first + 1):
        was = content(lake, version)
        before = newest(lake)
        lake.spark(f"call ducklake_rollback('main.t', version => {version})")
        assert newest(lake) == before + 1
        lake.agree("select * from t", "from t", was)
        agree_on_feed(lake, before + 1, before + 1)
        assert content(lake, before) is not None
    assert dict(lake.spark_rows("select id, rowid from t")) == ids
    assert columns(lake) == [("id", "BIGINT"), ("v", "VARCHAR"), ("g", "BIGINT")], "a type stays as wide as it became"
    lake.write("turns", both("insert into t values (7, 'new', 1)"), both("update t set v = 'z' where id = 7"))
    lake.agree("select v, g from t where id = 7", expected=[("z", 1)] * 2)
    lake.compare(first=first)
    feed = agree_on_feed(lake, first, newest(lake))
    assert len(feed) > 100


def test_no_data_file_stands_in_the_catalog_twice(lake: Both) -> None:
    lake.write("spark", *STORY)
    lake.spark(f"call ducklake_rollback('t', version => {first_of(lake)})")
    paths = [path for (path,) in lake.catalog_rows("select path from {m}.ducklake_data_file")]
    assert len(paths) == len(set(paths))


def test_what_did_not_change_is_not_moved(lake: Both) -> None:
    lake.spark("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.spark("create table t as select id, 'a' as v from range(1000)", "insert into t values (2000, 'b')")
    version = newest(lake)
    lake.spark("delete from t where id = 7", "insert into t select id, 'c' from range(3000, 3100)")
    before = newest(lake)
    assert lake.lake.execute(f"call ducklake_rollback('main.t', version => {version})").rows_affected == 101
    added = lake.catalog_rows(f"select record_count from {{m}}.ducklake_data_file where begin_snapshot = {before + 1}")
    assert added == [(1,)]
    lake.agree("select count(*), max(id) from t", expected=[(1001, 2000)])


def test_rows_come_back_through_compaction(lake: Both) -> None:
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)", "create table t (id bigint, v varchar)")
    for step in range(3):
        lake.duckdb(f"insert into t select i + {step * 10}, 'v{step}' from range(8) r(i)")
    version = newest(lake) - 1
    was = content(lake, version)
    lake.duckdb("call ducklake_merge_adjacent_files('lake')", "delete from t where id in (1, 2, 11, 21)")
    lake.duckdb("call ducklake_rewrite_data_files('lake', delete_threshold => 0.01)")
    lake.spark(f"call ducklake_rollback('main.t', version => {version})")
    lake.agree("select * from t", "from t", was)


def test_a_dropped_table_and_a_schema_come_back_as_copies(lake: Both) -> None:
    lake.spark(
        "create schema s",
        "create table s.a (id bigint not null, d date comment 'when') partitioned by (month(d)) comment 'those'",
        "insert into s.a select id, date'2026-01-01' + cast(id * 20 as int) from range(5)",
        "create table s.b as select 1 as id",
        "create view s.v as select id from s.a",
    )
    version = newest(lake)
    lake.spark(
        "drop view s.v",
        "drop table s.a",
        "alter table s.b rename to s.c",
        "insert into s.c values (2)",
        "create table s.new as select 1 as x",
        "create view s.v as select 2 as other",
    )
    lake.spark(f"call ducklake_rollback(schema => 's', version => {version})")
    assert sorted(lake.spark_rows("show tables in s"))[0][1] == "a"
    names = "select table_name from information_schema.tables where table_schema = 's' order by 1"
    assert [name for (name,) in lake.duckdb_rows(names)] == ["a", "b", "v"]
    lake.agree("select * from s.a", "from s.a")
    lake.agree("select * from s.b", "from s.b", [(1,)])
    lake.agree("select * from s.v", "from s.v", [(i,) for i in range(5)])
    files = lake.catalog_rows(
        "select p.partition_value from {m}.ducklake_file_partition_value p join {m}.ducklake_data_file f"
        f" using (data_file_id) where f.begin_snapshot = {newest(lake)} order by 1"
    )
    assert files == [("1",), ("2",), ("3",)]
    with pytest.raises(LakeError, match="NOT NULL|not null"):
        lake.spark("insert into s.a values (null, null)")


def test_a_table_that_moved_goes_back_to_its_schema(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create schema a", "create schema b")
    lake.spark("create table a.t as select 1 as id", "create table b.u as select 2 as id")
    version = newest(lake)
    lake.spark("alter table a.t rename to b.t2", "insert into b.t2 values (5)", "alter table b.u rename to a.u")
    lake.spark(f"call ducklake_rollback(schema => 'a', version => {version})")
    lake.agree("select * from a.t", "from a.t", [(1,)])
    lake.agree("select * from b.u", "from b.u", [(2,)])
    names = "select table_schema, table_name from information_schema.tables where table_schema in ('a', 'b') order by 1"
    assert lake.duckdb_rows(names) == [("a", "t"), ("b", "u")]
    lake.compare()


def test_the_whole_lake_goes_back(lake: Both) -> None:
    lake.spark("create table a as select 1 as id", "create schema s", "create table s.b as select 2 as id")
    version = newest(lake)
    lake.spark(
        "drop schema s cascade",
        "insert into a values (5)",
        "create schema other",
        "create table other.c as select 1 as id",
    )
    lake.spark(f"call ducklake_rollback(whole_lake => true, version => {version})")
    lake.agree("select * from a", "from a", [(1,)])
    lake.agree("select * from s.b", "from s.b", [(2,)])
    schemas = "select schema_name from information_schema.schemata where catalog_name = 'lake' order by 1"
    assert [name for (name,) in lake.duckdb_rows(schemas)] == ["main", "s"]
    lake.compare()


def test_a_rollback_says_what_it_did(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t as select 1 as id", "insert into t values (2)")
    lake.spark("call ducklake_rollback(['main.t'], version => 1)")
    query = (
        "select author, commit_message, commit_extra_info from ducklake_snapshots() order by snapshot_id desc limit 1"
    )
    author, message, extra = lake.spark_rows(query)[0]
    assert (author, message) == ("us", "rollback of main.t to 1")
    assert json.loads(extra.removeprefix("json ")) == {"ducklake_rollback": {"version": 1, "tables": [1]}}


def test_what_can_not_be_taken_back_says_why(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t as select 1 as id", "create table u as select 1 as id")
    for call, error, words in (
        (
            "ducklake_rollback('main.u', version => 1)",
            NotFoundError,
            "no table main.u at .* since snapshot 2",
        ),
        ("ducklake_rollback('main.t')", LakeError, "give one of the two"),
        ("ducklake_rollback('main.t', version => 1, timestamp => '2026-01-01')", LakeError, "give one of the two"),
        ("ducklake_rollback('main.t', version => 77)", NotFoundError, "no snapshot 77"),
        ("ducklake_rollback(schema => 'nowhere', version => 1)", NotFoundError, "no schema nowhere"),
        ("ducklake_rollback('main.t', schema => 'main', version => 1)", LakeError, "one of them"),
        ("ducklake_rollback(version => 1)", LakeError, "whole_lake => true: one of them"),
        ("ducklake_rollback('main.t', versoin => 1)", LakeError, "does not take the argument versoin"),
    ):
        with pytest.raises(error, match=words):
            lake.spark(f"call {call}")
    with lake.lake.transaction():
        lake.spark("insert into t values (2)")
        with pytest.raises(LakeError, match="was changed in this transaction"):
            lake.spark("call ducklake_rollback('main.t', version => 1)")


def test_a_rollback_does_not_pass_what_it_would_undo(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t as select 1 as id", "insert into t values (2)")
    with pytest.raises(ConflictError), lake.lake.transaction():
        lake.spark("call ducklake_rollback('main.t', version => 1)")
        lake.duckdb("insert into t values (3)")
