"""Clean-up: scheduled files are deleted, and no file that anyone needs."""

from __future__ import annotations

import datetime
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.errors import LakeError, ReadOnlyError
from dbt.adapters.ducklake.lake.file_store import FileStore
from dbt.adapters.ducklake.lake.maintenance import cleanup
from dbt.adapters.ducklake.lake.maintenance.cleanup import DeletedFiles, cleanup_old_files
from dbt.adapters.ducklake.lake.maintenance.data_folder import DataFolder
from dbt.adapters.ducklake.lake.maintenance.expiry import expire_snapshots
from dbt.adapters.ducklake.lake.paths import filesystem_for

from ....lakes import Lake, LakeAddress
from ....workers import die_in_a_cleanup, spawn
from ..catalogs import NewLake, every_catalog


def store_of(lake: Lake) -> FileStore:
    return FileStore(*filesystem_for(lake.catalog.data_path))


def _clean_up(lake: Lake, **criteria: Any) -> DeletedFiles:
    return cleanup_old_files(lake.catalog, store_of(lake), **criteria)


def _schedule(lake: Lake, path: str, is_relative: bool = True, file_id: int = 1000) -> None:
    with lake.catalog.write() as connection:
        row = {"data_file_id": file_id, "path": path, "path_is_relative": is_relative}
        now = datetime.datetime.now(datetime.timezone.utc)
        connection.execute(t.files_scheduled_for_deletion.insert(), {**row, "schedule_start": now})


def _scheduled(lake: Lake) -> list[str]:
    return sorted(row["path"] for row in lake.rows(t.files_scheduled_for_deletion))


def _with_dead_files(address: LakeAddress, count: int = 3) -> Lake:
    """A lake with a living file and expired snapshots, whose files are scheduled for deletion."""
    lake = Lake(address)
    lake.create()
    for number in range(count):
        lake.append({"id": [number], "name": ["dead"]})
    with lake.transaction() as tx:
        tx.truncate(tx.state.table("main", "t"))
    lake.append({"id": [100], "name": ["alive"]})
    expire_snapshots(lake.catalog, versions=range(lake.latest))
    assert len(_scheduled(lake)) == count
    return lake


def _files(lake: Lake) -> list[str]:
    return sorted(str(path) for path in Path(lake.catalog.data_path).rglob("*") if path.is_file())


@every_catalog
def test_scheduled_files_are_deleted_with_their_rows(kind: str, new_lake: NewLake) -> None:
    lake = _with_dead_files(new_lake(kind))
    dead = sorted(lake.catalog.data_path + path for path in _scheduled(lake))
    tried = _clean_up(lake, dry_run=True)
    assert sorted(tried.paths) == dead
    assert tried.sizes == [os.path.getsize(path) for path in tried.paths]
    assert len(_files(lake)) == 4
    assert sorted(_clean_up(lake).paths) == dead
    assert _scheduled(lake) == []
    (alive,) = _files(lake)
    assert alive.endswith(lake.rows(t.data_file)[0]["path"])
    assert _clean_up(lake) == DeletedFiles()
    if kind != "mysql":
        assert lake.seen_by_duckdb("FROM t") == [(100, "alive")]


@every_catalog
def test_files_are_deleted_by_the_time_since_when_they_are_scheduled(kind: str, new_lake: NewLake) -> None:
    lake = _with_dead_files(new_lake(kind), 1)
    start = lake.rows(t.files_scheduled_for_deletion)[0]["schedule_start"]
    assert _clean_up(lake, older_than=start).paths == ()
    assert len(_clean_up(lake, older_than=start + datetime.timedelta(microseconds=1)).paths) == 1


def test_a_file_that_is_gone_already_counts_as_deleted(new_lake: NewLake) -> None:
    lake = _with_dead_files(new_lake("sqlite"), 1)
    (path,) = (lake.catalog.data_path + path for path in _scheduled(lake))
    os.remove(path)
    assert _clean_up(lake, dry_run=True).sizes == [None]
    assert _clean_up(lake).paths == [path]
    assert _scheduled(lake) == []


@pytest.mark.parametrize("spelling", ["relative", "absolute", "with dots", "through a link", "in another case"])
def test_a_scheduled_file_that_the_lake_names_is_kept(spelling: str, new_lake: NewLake, tmp_path: Path) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    lake.append({"id": [1], "name": ["a"]})
    with lake.transaction() as tx:
        tx.truncate(tx.state.table("main", "t"))  # only snapshot 2 has the file
    path = "main/t/" + lake.rows(t.data_file)[0]["path"]
    full = lake.catalog.data_path + path
    link = tmp_path / "link"
    link.symlink_to(lake.catalog.data_path)
    spelled = {
        "relative": (path, True),
        "absolute": (full, False),
        "with dots": ("main/../main/./t/" + path.rpartition("/")[2], True),
        "through a link": (f"{link}/{path}", False),
        "in another case": (path.replace("ducklake-", "DUCKLAKE-"), True),
    }
    _schedule(lake, *spelled[spelling])
    done = _clean_up(lake)
    assert done.paths == []
    assert "1 scheduled files are left alone, because the lake still needs them" in done.notes[0]
    assert os.path.exists(full)
    assert len(_scheduled(lake)) == 1


def test_a_file_that_is_added_again_during_the_clean_up_is_kept(
    new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = _with_dead_files(new_lake("sqlite"), 2)
    monkeypatch.setattr(cleanup, "FILES_PER_BATCH", 1)
    first, second = (lake.catalog.data_path + row["path"] for row in lake.rows(t.files_scheduled_for_deletion))
    delete, added = DataFolder.delete, [second]

    def add_and_delete(folder: DataFolder, paths: list[str]) -> dict[str, str]:
        while added:
            with lake.transaction() as tx:
                table = tx.state.table("main", "t")
                file = lake.file(tx, table, {"id": [1], "name": ["again"]})
                os.rename(lake.catalog.data_path + "main/t/" + file.path, added.pop())
                object.__setattr__(file, "path", os.path.basename(second))
                tx.append(table, [file])
        return delete(folder, paths)

    monkeypatch.setattr(DataFolder, "delete", add_and_delete)
    done = _clean_up(lake)
    assert done.paths == [first]
    assert "left alone" in done.notes[0]
    assert lake.seen_by_duckdb("FROM t ORDER BY id") == [(1, "again"), (100, "alive")]


@pytest.mark.parametrize("way", ["dots", "absolute", "link", "beside", "other scheme"])
def test_nothing_outside_of_the_data_path_is_deleted(way: str, new_lake: NewLake, tmp_path: Path) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    lake.append({"id": [1], "name": ["a"]})
    data = Path(lake.catalog.data_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    beside = Path(str(data).rstrip("/") + "-more")
    beside.mkdir()
    for folder in (outside, beside):
        (folder / "x.parquet").write_text("kept")
    (data / "link").symlink_to(outside)
    path, is_relative = {
        "dots": ("../outside/x.parquet", True),
        "absolute": (str(outside / "x.parquet"), False),
        "link": ("link/x.parquet", True),
        "beside": (str(beside / "x.parquet"), False),
        "other scheme": ("s3://bucket/x.parquet", False),
    }[way]
    _schedule(lake, path, is_relative)
    tried = _clean_up(lake, dry_run=True)
    assert (tried.paths, _scheduled(lake)) == ([], [path])
    done = _clean_up(lake)
    assert done.paths == []
    assert "1 files outside of the data path are forgotten and not deleted: " in done.notes[0]
    assert _scheduled(lake) == []
    assert (outside / "x.parquet").exists()
    assert (beside / "x.parquet").exists()


@pytest.mark.parametrize("suffix", ["", "-wal", "-journal"])
def test_a_catalog_inside_the_data_path_is_never_deleted(suffix: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/data/main/ducklake-01900000-0000-7000-8000-000000000000.parquet"
    lake = Lake(LakeAddress("sqlite", f"sqlite:{path}", f"{tmp_path}/data/"))
    lake.create()
    if suffix:
        Path(path + suffix).touch()
    _schedule(lake, os.path.relpath(path, lake.catalog.data_path) + suffix)
    done = _clean_up(lake)
    assert (done.paths, len(done.notes)) == ([], 1)
    assert sqlite3.connect(path).execute("select count(*) from ducklake_snapshot").fetchone() == (2,)


def test_a_file_that_cannot_be_deleted_is_tried_again_by_the_next_clean_up(new_lake: NewLake) -> None:
    lake = _with_dead_files(new_lake("sqlite"), 3)
    stuck = lake.catalog.data_path + _scheduled(lake)[1]
    os.remove(stuck)
    os.makedirs(stuck + "/child")
    with pytest.raises(LakeError, match=f"1 of 3 files could not be deleted, the first of them {stuck}: "):
        _clean_up(lake)
    assert [lake.catalog.data_path + path for path in _scheduled(lake)] == [stuck]
    assert len(_files(lake)) == 1
    os.removedirs(stuck + "/child")
    assert _clean_up(lake).paths == [stuck]


def test_rows_of_other_files_with_the_same_id_stay(new_lake: NewLake) -> None:
    lake = _with_dead_files(new_lake("sqlite"), 1)
    row = lake.rows(t.files_scheduled_for_deletion)[0]
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    _schedule(lake, "main/t/later.parquet", file_id=row["data_file_id"])
    with lake.catalog.write() as connection:
        is_later = t.files_scheduled_for_deletion.c.path == "main/t/later.parquet"
        connection.execute(sa.update(t.files_scheduled_for_deletion).where(is_later).values(schedule_start=later))
    _clean_up(lake, older_than=later)
    assert _scheduled(lake) == ["main/t/later.parquet"]


@pytest.mark.processes
@pytest.mark.parametrize("moment", ["after some files", "before the rows", "in the commit"])
def test_a_clean_up_that_is_killed_is_finished_by_the_next(moment: str, new_lake: NewLake) -> None:
    lake = _with_dead_files(new_lake("sqlite"), 6)
    dead = [lake.catalog.data_path + path for path in _scheduled(lake)]
    process = spawn.Process(target=die_in_a_cleanup, args=(lake.address.catalog, lake.address.data_path, moment))
    process.start()
    process.join(120)
    assert process.exitcode == -9
    left = {lake.catalog.data_path + path for path in _scheduled(lake)}
    gone = {path for path in dead if not os.path.exists(path)}
    assert gone
    assert set(dead) - gone <= left, "a file that is there has no row any more"
    assert left & gone, "the process was killed after the work"
    _clean_up(lake)
    assert _scheduled(lake) == []
    assert len(_files(lake)) == 1
    assert lake.seen_by_duckdb("FROM t") == [(100, "alive")]


def test_a_read_only_lake_is_refused(new_lake: NewLake) -> None:
    address = new_lake("sqlite")
    _with_dead_files(address, 1)
    lake = Lake(address, read_only=True)
    with pytest.raises(ReadOnlyError):
        _clean_up(lake)
    assert len(_clean_up(lake, dry_run=True).paths) == 1
    assert len(_files(lake)) == 2


@every_catalog
def test_many_files_are_deleted_in_batches(kind: str, new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = _with_dead_files(new_lake(kind), 5)
    monkeypatch.setattr(cleanup, "FILES_PER_BATCH", 2)
    assert len(_clean_up(lake).paths) == 5
    assert _scheduled(lake) == []
