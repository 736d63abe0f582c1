"""Compaction, compared with reading and writing the same rows in plain Spark, with Delta, Iceberg and DuckDB."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame

from dbt.adapters.ducklake import LakeSession
from tests import reference
from tests.lakes import Lake, LakeAddress

from .harness import Bench, Figure
from .row_changes import Side, make_sides

SMALL_FILES = 1000
SNAPSHOTS = 10_000


@dataclass(frozen=True)
class Task:
    name: str
    goal: str
    prepare: str
    """Changes a table of many files, before the time is taken; empty for nothing."""
    ours: Callable[[], object]
    theirs: dict[str, str]
    """The statement of each other format."""
    duckdb: str


def run(bench: Bench) -> list[Figure]:
    lake = bench.lake
    merge = Task(
        f"merge of {SMALL_FILES:,} files",
        "1.2",
        "",
        lambda: lake.call("ducklake_merge_adjacent_files", "worn"),
        {
            "Delta": "optimize spark_catalog.default.worn",
            "Iceberg": "call iceberg.system.rewrite_data_files(table => 'bench.worn')",
        },
        "call ducklake_merge_adjacent_files('lake', 'worn')",
    )
    rewrite = Task(
        "rewrite of files with 30 % deleted",
        "1.2",
        "delete from {table} where id % 10 < 3",
        lambda: lake.call("ducklake_rewrite_data_files", "worn", delete_threshold=0.1),
        {
            "Delta": "reorg table spark_catalog.default.worn apply (purge)",
            "Iceberg": "call iceberg.system.rewrite_data_files(table => 'bench.worn',"
            " options => map('rewrite-all', 'true'))",
        },
        "call ducklake_rewrite_data_files('lake', 'worn', delete_threshold => 0.1)",
    )
    return [*_measure(bench, merge, SMALL_FILES), *_measure(bench, rewrite, 8), *_catalog_only(bench)]


def _measure(bench: Bench, task: Task, files: int) -> list[Figure]:
    """Prepares each side anew in every round, and measures what compacts it."""
    sides = make_sides(bench)
    rows = f"select /*+ repartition({files}) */ * from ({bench.sample_sql()})"
    seconds: dict[str, list[float]] = {}

    def timed(name: str, work: Callable[[], object]) -> None:
        start = time.perf_counter()
        work()
        seconds.setdefault(name, []).append(time.perf_counter() - start)

    for _ in range(bench.rounds + 1):
        for side in sides:
            side.create_table("worn", rows)
            if task.prepare:
                side.run("worn", task.prepare)
            timed(side.name, task.ours if side.name == "ours" else _statement(side, task))
        made = bench.lake.sql("select * from ducklake_list_files('main.worn')").count()
        source = f"{bench.folder}/plain"
        bench.spark.sql(rows).where("id % 10 >= 3" if task.prepare else "true").write.mode("overwrite").parquet(source)
        plain = bench.spark.read.parquet(source)
        timed(f"plain Spark, {made} files", partial(_copy, bench, plain.coalesce(made)))
        timed("plain Spark, as it likes", partial(_copy, bench, plain))
        shutil.rmtree(source)
        bench.lake.execute(f"create or replace table worn as {rows}")
        if task.prepare:
            bench.lake.execute(task.prepare.format(table="worn"))
        with reference.connect(f"sqlite:{bench.folder}/catalog.sqlite") as connection:
            connection.execute("set threads = 2")
            timed("DuckDB, 2 threads", lambda: connection.execute(task.duckdb).fetchall())
    medians = {name: statistics.median(measured[1:]) for name, measured in seconds.items()}  # the first warms up
    ours = medians.pop("ours")
    return [
        Figure(
            f"{task.name}, {bench.rows:,} rows",
            ours,
            baseline=other,
            compared_with=name,
            goal=task.goal if "files" in name else "1" if name in task.theirs else "",
        )
        for name, other in medians.items()
    ]


def _copy(bench: Bench, rows: DataFrame) -> None:
    rows.write.mode("overwrite").parquet(f"{bench.folder}/copy")


def _statement(side: Side, task: Task) -> Callable[[], object]:
    return lambda: side.execute(task.theirs[side.name])


def _catalog_only(bench: Bench) -> list[Figure]:
    """What a catalog with many snapshots and files takes. Each snapshot has a file of one row."""
    many = Lake(LakeAddress("sqlite", f"sqlite:{bench.folder}/many.sqlite", f"{bench.folder}/many/"))
    many.create(id="int64")
    for index in range(SNAPSHOTS):
        many.append({"id": [index]})
    with many.transaction() as transaction:
        transaction.truncate(transaction.state.table("main", "t"))
    with LakeSession(f"sqlite:{bench.folder}/many.sqlite", spark=bench.spark) as lake:
        start = time.perf_counter()
        expired = lake.call("ducklake_expire_snapshots", versions=list(range(1, SNAPSHOTS + 2))).num_rows
        expiry = time.perf_counter() - start
        start = time.perf_counter()
        deleted = lake.call("ducklake_cleanup_old_files", cleanup_all=True).num_rows
        cleanup = time.perf_counter() - start
    return [Figure(f"expiry of {expired:,} snapshots", expiry), Figure(f"clean-up of {deleted:,} files", cleanup)]
