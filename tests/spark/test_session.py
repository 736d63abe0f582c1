"""LakeSession: starting Spark, attached and read-only lakes, other names, cancelling."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import LakeError

from .helpers import catalog_of, other_session, rows, run, value


def test_statements_without_data_start_no_spark(tmp_path: Path) -> None:
    with LakeSession(f"sqlite:{tmp_path}/c.sqlite", data_path=f"{tmp_path}/data") as lake:
        run(
            lake,
            "create schema s",
            "create table s.t (a int not null, b string) partitioned by (bucket(2, a)) sorted by (b)",
            "alter table s.t add column c date default date'2026-01-01'",
            "comment on table s.t is 'x'",
            "call ducklake_set_option('parquet_compression', 'zstd')",
            "show tables in s",
            "describe extended s.t",
            "drop table s.t",
        )
        assert not lake.spark_started


def test_a_lake_can_be_attached_at_a_version(lake: LakeSession, spark: SparkSession, tmp_path: Path) -> None:
    run(lake, "create table t as select 1 as a", "insert into t values (2)")
    catalog = catalog_of(lake)
    other = LakeSession(
        f"sqlite:{tmp_path}/other.sqlite",
        data_path=f"{tmp_path}/other/",
        spark=spark,
        attach=[{"name": "raw", "catalog": catalog, "snapshot_version": 1}, {"name": "live", "catalog": catalog}],
    )
    assert rows(other, "select count(*) from raw.main.t union all select count(*) from live.t") == [(1,), (2,)]
    other.execute("create table mine as select a from raw.main.t")
    with pytest.raises(LakeError, match="read-only"):
        other.execute("insert into raw.main.t values (3)")
    with pytest.raises(LakeError, match="can change one lake"), other.transaction():
        run(other, "insert into live.main.t values (5)", "insert into mine values (5)")


def test_read_only_refuses_every_change(lake: LakeSession, spark: SparkSession) -> None:
    lake.execute("create table t as select 1 as a")
    reader = other_session(lake, spark, read_only=True)
    assert rows(reader, "select * from t") == [(1,)]
    for statement in ("create table u (a int)", "insert into t values (2)", "drop table t", "truncate table t"):
        with pytest.raises(LakeError, match="read-only"):
            reader.execute(statement)


def test_names_outside_of_lakes_are_resolved_by_spark(lake: LakeSession, spark: SparkSession, tmp_path: Path) -> None:
    spark.range(3).write.parquet(f"{tmp_path}/plain")
    spark.range(4).createOrReplaceTempView("a_temp_view")
    assert value(lake, f"select count(*) from parquet.`{tmp_path}/plain`") == 3
    assert value(lake, "select count(*) from a_temp_view") == 4


def test_a_statement_can_be_cancelled_from_another_thread(lake: LakeSession) -> None:
    started = threading.Event()
    outcome: list[BaseException] = []

    def work() -> None:
        with lake.job_tag("slow"):
            started.set()
            try:
                lake.execute("create table t as select id % 10 as k, sum(hash(id)) from range(100000000000) group by 1")
            except BaseException as error:
                outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    while thread.is_alive():  # between two jobs there is nothing to cancel
        lake.cancel("slow")
        thread.join(0.5)
    assert outcome
    assert lake.state().find_relation("main", "t") is None
    assert lake.sql("select 1 as x").collect()  # untagged work goes on
