"""Encrypted lakes: what one engine writes the other reads, at every snapshot and in the change feed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dbt.adapters.ducklake.spark.change import row_positions
from dbt.adapters.ducklake.spark.read import deletion_masks

from .engines import CATALOGS, Both, both, by_duckdb, each
from .test_change_feed import agree_on_feed, first_of, newest

STEPS = [
    each(
        "create table t as select id, concat('v', id) as v, id % 4 as g, array(id, null) as l,"
        " named_struct('a', id, 'b', map('k', id)) as s from range(0, 400, 1, 1)",
        "create table t as select i as id, 'v' || i as v, i % 4 as g, [i, null] as l,"
        " {'a': i, 'b': map {'k': i}} as s from range(400) r(i)",
    ),
    both("alter table t set partitioned by (g)"),
    each(
        "insert into t select id, 'x', id % 3, array(), null from range(400, 500, 1, 1)",
        "insert into t select i, 'x', i % 3, [], null from range(400, 500) r(i)",
    ),
    both("delete from t where id % 10 = 3"),
    both("update t set v = v || '!' where g = 1"),
    both("alter table t add column n decimal(10, 2) default 1.5"),
    both("alter table t rename column v to w"),
    both("insert into t (id, w, g) values (1000, 'few', 9), (1001, 'few', null)"),
    both("delete from t where id % 10 = 4"),
    both(
        "merge into t using (select 7 as k union all select 8 union all select 2000) as s on t.id = s.k"
        " when matched then update set w = 'merged'"
        " when not matched then insert (id, w, g) values (s.k, 'new', 0)"
    ),
    by_duckdb("call ducklake_flush_inlined_data('lake')"),
    both("delete from t where id < 50"),
    by_duckdb("call ducklake_rewrite_data_files('lake', delete_threshold => 0.0)"),
    both("update t set w = 'last' where id = 1000"),
]


@pytest.fixture(params=CATALOGS)
def lake(request: pytest.FixtureRequest, open_lake: Callable[..., Both]) -> Iterator[Both]:
    """A new encrypted lake on each kind of catalog database. At the end, all its Parquet files are encrypted."""
    lake = open_lake(request.param, encrypted=True)
    yield lake
    files = parquet_files(lake)
    assert files
    assert [path.name for path in files if path.read_bytes()[:4] != b"PARE"] == []


def parquet_files(lake: Both) -> list[Path]:
    return list(Path(lake.data_path).rglob("*.parquet"))


def agree(lake: Both) -> None:
    lake.compare()
    lake.agree("select rowid, id from t")
    agree_on_feed(lake, first_of(lake), newest(lake))


def test_encrypted_files_of_one_engine_are_read_by_the_other(lake: Both, writer: str) -> None:
    lake.write(writer, *STEPS)
    agree(lake)


def test_encrypted_files_that_duckdb_merges(open_lake: Callable[..., Both]) -> None:
    """DuckDB 1.5 can not merge the files of a partitioned table in an encrypted lake, whoever wrote them."""
    lake = open_lake("sqlite", encrypted=True)
    lake.spark("create table t as select id, id as g from range(100)", "insert into t select id, 7 from range(50)")
    lake.spark("delete from t where id = 3", "insert into t values (1000, 8)")
    lake.duckdb("call ducklake_flush_inlined_data('lake')", "call ducklake_merge_adjacent_files('lake')")
    lake.spark("delete from t where id % 7 = 1")
    agree(lake)


def test_deletes_that_spark_holds_are_encrypted(
    open_lake: Callable[..., Both], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (
        (deletion_masks, "MAX_BLOCKS"),
        (deletion_masks, "MAX_FILES"),
        (row_positions, "MAX_DRIVER_ROWS"),
        (row_positions, "MAX_DRIVER_POSITIONS"),
    ):
        monkeypatch.setattr(module, name, 0)
    lake = open_lake("sqlite", encrypted=True)
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)")
    lake.write("spark", *STEPS[:10])
    agree(lake)
    assert any(path.name.endswith("-delete.parquet") for path in parquet_files(lake))
    assert {path.read_bytes()[:4] for path in parquet_files(lake)} == {b"PARE"}


def test_deletion_vectors_of_an_encrypted_lake(open_lake: Callable[..., Both]) -> None:
    """Neither engine encrypts them. They hold positions only."""
    lake = open_lake("sqlite", encrypted=True)
    lake.duckdb(
        "call lake.set_option('write_deletion_vectors', true)", "call lake.set_option('data_inlining_row_limit', 0)"
    )
    lake.write("spark", STEPS[0], both("delete from t where id % 10 = 3"))
    agree(lake)
    lake.duckdb("insert into t (id) from range(5000, 5100)", "delete from t where id between 5000 and 5010")
    agree(lake)
    assert lake.catalog_rows("select distinct format from {m}.ducklake_delete_file") == [("puffin",)]


def test_folders_of_encrypted_files_do_not_name_partition_values(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite", encrypted=True)
    lake.spark("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.spark("create table t (id int, g string) partitioned by (g)", "insert into t values (1, 'Jane'), (2, 'Joe')")
    assert [path for path in parquet_files(lake) if "Jane" in str(path)] == []
    lake.spark("call ducklake_set_option('hive_file_pattern', true)", "insert into t values (3, 'Jane')")
    assert [path.parent.name for path in parquet_files(lake) if "Jane" in str(path)] == ["g=Jane"]
    lake.compare()


def test_an_encrypted_table_with_odd_names_and_pages_of_version_2(open_lake: Callable[..., Both]) -> None:
    """DuckDB can not decrypt data pages of version 2, so none are written."""
    lake = open_lake("sqlite", encrypted=True)
    lake.duckdb("call lake.set_option('parquet_version', 2)")
    name = "a [b]{c}*? %41"
    lake.spark(f"create schema `{name}`", f"create table `{name}`.`{name}` as select id as `{name}` from range(50)")
    lake.spark(f"delete from `{name}`.`{name}` where `{name}` < 20")
    assert lake.compare() > 1


def test_no_text_of_spark_shows_a_key(open_lake: Callable[..., Both], capfd: pytest.CaptureFixture[str]) -> None:
    lake = open_lake("sqlite", encrypted=True)
    lake.spark("create table t as select id from range(100)")
    rows = lake.lake.sql("select * from t where id > 7")
    rows.explain("extended")
    plan = capfd.readouterr().out
    keys = [row[0] for row in lake.catalog_rows("select encryption_key from {m}.ducklake_data_file")]
    assert "ducklake:/" in plan
    settings = str(rows.sparkSession.sql("set -v").collect()) + str(rows.sparkSession.sql("set").collect())
    files = str(lake.spark_rows("select * from ducklake_list_files('t')"))
    for key in keys:
        assert key.rstrip("=") not in plan + settings + files + repr(lake.lake.lake())
    assert "redacted" in settings
