"""The transaction that threads share: what they fold becomes one snapshot, on every catalog database."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConflictError, LakeError

from ...lakes import LakeAddress
from ..lake.catalogs import every_catalog

NewLake = Callable[[str], LakeAddress]
ROWS = pa.table({"id": [1, 2]})


def _newest(lake: LakeSession) -> int:
    return lake.base_snapshot().id


@every_catalog
def test_what_threads_do_is_one_snapshot(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with LakeSession(address.catalog, address.data_path, data_inlining_row_limit=0) as lake:
        lake.execute("create table log (id bigint)")
        before, barrier = _newest(lake), threading.Barrier(3)
        shared = lake.begin_shared()

        def work(number: int) -> None:
            lake.begin()
            barrier.wait()
            lake.execute(f"create table t{number} (id bigint)")
            lake.insert(f"t{number}", ROWS)
            lake.insert("log", ROWS)
            result = lake.commit(label=number)
            assert (result.snapshot_id, result.is_staged) == (None, True)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(work, range(3)))
        lake.execute("create schema s")  # a statement of its own is folded as well
        assert sorted(fold.label for fold in shared.folds if fold.label is not None) == [0, 1, 2]
        kept = [fold for fold in shared.folds if fold.label != 1]
        assert lake.publish(shared.transaction("lake").commit_info, kept).snapshot_id == before + 1
        assert {t.name for t in lake.state().tables.values()} == {"log", "t0", "t2"}
        assert lake.state().find_schema("s")
        files = lake.call("ducklake_health", orphans=False).to_pylist()
        assert sum(row["files"] or 0 for row in files if row["table_name"] == "log") == 2
        assert len(list(Path(address.data_path).rglob("*.parquet"))) == 4


@every_catalog
def test_two_threads_that_change_one_table_conflict_and_one_goes_on(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with LakeSession(address.catalog, address.data_path, data_inlining_row_limit=0) as lake:
        lake.execute("create table t (id bigint)")
        lake.begin_shared()
        with ThreadPoolExecutor(1) as pool:
            lake.begin()
            lake.execute("truncate table t")
            pool.submit(lake.insert, "t", ROWS).result()
            with pytest.raises(ConflictError, match="main.t"):
                lake.commit()
        assert lake.replay()
        lake.commit()
        lake.discard_shared()
        assert not list(Path(address.data_path).rglob("*.parquet"))


def test_what_a_statement_or_a_frame_wrote_in_vain_is_removed(tmp_path: Path) -> None:
    with LakeSession(f"sqlite:{tmp_path}/c.sqlite", data_path=f"{tmp_path}/data/", data_inlining_row_limit=0) as lake:
        lake.execute("create table t (id bigint)")
        lake.begin_shared()
        lake.begin()
        lake.insert("t", ROWS)
        lake.rollback()
        assert list(tmp_path.rglob("*.parquet"))
        lake.discard_shared()
        assert not list(tmp_path.rglob("*.parquet"))


def test_a_second_lake_is_refused(tmp_path: Path) -> None:
    other = {"name": "other", "catalog": f"sqlite:{tmp_path}/o.sqlite", "data_path": f"{tmp_path}/o/"}
    with LakeSession(f"sqlite:{tmp_path}/c.sqlite", data_path=f"{tmp_path}/data/", attach=[other]) as lake:
        lake.begin_shared()
        lake.execute("create table t (id bigint)")
        with pytest.raises(LakeError, match="can change one lake, and it changes lake and other"):
            lake.execute("create table other.main.t (id bigint)")
        with pytest.raises(LakeError, match="can not be part of a run"):
            lake.call("ducklake_expire_snapshots", older_than="1 day")


@pytest.mark.processes
def test_a_process_that_dies_leaves_the_lake_as_it_was_and_orphans_that_are_found(tmp_path: Path) -> None:
    address = f"sqlite:{tmp_path}/c.sqlite"
    with LakeSession(address, f"{tmp_path}/data/") as lake:
        lake.execute("create table t (id bigint)")
        before = _newest(lake)
    program = f"""
import os, pyarrow as pa
from dbt.adapters.ducklake import LakeSession
lake = LakeSession({address!r}, data_inlining_row_limit=0)
lake.begin_shared()
lake.insert("t", pa.table({{"id": [1, 2]}}))
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 9
    with LakeSession(address) as lake:
        assert _newest(lake) == before
        assert lake.call("ducklake_delete_orphaned_files", cleanup_all=True).num_rows == 1
        assert not list(tmp_path.rglob("*.parquet"))
