"""`make quickstart`: the shop of this folder, built twice into a new lake in quickstart/."""

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
WHERE = [
    *("--project-dir", str(PROJECT)),
    *("--profiles-dir", str(PROJECT)),
    *("--target-path", str(FOLDER / "target")),
    *("--log-path", str(FOLDER / "logs")),
]


def main() -> int:
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    FOLDER.mkdir()
    os.environ["SHOP_FOLDER"] = str(FOLDER)
    print(f"A lake in {FOLDER}: its catalog is one SQLite file, its data are Parquet files.\n")
    if not dbt("build"):
        return 1
    later = f"{{today: 2026-02-20, since: '{datetime.now(timezone.utc):%Y-%m-%d %H:%M:%S}+00:00'}}"
    again = ["--exclude-resource-types", "seed", "test", "unit_test"]
    again += ["--event-time-start", "2026-01-01", "--event-time-end", "2027-01-01"]  # of microbatch models
    if not dbt("build", *again, "--vars", later) or not dbt("docs", "generate", "--vars", later):
        return 1
    look()
    print(NEXT)
    return 0


def dbt(*command: str) -> bool:
    print(f"\n$ dbt {' '.join(command)}\n")
    return dbtRunner().invoke([*command, *WHERE]).success


def look() -> None:
    """What the two runs left in the lake."""
    lake = LakeSession(f"sqlite:{FOLDER}/metadata.sqlite")
    for title, query in (
        ("Each model that changed the lake is a snapshot", HISTORY),
        ("Orders of now beside those of the first run: time travel", "select * from orders_then order by status"),
        ("Customers who ordered meanwhile, before and after: a dbt snapshot", ORDERED),
    ):
        print(f"\n{title}:\n")
        lake.sql(query).show(50, truncate=False)


HISTORY = """
    with snapshots as (
        select *, from_json(commit_extra_info, 'rows struct<inserted int, updated int, deleted int>').rows as changed
        from ducklake_snapshots()
    )
    select snapshot_id, commit_message, changed.*
    from snapshots
    where commit_message is not null
    order by snapshot_id
"""

ORDERED = """
    select name, orders, spent, dbt_valid_from as since, dbt_valid_to as until
    from customers_history
    where customer_id in (select customer_id from customers_history where dbt_valid_to is not null)
    order by name, since
"""

NEXT = f"""What to look at next

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
