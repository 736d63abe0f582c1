"""TPC-H's tables and refresh sets as Parquet files, which all systems load from."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path

import duckdb

TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
KEYS_PER_SCALE = 6_000_000
"""The orders of scale 1 have keys up to here. 8 of each 32 numbers are keys, so that new ones find room."""

MAX_REFRESH_SETS = 99
"""Each takes other orders, by their keys modulo 1000 and 200."""

CHANGED = "changed"
"""The refresh set in which 1 % of the orders, and no line of them, are changed."""


def keys_per_batch(scale: float) -> int:
    """How many numbers the keys are apart that a refresh set deletes: 0.1 % of the orders."""
    return max(int(KEYS_PER_SCALE * scale / 1000), 32)


def refresh_set(number: int) -> str:
    """The folder of a refresh set, which is counted from 1."""
    return f"refresh{number}"


def extension(name: str) -> Path:
    """A file of a DuckDB extension that was installed as a Python package."""
    package = importlib.import_module(f"duckdb_extension_{name}")
    return next(Path(package.__path__[0]).glob("extensions/*/*.duckdb_extension"))


def make(folder: Path, scale: float, refresh_sets: int) -> Path:
    """Writes the files of a scale into a folder of their own, unless they are there. Returns that folder."""
    target = folder / f"tpch-{scale:g}"
    done = target / "done.json"
    if done.exists() and json.loads(done.read_text())["refresh_sets"] >= refresh_sets:
        return target
    shutil.rmtree(target, ignore_errors=True)
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "threads": "2"})
    connection.load_extension(str(extension("tpch")))
    connection.execute("CALL dbgen(sf = ?)", [scale])
    for table in TABLES:
        _write(connection, target / "base", table, f"SELECT * FROM {table}")
    for number in range(1, refresh_sets + 1):
        _refresh_set(connection, target / refresh_set(number), number)
    changed = "SELECT * REPLACE (o_totalprice + 1 AS o_totalprice) FROM orders WHERE o_orderkey % 100 = 77"
    _write(connection, target / CHANGED, "orders", changed)
    done.write_text(json.dumps({"refresh_sets": refresh_sets}))
    connection.close()
    return target


def _refresh_set(connection: duckdb.DuckDBPyConnection, folder: Path, number: int) -> None:
    """0.1 % of new orders and 0.5 % of changed ones, with their lines. What it deletes is a range of keys.

    A new order is a copy of another, with a key that is free. Neither is among those that any set deletes.
    """
    kept = "{key} > (SELECT max(o_orderkey) // 4 FROM orders)"
    new, changed = f"{{key}} % 1000 = {number}", f"{{key}} % 200 = {100 + number}"
    for table, key, replaced in (
        ("orders", "o_orderkey", "o_totalprice + 10 AS o_totalprice, 'refreshed' AS o_comment"),
        ("lineitem", "l_orderkey", "l_extendedprice + 10 AS l_extendedprice, 'refreshed' AS l_comment"),
    ):
        where_kept = kept.format(key=key)
        query = f"""
            SELECT * REPLACE ({key} + 8 AS {key}) FROM {table} WHERE {where_kept} AND {new.format(key=key)}
            UNION ALL
            SELECT * REPLACE ({replaced}) FROM {table} WHERE {where_kept} AND {changed.format(key=key)}
        """
        _write(connection, folder, table, query)


def _write(connection: duckdb.DuckDBPyConnection, folder: Path, table: str, query: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    connection.execute(f"COPY ({query}) TO '{folder}/{table}.parquet' (FORMAT parquet)")
