"""What only the reference does to rows and files so far, read by Spark at every snapshot."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .engines import Both

pytestmark = pytest.mark.usefixtures("interpreting_spark")

ROWS = "(select i as id, 'v' || i as v, i % 4 as g from range(0, 40) r(i))"
INLINING = ("inlined", "in files")


def _start(lake: Both, how: str, creator: str = "duckdb") -> None:
    if how == "in files":
        lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)")
    if creator == "spark":
        lake.spark("create table t as select id, concat('v', id) as v, id % 4 as g from range(40)")
    else:
        lake.duckdb(f"create table t as from {ROWS}")


@pytest.mark.parametrize("how", INLINING)
@pytest.mark.parametrize("creator", ["spark", "duckdb"])
def test_deletes_and_updates_are_seen_at_every_snapshot(lake: Both, how: str, creator: str) -> None:
    _start(lake, how, creator)
    lake.duckdb(
        "delete from t where id = 3",
        "delete from t where id in (5, 39)",
        "delete from t where g = 1",
        "update t set v = 'changed' where id in (4, 8)",
        "insert into t values (100, 'new', 0), (101, null, null)",
        "update t set v = 'twice' where id in (4, 100)",
        "delete from t where id = 101",
        "begin",
        "delete from t where id = 8",
        "insert into t values (8, 'again', 8)",
        "update t set g = 9 where id in (8, 12)",
        "commit",
    )
    lake.spark("insert into t select id, 'spark', 7 from range(200, 203)")
    lake.duckdb("delete from t where id in (201, 12)", "delete from t where id = 202")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    lake.agree("select * from t where id = 4")
    lake.agree("select * from t where v = 'spark'")
    lake.agree("select count(*), min(id), max(id), min(v), max(v) from t")


@pytest.mark.parametrize("how", INLINING)
def test_maintenance_changes_no_row(lake: Both, how: str) -> None:
    _start(lake, how)
    lake.duckdb(
        "delete from t where id < 3", "insert into t values (100, 'a', 0)", "insert into t values (101, 'b', 1)"
    )
    lake.spark("insert into t values (102, 'spark', 2)")
    lake.duckdb("delete from t where id in (7, 102)", "update t set v = 'up' where id in (10, 101)")
    lake.spark("insert into t values (103, 'spark', 3)")
    lake.compare()
    before = sorted(lake.spark_rows("select * from t version as of 4"))
    for call in (
        "ducklake_flush_inlined_data('lake')",
        "ducklake_merge_adjacent_files('lake')",
        "ducklake_rewrite_data_files('lake', delete_threshold => 0.0)",
    ):
        lake.duckdb(f"call {call}")
        lake.compare()
        lake.agree("select rowid, snapshot_id, id, v from t")
    assert sorted(lake.spark_rows("select * from t version as of 4")) == before
    lake.duckdb(
        "insert into t values (104, 'after', 0)",
        "delete from t where id = 103",
        "call ducklake_expire_snapshots('lake', older_than => now())",
        "call ducklake_cleanup_old_files('lake', cleanup_all => true)",
    )
    lake.compare()
    lake.spark("insert into t values (105, 'spark', 3)")
    lake.compare()
    lake.agree("select rowid, id, v, g from t")


def test_merged_files_still_tell_which_snapshot_wrote_a_row(lake: Both) -> None:
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)", "create table t (id int, v varchar)")
    for i in range(3):
        lake.duckdb(f"insert into t values ({i}, 'd{i}')")
        lake.spark(f"insert into t values ({10 + i}, 's{i}')")
    lake.duckdb("call ducklake_merge_adjacent_files('lake')")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id, v from t")
    lake.agree(
        "select rowid, snapshot_id, id, v from t version as of 4",
        "select rowid, snapshot_id, id, v from t at (version => 4)",
    )
    lake.duckdb("delete from t where id in (1, 11)", "delete from t where id = 2")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id, v from t")


def test_rows_are_inlined_before_and_after_a_change_of_the_table(lake: Both) -> None:
    lake.duckdb("create table t (id int, s struct(a int, b varchar), l int[])")
    lake.duckdb(
        "insert into t values (1, {'a': 1, 'b': 'x'}, [1]), (2, null, null)",
        "alter table t add column n varchar default 'dflt'",
        "insert into t values (3, {'a': 3, 'b': 'z'}, [], 'three')",
        "alter table t rename column l to list",
        "update t set n = 'up' where id = 1",
        "alter table t add column s.c int",
    )
    lake.spark("insert into t values (4, named_struct('a', 4, 'b', 'w', 'c', 44), array(4), 'spark')")
    lake.duckdb(
        "insert into t values (5, {'a': 5, 'b': 'v', 'c': 55}, [5, null], null)",
        "delete from t where id in (2, 4)",
        "alter table t alter id set data type bigint",
        "alter table t drop column list",
        "insert into t values (6, null, 'six')",
    )
    lake.spark("alter table t rename column n to m", "alter table t add column k int")
    lake.duckdb("insert into t values (7, null, 'seven', 7)", "update t set k = 1 where id = 3")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    lake.duckdb("call ducklake_flush_inlined_data('lake')")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")


def test_a_merge_by_duckdb_is_read(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    _start(lake, "inlined", "spark")
    lake.duckdb(
        "merge into t using (select 1 as id, 'm' as v union all select 900, 'n') s on t.id = s.id"
        " when matched then update set v = s.v when not matched then insert values (s.id, s.v, 0)"
    )
    lake.compare()


def test_the_change_feed_tells_what_spark_did(lake: Both) -> None:
    lake.spark("create table t as select * from values (1, 'a'), (2, 'b') as s(id, v)")
    lake.spark("insert into t values (3, 'c')")
    lake.spark("insert overwrite t values (4, 'd')")
    lake.spark("truncate table t")
    lake.spark("alter table t add column n int", "insert into t values (5, 'e', 5)")
    newest = lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0][0]
    changes = lake.catalog_rows(
        "select snapshot_id, change_type, id"
        f" from ducklake_table_changes('lake', 'main', 't', 1, {newest}) order by all"
    )
    assert changes == [
        (1, "insert", 1),
        (1, "insert", 2),
        (2, "insert", 3),
        (3, "delete", 1),
        (3, "delete", 2),
        (3, "delete", 3),
        (3, "insert", 4),
        (4, "delete", 4),
        (6, "insert", 5),
    ]
    rowids = lake.catalog_rows(
        f"select rowid, id from ducklake_table_insertions('lake', 'main', 't', 1, {newest}) order by all"
    )
    assert [r for r, _ in rowids] == [0, 1, 2, 3, 4]
