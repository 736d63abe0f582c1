"""Small words for tests of SQL."""

from __future__ import annotations

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
