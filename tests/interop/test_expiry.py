"""Expiry and clean-up of both engines leave the same lake, and each reads on after the other. No rows need Spark."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.lake.deletes import read_delete_file
from dbt.adapters.ducklake.lake.file_store import FileStore
from dbt.adapters.ducklake.lake.files import table_files
from dbt.adapters.ducklake.lake.maintenance.cleanup import cleanup_old_files
from dbt.adapters.ducklake.lake.maintenance.expiry import expire_snapshots
from dbt.adapters.ducklake.lake.maintenance.orphans import delete_orphaned_files
from dbt.adapters.ducklake.lake.paths import filesystem_for

from ..lakes import Lake, LakeAddress, attached

NewLake = Callable[[str], LakeAddress]

STATEMENTS = (
    "CALL lake.set_option('data_inlining_row_limit', 5)",
    "CREATE TABLE a (id INTEGER, v VARCHAR, s STRUCT(x INTEGER))",
    "INSERT INTO a SELECT i, 'v' || i, {'x': i} FROM range(50) r(i)",
    "ALTER TABLE a SET PARTITIONED BY (v)",
    "INSERT INTO a SELECT i, 'p' || i % 2, {'x': i} FROM range(50, 100) r(i)",
    "INSERT INTO a VALUES (1000, 'inlined', {'x': 1})",
    "DELETE FROM a WHERE id = 3",
    "DELETE FROM a WHERE id BETWEEN 10 AND 30",
    "DELETE FROM a WHERE id BETWEEN 60 AND 80",
    "COMMENT ON TABLE a IS 'one'",
    "COMMENT ON COLUMN a.v IS 'two'",
    "ALTER TABLE a ADD COLUMN n INTEGER DEFAULT 7",
    "UPDATE a SET n = 8 WHERE id < 20",
    "ALTER TABLE a RENAME TO b",
    "ALTER TABLE b SET SORTED BY (id)",
    "INSERT INTO b SELECT i, 'q', {'x': i}, i FROM range(200, 260) r(i)",
    "ALTER TABLE b RENAME TO c",
    "CREATE VIEW w AS SELECT id FROM c",
    "COMMENT ON VIEW w IS 'three'",
    "CREATE MACRO m(x) AS x + 1",
    "CREATE SCHEMA s",
    "CREATE TABLE s.t AS SELECT i, i % 3 AS k FROM range(30) r(i)",
    "COPY (SELECT 5 AS i, 1 AS k) TO '{folder}/added.parquet'",
    "CALL ducklake_add_data_files('lake', 't', '{folder}/added.parquet', schema => 's')",
    "DELETE FROM s.t WHERE i = 4",
    "CALL ducklake_flush_inlined_data('lake')",
    "DROP VIEW w",
    "CREATE VIEW w AS SELECT id, n FROM c",
    "DROP MACRO m",
    "CREATE MACRO m(x) AS x + 2",
    "DROP SCHEMA s CASCADE",
    "CREATE TABLE inlined AS SELECT 1 AS i",
    "DELETE FROM inlined",
    "DROP TABLE inlined",
    "CREATE TABLE a AS SELECT i FROM range(20) r(i)",
    "INSERT INTO a SELECT i FROM range(100, 120) r(i)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
    "DELETE FROM a WHERE i < 5",
)


def _make(lake: Lake, folder: Path) -> None:
    with lake.duckdb() as connection:
        for statement in STATEMENTS:
            connection.execute(statement.replace("{folder}", str(folder)))


def _catalog_rows(address: LakeAddress) -> dict[str, list[Any]]:
    """Every table of the catalog with its rows, without the moments at which files were scheduled."""
    catalog = Catalog.open(address.catalog)
    with catalog.read() as connection:
        found = {}
        for name in catalog.database.table_names(connection):
            rows = connection.exec_driver_sql(f'SELECT * FROM "{name}"').mappings()
            found[name] = sorted(repr([(k, v) for k, v in row.items() if k != "schedule_start"]) for row in rows)
    catalog.close()
    return found


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("sqlite", "the newest"),
        ("sqlite", "the second half"),
        ("sqlite", "the first and the newest"),
        ("duckdb", "every third"),
    ],
)
def test_both_engines_leave_the_same_rows(kind: str, kept: str, new_lake: NewLake, tmp_path: Path) -> None:
    lake = Lake(new_lake(kind))
    _make(lake, tmp_path)
    last = lake.latest
    lake.catalog.close()
    versions = {
        "the newest": range(last),
        "every third": [version for version in range(last) if version % 3],
        "the second half": range(last // 2),
        "the first and the newest": range(1, last),
    }[kept]
    catalog_file = lake.address.catalog.partition(":")[2]
    shutil.copy(catalog_file, catalog_file + ".copy")
    copy = LakeAddress(kind, f"{kind}:{catalog_file}.copy", lake.address.data_path)
    with attached(copy) as connection:
        theirs = connection.execute(
            f"SELECT snapshot_id FROM ducklake_expire_snapshots('lake', versions => {[*versions]})"
        ).fetchall()
    ours = expire_snapshots(lake.catalog, versions=versions)
    assert [row.snapshot_id for row in ours] == [row[0] for row in theirs] == [*versions]
    assert _catalog_rows(lake.address) == _catalog_rows(copy)


def _rows_by_us(lake: Lake, name: str, version: int) -> int:
    """The number of a table's rows in files at a snapshot, read from the files by this package."""
    store = FileStore(*filesystem_for(lake.catalog.data_path))
    with lake.catalog.read() as connection:
        snapshot = lake.catalog.snapshot_at_version(connection, version)
        state = lake.snapshots.state(connection, snapshot)
        table = state.table("main", name)
        files = table_files(connection, lake.catalog, table, state.table_folder(lake.catalog.data_path, table), version)
    count = 0
    for file in files:
        deleted = {position for position, _ in file.inlined_deletes}
        for delete_file in file.delete_files:
            rows = read_delete_file(store, delete_file.path, delete_file.begin_snapshot, delete_file.format)
            deleted |= set(rows.column(0).to_pylist())
        count += pq.read_metadata(file.path).num_rows - len(deleted)
    return count


@pytest.mark.parametrize(
    ("kind", "by"), [("sqlite", "us"), ("postgres", "us"), ("duckdb", "us"), ("postgres", "duckdb")]
)
def test_the_other_engine_reads_all_kept_snapshots_after_a_clean_up(
    kind: str, by: str, new_lake: NewLake, tmp_path: Path
) -> None:
    lake = Lake(new_lake(kind))
    _make(lake, tmp_path)
    kept = [lake.latest - 1, lake.latest]
    queries = [f"FROM {name} AT (VERSION => {version}) ORDER BY ALL" for version in kept for name in ("a", "c")]
    before = [lake.seen_by_duckdb(query) for query in queries]
    files_before = set(Path(lake.catalog.data_path).rglob("*.parquet"))
    if by == "us":
        store = FileStore(*filesystem_for(lake.catalog.data_path))
        expire_snapshots(lake.catalog, versions=range(kept[0]))
        notes = cleanup_old_files(lake.catalog, store).notes
        assert len(notes) == 1
        assert "added.parquet" in notes[0]
        assert (tmp_path / "added.parquet").exists()
        assert not delete_orphaned_files(lake.catalog, store).paths
    else:
        with lake.duckdb() as connection:
            connection.execute(f"CALL ducklake_expire_snapshots('lake', versions => {[*range(kept[0])]})")
            connection.execute("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    assert lake.rows(t.files_scheduled_for_deletion) == []
    assert set(Path(lake.catalog.data_path).rglob("*.parquet")) < files_before
    assert [lake.seen_by_duckdb(query) for query in queries] == before
    with lake.duckdb() as connection:  # what is inlined still is in no file
        connection.execute("CALL ducklake_flush_inlined_data('lake')")
    for name in ("a", "c"):
        assert [(_rows_by_us(lake, name, lake.latest),)] == lake.seen_by_duckdb(f"SELECT count(*) FROM {name}")


def test_the_lists_of_orphans_and_scheduled_files_are_those_of_the_reference(new_lake: NewLake, tmp_path: Path) -> None:
    lake = Lake(new_lake("sqlite"))
    _make(lake, tmp_path)
    store = FileStore(*filesystem_for(lake.catalog.data_path))
    expire_snapshots(lake.catalog, versions=range(lake.latest))
    for path in Path(lake.catalog.data_path).rglob("*-delete.parquet"):
        shutil.copy(path, path.parent / path.name.replace("ducklake-0", "ducklake-f"))
    with lake.duckdb() as connection:
        scheduled = connection.execute("CALL ducklake_cleanup_old_files('lake', dry_run => true, cleanup_all => true)")
        theirs = sorted(path for (path,) in scheduled.fetchall() if path.startswith(lake.catalog.data_path))
        orphans = connection.execute(
            "CALL ducklake_delete_orphaned_files('lake', dry_run => true, cleanup_all => true)"
        )
        their_orphans = sorted(path for (path,) in orphans.fetchall())
    assert sorted(cleanup_old_files(lake.catalog, store, dry_run=True).paths) == theirs != []
    assert sorted(delete_orphaned_files(lake.catalog, store, dry_run=True).paths) == their_orphans != []
