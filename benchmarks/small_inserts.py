"""Many small inserts: batches of 10 rows into 23 columns, nine aggregates, and a checkpoint.

The same statements run on DuckDB's DuckLake with another catalog in SQLite, and on Delta Lake and Iceberg where Spark
has them. Ours run once more with `data_inlining_row_limit` 0, so that each batch is a file.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from tests import reference

from . import table_formats
from .harness import Bench, Figure

BATCHES, ROWS = 300, 10
NUMBERS, TEXTS, DAYS = 11, 8, 3

COLUMNS = [
    "id bigint",
    *(f"n{i} int" for i in range(NUMBERS)),
    *(f"t{i} {{text}}" for i in range(TEXTS)),
    *(f"d{i} date" for i in range(DAYS)),
]
AGGREGATES = [
    *("count(*)", "sum(n0)", "min(id)", "max(id)", "avg(n1)"),
    *("count(distinct t0)", "max(t1)", "min(d0)", "sum(n2 * n3)"),
]


@dataclass(frozen=True)
class Side:
    """A system: how it runs a statement and a query, and how it names a table."""

    name: str
    execute: Callable[[str], Any]
    fetch: Callable[[str], Any]
    table: str = "{}"
    create: str = "create table {table} ({columns})"
    text: str = "string"
    checkpoint: tuple[str, ...] = ()

    def times(self, table: str, batches: int) -> dict[str, float]:
        name = self.table.format(table)
        columns = ", ".join(COLUMNS).replace("{text}", self.text)
        self.execute(self.create.format(table=name, columns=columns))
        tasks: dict[str, Callable[[], object]] = {
            "inserts": lambda: [self.execute(_batch(name, n)) for n in range(batches)],
            "aggregates": lambda: [self.fetch(f"select {a} from {name}") for a in AGGREGATES],
            "checkpoint": lambda: [self.execute(statement.format(table=table)) for statement in self.checkpoint],
            "aggregates after it": lambda: [self.fetch(f"select {a} from {name}") for a in AGGREGATES],
        }
        seconds = {}
        for task, run_task in tasks.items():
            start = time.perf_counter()
            run_task()
            seconds[task] = time.perf_counter() - start
        count = self.fetch(f"select count(*) from {name}")
        assert int(count[0][0]) == batches * ROWS, (self.name, count)
        print(f"{self.name}: {', '.join(f'{task} {s:.2f} s' for task, s in seconds.items())}", flush=True)
        return seconds


def run(bench: Bench) -> list[Figure]:
    with ExitStack() as stack:
        sides = _sides(bench, stack)
        for number, side in enumerate(sides):
            side.times(f"warm_up_{number}", 3)
        found = [side.times(f"small_{number}", BATCHES) for number, side in enumerate(sides)]
    ours, others = found[0], list(zip(sides[1:], found[1:], strict=True))
    return [
        Figure(f"{BATCHES} batches: {task}", ours[task], baseline=seconds[task], compared_with=side.name)
        for task in ours
        for side, seconds in others
        if side.checkpoint or task != "checkpoint"
    ]


def _sides(bench: Bench, stack: ExitStack) -> list[Side]:
    lake = bench.lake

    def lake_rows(query: str) -> Any:
        return lake.sql(query).collect()

    duckdb = reference.connect(f"sqlite:{bench.folder}/duckdb.sqlite", f"{bench.folder}/duckdb/")
    stack.callback(duckdb.close)
    flush = ("call ducklake_flush_inlined_data('main.{table}')", "call ducklake_merge_adjacent_files('main.{table}')")
    sides = [
        Side("ours", lake.execute, lake_rows, checkpoint=flush),
        Side(
            "files of ours",
            lake.execute,
            lake_rows,
            create="create table {table} ({columns}) tblproperties ('data_inlining_row_limit' = '0')",
            checkpoint=flush,
        ),
        Side(
            "DuckDB",
            duckdb.execute,
            lambda query: duckdb.execute(query).fetchall(),
            text="varchar",
            checkpoint=("checkpoint lake",),
        ),
    ]
    if table_formats.AVAILABLE:

        def spark_rows(query: str) -> Any:
            return bench.spark.sql(query).collect()

        sides += [
            Side(
                "Delta",
                bench.spark.sql,
                spark_rows,
                "spark_catalog.default.{}",
                "create table {table} ({columns}) using delta",
                checkpoint=("optimize spark_catalog.default.{table}",),
            ),
            Side(
                "Iceberg",
                bench.spark.sql,
                spark_rows,
                "iceberg.bench.{}",
                "create table {table} ({columns}) using iceberg",
                checkpoint=("call iceberg.system.rewrite_data_files(table => 'bench.{table}')",),
            ),
        ]
    return sides


def _batch(table: str, number: int) -> str:
    rows = []
    for row in range(number * ROWS, (number + 1) * ROWS):
        numbers = ", ".join(str((row * (i + 7)) % 1000) for i in range(NUMBERS))
        texts = ", ".join(f"'text {(row * (i + 3)) % 100} of column {i}'" for i in range(TEXTS))
        days = ", ".join(f"date'2026-{1 + row % 12:02}-{1 + (row + i) % 28:02}'" for i in range(DAYS))
        rows.append(f"({row}, {numbers}, {texts}, {days})")
    return f"insert into {table} values {', '.join(rows)}"
