"""What other processes do to a lake in tests; they start quickly, because nothing here needs Spark."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import sqlalchemy as sa

from dbt.adapters.ducklake import LakeSession
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


def die_in_a_commit(catalog: str, data_path: str, after: int) -> None:
    """Commits a change of many rows, and is killed after so many of its writing statements."""
    lake = Catalog.open(catalog, data_path)
    transaction = Transaction.begin(lake, Snapshots(lake))
    table = transaction.state.table("main", "t")
    transaction.truncate(table)
    transaction.append(table, [paper_file(f"dead-{n}.parquet", 5) for n in range(100)])
    transaction.set_option("target_file_size", "1MB", table=table)
    _die_after_statements(lake, after)
    transaction.commit()


def die_in_an_expiry(catalog: str, data_path: str, after: int) -> None:
    """Expires all snapshots that it may, and is killed after so many of its writing statements."""
    lake = Catalog.open(catalog, data_path)
    _die_after_statements(lake, after)
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
        _die_after_statements(lake, 1)
        return failed

    DataFolder.delete = delete_and_die  # type: ignore[method-assign]
    cleanup.cleanup_old_files(lake, FileStore(filesystem, native_path))


def _die_after_statements(lake: Catalog, after: int) -> None:
    written = 0

    @sa.event.listens_for(lake._engine, "after_cursor_execute")
    def _(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        nonlocal written
        written += statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))
        if written >= after:
            os.kill(os.getpid(), signal.SIGKILL)


def die_in_maintenance(catalog: str, data_path: str, operation: str, arguments: dict[str, Any], after: int) -> None:
    """Calls an operation and is killed: with 0 before its commit, else after so many writing statements of it."""
    lake = LakeSession(catalog, data_path=data_path, spark={"master": "local[1]"})
    commit = Transaction.commit

    def dying_commit(transaction: Transaction) -> Any:
        if after == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        written = 0

        @sa.event.listens_for(lake.lake().catalog._engine, "after_cursor_execute")
        def _(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            nonlocal written
            written += statement.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))
            if written >= after:
                os.kill(os.getpid(), signal.SIGKILL)

        return commit(transaction)

    Transaction.commit = dying_commit  # type: ignore[method-assign]
    lake.call(operation, **arguments)


def write_with_duckdb(number: int, catalog: str, data_path: str, seconds: float) -> dict[int, int]:
    """Inserts, updates and deletes rows of main.t with keys of its own; answers what its rows must be in the end."""
    rows: dict[int, int] = {}
    chance = random.Random(number)
    next_key = number * 1_000_000
    connection = reference.connect(catalog, data_path)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # So few that it stores the deletes in the catalog: DuckDB 1.5 does not see all conflicts of delete files.
        keys = chance.sample(sorted(rows), min(len(rows), chance.choice((1, 3))))
        kind = chance.random() if keys else 0.0
        changed = dict(rows)
        if kind < 0.5:
            count = chance.choice((2, 5, 40))
            new = {next_key + i: chance.randrange(100) for i in range(count)}
            next_key += count
            changed |= new
            text = f"insert into t values {', '.join(f'({key}, {value})' for key, value in new.items())}"
        elif kind < 0.75:
            changed |= {key: rows[key] + 1 for key in keys}
            text = f"update t set v = v + 1 where id in ({', '.join(map(str, keys))})"
        else:
            changed = {key: value for key, value in rows.items() if key not in keys}
            text = f"delete from t where id in ({', '.join(map(str, keys))})"
        try:
            connection.execute(text)
        except duckdb.Error:  # it conflicted, and changed nothing
            continue
        rows = changed
    connection.close()
    return rows


def write_with_spark(number: int, catalog: str, data_path: str, seconds: float) -> dict[int, int]:
    """The same by Spark, which plans what conflicts again."""
    rows: dict[int, int] = {}
    chance = random.Random(number)
    next_key = number * 1_000_000
    with LakeSession(catalog, data_path=data_path, spark={"master": "local[1]"}, retry=PATIENT) as lake:
        lake.sql("select 1").collect()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            keys = chance.sample(sorted(rows), min(len(rows), 5))
            kind = chance.random() if keys else 0.0
            if kind < 0.4:
                new = {next_key + i: chance.randrange(100) for i in range(20)}
                next_key += len(new)
                lake.execute(f"insert into t values {', '.join(f'({key}, {value})' for key, value in new.items())}")
                rows |= new
            elif kind < 0.7:
                lake.execute(f"update t set v = v + 1 where id in ({', '.join(map(str, keys))})")
                rows |= {key: rows[key] + 1 for key in keys}
            else:
                lake.execute(f"delete from t where id in ({', '.join(map(str, keys))})")
                rows = {key: value for key, value in rows.items() if key not in keys}
    return rows


def maintain_with_spark(number: int, catalog: str, data_path: str, seconds: float) -> dict[int, int]:
    """Flushes, rewrites and merges main.t for so long."""
    with LakeSession(catalog, data_path=data_path, spark={"master": "local[1]"}, retry=PATIENT) as lake:
        lake.sql("select 1").collect()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lake.call("ducklake_flush_inlined_data", "main.t")
            lake.call("ducklake_rewrite_data_files", "main.t", delete_threshold=0.1)
            lake.call("ducklake_merge_adjacent_files", "main.t")
    return {}


def by_role(number: int, roles: list[str], *arguments: Any) -> dict[int, int]:
    work: Callable[..., dict[int, int]] = globals()[roles[number]]
    return work(number, *arguments)
