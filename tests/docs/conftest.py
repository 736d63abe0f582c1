"""A prepared lake with the tables that the documentation uses, and copies of it for each example."""

from __future__ import annotations

import datetime
import shutil
import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession

SNAPSHOTS = 60
"""Examples name versions up to 57."""
FIRST_SNAPSHOT, PAUSE = datetime.datetime(2025, 12, 31), datetime.timedelta(hours=18)
"""So that the times in examples, 2026-01-01 08:00 to 2026-01-31 12:00, are in the lake's past."""

ORDERS = """
    id bigint, customer_id bigint, region string, day date, ordered_at timestamp_ntz, at timestamp_ntz,
    seen_at timestamp_ntz, amount decimal(10,2), is_gone boolean
"""
T = """
    id bigint, day date, region string, amount decimal(10,2), note string default 'none', is_open boolean,
    place struct<city: string, zip: string>
"""


DAY = datetime.date(2026, 1, 31)


def _orders(ids: range) -> pa.Table:
    at = [datetime.datetime(2026, 1, 1) + datetime.timedelta(hours=6 * i) for i in ids]
    columns = {
        "id": pa.array(ids, pa.int64()),
        "customer_id": pa.array([i % 7 for i in ids], pa.int64()),
        "region": pa.array([("eu", "us")[i % 2] for i in ids]),
        "day": pa.array([moment.date() for moment in at]),
        "amount": _amounts(ids),
        "is_gone": pa.array([False for _ in ids]),
    }
    moments = {name: pa.array(at, pa.timestamp("us")) for name in ("ordered_at", "at", "seen_at")}
    return pa.table({**columns, **moments})


def _amounts(ids: range, precision: int = 10) -> pa.Array:
    return pa.array([Decimal(i) for i in ids], pa.decimal128(precision, 2))


def _arrivals(ids: range) -> pa.Table:
    rows = [
        {"day": DAY, "region": "eu", "note": "new", "is_open": True, "place": {"city": "Bonn", "zip": "53111"}}
        for _ in ids
    ]
    return (
        pa.Table.from_pylist(rows).append_column("id", pa.array(ids, pa.int64())).append_column("amount", _amounts(ids))
    )


def _prepare(lake: LakeSession) -> None:
    """Makes the tables. Without Spark where that is possible, which is faster."""
    run = lake.execute
    run(f"create table orders ({ORDERS})")
    lake.insert("orders", _orders(range(100)))
    lake.insert("orders", _orders(range(100, 120)))
    run("delete from orders where id < 3")
    run("update orders set amount = 0 where id = 7")
    lake.insert("orders", _orders(range(120, 130)))
    run(f"create table t ({T})")
    lake.insert("t", _arrivals(range(50)))
    run(f"create table arrivals ({T}, is_gone boolean)")
    arrivals = _arrivals(range(10, 60))
    lake.insert("arrivals", arrivals.append_column("is_gone", pa.array([i == 0 for i in range(len(arrivals))])))
    run("create table late (id bigint)")
    run("create table queue (id bigint)")
    run("create table customers (id bigint, name string, city string)")
    lake.insert("customers", pa.table({"id": [1, 2], "name": ["Ann", "Bob"], "city": ["Bonn", "Köln"]}))
    run("create table daily (day date, amount decimal(38,2))")
    lake.insert("daily", pa.table({"day": pa.array([DAY]), "amount": _amounts(range(1), 38)}))
    run("create table totals (day date, amount decimal(38,2), region string) partitioned by (region)")
    run(f"insert into totals values (date'{DAY}', 1, 'eu'), (date'{DAY}', 2, 'us')")
    run("create function taxed(price double, rate double default 0.19) returns double return price * (1 + rate)")
    _commit_until(lake, 41)
    lake.insert("orders", _orders(range(130, 140)))
    run("update orders set amount = amount + 1 where id in (20, 21)")
    _commit_until(lake, SNAPSHOTS)


def _commit_until(lake: LakeSession, snapshot: int) -> None:
    number = 0
    while number < snapshot:
        number = lake.execute(f"comment on table queue is 'after snapshot {number}'").snapshot_id or 0


@pytest.fixture(scope="session")
def prepared_lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The catalog file of the prepared lake."""
    folder = tmp_path_factory.mktemp("prepared")
    catalog = folder / "metadata.sqlite"
    with LakeSession(f"sqlite:{catalog}", data_path=f"{folder}/data/", spark=spark, author="shop") as lake:
        _prepare(lake)
    with sqlite3.connect(catalog) as connection:
        for (snapshot,) in connection.execute("select snapshot_id from ducklake_snapshot").fetchall():
            time = f"{FIRST_SNAPSHOT + snapshot * PAUSE}+00"
            connection.execute("update ducklake_snapshot set snapshot_time = ? where snapshot_id = ?", (time, snapshot))
    return catalog


@pytest.fixture
def lake_copy(prepared_lake: Path, tmp_path: Path) -> Callable[[str], str]:
    """Makes a lake of its own from the prepared one, and returns its catalog.

    A copy of the catalog is enough: data files never change, and new ones have names of their own.
    """

    def copy(name: str = "metadata.sqlite") -> str:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(prepared_lake, path)
        return f"sqlite:{path}"

    return copy


BUCKET = "s3a://bucket"
"""Where examples that Spark reads have their files. It stands for the working directory."""


@pytest.fixture(autouse=True)
def files_of_the_reader(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What examples take in from the working directory."""
    example = getattr(request.node, "callspec", None)
    text = "" if example is None else str(list(example.params.values()))
    for mark, make in (("archive/", _make_archive), ("incoming/", _make_arrivals), (".duckdb'", _make_databases)):
        if mark in text:
            make(tmp_path)
            monkeypatch.chdir(tmp_path)


def _make_arrivals(folder: Path) -> None:
    (folder / "incoming").mkdir()
    (folder / "incoming" / "1.json").write_text('{"id": 1, "page": "/"}\n{"id": 2, "page": "/cart"}\n')


def _make_databases(folder: Path) -> None:
    with duckdb.connect(folder / "shop.duckdb") as connection:
        connection.execute("create schema till; create table till.payments as select 1 as id, 10 as amount")
        connection.execute("create view till.large as from till.payments where amount > 5")
    with duckdb.connect(folder / "returns.duckdb") as connection:
        connection.execute("create table refunds as select 1 as id, 'open'::enum('open', 'paid') as state")


def _make_archive(folder: Path) -> None:
    orders = _orders(range(1000, 1010))
    sales = pa.table({"id": pa.array([1], pa.int64()), "amount": _amounts(range(1))})
    files = {
        "orders/2023.parquet": orders,
        "2024.parquet": orders.drop_columns("seen_at"),
        "2025.parquet": orders,
        "more/orders.parquet": orders,
        "sales/region=eu/year=2024/part-00000.parquet": sales,
        "sales/region=us/year=__HIVE_DEFAULT_PARTITION__/part-00000.parquet": sales,
    }
    for name, rows in files.items():
        path = folder / "archive" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(rows, path)
