"""`make quickstart`: builds the shop project of this folder twice, into a new lake in quickstart/."""

from __future__ import annotations

import os
import shutil
import sys
from datetime import datetime, timezone
from pathlib import Path

from dbt.cli.main import dbtRunner

from dbt.adapters.ducklake import LakeSession

PROJECT = Path(__file__).parent
FOLDER = Path.cwd() / "quickstart"
FOLDER_OPTIONS = [
    *("--project-dir", str(PROJECT)),
    *("--profiles-dir", str(PROJECT)),
    *("--target-path", str(FOLDER / "target")),
    *("--log-path", str(FOLDER / "logs")),
]


def main() -> int:
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    FOLDER.mkdir()
    (FOLDER / ".gitignore").write_text("*\n")
    os.environ["SHOP_FOLDER"] = str(FOLDER)
    print(f"A lake in {FOLDER}: its catalog is one SQLite file, its data are Parquet files.\n")
    if not dbt("build"):
        return 1
    variables = f"{{today: 2026-02-20, since: '{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S.%f}+00:00'}}"
    later = ["--event-time-start", "2026-01-01", "--event-time-end", "2027-01-01"]  # for the microbatch model
    print("\nDays later there is more data. What that changes is built, and the rest is reused:")
    if not dbt("build", "--exclude-resource-types", "unit_test", *later, "--vars", variables):
        return 1
    if not dbt("docs", "generate", "--vars", variables):
        return 1
    show_results()
    print(NEXT_STEPS)
    return 0


def dbt(*command: str) -> bool:
    print(f"\n$ dbt {' '.join(command)}\n")
    return dbtRunner().invoke([*command, *FOLDER_OPTIONS]).success


def show_results() -> None:
    """Prints the snapshots and changes of the two builds."""
    lake = LakeSession(f"sqlite:{FOLDER}/metadata.sqlite")
    for title, query in (
        ("Each build is a snapshot, which says what its models changed", SNAPSHOTS),
        (
            "Time travel: the current orders compared with those of the first build",
            "select * from orders_since order by status",
        ),
        ("A dbt snapshot: customers with new orders, before and after", CUSTOMER_VERSIONS),
    ):
        print(f"\n{title}:\n")
        lake.sql(query).show(50, truncate=False)


SNAPSHOTS = """
    with snapshots as (
        select snapshot_id, commit_message, explode(from_json(commit_extra_info, '
            nodes array<struct<message string, rows struct<inserted int, updated int, deleted int>>>').nodes) as node
        from ducklake_snapshots()
    )
    select snapshot_id, commit_message, node.message as node, node.rows.*
    from snapshots
    order by snapshot_id, node
"""

CUSTOMER_VERSIONS = """
    select name, orders, spent, dbt_valid_from as since, dbt_valid_to as until
    from customers_history
    where customer_id in (select customer_id from customers_history where dbt_valid_to is not null)
    order by name, since
"""

NEXT_STEPS = f"""What to look at next

  * The project:  {PROJECT} -- models, tests and this program
  * The docs:     python -m http.server --directory {FOLDER}/target, then http://localhost:8000
  * The lineage:  {FOLDER}/target/snapshot_lineage.html -- which version was built from which
  * The files:    find {FOLDER}/data -name '*.parquet'
  * With DuckDB:  INSTALL ducklake; INSTALL sqlite;
                  ATTACH 'ducklake:sqlite:{FOLDER}/metadata.sqlite' AS lake;
                  FROM lake.main.orders;
  * In Python:    from dbt.adapters.ducklake import LakeSession
                  lake = LakeSession("sqlite:{FOLDER}/metadata.sqlite")
                  lake.sql("select * from daily timestamp as of now()").show()
  * The guide:    docs/README.md
"""


if __name__ == "__main__":
    sys.exit(main())
