"""`make bench`: each figure as a ratio to what a user would do instead, measured in the same run.

`python -m benchmarks --rows 1000000 --rounds 3 write scan` runs a part of it, on fewer rows.
"""

from __future__ import annotations

import argparse
import platform
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from . import dbt_runs, lake_format, rivals, rows, scan, write
from .harness import Bench, Figure, table

SUITES: dict[str, Callable[[Bench], list[Figure]]] = {
    "write": write.run,
    "scan": scan.run,
    "catalog": lake_format.run,
    "dbt": dbt_runs.run,
    "rows": rows.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("suites", nargs="*", choices=[[], *SUITES], help="which to run; all if none is named")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5, help="how often each side is measured")
    parser.add_argument("--memory", default="4g", help="Spark's driver memory")
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lake-bench-"))
    figures: list[Figure] = []
    try:
        suites = arguments.suites or list(SUITES)
        config = rivals.config(folder) if "rows" in suites else {}
        with Bench(folder, arguments.rows, arguments.rounds, arguments.memory, config) as bench:
            for name in suites:
                figures += SUITES[name](bench)
            python = f"{platform.python_implementation()} {platform.python_version()}"
            print(f"\n{python}, Spark {bench.spark.version}, {bench.cores} cores,", end=" ")
            print(f"{arguments.rows:,} rows, median of {arguments.rounds} rounds\n")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(table(figures))


if __name__ == "__main__":
    main()
