"""Analysis: lost statistics come back, and no reader that prunes by them misses a row, at any snapshot."""

from __future__ import annotations

import os
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.file_store import FileStore
from dbt.adapters.ducklake.lake.maintenance import analysis
from dbt.adapters.ducklake.lake.maintenance.analysis import analyze_table
from dbt.adapters.ducklake.lake.paths import filesystem_for

from ....lakes import Lake
from ..catalogs import NewLake, every_catalog, every_reference_catalog


def _analyze(lake: Lake, name: str = "t", columns: Collection[int] | None = None, read_files: bool = True) -> int:
    store = FileStore(*filesystem_for(lake.catalog.data_path))
    table_id = lake.table(name).id
    return analyze_table(lake.catalog, lake.snapshots, store, table_id, columns, read_files=read_files)


def _forget(lake: Lake, *kinds: sa.Table) -> None:
    with lake.catalog.write() as connection:
        for kind in kinds or (t.file_column_stats, t.table_column_stats):
            connection.execute(sa.delete(kind))


def _file_statistics(lake: Lake) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in lake.rows(t.file_column_stats))


def _bounds(lake: Lake, table: sa.Table = t.table_column_stats) -> dict[int, tuple[Any, ...]]:
    return {r["column_id"]: (r["min_value"], r["max_value"], r["contains_null"]) for r in lake.rows(table)}


def _wrong_answers(lake: Lake, name: str = "t") -> list[str]:
    """Where DuckDB, which prunes by statistics, does not find what it finds by looking at every row."""
    wrong = []
    begin, latest = lake.rows(t.table, t.table.c.table_name == name)[0]["begin_snapshot"], lake.latest
    with lake.duckdb() as duckdb:
        for at in range(begin, latest + 1):
            source = f"{name} at (version => {at})"
            rows = duckdb.execute(f"from {source}").fetchall()
            questions: dict[str, Any] = {}
            for i, column in enumerate(c[0] for c in duckdb.description or ()):
                values = [row[i] for row in rows]
                questions[f"select count(*) from {source} where {column} is null"] = values.count(None)
                for value in {v for v in values if v is not None}:
                    questions[f"select count(*) from {source} where {column} = {value!r}"] = values.count(value)
                for function, of in (("min", min), ("max", max)):
                    known = [v for v in values if v is not None]
                    questions[f"select {function}({column}) from {source}"] = of(known) if known else None
            found = duckdb.execute(f"select {', '.join(f'({q})' for q in questions)}").fetchone() or ()
            for (question, answer), value in zip(questions.items(), found, strict=True):
                if value != answer:
                    wrong.append(f"{question} is {value}, not {answer}")
    return wrong


@every_catalog
def test_lost_statistics_of_files_and_of_the_table_come_back(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    for low in (0, 100):
        lake.append({"id": list(range(low, low + 50)), "name": [None, *(f"n{i}" for i in range(low, low + 49))]})
    files, bounds, latest = _file_statistics(lake), _bounds(lake), lake.latest
    _forget(lake)
    assert _analyze(lake) == 2
    assert _file_statistics(lake) == files
    assert _bounds(lake) == bounds
    assert lake.latest == latest
    assert _analyze(lake) == 0


@every_reference_catalog
def test_duckdb_finds_every_row_at_every_snapshot_after_analysis(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind), data_inlining_row_limit=0)
    lake.run_in_duckdb(
        "call lake.set_option('data_inlining_row_limit', 0)",
        "create table t (id int, gone varchar)",
        "insert into t values (-1000, 'only here'), (5, 'a')",
        "insert into t values (7, 'b'), (null, null)",
        "delete from t where id = -1000",
        "insert into t values (90, 'c')",
        "delete from t where id = 90",
        "alter table t add column more int",
        "insert into t values (8, 'd', 4)",
        "alter table t add column filled int default 3",
        "insert into t values (9, 'e', 5, 30)",
        "insert into t values (5000000, 'f', 6, 40)",
    )
    assert _wrong_answers(lake) == []
    _forget(lake, t.table_column_stats)
    current = sa.select(t.data_file.c.data_file_id).where(t.data_file.c.end_snapshot.is_(None))
    with lake.catalog.write() as connection:
        connection.execute(sa.delete(t.file_column_stats).where(t.file_column_stats.c.data_file_id.in_(current)))
    assert _analyze(lake) > 0
    assert _wrong_answers(lake) == []
    by_name = {lake.table().column(name).id: name for name in ("id", "more", "filled")}
    bounds = {by_name[i]: b for i, b in _bounds(lake).items() if i in by_name}
    # Files that are older than a column have NULL there, or a default of which no footer tells.
    assert bounds == {"id": ("-1000", "5000000", True), "more": ("4", "6", True)}
    lake.run_in_duckdb("insert into t values (1, 'z', 1, 3)")
    assert _wrong_answers(lake) == []


@every_reference_catalog
def test_a_table_with_inlined_rows_gets_no_bounds_that_exclude_them(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create(id="int64")
    lake.append({"id": [5, 6, 7]})
    lake.run_in_duckdb("insert into t values (1000)")
    _forget(lake)
    assert _analyze(lake) == 1
    assert _bounds(lake) == {}
    assert _wrong_answers(lake) == []


def test_missing_bounds_of_a_column_become_those_of_all_files_and_unknown_ones_the_widest(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create(id="int64", n="int64")
    lake.append({"id": [5], "n": [1]})
    lake.append({"id": [9], "n": [2]})
    table = lake.table()
    with lake.catalog.write() as connection:
        stats, file_stats = t.table_column_stats, t.file_column_stats
        connection.execute(sa.update(stats).values(min_value=None, max_value=None))
        of_n = file_stats.c.column_id == table.column("n").id
        connection.execute(sa.update(file_stats).where(of_n).values(max_value=None))  # nobody can tell any more
    assert _analyze(lake, read_files=False) == 0
    bounds = _bounds(lake)
    assert bounds[table.column("id").id] == ("5", "9", False)
    assert bounds[table.column("n").id] == (str(-(2**63)), str(2**63 - 1), False)


def test_bounds_of_the_table_are_never_narrowed(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create(id="int64")
    lake.append({"id": [5]})
    with lake.catalog.write() as connection:
        connection.execute(sa.update(t.table_column_stats).values(min_value="-3", max_value="4"))
    _forget(lake, t.file_column_stats)
    assert _analyze(lake) == 1
    assert list(_bounds(lake).values()) == [("-3", "5", False)]
    assert lake.seen_by_duckdb("select min(id), max(id) from t") == [(5, 5)]


def test_only_the_statistics_of_the_named_columns_are_read(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    table = lake.create()
    lake.append({"id": [5], "name": ["a"]})
    _forget(lake)
    assert _analyze(lake, columns={table.column("name").id}) == 1
    assert [row["column_id"] for row in lake.rows(t.file_column_stats)] == [table.column("name").id]


@every_catalog
def test_files_that_come_and_go_during_an_analysis_do_no_harm(
    kind: str, new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(new_lake(kind))
    lake.create(id="int64")
    lake.append({"id": [5]})
    lake.append({"id": [50]})
    _forget(lake)
    read = analysis._read

    def read_while_others_write(*arguments: Any) -> Any:
        found = read(*arguments)
        with lake.transaction() as tx:
            table = tx.state.table("main", "t")
            tx.truncate(table)
        lake.append({"id": [500]})
        return found

    monkeypatch.setattr(analysis, "_read", read_while_others_write)
    assert _analyze(lake) == 0
    monkeypatch.undo()
    assert [row["min_value"] for row in lake.rows(t.file_column_stats)] == ["500"]
    assert _bounds(lake) == {}  # the files that ended tell nothing, and earlier snapshots need them


def test_a_changed_column_makes_an_analysis_begin_again(new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create(id="int32")
    lake.append({"id": [5]})
    _forget(lake)
    read, reads = analysis._read, []

    def read_once_while_another_alters(*arguments: Any) -> Any:
        found = read(*arguments)
        if not reads:
            lake.run_in_duckdb("alter table t alter column id type bigint")
        reads.append(found)
        return found

    monkeypatch.setattr(analysis, "_read", read_once_while_another_alters)
    assert _analyze(lake) == 1
    assert len(reads) == 2


def test_added_files_are_read_by_their_name_maps(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    folder = f"{lake.catalog.data_path}added/region=eu/"
    os.makedirs(folder)
    # `region` is in the path, `other` in no file, and the order of the file is another one.
    pq.write_table(pa.table({"name": ["x", None], "ID": pa.array([70, 90], pa.int32())}), f"{folder}a.parquet")
    with lake.duckdb() as duckdb:
        duckdb.execute("create table t (id bigint, name varchar, region varchar, other int)")
        duckdb.execute("insert into t select i, 'n', 'us', i from range(20) r(i)")
        duckdb.execute(
            f"call ducklake_add_data_files('lake', 't', '{folder}a.parquet', hive_partitioning => true,"
            " allow_missing => true)"
        )
    _forget(lake)
    assert _analyze(lake) == 2
    added = max(row["data_file_id"] for row in lake.rows(t.data_file))
    names = {lake.table().column(name).id: name for name in ("id", "name", "region", "other")}
    statistics = {
        names[r["column_id"]]: (r["min_value"], r["max_value"], r["null_count"])
        for r in lake.rows(t.file_column_stats, t.file_column_stats.c.data_file_id == added)
    }
    assert statistics == {"id": ("70", "90", 0), "name": ("x", "x", 1)}
    assert _wrong_answers(lake) == []


@every_catalog
def test_a_commit_during_the_write_of_an_analysis_loses_no_bound(
    kind: str, new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(new_lake(kind))
    lake.create(id="int64")
    lake.append({"id": [5]})
    _forget(lake)
    missing, commits = analysis._missing, []

    def missing_while_another_commits(*arguments: Any) -> Any:
        found = missing(*arguments)
        if not commits:
            commits.append(pool.submit(lake.append, {"id": [500]}))
            wait(commits, timeout=0.5)  # it commits now, or waits for this transaction
        return found

    with ThreadPoolExecutor(1) as pool:
        monkeypatch.setattr(analysis, "_missing", missing_while_another_commits)
        assert _analyze(lake) == 1
        commits[0].result()
    assert list(_bounds(lake).values()) in ([("5", "500", False)], [])
    assert _analyze(lake) == 0
    assert list(_bounds(lake).values()) == [("5", "500", False)]
