"""Which files are compacted together, and whether the health of a table says the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.change_feed import read_change_feed
from dbt.adapters.ducklake.lake.commit.staged import Compaction
from dbt.adapters.ducklake.lake.files import table_files
from dbt.adapters.ducklake.lake.maintenance.compaction import (
    FileBin,
    StoredFile,
    bins_to_merge,
    bins_to_rewrite,
    packed,
    stored_files,
)
from dbt.adapters.ducklake.lake.maintenance.health import TableHealth, table_health
from dbt.adapters.ducklake.lake.table_summary import table_summaries

from ....lakes import Lake
from ..catalogs import NewLake, every_reference_catalog

TARGET = 512 * 1000 * 1000


@given(st.lists(st.integers(0, 20)), st.integers(1, 30))
def test_parts_keep_the_order_and_end_where_they_reach_the_target(sizes: list[int], target: int) -> None:
    parts = packed(sizes, lambda size: size, target)
    assert [size for part in parts for size in part] == sizes
    assert all(sum(part[:-1]) < target for part in parts)
    assert all(sum(part) >= target for part in parts[:-1])


def files_of(lake: Lake, name: str = "t") -> list[StoredFile]:
    table = lake.table(name)
    with lake.catalog.read() as connection:
        files = table_files(connection, lake.catalog, table, "", lake.latest)
        return stored_files(connection, table, files, lake.latest)


def health_of(lake: Lake, name: str = "t") -> TableHealth:
    with lake.catalog.read() as connection:
        options, tables = lake.catalog.options(connection), list(lake.state.tables.values())
        found = table_health(connection, lake.catalog, tables, options, lake.latest, deleted_share=0.3)
    return found[lake.table(name).id]


def ids(bins: list[FileBin]) -> list[list[int]]:
    return [[file.id for file in file_bin.files] for file_bin in bins]


def assert_health_is_that_of(lake: Lake, files: list[StoredFile], merges: list[FileBin]) -> TableHealth:
    health = health_of(lake)
    assert health.small_files == sum(len(b.files) for b in merges)
    assert health.merged_files == len(merges)
    assert health.small_bytes == sum(f.file_size_bytes for b in merges for f in b.files)
    assert (health.files, health.bytes) == (len(files), sum(f.file.file_size_bytes for f in files))
    return health


@every_reference_catalog
def test_files_merge_with_files_of_the_same_columns_and_partition(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.run_in_duckdb(
        "create table t (id int, region varchar)",
        *["insert into t select i, 'x' from range(20) r(i)"] * 2,
        "alter table t set partitioned by (region)",
        *["insert into t select i, ['a', null][1 + i % 2] from range(40) r(i)"] * 2,
        "comment on table t is 'changes no column'",
        "insert into t select i, 'a' from range(20) r(i)",
        "alter table t add column more int",
        *["insert into t select i, 'a', i from range(20) r(i)"] * 2,
        "create table other (id int)",
    )
    files = files_of(lake)
    assert len(files) == 9
    merges = bins_to_merge(files, TARGET)
    assert sorted(map(len, ids(merges))) == [2, 2, 2, 3]
    assert {b.partition_values for b in merges} == {(), ("a",), (None,)}
    assert {len(b.columns) for b in merges} == {2, 3}
    assert ids(bins_to_merge(files, TARGET, max_bins=1)) == ids(merges)[:1]
    assert bins_to_merge(files, TARGET, max_file_size=10) == bins_to_merge(files, 10) == []
    assert_health_is_that_of(lake, files, merges)


@every_reference_catalog
def test_files_with_deletes_are_rewritten_and_not_merged(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.run_in_duckdb(
        "create table t (id int)",
        *[f"insert into t select i from range({k}, {k} + 50) r(i)" for k in (0, 50, 100, 150)],
        "delete from t where id < 20",
        "delete from t where id = 60",
        "insert into t values (1000), (1001)",
    )
    files = files_of(lake)
    merges = bins_to_merge(files, TARGET)
    assert [f.file.live_rows for f in files] == [30, 49, 50, 50]
    assert len(ids(merges)[0]) == 2
    columns = lake.table().columns
    assert [len(b.files) for b in bins_to_rewrite(files, columns, TARGET, 0.3)] == [1]
    assert [len(b.files) for b in bins_to_rewrite(files, columns, TARGET, 0)] == [2]
    health = assert_health_is_that_of(lake, files, merges)
    assert (health.rewritable_files, health.deleted_rows, health.rows) == (1, 21, 200)
    assert (health.inlined_rows, health.inlined_deletes) == (2, 1)


def compact(lake: Lake, is_merge: bool, written: Callable[[Any, Any], Any]) -> None:
    table = lake.table()
    with lake.transaction() as tx:
        with lake.catalog.read() as connection:
            folder = tx.state.table_folder(lake.catalog.data_path, table)
            sources = table_files(connection, lake.catalog, table, folder, tx.base.id)
        tx.compact(table, [Compaction(tuple(sources), (written(tx, table),), is_merge)])


def test_the_catalog_forgets_the_sources_of_a_merge(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    for index in range(3):
        lake.append({"id": [index], "name": ["x"]})

    def merged(tx: Any, table: Any) -> Any:
        return replace(lake.file(tx, table, {"id": [0, 1, 2], "name": ["x"] * 3}), begin_snapshot=2, partial_max=4)

    before = lake.rows(t.table_stats), lake.rows(t.table_column_stats)
    compact(lake, True, merged)
    (file,) = lake.rows(t.data_file)
    assert (file["begin_snapshot"], file["end_snapshot"], file["partial_max"], file["row_id_start"]) == (
        2,
        None,
        4,
        None,
    )
    assert {row["data_file_id"] for row in lake.rows(t.file_column_stats)} == {file["data_file_id"]}
    assert [row["data_file_id"] for row in lake.rows(t.files_scheduled_for_deletion)] == [0, 1, 2]
    assert (lake.rows(t.table_stats), lake.rows(t.table_column_stats)) == before
    assert lake.changes[-1] == "merge_adjacent:1"


@pytest.mark.parametrize("is_merge", [True, False])
def test_a_compaction_is_no_change_of_the_table(new_lake: NewLake, is_merge: bool) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    for index in range(2):
        lake.append({"id": [index], "name": ["x"]})

    def summary() -> tuple[int | None, int | None]:
        with lake.catalog.read() as connection:
            (found,) = table_summaries(connection, lake.catalog, lake.latest).values()
        return found.last_write_snapshot, found.last_change_snapshot

    assert summary() == (3, 3)
    snapshots = {"begin_snapshot": 2, "partial_max": 3} if is_merge else {}
    compact(lake, is_merge, lambda tx, t: replace(lake.file(tx, t, {"id": [0, 1], "name": ["x"] * 2}), **snapshots))
    assert lake.latest == 4
    assert summary() == (3, 3)
    with lake.catalog.read() as connection:
        feed = read_change_feed(connection, lake.catalog, lake.table(), "", 4, 4, without_rewrites=True)
    assert (feed.inserted_files, feed.file_deletes) == ((), ())
