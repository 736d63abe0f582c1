"""CREATE TABLE and CREATE OR REPLACE TABLE: definitions, and the files that follow from them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from dbt.adapters.ducklake import LakeSession

from .helpers import rows, run, value


def test_replacing_a_table_keeps_its_id_and_its_snapshots(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as a, 'x' as b")
    before = rows(lake, "select table_id, table_uuid from ducklake_table_info()")
    run(lake, "create or replace table t as select 2 as a, 3.5 as c")
    assert rows(lake, "select table_id, table_uuid from ducklake_table_info()") == before
    assert rows(lake, "select * from t") == [(2, Decimal("3.5"))]
    assert rows(lake, "select * from t version as of 1") == [(1, "x")]


def test_replacing_puts_columns_in_the_order_of_the_query(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as a, 2 as b, 3 as c", "create or replace table t as select 4 as c, 5 as a")
    assert lake.sql("select * from t").columns == ["c", "a"]
    assert rows(lake, "select * from t") == [(4, 5)]


def test_replacing_a_table_by_an_equal_one_keeps_its_definition(lake: LakeSession) -> None:
    replaced = """
        create or replace table t (id bigint not null comment 'who', day date)
        partitioned by (month(day), bucket(4, id)) sorted by (id desc)
        as select id, date'2026-01-01' as day from range({})
    """
    run(lake, replaced.format(3))
    before = lake.state()
    run(lake, replaced.format(5))
    assert lake.state() == before
    (changes,) = rows(lake, "select changes from ducklake_snapshots() order by snapshot_id desc limit 1")
    assert {kind for kind, _ in changes[0]} == {"tables_inserted_into", "tables_deleted_from"}
    run(lake, "create or replace table t as select 1L as id")
    assert lake.state().table("main", "t").partition is None
    assert lake.state().table("main", "t").sort is None


def test_a_table_can_be_rewritten_from_itself(lake: LakeSession) -> None:
    run(lake, "create table t as select id from range(10)")
    run(
        lake,
        "create or replace table t as select id from t where id % 2 = 0",
        "insert overwrite t select id * 10 from t",
    )
    assert value(lake, "select sum(id) from t") == 200


def test_a_view_is_replaced_by_a_table_and_back(lake: LakeSession) -> None:
    run(lake, "create view x as select 1 as a", "create or replace table x as select 2 as a")
    assert value(lake, "select a from x") == 2
    run(lake, "drop table x", "create view x as select 3 as a")
    assert value(lake, "select a from x") == 3


def test_an_empty_table_has_its_columns(lake: LakeSession) -> None:
    run(lake, "create table t (a int, s struct<x: array<string>>)", "insert into t select * from t")
    assert lake.sql("select * from t").schema.simpleString() == "struct<a:int,s:struct<x:array<string>>>"
    assert rows(lake, "select * from t") == []


def test_options_reach_the_files(lake: LakeSession, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    run(
        lake,
        "create table t (id bigint) tblproperties ('parquet_compression' = 'zstd', 'parquet_row_group_size' = '1000')",
        "insert into t select id from range(0, 5000, 1, 1)",
        "create table small (id bigint, pad string) tblproperties ('target_file_size' = '20KB', 'owner' = 'me')",
        "insert into small select id, uuid() from range(0, 5000, 1, 1)",
    )
    (file,) = (r[0] for r in rows(lake, "select data_file from ducklake_list_files('t')"))
    footer = pq.read_metadata(file)
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert footer.num_row_groups == 5
    assert len(rows(lake, "select data_file from ducklake_list_files('small')")) > 3
    assert rows(lake, "show tblproperties small") == [("owner", "me"), ("target_file_size", "20000")]


def test_a_sorted_table_is_range_clustered(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id bigint, x string) sorted by (id desc) tblproperties ('target_file_size' = '100KB')",
        "insert into t select (id * 7919) % 100000, uuid() from range(100000)",
    )
    query = "select id from t where id between 500 and 510"
    assert len(lake.sql(query).inputFiles()) < len(lake.sql("select * from t").inputFiles()) / 2
    assert value(lake, f"select count(*) from ({query})") == 11


def test_a_table_may_be_partitioned_twice_in_one_transaction(lake: LakeSession) -> None:
    with lake.transaction():
        run(
            lake,
            "create table t (a int, b int) partitioned by (a)",
            "insert into t values (1, 10), (2, 20)",
            "alter table t set partitioned by (bucket(2, b))",
            "insert into t values (3, 30)",
        )
    assert rows(lake, "select a from t where a = 2") == [(2,)]
    assert rows(lake, "select a from t where b = 30") == [(3,)]
    run(lake, "alter table t reset partitioned by", "insert into t values (4, 40)")
    assert value(lake, "select sum(a) from t") == 10
