"""What every benchmark needs: a session, a clock that takes turns, and a table to print."""

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
    """One line of the table: what was measured, beside what it is measured against."""

    name: str
    ours: float
    unit: str = "s"
    other: float | None = None
    against: str = ""
    goal: str = ""

    @property
    def ratio(self) -> float | None:
        return self.ours / self.other if self.other else None


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
        self.spark.range(1000).selectExpr("sum(id)").collect()  # Spark's own start is not measured
        return self

    def __exit__(self, *exception: object) -> None:
        self.lake.close()

    def sample_sql(self, rows: int | None = None) -> str:
        """A query that makes rows of six common types out of nothing."""
        return f"""
            select id, id % 1000 as customer, cast(id * 1.5 as decimal(12,2)) as amount, id / 7 as share,
                   concat('item ', id % 50000) as item, timestamp_seconds(1700000000 + id) as ordered_at
            from range({rows or self.rows})
        """

    def turns(self, *sides: Callable[[int], object]) -> list[float]:
        """The median seconds of each side; they take turns, so that a noisy moment meets them all.

        A side is told which round it is, -1 being the one to warm up.
        """
        seconds: list[list[float]] = [[] for _ in sides]
        for side in sides:
            side(-1)
        for number in range(self.rounds):
            for index in range(len(sides)):
                which = (index + number) % len(sides)
                begun = time.perf_counter()
                sides[which](number)
                seconds[which].append(time.perf_counter() - begun)
        return [statistics.median(s) for s in seconds]


def consume(rows: DataFrame) -> None:
    """Has every value computed, and keeps none."""
    rows.write.format("noop").mode("overwrite").save()


def peak_memory_mb() -> float:
    """The most memory that this process has had, in MB: the Python driver, not the JVM."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(figures: Sequence[Figure]) -> str:
    """The figures as a Markdown table."""
    head = ("what", "ours", "against", "other", "ratio", "goal")
    rows = [
        (
            f.name,
            _number(f.ours, f.unit),
            f.against,
            _number(f.other, f.unit) if f.other is not None else "",
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
