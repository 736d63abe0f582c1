"""Concurrent commits of threads, processes and the reference: none is lost, none is done twice."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.deletes import NewDeleteFile, PositionDeletes
from dbt.adapters.ducklake.lake.errors import ConflictError
from dbt.adapters.ducklake.lake.retry import Retry

from ...lakes import Lake, columns
from ...workers import append_for, append_often, die_in_a_commit, in_processes, paper_file, spawn, stop_in_a_commit
from .catalogs import NewLake, every_catalog, every_reference_catalog
from .staged_changes import alter, delete, insert


def _assert_all_landed(lake: Lake, writers: int, times: int) -> None:
    files = lake.rows(t.data_file)
    assert Counter(f["path"] for f in files) == Counter(
        f"{w}-{n}.parquet" for w in range(writers) for n in range(times)
    )
    assert len({f["data_file_id"] for f in files}) == len({f["begin_snapshot"] for f in files}) == writers * times
    position = 0
    for file in sorted(files, key=lambda f: f["row_id_start"]):
        assert file["row_id_start"] == position
        position += file["record_count"]
    (stats,) = lake.rows(t.table_stats)
    assert (stats["next_row_id"], stats["record_count"]) == (position, position)
    snapshots = sorted(lake.rows(t.snapshot), key=lambda s: s["snapshot_id"])
    assert [s["snapshot_id"] for s in snapshots] == list(range(writers * times + 2))
    assert [s["snapshot_time"] for s in snapshots] == sorted({s["snapshot_time"] for s in snapshots})
    assert snapshots[-1]["next_file_id"] == writers * times
    authors = Counter(r["author"] for r in lake.rows(t.snapshot_changes))
    assert {a: n for a, n in authors.items() if a} == {f"writer {w}": times for w in range(writers)}
    (column_stats,) = (c for c in lake.rows(t.table_column_stats) if c["column_id"] == 1)
    assert (column_stats["min_value"], column_stats["max_value"]) == ("1", str(1 + writers))


@every_catalog
def test_appends_of_threads_all_land_once(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    address = lake.address
    with ThreadPoolExecutor(8) as pool:
        attempts = list(pool.map(lambda n: append_often(n, address.catalog, address.data_path, 4), range(8)))
    assert sum(attempts) >= 32
    _assert_all_landed(lake, 8, 4)


@pytest.mark.processes
@every_catalog
def test_appends_of_processes_all_land_once(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    attempts = in_processes(4, append_often, lake.address.catalog, lake.address.data_path, 8)
    assert all(isinstance(a, int) for a in attempts), attempts
    _assert_all_landed(lake, 4, 8)


@pytest.mark.processes
def test_commits_of_many_processes_beside_duckdb_all_land_once(new_lake: NewLake) -> None:
    lake, duckdb_writers = Lake(new_lake("postgres")), 2
    lake.create()
    address = lake.address
    answers = in_processes(10, append_for, address.catalog, address.data_path, 3.0, duckdb_writers)
    assert all(isinstance(answer, list) and answer for answer in answers), answers
    reported = [snapshot for answer in answers for snapshot in answer]
    ours, theirs = [snapshot for snapshot in reported if snapshot], reported.count(0)
    snapshots = sorted(s["snapshot_id"] for s in lake.rows(t.snapshot))
    assert snapshots == list(range(2 + len(reported)))
    authors = {r["snapshot_id"]: r["author"] for r in lake.rows(t.snapshot_changes)}
    assert sorted(i for i, author in authors.items() if author) == sorted(ours)
    files = sorted(lake.rows(t.data_file), key=lambda f: f["row_id_start"])
    assert len({f["path"] for f in files}) == len({f["data_file_id"] for f in files}) == len(files) == len(reported)
    position = 0
    for file in files:
        assert file["row_id_start"] == position
        position += file["record_count"]
        author = authors[file["begin_snapshot"]]
        assert (author is None) == (file["record_count"] == 20)
        assert author is None or file["path"].startswith(author.removeprefix("writer ") + "-")
    (stats,) = lake.rows(t.table_stats)
    assert (stats["next_row_id"], stats["record_count"]) == (position, position)
    assert sum(f["record_count"] == 20 for f in files) == theirs


@pytest.mark.processes
@pytest.mark.parametrize("kind", ["postgres"])
def test_a_commit_waits_for_another_one_of_its_lake_until_that_is_gone(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    lake, other = Lake(address, metadata_schema="one"), Lake(address, metadata_schema="two")
    lake.create()
    other.create()
    stopped = spawn.Event()
    process = spawn.Process(target=stop_in_a_commit, args=(address.catalog, address.data_path, "one", stopped))
    process.start()
    assert stopped.wait(120)
    other.append({"id": [1], "name": ["does not wait"]})
    tx = lake.begin()  # neither does a reader
    insert(tx)
    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(tx.commit)
        with pytest.raises(TimeoutError):
            commit.result(1.5)
        process.kill()
        committed = commit.result(60)
    process.join()
    assert (committed.snapshot.id, committed.attempts) == (2, 1)
    assert "stopped.parquet" not in [f["path"] for f in lake.rows(t.data_file)]


def test_a_commit_to_many_tables_reads_the_catalog_twice(new_lake: NewLake) -> None:
    """Others wait meanwhile."""
    lake = Lake(new_lake("sqlite"))
    names = [f"t{n}" for n in range(5)]
    for name in names:
        lake.create(name)
        lake.append({"id": [1], "name": ["a"]}, name)
    tx = lake.begin()
    for name in names:
        tx.append(tx.state.table("main", name), [paper_file(f"{name}.parquet", 3)])
    lake.append({"id": [2], "name": ["b"]}, "t0")
    queries: list[str] = []

    @sa.event.listens_for(lake.catalog._engine, "before_cursor_execute")
    def _(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
        queries.extend([statement] * statement.startswith("SELECT"))

    tx.commit()
    assert len(queries) == 2, queries
    counts = {row["table_id"]: row["record_count"] for row in lake.rows(t.table_stats)}
    assert sorted(counts.values()) == [4, 4, 4, 4, 5]


def test_a_delete_commits_although_others_do_while_its_files_are_written(
    new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A delete file that replaces another one names the snapshot that the commit becomes."""
    lake = Lake(new_lake("sqlite"))
    lake.create()
    with lake.transaction() as tx:
        tx.append(tx.state.table("main", "t"), [paper_file("t.parquet", 10)])
    tx = lake.begin()
    file = NewDeleteFile("d.parquet", True, 1, 10, 10, first_snapshot=1, last_snapshot=3)
    tx.delete_positions(tx.state.table("main", "t"), {0: PositionDeletes(file)}, {0: 10})
    engine, open_writes, written = lake.catalog._engine, [0], []

    @sa.event.listens_for(engine, "begin")
    def _(connection: sa.Connection) -> None:
        open_writes[0] = connection.get_execution_options()["lake_write"]

    @sa.event.listens_for(engine, "commit")
    def _(connection: sa.Connection) -> None:
        open_writes[0] = False

    def write_anew(store: Any, folder: str, staged: Any, snapshot: int) -> Any:
        written.append(snapshot)
        if not open_writes[0] and len(written) < 6:
            with lake.transaction() as other:
                insert(other)
        return {i: replace(d, delete_file=replace(d.delete_file, last_snapshot=snapshot)) for i, d in staged.items()}

    monkeypatch.setattr("dbt.adapters.ducklake.lake.deletes.position_deletes_for_snapshot", write_anew)
    with lake.transaction() as other:
        insert(other)
    assert tx.commit().snapshot.id == 6
    assert written == [4, 5, 6]


@every_catalog
def test_one_of_many_concurrent_replacements_wins(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    barrier, answers = threading.Barrier(6), []

    def work(number: int) -> None:
        tx = lake.begin(f"writer {number}")
        table = tx.replace_table(tx.state.table("main", "t"), columns(id="int64"))
        tx.append(table, [paper_file(f"{number}.parquet", 1)])
        barrier.wait()
        try:
            answers.append(tx.commit().snapshot.id)
        except ConflictError as error:
            answers.append(str(error))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert sorted(map(str, answers))[0] == "2"
    assert sum("by writer" in str(a) for a in answers) == 5
    assert len(lake.rows(t.data_file)) == 1


def test_a_commit_gives_up_after_its_tries_and_says_so(new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(new_lake("sqlite"), retry=Retry(max_count=2, wait_ms=1))
    lake.create()
    monkeypatch.setattr(type(lake.catalog.database), "is_write_conflict", lambda *_: True)
    monkeypatch.setattr("dbt.adapters.ducklake.lake.commit.rows.SnapshotRows.new_file_id", lambda _: None)
    tx = lake.begin()
    insert(tx)
    with pytest.raises(ConflictError, match=r"first 3 times in a row.*raise retry.max_count"):
        tx.commit()
    assert lake.latest == 1


@pytest.mark.processes
@every_catalog
@pytest.mark.parametrize("after", [1, 3, 6])
def test_a_commit_that_is_killed_half_way_never_was(kind: str, after: int, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    with lake.transaction() as tx:
        tx.append(tx.state.table("main", "t"), [paper_file("first.parquet", 3)])
    every = t.metadata.sorted_tables
    before = [lake.rows(table) for table in every]
    process = spawn.Process(target=die_in_a_commit, args=(lake.address.catalog, lake.address.data_path, after))
    process.start()
    process.join(120)
    assert process.exitcode == -9
    assert [lake.rows(table) for table in every] == before
    with lake.transaction() as tx:
        insert(tx)
    assert lake.latest == 3


@every_reference_catalog
def test_the_reference_may_commit_between_our_begin_and_commit(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    tx = lake.begin()
    table = tx.state.table("main", "t")
    tx.append(table, [lake.file(tx, table, {"id": [1], "name": ["ours"]})])
    with lake.duckdb() as connection:
        connection.execute("INSERT INTO t VALUES (2, 'inlined')")
        connection.execute("INSERT INTO t SELECT range + 3, 'theirs' FROM range(20)")
        connection.execute("CREATE TABLE u (a INT)")
    assert tx.commit().snapshot.id == 5
    assert lake.seen_by_duckdb("SELECT count(*), count(DISTINCT rowid), min(id), max(id) FROM t") == [(22, 22, 1, 22)]


@every_reference_catalog
def test_a_concurrent_delete_by_the_reference_is_a_conflict(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [1], "name": ["one"]})
    tx = lake.begin()
    delete(tx)
    with lake.duckdb() as connection:
        connection.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(ConflictError, match=r"deletes from main.t, but snapshot 3 meanwhile deleted from it"):
        tx.commit()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_we_may_commit_within_a_transaction_of_the_reference(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    with lake.duckdb() as connection:
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t SELECT range, 'theirs' FROM range(20)")
        lake.append({"id": [100], "name": ["ours"]})
        connection.execute("COMMIT")
        assert connection.execute("SELECT count(*), count(DISTINCT rowid), max(id) FROM t").fetchone() == (21, 21, 100)
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (200, 'lost')")
        with lake.transaction() as tx:
            alter(tx)
        with pytest.raises(Exception, match="altered it"):
            connection.execute("COMMIT")
    assert lake.latest == 4
