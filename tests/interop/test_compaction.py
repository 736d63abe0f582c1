"""Compaction by Spark, judged by DuckDB: every snapshot, row id and change is what it was, and both write on."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbt.adapters.ducklake.lake.errors import LakeError

from .engines import CATALOGS, Both

SCENE = (
    # Few rows are inlined, and so are few deletes. Columns of `plain` are renamed, widened, added and dropped.
    "create table plain (id int, v varchar, gone int default 3)",
    "create table parts (id int, region varchar, moment timestamp)",
    "create table nested (id int, l int[], s struct(a int, b varchar), m map(varchar, int), h hugeint, n timestamp_ns)",
    "create table sorted (id int, v varchar)",
    "insert into plain select i, 'v' || i, i from range(40) r(i)",
    "insert into plain select i, 'v' || i, i from range(40, 80) r(i)",
    "insert into plain select i, 'v' || i, i from range(300, 320) r(i)",
    "insert into plain values (100, 'inlined', 1), (101, 'inlined', 2)",
    "update plain set v = 'new' where id in (3, 100)",
    "delete from plain where id = 101",
    "alter table plain rename column v to w",
    "alter table plain alter column id type bigint",
    "insert into plain select i, 'w' || i, i from range(80, 100) r(i)",
    "alter table plain drop column gone",
    "alter table plain add column more int default 42",
    "insert into plain select i, 'w' || i, i from range(200, 220) r(i)",
    "insert into plain select i, 'w' || i, i from range(220, 240) r(i)",
    "delete from plain where id between 200 and 218",
    # Partitions of two specifications, with NULL and names that need quotes.
    "insert into parts select i, 'x', timestamp '2024-01-01' + to_days(i) from range(20) r(i)",
    "alter table parts set partitioned by (region)",
    "insert into parts select i, ['a/b''c', null, 'z'][1 + i % 3], timestamp '2024-01-01' from range(30) r(i)",
    "insert into parts select i, ['a/b''c', null, 'z'][1 + i % 3], timestamp '2024-01-01' from range(30, 60) r(i)",
    "alter table parts set partitioned by (month(moment))",
    "insert into parts select i, 'm', timestamp '2024-01-01' + to_days(i) from range(60) r(i)",
    "insert into parts select i, 'm', timestamp '2024-01-01' + to_days(i) from range(60) r(i)",
    "insert into parts values (7, 'inlined', timestamp '2024-02-03'), (8, 'inlined', timestamp '2025-02-03')",
    "delete from parts where id = 7",
    # Nested types, which need name mappings in files of Spark's, and values that Spark has no type for.
    "insert into nested select i, [i, null], {'a': i, 'b': 'b' || i}, map {'k': i}, (10::hugeint ** 38)::hugeint + i,"
    " timestamp_ns '2024-01-01 00:00:00.123456789' from range(30) r(i)",
    "insert into nested select i, [], null, null, -i, null from range(30, 60) r(i)",
    "insert into nested values (99, [1], {'a': 1, 'b': 'x'}, map {'k': 2}, 5, timestamp_ns '2024-01-01 00:00:01')",
    "update nested set l = [7] where id in (5, 99)",
    "alter table nested add column s.c int",
    "insert into nested select i, [i], {'a': i, 'b': 'b', 'c': i}, map {'k': i}, i, null from range(60, 90) r(i)",
    "insert into nested select i, [i], {'a': i, 'b': 'b', 'c': i}, map {'k': i}, i, null from range(90, 120) r(i)",
    "alter table sorted set sorted by (v desc nulls first, id)",
    "insert into sorted select i, ['b', 'a', null][1 + i % 3] from range(30) r(i)",
    "insert into sorted select i, ['c', 'a', null][1 + i % 3] from range(30, 60) r(i)",
)
TABLES = ("plain", "parts", "nested", "sorted")

Told = dict[tuple[str, int], Any]


def newest(lake: Both) -> int:
    return int(lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0][0])


def told_by_duckdb(lake: Both, last: int) -> Told:
    """Each table at each snapshot, with row ids and the snapshots of rows, and the changes of each snapshot."""
    told: Told = {}
    with lake.connection() as connection:
        query = "select table_name, begin_snapshot from {m}.ducklake_table"
        for table, begin in connection.execute(query.replace("{m}", "__ducklake_metadata_lake")).fetchall():
            for at in range(begin, last + 1):
                rows = connection.execute(f"select rowid, snapshot_id, * from {table} at (version => {at})").fetchall()
                feed = f"from ducklake_table_changes('lake', 'main', '{table}', {at}, {at})"
                told[table, at] = sorted(map(repr, rows)), sorted(map(repr, connection.execute(feed).fetchall()))
    return told


def told_by_spark(lake: Both, snapshots: list[int]) -> Told:
    told: Told = {}
    for table in TABLES:
        for at in snapshots:
            rows = lake.spark_rows(f"select rowid, snapshot_id, * from {table} version as of {at}")
            told[table, at] = sorted(map(repr, rows))
        feed = f"select * from ducklake_table_changes('main.{table}', {snapshots[0]}, {snapshots[-1]})"
        told[table, -1] = sorted(map(repr, lake.spark_rows(feed)))
    return told


def differing(before: Told, after: Told) -> list[str]:
    return [f"{place}: {before[place]} became {after[place]}" for place in before if before[place] != after[place]]


def file_counts(lake: Both) -> dict[str, int]:
    query = (
        "select t.table_name, count(*) from {m}.ducklake_data_file f join {m}.ducklake_table t using (table_id)"
        " where f.end_snapshot is null and t.end_snapshot is null group by all"
    )
    return dict(lake.catalog_rows(query))


@pytest.mark.parametrize("kind", CATALOGS)
def test_what_was_is_after_flush_merge_and_rewrite(open_lake: Callable[..., Both], kind: str) -> None:
    lake = open_lake(kind)
    lake.duckdb(*SCENE)
    last = newest(lake)
    snapshots = [last - 3, last - 9, last - 20, last]
    snapshots.sort()
    by_duckdb, by_spark = told_by_duckdb(lake, last), told_by_spark(lake, snapshots)

    flushed = lake.lake.call("ducklake_flush_inlined_data").to_pylist()
    assert {row["table_name"]: row["rows_flushed"] for row in flushed} == {"nested": 3, "parts": 2, "plain": 4}
    assert differing(by_duckdb, told_by_duckdb(lake, last)) == []
    assert lake.catalog_rows("select count(*) from {m}.ducklake_delete_file")[0][0] > 0

    files = file_counts(lake)
    merged = lake.lake.call("ducklake_merge_adjacent_files").to_pylist()
    assert {row["table_name"] for row in merged} == {"nested", "parts", "plain", "sorted"}
    assert differing(by_duckdb, told_by_duckdb(lake, last)) == []
    for row in merged:
        files[row["table_name"]] += row["files_created"] - row["files_processed"]
    assert file_counts(lake) == files
    assert lake.lake.call("ducklake_merge_adjacent_files").num_rows == 0

    rewritten = lake.lake.call("ducklake_rewrite_data_files", delete_threshold=0).to_pylist()
    assert {row["table_name"] for row in rewritten} == {"nested", "parts", "plain"}
    assert differing(by_duckdb, told_by_duckdb(lake, last)) == []
    assert differing(by_spark, told_by_spark(lake, snapshots)) == []
    deletes = "select count(*) from {m}.ducklake_delete_file where end_snapshot is null"
    assert lake.catalog_rows(deletes) == [(0,)]

    # Both engines write on, DuckDB compacts what Spark compacted, and no row is lost.
    lake.spark("update plain set w = 'by Spark' where id % 7 = 0", "delete from nested where id % 5 = 1")
    lake.duckdb("update parts set region = 'by DuckDB' where id % 9 = 0", "delete from sorted where id = 4")
    first_new = newest(lake)
    lake.duckdb("call ducklake_merge_adjacent_files('lake')", "call ducklake_rewrite_data_files('lake')")
    assert lake.compare(first=first_new - 3)
    assert differing(by_duckdb, told_by_duckdb(lake, last)) == []


def test_a_dry_run_says_what_would_be_done_and_does_nothing(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "create table t as select i as id from range(50) r(i)",
        "insert into t select i from range(50) r(i)",
        "insert into t values (1), (2)",
        "create table other as select i as id from range(50) r(i)",
    )
    last = newest(lake)
    flush = lake.lake.call("ducklake_flush_inlined_data", dry_run=True).to_pylist()
    assert [(row["table_name"], row["rows_flushed"]) for row in flush] == [("t", 2)]
    merge = lake.lake.call("ducklake_merge_adjacent_files", "t", dry_run=True).to_pylist()
    sizes = lake.catalog_rows(
        "select sum(file_size_bytes) from {m}.ducklake_data_file f join {m}.ducklake_table t using (table_id)"
        " where t.table_name = 't'"
    )
    assert [tuple(row.values()) for row in merge] == [("main", "t", 2, 1, sizes[0][0])]
    lake.spark("delete from t where id < 20")
    rewrite = lake.lake.call("ducklake_rewrite_data_files", "t", delete_threshold=0.4, dry_run=True).to_pylist()
    assert [(row["files_processed"], row["files_created"]) for row in rewrite] == [(2, 1)]
    assert newest(lake) == last + 1


def test_sorted_tables_stay_sorted_and_their_files_hardly_overlap(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "create table t (id int, v varchar)",
        "alter table t set sorted by (id desc)",
        *[
            f"insert into t select (i * 7919 + {k}) % 10000, repeat('x', i % 50) from range(3000) r(i)"
            for k in range(6)
        ],
    )
    target = lake.catalog_rows("select sum(file_size_bytes) // 3 from {m}.ducklake_data_file")[0][0]
    made = lake.lake.call("ducklake_merge_adjacent_files", "t", target_file_size=target).to_pylist()
    assert made[0]["files_processed"] == 6
    assert made[0]["files_created"] > 1
    paths = [row[0] for row in lake.catalog_rows("select path from {m}.ducklake_data_file where end_snapshot is null")]
    ids = [pq.read_table(f"{lake.data_path}main/t/{path}").column("id").to_pylist() for path in paths]
    assert all(values == sorted(values, reverse=True) for values in ids)
    ranges = sorted((min(values), max(values)) for values in ids)
    assert all(before[1] <= after[0] for before, after in pairwise(ranges))
    lake.compare()


def test_sizes_limit_what_is_merged(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "create table t (id bigint, v varchar)",
        *["insert into t select i, hash(i) from range(50) r(i)"] * 4,
        *["insert into t select i, hash(i) from range(20000) r(i)"] * 2,
    )
    limits: list[dict[str, Any]] = [{"max_file_size": "10KB"}, {"min_file_size": 10_000}, {"max_compacted_files": 1}]
    small, large, all_files = (
        lake.lake.call("ducklake_merge_adjacent_files", "t", dry_run=True, **limit).to_pylist()[0] for limit in limits
    )
    assert (small["files_processed"], large["files_processed"], all_files["files_processed"]) == (4, 2, 6)
    lake.spark("call ducklake_merge_adjacent_files('lake', 't', max_file_size => 10000)")
    assert file_counts(lake) == {"t": 3}
    lake.compare()


def test_tables_that_opted_out_are_compacted_only_by_name(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    for name in ("t", "u"):
        lake.duckdb(f"create table {name} as select 1 as id", *[f"insert into {name} select i from range(50) r(i)"] * 2)
    lake.duckdb("call lake.set_option('auto_compact', false, table_name => 'u')")
    made = lake.lake.call("ducklake_merge_adjacent_files").to_pylist()
    assert [row["table_name"] for row in made] == ["t"]
    assert lake.lake.call("ducklake_merge_adjacent_files", "main.u").num_rows == 1


def test_a_condition_chooses_partitions(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "create table t (id int, region varchar)",
        "alter table t set partitioned by (region)",
        *["insert into t select i, ['EU', 'US'][1 + i % 2] from range(40) r(i)"] * 3,
    )
    made = lake.lake.call("ducklake_merge_adjacent_files", "t", where="region = 'EU'").to_pylist()
    assert (made[0]["files_processed"], made[0]["files_created"]) == (3, 1)
    lake.duckdb("delete from t where id < 30")
    made = lake.lake.call("ducklake_rewrite_data_files", "t", where="region = 'US'", delete_threshold=0).to_pylist()
    assert (made[0]["files_processed"], made[0]["files_created"]) == (3, 1)
    with pytest.raises(LakeError, match=r"no file can be left out by the condition 'length\(region\) = 2'"):
        lake.lake.call("ducklake_merge_adjacent_files", "t", where="length(region) = 2")
    lake.compare()


def test_z_order_keeps_together_what_is_close_in_each_column(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "create table t (x int, y varchar, z timestamp)",
        *[
            "insert into t select (i * 7919) % 4096, 'k' || lpad(((i * 104729) % 4096)::varchar, 4, '0'),"
            f" timestamp '2024-01-01' + to_hours(i) from range({k} * 512, {k} * 512 + 512) r(i)"
            for k in range(16)
        ],
    )
    size = lake.catalog_rows("select sum(file_size_bytes) from {m}.ducklake_data_file")[0][0]
    options = {"zorder_by": ["x", "Y"], "target_file_size": size // 9}
    made = lake.lake.call("ducklake_merge_adjacent_files", "t", **options).to_pylist()
    assert made[0]["files_created"] >= 7
    spans = lake.catalog_rows(
        "select column_id, min_value, max_value from {m}.ducklake_file_column_stats where column_id in (1, 2)"
    )
    shares = {
        column: [(int(high.lstrip("k")) - int(low.lstrip("k"))) / 4096 for i, low, high in spans if i == column]
        for column in (1, 2)
    }
    # Sorted by x alone, each file would have all of y.
    assert all(sum(found) / len(found) < 0.65 for found in shares.values()), shares
    lake.compare()
    with pytest.raises(LakeError, match="table t has no column w to ZORDER BY; it has x, y, z"):
        lake.lake.call("ducklake_merge_adjacent_files", "t", zorder_by=["w"])


def test_old_files_get_the_partitions_and_the_order_of_the_table(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "create table t (id int, region varchar, n int)",
        "insert into t select i, ['EU', 'US'][1 + i % 2], i % 7 from range(40) r(i)",
        "alter table t set partitioned by (region)",
        "insert into t select i, ['EU', 'US'][1 + i % 2], i % 7 from range(40, 80) r(i)",
        "delete from t where id % 10 = 3",
        "alter table t set partitioned by (bucket(2, n))",
        "alter table t set sorted by (id desc)",
        "insert into t select i, ['EU', 'US'][1 + i % 2], i % 7 from range(80, 120) r(i)",
    )
    before, last = told_by_duckdb(lake, newest(lake)), newest(lake)
    first = lake.lake.call("ducklake_migrate_partitioning", "t", max_steps=1).to_pylist()
    assert first[0]["files_processed"] == 1
    rest = lake.lake.call("ducklake_migrate_partitioning").to_pylist()
    assert rest[0]["files_processed"] == 2
    assert lake.lake.call("ducklake_migrate_partitioning", dry_run=True).num_rows == 0
    specs = lake.catalog_rows("select distinct partition_id from {m}.ducklake_data_file where end_snapshot is null")
    assert len(specs) == 1
    assert newest(lake) == last + 3
    assert differing(before, told_by_duckdb(lake, last)) == []
    lake.compare()
