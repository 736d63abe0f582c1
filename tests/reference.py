"""The reference implementation: DuckDB with the ducklake extension, from packages."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import duckdb


def extension(name: str, file: str) -> str:
    package = importlib.import_module(f"duckdb_extension_{name}")
    found = sorted(Path(package.__path__[0]).glob(f"extensions/*/{file}.duckdb_extension"))
    return str(found[-1])


def literal(value: Any) -> str:
    """A value as DuckDB's SQL has it."""
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


def connect(catalog: str, data_path: str | None = None, **options: Any) -> duckdb.DuckDBPyConnection:
    """A DuckDB connection with the lake attached, and in use, as `lake`."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in ("sqlite_scanner", "postgres_scanner", "ducklake"):
        connection.execute(f"LOAD '{extension(name, name)}'")
    words = [f"DATA_PATH {literal(data_path)}"] if data_path else []
    words += [f"{key.upper()} {literal(value)}" for key, value in options.items()]
    given = f" ({', '.join(words)})" if words else ""
    connection.execute("SET TimeZone = 'UTC'")
    # DuckDB encrypts with the OpenSSL of its extension httpfs. Tests need no random numbers as good as those.
    connection.execute("SET force_mbedtls_unsafe = true")
    connection.execute(f"ATTACH {literal(f'ducklake:{catalog}')} AS lake{given}")
    connection.execute("USE lake")
    return connection
