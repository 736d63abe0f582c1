"""Writers of both engines and maintainers at once, in processes: every row that was committed is there, once.

DuckDB 1.5.5 does not maintain here. Beside writers on PostgreSQL its flushes and merges lose deletes that the catalog
stores, also where DuckDB alone writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from ..workers import in_processes
from .engines import Both
from .maintenance_workers import Role, by_role, maintain_with_spark, write_with_duckdb, write_with_spark

WRITERS: list[Role] = [write_with_duckdb, write_with_spark]


def check(lake: Both, roles: list[Role], seconds: float) -> None:
    lake.duckdb("create table t (id bigint, v int)")
    answers = in_processes(len(roles), by_role, roles, lake.address.catalog, lake.data_path, seconds)
    assert all(isinstance(answer, dict) for answer in answers), answers
    expected = sorted((key, value) for rows in answers for key, value in rows.items())
    assert expected
    found = lake.agree("select id, v from t")
    missing, extra = Counter(expected) - Counter(found), Counter(found) - Counter(expected)
    assert (sorted(missing.items()), sorted(extra.items())) == ([], [])
    changes = lake.catalog_rows("select changes_made from {m}.ducklake_snapshot_changes")
    kinds = {entry.partition(":")[0] for (text,) in changes if text for entry in text.split(",")}
    assert {"merge_adjacent", "inline_flush"} <= kinds


@pytest.mark.processes
def test_writers_and_maintainers_at_once(open_lake: Callable[..., Both]) -> None:
    check(open_lake("postgres"), [*WRITERS, maintain_with_spark], 8)


@pytest.mark.long
def test_four_writers_and_two_maintainers_for_a_minute(open_lake: Callable[..., Both]) -> None:
    check(open_lake("postgres"), [*WRITERS, *WRITERS, maintain_with_spark, maintain_with_spark], 60)
