"""Reads of a table, compared with `spark.read.parquet` of the same files."""

from __future__ import annotations

from .harness import Bench, Figure, compute_all_rows


def run(bench: Bench) -> list[Figure]:
    bench.lake.execute(f"create or replace table scanned as {bench.sample_sql()}")
    files = [row.data_file for row in bench.lake.sql("select data_file from ducklake_list_files('scanned')").collect()]
    aggregate = "sum(amount), max(item), count(distinct customer)"

    def scan_lake(round_number: int) -> None:
        compute_all_rows(bench.lake.sql("select * from scanned"))

    def scan_parquet(round_number: int) -> None:
        compute_all_rows(bench.spark.read.parquet(*files))

    def aggregate_lake(round_number: int) -> None:
        bench.lake.sql(f"select {aggregate} from scanned").collect()

    def aggregate_parquet(round_number: int) -> None:
        bench.spark.read.parquet(*files).selectExpr(*aggregate.split(", ")).collect()

    full_scan, parquet_full_scan = bench.median_seconds(scan_lake, scan_parquet)
    columns, parquet_columns = bench.median_seconds(aggregate_lake, aggregate_parquet)
    return [
        Figure("full scan", full_scan, baseline=parquet_full_scan, compared_with="spark.read.parquet", goal="1.05"),
        Figure(
            "aggregate of three columns",
            columns,
            baseline=parquet_columns,
            compared_with="spark.read.parquet",
            goal="1.05",
        ),
    ]
