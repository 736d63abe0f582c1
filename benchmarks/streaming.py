"""A table that a stream writes in small batches, merged in tiers, at the end, or never."""

from __future__ import annotations

import time
from collections.abc import Callable

import pyarrow as pa

from dbt.adapters.ducklake import LakeSession

from .harness import Bench, Figure

BATCHES, ROWS = 600, 20_000
SMALL, MEDIUM = 20, 200
"""After how many batches small and medium files are merged."""


def run(bench: Bench) -> list[Figure]:
    lake = bench.lake
    names = ("unmerged", "at_end", "tiers")
    for name in names:
        lake.execute(f"create table {name} (id bigint, customer bigint, amount double, item string)")
    merging = 0.0
    for batch in range(BATCHES):
        rows = _rows(batch)
        for name in names:
            lake.insert(name, rows)
        start = time.perf_counter()
        if batch % SMALL == SMALL - 1:
            lake.call("ducklake_merge_adjacent_files", "tiers", max_file_size="1MB", target_file_size="8MB")
        if batch % MEDIUM == MEDIUM - 1:
            lake.call(
                "ducklake_merge_adjacent_files",
                "tiers",
                min_file_size="1MB",
                max_file_size="32MB",
                target_file_size="64MB",
            )
        merging += time.perf_counter() - start
    start = time.perf_counter()
    lake.call("ducklake_merge_adjacent_files", "at_end")
    at_end = time.perf_counter() - start

    def query(name: str) -> Callable[[int], object]:
        return lambda _: lake.sql(f"select customer, sum(amount) from {name} group by customer").collect()

    unmerged, merged, tiers = bench.median_seconds(*(query(name) for name in names))
    plain = f"{_files(lake, 'unmerged'):,} files"
    written = {name: _bytes_written(bench, name) / 2**20 for name in names}
    return [
        Figure(f"query, {_files(lake, 'tiers')} files, merged in tiers", tiers, "s", unmerged, plain),
        Figure(f"query, {_files(lake, 'at_end')} files, merged at the end", merged, "s", unmerged, plain),
        Figure(f"merging in tiers, {BATCHES} batches", merging, "s", at_end, "merging at the end"),
        Figure("bytes written, tiers", written["tiers"], "MiB", written["at_end"], "merged at the end"),
        Figure("bytes written, tiers", written["tiers"], "MiB", written["unmerged"], "unmerged"),
    ]


def _rows(batch: int) -> pa.Table:
    numbers = range(batch * ROWS, (batch + 1) * ROWS)
    columns = {"id": list(numbers), "customer": [i % 1000 for i in numbers], "amount": [i * 1.5 for i in numbers]}
    return pa.table({**columns, "item": [f"item {i % 5000}" for i in numbers]})


def _files(lake: LakeSession, name: str) -> int:
    return lake.sql(f"select * from ducklake_list_files('main.{name}')").count()


def _bytes_written(bench: Bench, name: str) -> int:
    """The bytes of all files that were written, with those that merges have replaced."""
    return sum(file.stat().st_size for file in (bench.folder / "data" / "main" / name).rglob("*.parquet"))
