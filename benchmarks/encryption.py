"""An encrypted lake, compared with a plain one: the same statements on the same rows."""

from __future__ import annotations

from dbt.adapters.ducklake import LakeSession

from .harness import Bench, Figure, compute_all_rows


def run(bench: Bench) -> list[Figure]:
    sql = bench.sample_sql()
    with LakeSession(
        f"sqlite:{bench.folder}/encrypted.sqlite", f"{bench.folder}/encrypted/", spark=bench.spark, encrypted=True
    ) as encrypted:
        sides = (encrypted, bench.lake)

        def write(lake: LakeSession) -> None:
            lake.execute(f"create or replace table written as {sql}")

        def scan(lake: LakeSession) -> None:
            compute_all_rows(lake.sql("select * from written"))

        def aggregate(lake: LakeSession) -> None:
            lake.sql("select sum(amount), max(item), count(distinct customer) from written").collect()

        tasks = {
            f"create table as, {bench.rows:,} rows": write,
            "full scan": scan,
            "aggregate of three columns": aggregate,
        }
        figures = []
        for name, task in tasks.items():
            ours, plain = bench.median_seconds(*(lambda _, task=task, lake=lake: task(lake) for lake in sides))
            figures.append(Figure(f"encrypted: {name}", ours, baseline=plain, compared_with="a plain lake", goal="1.5"))
    return figures
