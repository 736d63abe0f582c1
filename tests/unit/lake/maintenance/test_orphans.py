"""Orphan files: what failed writes left is deleted, and no file that a lake or anyone else has there."""

from __future__ import annotations

import datetime
import os
import time
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.errors import LakeError, ReadOnlyError
from dbt.adapters.ducklake.lake.file_store import FileStore
from dbt.adapters.ducklake.lake.maintenance.cleanup import DeletedFiles
from dbt.adapters.ducklake.lake.maintenance.data_folder import DataFolder
from dbt.adapters.ducklake.lake.maintenance.expiry import expire_snapshots
from dbt.adapters.ducklake.lake.maintenance.orphans import delete_orphaned_files
from dbt.adapters.ducklake.lake.paths import filesystem_for, new_uuid7

from ....lakes import Lake, LakeAddress
from ..catalogs import NewLake, every_catalog, every_reference_catalog


def _delete(lake: Lake, **criteria: Any) -> DeletedFiles:
    store = FileStore(*filesystem_for(lake.catalog.data_path))
    return delete_orphaned_files(lake.catalog, store, **criteria)


def _make(lake: Lake, path: str, content: str = "orphan") -> str:
    full = Path(lake.catalog.data_path + path)
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_text(content)
    return str(full)


def _written(extension: str = ".parquet") -> str:
    return f"ducklake-{new_uuid7()}{extension}"


def _files(lake: Lake) -> set[str]:
    return {str(path) for path in Path(lake.catalog.data_path).rglob("*") if path.is_file()}


@every_catalog
def test_files_that_no_snapshot_ever_had_are_deleted(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [1], "name": ["a"]})
    living = _files(lake)
    spark = f"main/t/{_written('')}/"
    orphans = {
        _make(lake, "main/t/" + _written()),
        _make(lake, f"main/gone/region=EU%2Fx/{_written()}"),
        _make(lake, "main/t/" + _written("-delete.parquet")),
        _make(lake, "main/t/" + _written("-delete.puffin")),
        _make(lake, f"{spark}part-00000-{new_uuid7()}.c000.snappy.parquet"),
        _make(lake, f"{spark}_temporary/0/_temporary/attempt_1/part-00000-{new_uuid7()}.parquet"),
        _make(lake, f"{spark}_temporary/0/_temporary/attempt_1/.part-00000-{new_uuid7()}.parquet.crc"),
    }
    tried = _delete(lake, dry_run=True)
    assert set(tried.paths) == orphans
    assert tried.sizes == [6] * 7
    assert set(_delete(lake).paths) == orphans
    assert _files(lake) == living
    assert not os.path.exists(lake.catalog.data_path + "main/gone")
    assert not os.path.exists(lake.catalog.data_path + spark)
    assert not _delete(lake).paths


def test_files_that_no_writer_of_ducklake_names_so_are_left_alone(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    kept = {
        _make(lake, name)
        for name in (
            "main/t/data.parquet",
            "main/t/ducklake-1.parquet",
            f"main/t/my-{_written()}",
            f"main/t/{_written('.csv')}",
            f"main/t/{_written('.parquet.bak')}",
            f"main/t/{_written('')}/notes.txt",
            f"other/{new_uuid7()}.parquet",
            "part-00000.parquet",
        )
    }
    os.makedirs(lake.catalog.data_path + "empty")
    assert not _delete(lake).paths
    assert _files(lake) == kept
    assert os.path.exists(lake.catalog.data_path + "empty")


def test_only_files_last_modified_before_the_moment_are_deleted(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    old, new = _make(lake, "main/t/" + _written()), _make(lake, "main/t/" + _written())
    os.utime(old, (time.time() - 3600, time.time() - 3600))
    limit = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=30)
    assert _delete(lake, older_than=limit).paths == [old]
    assert _files(lake) == {new}


@every_reference_catalog
def test_files_of_every_snapshot_are_kept(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.run_in_duckdb(
        "CREATE SCHEMA s",
        "CREATE SCHEMA moved",
        "CREATE TABLE t (region VARCHAR, id INTEGER)",
        "ALTER TABLE t SET PARTITIONED BY (region)",
        "INSERT INTO t VALUES ('EU/x', 1), ('a b%', 2), ('ü', 3)",
        "INSERT INTO t SELECT 'EU/x', i FROM range(100) r(i)",
        "DELETE FROM t WHERE id = 7",
        "CALL ducklake_flush_inlined_data('lake')",
        "ALTER TABLE t RENAME TO renamed",
        "INSERT INTO renamed SELECT 'new', i FROM range(100) r(i)",
        'CREATE TABLE s."o\'dd näme" AS SELECT i FROM range(100) r(i)',
        "CREATE TABLE dropped AS SELECT i FROM range(100) r(i)",
        "DROP TABLE dropped",
        "CREATE TABLE expired AS SELECT i FROM range(100) r(i)",
        "DROP TABLE expired",
        "DELETE FROM renamed WHERE id > 50",
        "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
    )
    with lake.transaction() as tx:
        tx.rename(tx.state.table("s", "o'dd näme"), tx.state.schema("moved"), "n")
    with lake.transaction() as tx:
        tx.drop_schema("s", cascade=True)
    expire_snapshots(lake.catalog, versions=[*range(6), *range(lake.latest - 2, lake.latest)])
    assert lake.rows(t.files_scheduled_for_deletion)
    kept = _files(lake)
    assert any("region=EU%2Fx" in path for path in kept)
    orphan = _make(lake, "main/t/region=EU%2Fx/" + _written())
    assert _delete(lake).paths == [orphan]
    assert _files(lake) == kept


def test_a_file_whose_path_is_spelled_in_another_way_is_kept_by_its_name(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    lake.append({"id": [1], "name": ["a"]})
    name = lake.rows(t.data_file)[0]["path"]
    copies = {_make(lake, f"MAIN/t/{name}"), _make(lake, f"main/t/p=a%2520b/{name}")}
    with lake.catalog.write() as connection:
        connection.execute(t.table.delete())  # a catalog that lost the table's folder
    assert _delete(lake).paths == []
    assert copies < _files(lake)


def test_a_file_that_is_committed_after_the_listing_is_kept(new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    listing, committed = DataFolder.listing, []
    staged = [lake.begin() for _ in range(2)]
    for tx in staged:
        tx.append(tx.state.table("main", "t"), [lake.file(tx, tx.state.table("main", "t"), {"id": [1], "name": ["a"]})])

    def list_and_commit(folder: DataFolder, folders: None = None) -> list[tuple[str, pafs.FileInfo]]:
        found = listing(folder, folders)
        committed.append(staged[0].commit())
        return found

    monkeypatch.setattr(DataFolder, "listing", list_and_commit)
    orphan, second = _make(lake, "main/t/" + _written()), staged[1].staged.data_changes[1].added_files[0].path
    tried = _delete(lake, dry_run=True)
    assert sorted(tried.paths) == sorted([orphan, f"{lake.catalog.data_path}main/t/{second}"])
    # The next one commits when the catalog has been read, and before anything is deleted.
    monkeypatch.setattr(DataFolder, "listing", listing)
    is_catalog = DataFolder.is_catalog

    def commit_and_ask(folder: DataFolder, path: str) -> bool:
        if len(committed) == 1:
            committed.append(staged[1].commit())
        return is_catalog(folder, path)

    monkeypatch.setattr(DataFolder, "is_catalog", commit_and_ask)
    assert _delete(lake).paths == [orphan]
    assert len(lake.seen_by_duckdb("FROM t")) == 2


def test_folders_that_links_lead_to_are_left_alone(new_lake: NewLake, tmp_path: Path) -> None:
    lake = Lake(new_lake("sqlite"))
    orphan = _make(lake, "main/t/" + _written())
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / _written()).write_text("kept")
    Path(lake.catalog.data_path, "main/link").symlink_to(outside)
    assert _delete(lake).paths == [orphan]
    assert len(list(outside.iterdir())) == 1


def test_the_catalog_is_no_orphan_whatever_its_name(tmp_path: Path) -> None:
    path = f"{tmp_path}/data/{_written()}"
    lake = Lake(LakeAddress("sqlite", f"sqlite:{path}", f"{tmp_path}/data/"))
    assert _delete(lake).paths == []
    assert os.path.exists(path)


@pytest.mark.parametrize("kind", ["postgres", "duckdb"])
@pytest.mark.parametrize("nested", [False, True])
def test_files_of_other_lakes_in_the_same_database_are_kept(kind: str, nested: bool, new_lake: NewLake) -> None:
    address = new_lake(kind)
    lake = Lake(address)
    lake.create()
    inner = LakeAddress(kind, address.catalog, address.data_path + ("inner/" if nested else ""))
    other = Lake(inner, metadata_schema="o.ther")
    other.create("theirs")
    other.append({"id": [1], "name": ["a"]}, "theirs")
    for lake_there in (lake, other):
        kept = _files(lake_there)
        orphan = _make(lake_there, "main/" + _written())
        assert _delete(lake_there).paths == [orphan]
        assert _files(lake_there) == kept


def test_files_of_other_lakes_that_are_given_are_kept(new_lake: NewLake) -> None:
    address = new_lake("sqlite")
    lake = Lake(address)
    other = Lake(LakeAddress("sqlite", new_lake("sqlite").catalog, address.data_path + "inner/"))
    other.create("theirs")
    other.append({"id": [1], "name": ["a"]}, "theirs")
    assert len(_delete(lake, dry_run=True).paths) == 1
    assert _delete(lake, other_lakes=[other.catalog]).paths == []


def test_a_file_that_cannot_be_deleted_is_an_error_and_the_others_go(
    new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(new_lake("sqlite"))
    stuck, other = sorted(_make(lake, "main/t/" + _written()) for _ in range(2))

    def refuse(self: Any, path: str) -> None:
        if path == stuck:
            raise PermissionError("not yours")
        os.remove(path)

    class Refusing(pafs.LocalFileSystem):
        delete_file = refuse

    with pytest.raises(LakeError, match=f"1 of 2 files could not be deleted, the first of them {stuck}: not yours"):
        delete_orphaned_files(lake.catalog, FileStore(Refusing(), filesystem_for(lake.catalog.data_path)[1]))
    assert _files(lake) == {stuck}
    assert not os.path.exists(other)


def test_a_read_only_lake_is_refused(new_lake: NewLake) -> None:
    address = new_lake("sqlite")
    orphan = _make(Lake(address), "main/t/" + _written())
    with pytest.raises(ReadOnlyError):
        _delete(Lake(address, read_only=True))
    assert os.path.exists(orphan)


def test_a_data_path_that_does_not_exist_yet_has_no_orphans(new_lake: NewLake) -> None:
    assert not _delete(Lake(new_lake("sqlite"))).paths
