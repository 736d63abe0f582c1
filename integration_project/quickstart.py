"""`make quickstart`: a first lake, on SQLite, in the folder quickstart/ of the current directory."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from pyspark.sql import DataFrame

from dbt.adapters.ducklake import LakeSession

FOLDER = Path("quickstart")


def main() -> int:
    if FOLDER.exists():
        shutil.rmtree(FOLDER)
    FOLDER.mkdir()
    print(f"A lake in {FOLDER}/: its catalog is one SQLite file, its data are Parquet files. Spark starts ...\n")
    with LakeSession(f"sqlite:{FOLDER}/metadata.sqlite", data_path=f"{FOLDER}/data/") as lake:
        build(lake)
        show("Orders a day", lake.sql("select * from shop.daily order by day"))
        show(
            "The same table before the second load: time travel",
            lake.sql("select * from shop.daily version as of 6 order by day"),
        )
        show(
            "What happened, and why",
            lake.sql("select snapshot_id, author, commit_message from ducklake_snapshots() where snapshot_id > 0"),
        )
    print(NEXT)
    return 0


def build(lake: LakeSession) -> None:
    """A few tables, loaded in two rounds; each round is one snapshot."""
    lake.execute("create schema shop comment 'A small shop'")
    lake.execute("""
        create table shop.customers (id bigint not null comment 'who', name string, country string default 'DE')
        comment 'Everybody who ever ordered'
    """)
    lake.execute("""
        create table shop.orders (id bigint not null, customer bigint, amount decimal(10,2), ordered_at timestamp_ntz)
        partitioned by (month(ordered_at)) sorted by (ordered_at)
    """)
    lake.execute("insert into shop.customers (id, name) values (1, 'Ada'), (2, 'Grace'), (3, 'Barbara')")
    load(lake, days="2026-01-30 to 2026-02-01", first=1, rows=60, start="2026-01-30 08:00:00")
    lake.execute(f"create table shop.daily as {DAILY}")
    lake.execute("alter table shop.orders add column channel string default 'shop'")
    with lake.transaction(author="quickstart", message="second load, with the daily figures"):
        load(lake, days="2026-02-02", first=61, rows=20, start="2026-02-02 08:00:00", channel="'web'")
        lake.execute(f"create or replace table shop.daily as {DAILY}")


DAILY = """
    select date(ordered_at) as day, count(*) as orders, sum(amount) as amount
    from shop.orders group by date(ordered_at)
"""


def load(lake: LakeSession, days: str, first: int, rows: int, start: str, channel: str | None = None) -> None:
    extra = f", {channel} as channel" if channel else ""
    with lake.transaction(author="quickstart", message=f"orders of {days}"):
        lake.execute(f"""
            insert into shop.orders by name
            select {first} + id as id, 1 + id % 3 as customer, cast(5 + id % 17 as decimal(10,2)) as amount,
                   timestamp_ntz'{start}' + make_interval(0, 0, 0, 0, id) as ordered_at{extra}
            from range({rows})
        """)


def show(title: str, rows: DataFrame) -> None:
    print(f"\n{title}:\n")
    rows.show(truncate=False)


NEXT = f"""What to look at next

  * The files:    find {FOLDER}/data -name '*.parquet'
  * The catalog:  sqlite3 {FOLDER}/metadata.sqlite 'select * from ducklake_snapshot_changes'
  * With DuckDB:  INSTALL ducklake; INSTALL sqlite;
                  ATTACH 'ducklake:sqlite:{FOLDER}/metadata.sqlite' AS lake;
                  FROM lake.shop.daily;
  * In Python:    from dbt.adapters.ducklake import LakeSession
                  lake = LakeSession("sqlite:{FOLDER}/metadata.sqlite")
                  lake.sql("select * from shop.orders timestamp as of now()").show()
  * The guide:    docs/README.md
"""


if __name__ == "__main__":
    sys.exit(main())
