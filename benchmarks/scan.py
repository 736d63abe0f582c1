"""Reading a table against `spark.read.parquet` of the same files."""

from __future__ import annotations

from .harness import Bench, Figure, consume


def run(bench: Bench) -> list[Figure]:
    bench.lake.execute(f"create or replace table scanned as {bench.sample_sql()}")
    files = [r.data_file for r in bench.lake.sql("select data_file from ducklake_list_files('scanned')").collect()]
    aggregate = "sum(amount), max(item), count(distinct customer)"

    def ours(number: int) -> None:
        consume(bench.lake.sql("select * from scanned"))

    def other(number: int) -> None:
        consume(bench.spark.read.parquet(*files))

    def ours_aggregate(number: int) -> None:
        bench.lake.sql(f"select {aggregate} from scanned").collect()

    def other_aggregate(number: int) -> None:
        bench.spark.read.parquet(*files).selectExpr(*aggregate.split(", ")).collect()

    full, full_other = bench.turns(ours, other)
    few, few_other = bench.turns(ours_aggregate, other_aggregate)
    return [
        Figure("full scan", full, other=full_other, against="spark.read.parquet", goal="1.05"),
        Figure("aggregate of three columns", few, other=few_other, against="spark.read.parquet", goal="1.05"),
    ]
