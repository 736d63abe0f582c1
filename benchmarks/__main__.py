"""`make bench`: compares dbt-ducklake with what a user would do instead, both measured in the same run.

`python -m benchmarks --rows 1000000 --rounds 3 write scan` runs some of the suites, on fewer rows.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import (
    catalog,
    commits,
    compaction,
    dbt_runs,
    encryption,
    object_store,
    row_changes,
    scan,
    small_inserts,
    streaming,
    table_formats,
    write,
)
from .harness import Bench, Figure, markdown_table

SUITES: dict[str, Callable[[Bench], list[Figure]]] = {
    "write": write.run,
    "scan": scan.run,
    "catalog": catalog.run,
    "commits": commits.run,
    "inserts": small_inserts.run,
    "compaction": compaction.run,
    "streaming": streaming.run,
    "encryption": encryption.run,
    "s3": object_store.run,
    "dbt": dbt_runs.run,
    "rows": row_changes.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], help="the suites to run; without any, all")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5, help="how many times each side is measured")
    parser.add_argument("--memory", default="4g", help="Spark's driver memory")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lake-bench-"))
    figures: list[Figure] = []
    try:
        suites = arguments.suites or list(SUITES)
        config = table_formats.spark_config(folder) if {"rows", "compaction", "inserts"} & set(suites) else {}
        with Bench(folder, arguments.rows, arguments.rounds, arguments.memory, config) as bench:
            for name in suites:
                figures += SUITES[name](bench)
            python = f"{platform.python_implementation()} {platform.python_version()}"
            print(f"\n{python}, Spark {bench.spark.version}, {bench.cores} cores,", end=" ")
            print(f"{arguments.rows:,} rows, median of {arguments.rounds} rounds\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(markdown_table(figures))


if __name__ == "__main__":
    main()
