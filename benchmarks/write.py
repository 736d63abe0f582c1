"""CREATE TABLE AS against Spark's own Parquet write of the same query."""

from __future__ import annotations

from .harness import Bench, Figure


def run(bench: Bench) -> list[Figure]:
    sql = bench.sample_sql()

    def ours(number: int) -> None:
        bench.lake.execute(f"create or replace table written as {sql}")

    def other(number: int) -> None:
        bench.spark.sql(sql).write.mode("overwrite").parquet(f"{bench.folder}/plain")

    ours_seconds, other_seconds = bench.turns(ours, other)
    return [
        Figure(
            f"create table as, {bench.rows:,} rows",
            ours_seconds,
            other=other_seconds,
            against="Spark Parquet write",
            goal="1.10",
        )
    ]
