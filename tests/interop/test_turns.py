"""Both engines on one lake, over several rounds, and threads of ours on one session."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from .engines import CATALOGS, Both


def test_four_rounds_on_one_table(lake: Both) -> None:
    lake.spark(
        "create table t (id bigint, region string, at timestamp_ntz, amount decimal(10,2))"
        " partitioned by (region, month(at))",
        "insert into t select id, concat('r', id % 2), timestamp_ntz '2024-01-31 23:00:00' + make_dt_interval(id),"
        " id * 1.5 from range(20)",
    )
    lake.duckdb(
        "insert into t select i, 'r' || (i % 2), timestamp '2024-03-01', i from range(20, 40) r(i)",
        "delete from t where id in (0, 21)",
        "alter table t add column note varchar default 'none'",
        "update t set amount = amount + 1 where id = 5",
    )
    lake.spark(
        "insert into t values (100, null, null, null, 'spark')",
        "alter table t rename column amount to total",
        "alter table t alter column total type decimal(12,2)",
        "alter table t set partitioned by (bucket(3, id))",
        "insert into t values (101, 'r1', timestamp_ntz '2024-05-05 00:00:00', 1234567890.25, null)",
    )
    lake.duckdb(
        "insert into t values (102, 'r0', null, 1, 'duck')",
        "update t set note = 'twice' where id in (5, 101, 102)",
        "call ducklake_flush_inlined_data('lake')",
        "call ducklake_merge_adjacent_files('lake')",
        "alter table t set sorted by (id desc)",
    )
    lake.spark("insert into t select id, 'r9', null, 0, 'sorted' from range(200, 205)", "alter table t drop column at")
    lake.duckdb("delete from t where region = 'r9' and id > 202", "insert into t values (300, 'end', 5, 'x')")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    for condition in ("id = 101", "region is null", "note = 'none' and id < 7", "total > 1000"):
        lake.agree(f"select id, total from t where {condition}")
    lake.agree("select min(id), max(id), count(*), min(region), max(region), sum(total) from t")


def test_replaced_tables_go_back_and_forth(lake: Both) -> None:
    lake.spark("create table t as select 1 as a")
    lake.duckdb("create or replace table t as select 'x' as b, 2 as a")
    lake.spark("insert into t values ('y', 3)", "create or replace table t as select b, a, 1.5 as c from t")
    lake.duckdb("insert into t values ('z', 4, 2.5)", "create table u as from t", "drop table t")
    lake.spark("create table t as select * from u", "insert into u select * from t")
    lake.compare()


def test_transactions_of_several_statements(lake: Both) -> None:
    lake.spark(
        "begin",
        "create schema s",
        "create table s.a as select 1 as id",
        "create table s.b (id int) ",
        "insert into s.b select id from s.a",
        "alter table s.b add column n int default 3",
        "insert into s.b values (2, 2)",
        "commit",
    )
    lake.duckdb(
        "begin",
        "insert into s.a values (2)",
        "alter table s.a add column n int",
        "insert into s.a values (3, 3)",
        "delete from s.a where id = 1",
        "create table s.c as from s.a",
        "commit",
    )
    lake.spark(
        "begin", "insert into s.c values (9, 9)", "truncate table s.c", "insert into s.c values (10, 10)", "commit"
    )
    lake.compare()


@pytest.mark.parametrize("kind", CATALOGS)
def test_threads_share_a_session(open_lake: Callable[..., Both], kind: str) -> None:
    lake = open_lake(kind)
    lake.spark("create table t as select 1 as id")

    def read(_: int) -> int:
        return lake.lake.sql("select * from t").count()

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(read, range(24))) == {1}
