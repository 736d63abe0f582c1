"""Files that DuckDB registers as they are: found by name, with columns that are missing, extra or in the path."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from .engines import Both


def test_a_registered_file_is_read_by_name(lake: Both, tmp_path: Path) -> None:
    file, other = f"{tmp_path}/foreign.parquet", f"{tmp_path}/other one.parquet"
    nested = [{"a": 1, "b": ["x", None]}, None]
    pq.write_table(
        pa.table({"v": ["one", "two"], "id": pa.array([1, 2], pa.int32()), "s": nested, "extra": [True, False]}), file
    )
    pq.write_table(pa.table({"id": pa.array([3], pa.int32()), "s": [{"b": ["z"], "a": 9}]}), other)
    lake.duckdb(
        "create table t (id int, v varchar default 'dflt', s struct(a bigint, b varchar[]))",
        f"call ducklake_add_data_files('lake', 't', '{file}', ignore_extra_columns => true)",
        f"call ducklake_add_data_files('lake', 't', '{other}', allow_missing => true)",
    )
    lake.spark("insert into t values (4, 'spark', named_struct('a', 4, 'b', array('s')))")
    lake.spark("alter table t rename column v to word", "alter table t rename column s.a to aa")
    lake.duckdb("insert into t values (5, 'duck', {'aa': 5, 'b': []})")
    lake.spark("alter table t add column n int default 7", "alter table t alter column id type bigint")
    lake.duckdb("delete from t where id = 1", "alter table t add column v varchar", "alter table t add column s.c int")
    lake.duckdb("delete from t where id = 3")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id, word from t")
    lake.agree("select id from t where word = 'two'")


def test_values_in_a_files_path_are_columns(lake: Both, tmp_path: Path) -> None:
    for region, year in (("eu west", 2023), ("a%2Fb", 2024), ("a+b é", 2025), ("__HIVE_DEFAULT_PARTITION__", 2026)):
        folder = tmp_path / f"region={region}" / f"year={year}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array([year, year + 1], pa.int32())}), f"{folder}/f{year}.parquet")
    lake.duckdb(
        "create table t (id int, region varchar, year int)",
        f"call ducklake_add_data_files('lake', 't', '{tmp_path}/*/*/*.parquet', hive_partitioning => true)",
    )
    lake.spark("insert into t values (1, 'spark', 2025)", "alter table t rename column region to place")
    lake.compare()
    lake.agree("select id from t where year = 2023")
    lake.agree("select id from t where place = 'eu west'")


def test_lists_and_maps_of_a_registered_file(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    file = f"{tmp_path}/f.parquet"
    kind = pa.struct([("x", pa.int32()), ("y", pa.string())])
    rows = {
        "m": pa.array([[("k", {"x": 1, "y": "a"})], None, []], pa.map_(pa.string(), kind)),
        "l": pa.array([[{"x": 1, "y": "b"}, None], [], None], pa.list_(kind)),
        "ll": pa.array([[[1], None], [[]], None], pa.list_(pa.list_(pa.int32()))),
    }
    pq.write_table(pa.table(rows), file)
    lake.duckdb(
        "create table t (m map(varchar, struct(x int, y varchar)), l struct(x int, y varchar)[], ll int[][])",
        f"call ducklake_add_data_files('lake', 't', '{file}')",
    )
    lake.spark("insert into t values (map('s', named_struct('x', 5, 'y', 'q')), array(), array(array(1)))")
    lake.compare()


def test_files_of_one_name_in_different_folders(lake: Both, tmp_path: Path) -> None:
    for folder, first in (("y=1/a b", 0), ("y=1/c%20d", 100), ("y=2/é+", 200), ("y=2/a b", 300)):
        (tmp_path / "in" / folder).mkdir(parents=True)
        pq.write_table(
            pa.table({"id": pa.array(range(first, first + 50), pa.int32())}), f"{tmp_path}/in/{folder}/0.parquet"
        )
    lake.duckdb(
        "create table t (id int, y int)",
        f"call ducklake_add_data_files('lake', 't', '{tmp_path}/in/*/*/*.parquet', hive_partitioning => true)",
    )
    ids = "select rowid, snapshot_id, id, y from t"
    lake.agree(ids)
    lake.spark("delete from t where id % 100 = 3", "update t set y = 7 where id in (4, 104, 204)")
    lake.duckdb("delete from t where id % 100 = 5", "delete from t where id between 200 and 300")
    lake.spark("insert into t values (1000, 5)", "delete from t where id % 100 = 6")
    lake.spark("merge into t using (select 107 as id) s on t.id = s.id when matched then update set y = 8")
    lake.duckdb("update t set y = 9 where id = 8", "delete from t where id >= 1000")
    lake.compare()
    lake.agree(ids)
    last = lake.duckdb_rows("select max(snapshot_id) from ducklake_snapshots('lake')")[0][0]
    for function in ("insertions", "deletions"):
        lake.agree(
            f"select rowid, snapshot_id, id, y from ducklake_table_{function}('main.t', 1, {last})",
            f"select rowid, snapshot_id, id, y from ducklake_table_{function}('lake', 'main', 't', 1, {last})",
        )
    lake.agree(
        f"select snapshot_id, rowid, change_type, id, y from ducklake_table_changes('main.t', 1, {last})",
        f"select snapshot_id, rowid, change_type, id, y from ducklake_table_changes('lake', 'main', 't', 1, {last})",
    )


def test_hive_folders_with_one_file_each(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    for folder in ("y=1/m=1", "y=1/m=2", "y=2/m=1"):
        (tmp_path / "in" / folder).mkdir(parents=True)
        pq.write_table(pa.table({"id": pa.array(range(20), pa.int32())}), f"{tmp_path}/in/{folder}/data_0.parquet")
    lake.duckdb(
        "create table t (id int, y int, m int)",
        f"call ducklake_add_data_files('lake', 't', '{tmp_path}/in/*/*/*.parquet', hive_partitioning => true)",
        "call lake.set_option('rewrite_delete_threshold', 0.5)",
    )
    lake.spark("delete from t where id = y + m", "delete from t where y = 1 and m = 2 and id < 15")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id, y, m from t where y = 1")


def test_a_file_that_was_added_twice(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    lake = open_lake("sqlite")
    file = f"{tmp_path}/f.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32())}), file)
    lake.duckdb("create table t (id int)", *[f"call ducklake_add_data_files('lake', 't', '{file}')"] * 2)
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    lake.spark("delete from t where rowid = 2")
    lake.agree("select rowid, snapshot_id, id from t")


def test_deletes_from_a_table_whose_folder_is_not_there_yet(lake: Both, tmp_path: Path) -> None:
    file = f"{tmp_path}/f.parquet"
    pq.write_table(pa.table({"id": pa.array(range(100), pa.int32())}), file)
    lake.duckdb(
        "create schema s",
        "create table s.t (id int)",
        f"call ducklake_add_data_files('lake', 't', '{file}', schema => 's')",
    )
    lake.spark("delete from s.t where id >= 50")
    lake.compare()
    assert lake.agree("select count(*) from s.t") == [(50,)]


def test_files_that_were_added_before_there_were_name_maps(lake: Both, tmp_path: Path) -> None:
    """DuckDB takes the columns of such a file by their position in the table."""
    for number in (1, 2):
        pq.write_table(
            pa.table({"k": pa.array([number], pa.int32()), "v": [f"v{number}"]}), f"{tmp_path}/old {number}.parquet"
        )
    lake.duckdb(
        "create table t (k int, v varchar)",
        "insert into t values (0, 'v0')",
        f"call ducklake_add_data_files('lake', 't', '{tmp_path}/*.parquet')",
    )
    with lake.lake.lake().catalog.write() as connection:
        connection.exec_driver_sql("update ducklake_data_file set mapping_id = null")
    lake.compare()
    lake.duckdb("alter table t rename k to id", "alter table t add column n int default 5")
    lake.spark("insert into t values (9, 'v9', 9)")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    lake.spark("delete from t where id = 1", "update t set v = 'new' where id = 2")
    lake.duckdb("update t set n = 6 where id = 9")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t where v <> 'new'")
    # DuckDB counts positions among the columns of today; a column that is gone was there when the file was added.
    lake.spark("insert into t values (3, 'v3', 3)", "alter table t drop column id")
    assert sorted(v for (v,) in lake.spark_rows("select v from t")) == ["new", "v0", "v3", "v9"]


def test_nested_fields_of_a_file_without_a_name_map(open_lake: Callable[..., Both], tmp_path: Path) -> None:
    """DuckDB reads NULL in each field of a struct in such a file, which is not what was added."""
    lake = open_lake("sqlite")
    rows = {
        "s": [{"a": 1, "b": "x"}, None],
        "l": [[{"c": 1}], []],
        "m": pa.array([[("k", 1)], None], pa.map_("string", "int64")),
    }
    pq.write_table(pa.table(rows), f"{tmp_path}/old.parquet")
    lake.duckdb(
        "create table t (s struct(a bigint, b varchar), l struct(c bigint)[], m map(varchar, bigint))",
        f"call ducklake_add_data_files('lake', 't', '{tmp_path}/old.parquet')",
    )
    with lake.lake.lake().catalog.write() as connection:
        connection.exec_driver_sql("update ducklake_data_file set mapping_id = null")
    lake.spark("alter table t rename column s.a to aa", "alter table t add column s.d int default 4")
    assert lake.spark_rows("select s.aa, s.b, s.d, l[0].c, m['k'] from t where s is not null") == [(1, "x", 4, 1, 1)]
