"""Commits of many processes to one table, with the catalog in PostgreSQL, compared with writers that race.

Needs a PostgreSQL server, as the tests do, and no Spark: `python -m benchmarks.commits` runs it alone.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.lake.databases.postgres import Postgres
from dbt.adapters.ducklake.lake.errors import BusyError
from dbt.adapters.ducklake.lake.files import NewDataFile
from dbt.adapters.ducklake.lake.snapshot_loader import Snapshots
from dbt.adapters.ducklake.lake.stats import ColumnStats
from dbt.adapters.ducklake.lake.transaction import Transaction
from tests import servers
from tests.lakes import columns
from tests.workers import in_processes

from .harness import Bench, Figure, markdown_table

PROCESSES = (1, 4, 16)
WARM_UP_SECONDS, SECONDS = 4.0, 6.0
COLUMNS = 5


def run(bench: Bench) -> list[Figure]:
    return measure(bench.rounds)


def measure(rounds: int) -> list[Figure]:
    figures = []
    with servers.postgres() as words:
        for processes in PROCESSES:
            sides: dict[bool, list[list[int]]] = {False: [], True: []}
            for _, racing in itertools.product(range(rounds), (False, True)):
                with _lake(words) as (catalog, data_path):
                    sides[racing].append(in_processes(processes, append_one_by_one, catalog, data_path, racing))
            rate, racing_rate = (statistics.median(sum(c) / SECONDS for c in sides[racing]) for racing in sides)
            goal = "150 /s" if processes == 16 else ""
            figures.append(Figure(f"commits of {processes} processes", rate, "/s", racing_rate, "racing", goal))
            if processes > 1:
                name = f"the slowest of {processes}, times behind the median"
                behind, racing_behind = (statistics.median(map(_behind, sides[racing])) for racing in sides)
                figures.append(Figure(name, behind, "", racing_behind, "racing", "5"))
        figures += _statements(words, rounds)
    return figures


def _statements(words: str, rounds: int) -> list[Figure]:
    """One-row INSERT statements of many processes, inlined and as files."""
    sides: dict[int, list[list[int]]] = {10: [], 0: []}
    for _, limit in itertools.product(range(rounds), sides):
        with _lake(words) as (catalog, data_path):
            sides[limit].append(in_processes(PROCESSES[-1], insert_one_by_one, catalog, data_path, limit))
    inlined, files = (statistics.median(sum(c) / SECONDS for c in counts) for counts in sides.values())
    behind, files_behind = (statistics.median(map(_behind, counts)) for counts in sides.values())
    name = f"one-row INSERTs of {PROCESSES[-1]} processes"
    return [
        Figure(name, inlined, "/s", files, "in files", "150 /s"),
        Figure(f"{name}: the slowest, times behind the median", behind, "", files_behind, "in files", "5"),
    ]


def insert_one_by_one(number: int, catalog: str, data_path: str, limit: int) -> int:
    """Executes one-row INSERTs. Answers the number of commits in the time that is measured."""
    committed, begin = 0, time.monotonic() + WARM_UP_SECONDS
    with LakeSession(catalog, data_path, data_inlining_row_limit=limit) as lake:
        for turn in itertools.count():
            if time.monotonic() > begin + SECONDS:
                break
            try:
                lake.execute(f"insert into t values ({number}, {turn}, {turn % 7}, null, 1)")
            except BusyError:
                continue
            committed += begin < time.monotonic() < begin + SECONDS
        assert not lake.spark_started
    return committed


def append_one_by_one(number: int, catalog: str, data_path: str, racing: bool) -> int:
    """Appends one file a commit. Answers the number of commits in the time that is measured."""
    if racing:
        Postgres.wait_in_line = lambda *_: None  # type: ignore[method-assign]
    lake = Catalog.open(catalog, data_path)
    snapshots, committed, begin = Snapshots(lake), 0, time.monotonic() + WARM_UP_SECONDS
    for turn in itertools.count():
        if time.monotonic() > begin + SECONDS:
            break
        transaction = Transaction.begin(lake, snapshots)
        stats = {c: ColumnStats(10, 1, 0, "0", str(turn), None, exact=True) for c in range(1, COLUMNS + 1)}
        file = NewDataFile(f"{number}-{turn}.parquet", True, 1, 1000, 100, stats)
        transaction.append(transaction.state.table("main", "t"), [file])
        try:
            transaction.commit()
        except BusyError:
            continue
        committed += begin < time.monotonic() < begin + SECONDS
    lake.close()
    return committed


def _behind(commits: list[int]) -> float:
    """How many times as many commits as the slowest writer the median writer has."""
    return statistics.median(commits) / max(min(commits), 1)


_numbers = itertools.count()


@contextmanager
def _lake(words: str) -> Iterator[tuple[str, str]]:
    """A new lake with one empty table, in a database of its own."""
    import psycopg

    name = f"bench_{next(_numbers)}"
    with psycopg.connect(words, dbname="postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    with tempfile.TemporaryDirectory(prefix="lake-bench-") as folder:
        catalog, data_path = f"postgres:{words} dbname={name}", f"{folder}/"
        lake = Catalog.open(catalog, data_path)
        transaction = Transaction.begin(lake, Snapshots(lake))
        kinds = {f"c{n}": "int64" for n in range(COLUMNS)}
        transaction.create_table(transaction.state.schema("main"), "t", columns(**kinds))
        transaction.commit()
        lake.close()
        yield catalog, data_path


if __name__ == "__main__":
    print(markdown_table(measure(rounds=3)))
