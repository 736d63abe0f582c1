"""The catalog: a commit, and planning a scan of a table with many files."""

from __future__ import annotations

import time

from dbt.adapters.ducklake.lake.files import NewDataFile
from dbt.adapters.ducklake.lake.stats import ColumnStats

from .harness import Bench, Figure, peak_memory_mb

FILES = 10_000


def run(bench: Bench) -> list[Figure]:
    return [*_commits(bench), *_planning(bench)]


def _commits(bench: Bench) -> list[Figure]:
    lake = bench.lake
    lake.execute("create table commented (id int)")

    def commit(round_number: int) -> None:
        lake.execute(f"comment on table commented is 'number {round_number} of {time.time_ns()}'")

    return [Figure("one commit, SQLite", bench.median_seconds(commit)[0] * 1000, "ms")]


def _planning(bench: Bench) -> list[Figure]:
    """Plans over many files: hard links to one file, registered with made-up statistics."""
    lake = bench.lake
    lake.execute("create table many (id bigint, name string)")
    template = bench.folder / "one.parquet"
    bench.spark.sql("select 0L as id, 'x' as name").coalesce(1).write.parquet(str(template))
    source = next(template.glob("*.parquet"))
    folder = bench.folder / "data" / "main" / "many"
    folder.mkdir(parents=True)
    with lake.transaction() as transaction:
        table = transaction.state.table("main", "many")
        for number in range(FILES):
            (folder / f"{number}.parquet").hardlink_to(source)
        transaction.append(table, [_file(number, source.stat().st_size) for number in range(FILES)])

    memory_before = peak_memory_mb()

    def plan_all(round_number: int) -> None:
        lake.sql("select * from many")

    def plan_one(round_number: int) -> None:
        lake.sql(f"select * from many where id = {100 * 77 + 5}")

    def plan_without_spark(round_number: int) -> None:
        main = lake.lake()
        transaction = main.begin()
        main.plan_scan(transaction.state.table("main", "many"), transaction.base, transaction.state)

    everything, one, catalog_only = bench.median_seconds(plan_all, plan_one, plan_without_spark)
    kept = lake.sql("select * from many where id = 7705").inputFiles()
    assert len(kept) == 1, f"{len(kept)} files are left after pruning"
    return [
        Figure(f"plan {FILES:,} files, catalog only", catalog_only, goal="under 1 s"),
        Figure(f"plan {FILES:,} files, with Spark's listing", everything, goal="under 1 s"),
        Figure(f"plan a filter that leaves 1 of {FILES:,}", one, goal="under 1 s"),
        Figure("Python driver's memory for planning", peak_memory_mb() - memory_before, "MB"),
    ]


def _file(number: int, size: int) -> NewDataFile:
    low, high = 100 * number, 100 * number + 99
    stats = {
        1: ColumnStats(50, 1, 0, str(low), str(high), None, None, True),
        2: ColumnStats(50, 1, 0, "a", "z", None, None, True),
    }
    return NewDataFile(f"{number}.parquet", True, 1, size, 100, stats)
