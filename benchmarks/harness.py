"""Shared by all benchmarks: a Spark session with an empty lake, timing in turns, and the table of results."""

from __future__ import annotations

import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.ducklake import LakeSession


@dataclass(frozen=True)
class Figure:
    """One line of the table: a measurement of ours, and of what it is compared with."""

    name: str
    ours: float
    unit: str = "s"
    baseline: float | None = None
    compared_with: str = ""
    goal: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.baseline if self.baseline else None


class Bench:
    """A Spark session and an empty lake in a folder."""

    def __init__(
        self, folder: Path, rows: int, rounds: int, memory: str, config: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self.rows, self.rounds = folder, rows, rounds
        self.cores = os.cpu_count() or 1
        self.lake = LakeSession(
            f"sqlite:{folder}/catalog.sqlite",
            data_path=f"{folder}/data/",
            spark={"master": f"local[{self.cores}]", "config": {"spark.driver.memory": memory, **(config or {})}},
        )

    @property
    def spark(self) -> SparkSession:
        return self.lake.spark

    def __enter__(self) -> Bench:
        self.spark.range(1000).selectExpr("sum(id)").collect()  # so that no benchmark measures the start of Spark
        return self

    def __exit__(self, *exception: object) -> None:
        self.lake.close()

    def sample_sql(self, rows: int | None = None) -> str:
        """A query that generates rows of six columns of common types."""
        return f"""
            select id, id % 1000 as customer, cast(id * 1.5 as decimal(12,2)) as amount, id / 7 as share,
                   concat('item ', id % 50000) as item, timestamp_seconds(1700000000 + id) as ordered_at
            from range({rows or self.rows})
        """

    def median_seconds(self, *sides: Callable[[int], object]) -> list[float]:
        """The median time of each side. The sides take turns in each round, so that noise hits all of them.

        Each side gets the number of the round. The first is a warm-up, with number -1, and is not measured.
        """
        seconds: list[list[float]] = [[] for _ in sides]
        for side in sides:
            side(-1)
        for round_number in range(self.rounds):
            for turn in range(len(sides)):
                side = (turn + round_number) % len(sides)
                start = time.perf_counter()
                sides[side](round_number)
                seconds[side].append(time.perf_counter() - start)
        return [statistics.median(s) for s in seconds]


def compute_all_rows(rows: DataFrame) -> None:
    """Computes every value and discards it."""
    rows.write.format("noop").mode("overwrite").save()


def peak_memory_mb() -> float:
    """The peak memory of this process in MB: the Python driver without the JVM."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def markdown_table(figures: Sequence[Figure]) -> str:
    head = ("task", "dbt-ducklake", "compared with", "other", "ratio", "goal")
    rows = [
        (
            f.name,
            _number(f.ours, f.unit),
            f.compared_with,
            _number(f.baseline, f.unit) if f.baseline is not None else "",
            f"{f.ratio:.2f}" if f.ratio is not None else "",
            f.goal,
        )
        for f in figures
    ]
    widths = [max(len(r[i]) for r in (head, *rows)) for i in range(len(head))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in (head, *rows)]
    lines.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
    return "\n".join(lines)


def _number(value: float, unit: str) -> str:
    return f"{value:.3f} {unit}" if value < 10 else f"{value:.1f} {unit}"
