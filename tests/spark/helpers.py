"""Helpers for tests of SQL on one lake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbt.adapters.ducklake import LakeSession


def rows(lake: LakeSession, query: str) -> list[tuple[Any, ...]]:
    """Returns the rows of a query as tuples."""
    return [tuple(row.values()) for row in lake.execute(query).arrow().to_pylist()]


def value(lake: LakeSession, query: str) -> Any:
    """Returns the only value of a query with one row and one column."""
    ((only,),) = rows(lake, query)
    return only


def run(lake: LakeSession, *statements: str) -> None:
    for statement in statements:
        lake.execute(statement)


def snapshots(lake: LakeSession) -> int:
    """Returns the id of the newest snapshot."""
    newest: int = value(lake, "select max(snapshot_id) from ducklake_snapshots()")
    return newest


def content(lake: LakeSession, table: str = "t") -> list[tuple[Any, ...]]:
    """Returns all rows of a table in a fixed order."""
    return sorted(rows(lake, f"select * from {table}"), key=repr)


def files(lake: LakeSession, table: str = "t") -> list[tuple[str, str | None]]:
    """Returns the data files of a table, each with its delete file."""
    return rows(lake, f"select data_file, delete_file from ducklake_list_files('{table}')")


def parquet_files(folder: Path) -> set[str]:
    """Returns all Parquet files below a folder and their checksum files."""
    return {str(p) for p in folder.rglob("*") if p.suffix in (".parquet", ".crc")}


def catalog_of(lake: LakeSession) -> str:
    """Returns the catalog string of a lake on SQLite."""
    return f"sqlite:{lake.lake().catalog.database.url.database}"


def other_session(lake: LakeSession, spark: Any, **options: Any) -> LakeSession:
    """Opens a second session on the same lake."""
    return LakeSession(catalog_of(lake), spark=spark, **options)
