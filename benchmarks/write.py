"""CREATE TABLE AS, compared with Spark's Parquet write of the same query."""

from __future__ import annotations

from .harness import Bench, Figure


def run(bench: Bench) -> list[Figure]:
    sql = bench.sample_sql()

    def write_lake(round_number: int) -> None:
        bench.lake.execute(f"create or replace table written as {sql}")

    def write_parquet(round_number: int) -> None:
        bench.spark.sql(sql).write.mode("overwrite").parquet(f"{bench.folder}/plain")

    lake_seconds, parquet_seconds = bench.median_seconds(write_lake, write_parquet)
    return [
        Figure(
            f"create table as, {bench.rows:,} rows",
            lake_seconds,
            baseline=parquet_seconds,
            compared_with="Spark Parquet write",
            goal="1.10",
        )
    ]
