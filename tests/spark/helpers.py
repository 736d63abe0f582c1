"""Small words for tests of SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbt.adapters.ducklake import LakeSession


def rows(lake: LakeSession, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query, as tuples."""
    return [tuple(row.values()) for row in lake.execute(query).arrow().to_pylist()]


def value(lake: LakeSession, query: str) -> Any:
    """The one value that a query gives."""
    ((found,),) = rows(lake, query)
    return found


def run(lake: LakeSession, *statements: str) -> None:
    for statement in statements:
        lake.execute(statement)


def snapshots(lake: LakeSession) -> int:
    """The number of the newest snapshot."""
    found: int = value(lake, "select max(snapshot_id) from ducklake_snapshots()")
    return found


def content(lake: LakeSession, table: str = "t") -> list[tuple[Any, ...]]:
    """All rows of a table, in a fixed order."""
    return sorted(rows(lake, f"select * from {table}"), key=repr)


def files(lake: LakeSession, table: str = "t") -> list[tuple[str, str | None]]:
    """The data files of a table, each with its delete file."""
    return rows(lake, f"select data_file, delete_file from ducklake_list_files('{table}')")


def parquet_files(folder: Path) -> set[str]:
    return {str(p) for p in folder.rglob("*") if p.suffix in (".parquet", ".crc")}


def other_session(lake: LakeSession, spark: Any, **options: Any) -> LakeSession:
    """A second session on the same lake."""
    return LakeSession(f"sqlite:{lake.lake().catalog.database.url.database}", spark=spark, **options)
