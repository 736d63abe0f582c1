"""What other processes do to a lake in tests; they start quickly, because nothing here needs Spark."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import sqlalchemy as sa

from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.lake.commit.staged import CommitInfo
from dbt.adapters.ducklake.lake.file_store import FileStore
from dbt.adapters.ducklake.lake.files import NewDataFile
from dbt.adapters.ducklake.lake.maintenance import cleanup
from dbt.adapters.ducklake.lake.maintenance.data_folder import DataFolder
from dbt.adapters.ducklake.lake.maintenance.expiry import expire_snapshots
from dbt.adapters.ducklake.lake.paths import filesystem_for
from dbt.adapters.ducklake.lake.snapshot_loader import Snapshots
from dbt.adapters.ducklake.lake.stats import ColumnStats
from dbt.adapters.ducklake.lake.transaction import Transaction

from . import reference
from .lakes import PATIENT

spawn = multiprocessing.get_context("spawn")


def in_processes(count: int, work: Callable[..., Any], *arguments: Any) -> list[Any]:
    """What each process answers, all of them let go at once; the first argument of each is its number."""
    ready, go, answers = spawn.Semaphore(0), spawn.Event(), spawn.Queue()
    processes = [spawn.Process(target=_run, args=(ready, go, answers, work, n, *arguments)) for n in range(count)]
    for process in processes:
        process.start()
    for _ in processes:
        assert ready.acquire(timeout=120)
    go.set()
    found = [answers.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    return found


def _run(ready: Any, go: Any, answers: Any, work: Callable[..., Any], *arguments: Any) -> None:
    ready.release()
    go.wait()
    try:
        answers.put(work(*arguments))
    except Exception as error:
        answers.put(f"{type(error).__name__}: {error}")


def open_lake(number: int, catalog: str, data_path: str, schema: str | None) -> int:
    lake = Catalog.open(catalog, data_path, metadata_schema=schema)
    with lake.read() as connection:
        return lake.latest_snapshot(connection).id


def hold_duckdb_file(path: str, held: Any, release: Any) -> None:
    with duckdb.connect(path):
        held.set()
        release.wait(60)


def paper_file(name: str, rows: int, column_ids: tuple[int, ...] = (1,)) -> NewDataFile:
    """A file of which only the catalog knows."""
    stats = {c: ColumnStats(10, rows, 0, str(c), str(c + rows), None, exact=True) for c in column_ids}
    return NewDataFile(name, True, rows, 1000, 100, stats)


def append_often(number: int, catalog: str, data_path: str, times: int) -> int:
    """Appends one-file results to main.t, each file with a name of its own; answers how many attempts it took."""
    lake = Catalog.open(catalog, data_path, retry=PATIENT)
    snapshots, attempts = Snapshots(lake), 0
    for turn in range(times):
        transaction = Transaction.begin(lake, snapshots)
        transaction.commit_info = CommitInfo(f"writer {number}", f"append {turn}")
        table = transaction.state.table("main", "t")
        transaction.append(table, [paper_file(f"{number}-{turn}.parquet", number + 1)])
        attempts += transaction.commit().attempts
    return attempts


def append_for(number: int, catalog: str, data_path: str, seconds: float, duckdb_writers: int) -> list[int]:
    """Appends to main.t for some seconds, at least once, and answers the snapshots.

    The first writers are DuckDB, and answer zeros.
    """
    end, turn, snapshots = time.monotonic() + seconds, 0, []
    if number < duckdb_writers:
        connection = reference.connect(catalog, data_path)
        connection.execute("SET ducklake_max_retry_count = 1000")
        while time.monotonic() < end or not snapshots:
            connection.execute(f"INSERT INTO t SELECT {number}, 'theirs' FROM range(20)")
            snapshots.append(0)
        connection.close()
        return snapshots
    lake = Catalog.open(catalog, data_path, retry=PATIENT)
    loader = Snapshots(lake)
    while time.monotonic() < end or not snapshots:
        transaction = Transaction.begin(lake, loader)
        transaction.commit_info = CommitInfo(f"writer {number}", f"append {turn}")
        transaction.append(transaction.state.table("main", "t"), [paper_file(f"{number}-{turn}.parquet", number + 1)])
        snapshots.append(transaction.commit().snapshot.id)
        turn += 1
    return snapshots


def stop_in_a_commit(catalog: str, data_path: str, schema: str | None, stopped: Any) -> None:
    """Begins a commit, and stays in it for a minute."""
    lake = Catalog.open(catalog, data_path, metadata_schema=schema)
    transaction = Transaction.begin(lake, Snapshots(lake))
    transaction.append(transaction.state.table("main", "t"), [paper_file("stopped.parquet", 1)])

    @sa.event.listens_for(lake._engine, "before_cursor_execute")
    def _(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        if statement.startswith("INSERT"):
            stopped.set()
            time.sleep(60)

    transaction.commit()


def die_in_a_commit(catalog: str, data_path: str, after: int) -> None:
    """Commits a change of many rows, and is killed after so many of its writing statements."""
    lake = Catalog.open(catalog, data_path)
    transaction = Transaction.begin(lake, Snapshots(lake))
    table = transaction.state.table("main", "t")
    transaction.truncate(table)
    transaction.append(table, [paper_file(f"dead-{n}.parquet", 5) for n in range(100)])
    transaction.set_option("target_file_size", "1MB", table=table)
    die_after_statements(lake, after)
    transaction.commit()


def die_in_an_expiry(catalog: str, data_path: str, after: int) -> None:
    """Expires all snapshots that it may, and is killed after so many of its writing statements."""
    lake = Catalog.open(catalog, data_path)
    die_after_statements(lake, after)
    expire_snapshots(lake, versions=range(1000))


def die_in_a_cleanup(catalog: str, data_path: str, moment: str) -> None:
    """Deletes scheduled files two at a time, and is killed in the second batch."""
    lake, batches = Catalog.open(catalog, data_path), 0
    filesystem, native_path = filesystem_for(data_path)
    delete, cleanup.FILES_PER_BATCH = DataFolder.delete, 2

    def delete_and_die(folder: DataFolder, paths: Sequence[str]) -> dict[str, str]:
        nonlocal batches
        batches += 1
        if batches < 2:
            return delete(folder, paths)
        if moment == "after some files":
            delete(folder, paths[:1])
            os.kill(os.getpid(), signal.SIGKILL)
        failed = delete(folder, paths)
        if moment == "before the rows":
            os.kill(os.getpid(), signal.SIGKILL)
        die_after_statements(lake, 1)
        return failed

    DataFolder.delete = delete_and_die  # type: ignore[method-assign]
    cleanup.cleanup_old_files(lake, FileStore(filesystem, native_path))


def die_after_statements(lake: Catalog, after: int) -> None:
    """Lets this process be killed after so many more writing statements on a lake's catalog."""
    written = 0

    @sa.event.listens_for(lake._engine, "after_cursor_execute")
    def _(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        nonlocal written
        written += statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))
        if written >= after:
            os.kill(os.getpid(), signal.SIGKILL)
