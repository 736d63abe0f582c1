"""Expiry: what no remaining snapshot needs goes, and nothing else."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.databases.sqlite import Sqlite
from dbt.adapters.ducklake.lake.errors import BusyError, ConflictError, LakeError, NotFoundError, ReadOnlyError
from dbt.adapters.ducklake.lake.maintenance import expiry
from dbt.adapters.ducklake.lake.maintenance.expiry import expire_snapshots
from dbt.adapters.ducklake.lake.retry import Retry

from ....conftest import LoseAnswer
from ....lakes import Lake, columns
from ....workers import append_often, die_in_an_expiry, paper_file, spawn
from ..catalogs import NewLake, every_catalog, every_reference_catalog


def _expire(lake: Lake, **criteria: Any) -> list[int]:
    return [row.snapshot_id for row in expire_snapshots(lake.catalog, **criteria)]


def _all_but_newest(lake: Lake) -> range:
    return range(lake.latest)


def _snapshots(lake: Lake) -> list[int]:
    return sorted(row["snapshot_id"] for row in lake.rows(t.snapshot))


def _scheduled(lake: Lake) -> list[str]:
    return sorted(row["path"] for row in lake.rows(t.files_scheduled_for_deletion))


def _everything(lake: Lake) -> list[Any]:
    return [sorted(map(repr, lake.rows(table))) for table in t.metadata.sorted_tables]


def _write(lake: Lake, change: Callable[[Any], object]) -> None:
    with lake.transaction() as tx:
        change(tx)


def _append_paper(lake: Lake, *names: str) -> None:
    for name in names:
        _write(lake, lambda tx, name=name: tx.append(tx.state.table("main", "t"), [paper_file(name, 3)]))  # type: ignore[misc]


def _truncate(lake: Lake, name: str = "t") -> None:
    _write(lake, lambda tx: tx.truncate(tx.state.table("main", name)))


@every_reference_catalog
def test_remaining_snapshots_and_their_changes_read_as_before(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.run_in_duckdb(
        "CALL lake.set_option('data_inlining_row_limit', 3)",
        "CREATE TABLE t (id INTEGER, v VARCHAR)",  # 1
        "INSERT INTO t SELECT i, 'a' FROM range(20) r(i)",
        "INSERT INTO t VALUES (100, 'inlined')",
        "DELETE FROM t WHERE id % 5 = 0",  # 4
        "ALTER TABLE t RENAME TO u",
        "UPDATE u SET v = 'b' WHERE id % 7 = 1",  # 6
        "DELETE FROM u WHERE id = 3",
        "INSERT INTO u SELECT i, 'c' FROM range(200, 210) r(i)",
        "ALTER TABLE u DROP COLUMN v",  # 9
        "DELETE FROM u WHERE id > 15",
        "CALL ducklake_flush_inlined_data('lake')",
        "INSERT INTO u SELECT i FROM range(300, 310) r(i)",
        "CALL ducklake_merge_adjacent_files('lake')",
    )
    expired, last = [0, 1, 2, 5, 8, 9], lake.latest
    remaining = sorted(set(range(last + 1)) - set(expired))
    ranges = [(a, b) for a in remaining for b in remaining if a <= b and not set(range(a - 1, b + 1)) & set(expired)]
    name = {version: "t" if version < 5 else "u" for version in remaining}
    queries = [f"SELECT rowid, * FROM {name[v]} AT (VERSION => {v}) ORDER BY ALL" for v in remaining]
    queries += [f"FROM ducklake_table_changes('lake', 'main', '{name[b]}', {a}, {b}) ORDER BY ALL" for a, b in ranges]

    def answers() -> list[Any]:
        with lake.duckdb() as connection:
            connection.execute("SET threads = 1")
            return [connection.execute(query).fetchall() for query in queries]

    before = answers()
    assert len(ranges) == 5
    assert _expire(lake, versions=expired) == expired
    assert answers() == before


def test_a_renamed_table_keeps_its_rows_and_files(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    lake.append({"id": [1], "name": ["a"]})
    _write(lake, lambda tx: tx.rename(tx.state.table("main", "t"), tx.state.schema("main"), "u"))
    _write(lake, lambda tx: tx.rename(tx.state.table("main", "u"), tx.create_schema("s"), "u"))
    lake.append({"id": [2], "name": ["b"]}, "u", "s")
    _expire(lake, versions=_all_but_newest(lake))
    assert _scheduled(lake) == []
    assert lake.seen_by_duckdb("FROM s.u ORDER BY id") == [(1, "a"), (2, "b")]


@every_catalog
def test_a_dropped_table_goes_with_all_that_it_had(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    kept, dropped = lake.create("kept"), lake.create("t")
    _append_paper(lake, "1.parquet", "2.parquet")
    _write(lake, lambda tx: tx.append(tx.state.table("main", "kept"), [paper_file("kept.parquet", 1)]))
    with lake.catalog.read() as connection:
        tables_before = set(lake.catalog.database.table_names(connection))
    with_rows = [
        table for table in t.metadata.sorted_tables if "table_id" in table.c and lake.rows(table, table.c.table_id == 2)
    ]
    assert {t.table, t.column, t.data_file, t.table_stats, t.schema_versions} <= set(with_rows)
    _write(lake, lambda tx: tx.drop(tx.state.table("main", "t")))
    _expire(lake, versions=_all_but_newest(lake))
    assert all(not lake.rows(table, table.c.table_id == dropped.id) for table in with_rows)
    assert all(lake.rows(table, table.c.table_id == kept.id) for table in (t.table, t.column, t.data_file))
    assert {row["data_file_id"] for row in lake.rows(t.file_column_stats)} == {2}
    assert _scheduled(lake) == ["main/t/1.parquet", "main/t/2.parquet"]
    with lake.catalog.read() as connection:
        gone = tables_before - set(lake.catalog.database.table_names(connection))
    assert gone == {name for name in tables_before if name.startswith("ducklake_inlined_data_2_")}


@every_reference_catalog
def test_catalog_tables_of_inlined_rows_and_deletes_are_dropped_with_their_table(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.run_in_duckdb(
        "CREATE TABLE t AS SELECT i FROM range(100) r(i)",
        "INSERT INTO t VALUES (1000)",
        "DELETE FROM t WHERE i = 7",
        "CREATE TABLE kept (i INTEGER)",
        "INSERT INTO kept VALUES (1)",
        "DROP TABLE t",
    )
    _expire(lake, versions=_all_but_newest(lake))
    with lake.catalog.read() as connection:
        names = {n for n in lake.catalog.database.table_names(connection) if n.startswith("ducklake_inlined_")}
    names.discard("ducklake_inlined_data_tables")
    assert {row["table_id"] for row in lake.rows(t.inlined_data_tables)} == {2}
    assert names == {row["table_name"] for row in lake.rows(t.inlined_data_tables)}
    assert lake.seen_by_duckdb("FROM kept") == [(1,)]


def test_files_are_scheduled_as_soon_as_no_snapshot_is_between_their_begin_and_end(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()  # 1
    _append_paper(lake, "a.parquet", "b.parquet")  # 2, 3
    _truncate(lake)  # 4
    _append_paper(lake, "c.parquet")  # 5
    _expire(lake, versions=[2])
    assert _scheduled(lake) == []
    _expire(lake, versions=[3])
    assert _scheduled(lake) == ["main/t/a.parquet", "main/t/b.parquet"]
    assert [row["path"] for row in lake.rows(t.data_file)] == ["c.parquet"]
    assert {row["data_file_id"] for row in lake.rows(t.file_column_stats)} == {2}
    _expire(lake, versions=_all_but_newest(lake))
    assert _scheduled(lake) == ["main/t/a.parquet", "main/t/b.parquet"]


def test_files_of_several_snapshots_stay_while_one_of_them_does(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    with lake.duckdb() as connection:
        connection.execute("CREATE TABLE t (i INTEGER)")
        for first in (0, 100, 200):
            connection.execute(f"INSERT INTO t SELECT i FROM range({first}, {first} + 50) r(i)")  # 2, 3, 4
        connection.execute("CALL ducklake_merge_adjacent_files('lake')")  # 5
        connection.execute("DELETE FROM t")  # 6
    (merged,) = lake.rows(t.data_file)
    assert (merged["begin_snapshot"], merged["partial_max"], merged["end_snapshot"]) == (2, 4, 6)
    scheduled = _scheduled(lake)
    _expire(lake, versions=[0, 1, 2, 4, 5])
    assert _scheduled(lake) == scheduled
    assert lake.seen_by_duckdb("SELECT count(*) FROM t AT (VERSION => 3)") == [(100,)]
    _expire(lake, versions=[3])
    assert set(_scheduled(lake)) - set(scheduled) == {f"main/t/{merged['path']}"}


@every_catalog
def test_the_newest_snapshot_never_expires(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.create("u")
    far = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)
    assert _expire(lake, older_than=far, dry_run=True) == [0, 1]
    assert _snapshots(lake) == [0, 1, 2]
    assert _expire(lake, older_than=far) == [0, 1]
    assert _expire(lake, versions=[2, 99]) == []
    assert _snapshots(lake) == [2]
    assert [row["snapshot_id"] for row in lake.rows(t.snapshot_changes)] == [2]


@every_catalog
def test_snapshots_expire_by_their_age(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    for name in ("a", "b", "c"):
        lake.create(name)
    moment = next(row["snapshot_time"] for row in lake.rows(t.snapshot, t.snapshot.c.snapshot_id == 2))
    assert _expire(lake, older_than=moment) == [0, 1]
    with pytest.raises(LakeError, match="give one of them"):
        _expire(lake, older_than=moment, versions=[1])


@every_catalog
def test_writers_commit_while_snapshots_expire(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    for number in range(10):
        lake.create(f"t{number}")
        _write(lake, lambda tx, number=number: tx.drop(tx.state.table("main", f"t{number}")))  # type: ignore[misc]
    address, first = lake.address, lake.latest
    with ThreadPoolExecutor(4) as pool:
        expiring = pool.submit(lambda: [_expire(lake, versions=[version]) for version in range(first)])
        attempts = list(pool.map(lambda n: append_often(n, address.catalog, address.data_path, 8), range(3)))
        assert expiring.result() == [[version] for version in range(first)]
    assert sum(attempts) >= 24
    assert len(lake.rows(t.data_file)) == 24
    assert _snapshots(lake) == [*range(first, first + 25)]
    assert [row["table_name"] for row in lake.rows(t.table)] == ["t"]


@every_catalog
def test_two_expiries_at_once_schedule_each_file_once(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    _append_paper(lake, "a.parquet", "b.parquet", "c.parquet")
    _truncate(lake)
    barrier = threading.Barrier(2)

    def expire(versions: list[int]) -> list[int]:
        barrier.wait()
        return _expire(lake, versions=versions)

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(expire, ([0, 1, 2, 3], [1, 2, 3, 4])))
    assert sorted({*found[0], *found[1]}) == [0, 1, 2, 3, 4]
    assert _scheduled(lake) == [f"main/t/{name}.parquet" for name in "abc"]


@pytest.mark.processes
@pytest.mark.parametrize(("kind", "after"), [("sqlite", 2), ("sqlite", 14), ("postgres", 5)])
def test_an_expiry_that_is_killed_half_way_never_was(kind: str, after: int, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    _append_paper(lake, "a.parquet", "b.parquet")
    _write(lake, lambda tx: tx.drop(tx.state.table("main", "t")))
    before = _everything(lake)
    process = spawn.Process(target=die_in_an_expiry, args=(lake.address.catalog, lake.address.data_path, after))
    process.start()
    process.join(120)
    assert process.exitcode == -9
    assert _everything(lake) == before
    assert _expire(lake, versions=_all_but_newest(lake)) == [0, 1, 2, 3]
    assert _scheduled(lake) == ["main/t/a.parquet", "main/t/b.parquet"]


@pytest.mark.parametrize("commits", [True, False])
def test_an_expiry_without_an_answer_is_done_and_told_once(
    commits: bool, new_lake: NewLake, lose_answer: LoseAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sqlite, "can_reconnect", lambda *arguments: True)
    lake = Lake(new_lake("sqlite"))
    lake.create()
    _append_paper(lake, "a.parquet")
    _truncate(lake)
    lose_answer(lake.catalog, commits)
    assert _expire(lake, versions=_all_but_newest(lake)) == [0, 1, 2]
    assert _scheduled(lake) == ["main/t/a.parquet"]


def test_an_expiry_gives_up_after_its_tries_and_says_so(new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(new_lake("sqlite"), retry=Retry(max_count=2, wait_ms=1))
    lake.create()

    def fail(*arguments: object, **named: object) -> None:
        raise sa.exc.IntegrityError("insert", {}, Exception("taken"))

    monkeypatch.setattr(expiry, "_delete_snapshots", fail)
    with pytest.raises(BusyError, match="expiring snapshots failed: other writers were first 3 times"):
        _expire(lake, versions=[0])


def test_a_server_drops_only_so_many_tables_at_once(new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(new_lake("sqlite"))
    with lake.duckdb() as connection:
        for name in "abcdef":
            connection.execute(f"CREATE TABLE {name} AS SELECT 1 AS i")
            connection.execute(f"DROP TABLE {name}")
    monkeypatch.setattr(Sqlite, "max_dropped_tables", 2)
    dropped: list[int] = []
    delete_tables = expiry._delete_tables
    monkeypatch.setattr(
        expiry, "_delete_tables", lambda c, gone: (dropped.append(len(gone)), delete_tables(c, gone))[1]
    )
    assert _expire(lake, versions=_all_but_newest(lake)) == [*range(lake.latest)]
    assert sum(dropped) == 6
    assert max(dropped) <= 2
    assert lake.rows(t.inlined_data_tables) == []


def test_the_number_of_statements_does_not_grow_with_files_and_snapshots(new_lake: NewLake) -> None:
    counts = []
    for size in (5, 60):
        lake = Lake(new_lake("sqlite"))
        lake.create()
        for n in range(size // 5):
            _write(
                lake,
                lambda tx, n=n, size=size: tx.append(  # type: ignore[misc]
                    tx.state.table("main", "t"), [paper_file(f"{n}-{i}.parquet", 1) for i in range(size)]
                ),
            )
        _truncate(lake)
        statements: list[str] = []
        sa.event.listen(lake.catalog._engine, "after_cursor_execute", lambda *a, s=statements: s.append(a[2]))
        _expire(lake, versions=_all_but_newest(lake))
        assert len(_scheduled(lake)) == size * (size // 5)
        counts.append(len(statements))
    assert counts[0] == counts[1]


def test_a_read_only_lake_is_refused(new_lake: NewLake) -> None:
    address = new_lake("sqlite")
    Lake(address).create()
    lake = Lake(address, read_only=True)
    with pytest.raises(ReadOnlyError):
        _expire(lake, versions=[0])
    assert _snapshots(lake) == [0, 1]


def test_an_expired_version_is_said_to_be_expired(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    for name in "abcd":
        lake.create(name)
    _expire(lake, versions=[0, 1, 3])
    with lake.catalog.read() as connection:
        with pytest.raises(NotFoundError, match="no snapshot 3: it was expired; nearest to it there is 2 and 4"):
            lake.catalog.snapshot_at_version(connection, 3)
        with pytest.raises(NotFoundError, match="no snapshot 1: it was expired, or never was"):
            lake.catalog.snapshot_at_version(connection, 1)


def test_a_moment_whose_snapshot_may_have_expired_is_not_guessed(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    for name in "abcd":
        lake.create(name)
    times = {row["snapshot_id"]: row["snapshot_time"] for row in lake.rows(t.snapshot)}
    _expire(lake, versions=[0, 3])
    with lake.catalog.read() as connection:
        with pytest.raises(NotFoundError, match="those between 2 and 4 were expired"):
            lake.catalog.snapshot_at_timestamp(connection, times[3])
        assert lake.catalog.snapshot_at_timestamp(connection, times[1]).id == 1
        assert lake.catalog.snapshot_at_timestamp(connection, times[4]).id == 4


def test_a_transaction_conflicts_if_snapshots_since_its_base_expired(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    _append_paper(lake, "a.parquet")
    tx = lake.begin()
    tx.truncate(tx.state.table("main", "t"))
    _truncate(lake)
    lake.create("u")
    _expire(lake, versions=_all_but_newest(lake))
    with pytest.raises(ConflictError, match="snapshots since 2, which the transaction began at, were expired"):
        tx.commit()


def test_a_replaced_table_of_the_same_name_is_another_one(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    _append_paper(lake, "old.parquet")
    _write(lake, lambda tx: tx.replace_table(tx.state.table("main", "t"), columns(id="int64")))
    _append_paper(lake, "new.parquet")
    _expire(lake, versions=_all_but_newest(lake))
    assert [path.rpartition("/")[2] for path in _scheduled(lake)] == ["old.parquet"]
    assert [row["path"] for row in lake.rows(t.data_file)] == ["new.parquet"]
