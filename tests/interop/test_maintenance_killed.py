"""Maintenance that is killed: nothing is lost, the next call finishes, and what is left over is an orphan."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..workers import spawn
from .engines import CATALOGS, Both
from .maintenance_workers import die_in_maintenance

SCENE = (
    "create table t (id int, v varchar)",
    "insert into t select i, 'a' from range(50) r(i)",
    "insert into t select i, 'b' from range(50, 100) r(i)",
    "insert into t select i, 'c' from range(200, 250) r(i)",
    "insert into t values (100, 'inlined'), (101, 'inlined')",
    "delete from t where id in (3, 101)",
)


def told(lake: Both, last: int) -> list[list[str]]:
    with lake.connection() as connection:
        queries = [f"select rowid, * from t at (version => {at})" for at in range(2, last + 1)]
        return [sorted(map(repr, connection.execute(query).fetchall())) for query in queries]


def check_after_a_kill(lake: Both, operation: str, arguments: dict[str, Any], after: int) -> None:
    lake.duckdb(*SCENE)
    last = lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0][0]
    before = told(lake, last)
    lake.close()
    address = (lake.address.catalog, lake.data_path)
    process = spawn.Process(target=die_in_maintenance, args=(*address, operation, arguments, after))
    process.start()
    process.join(180)
    assert process.exitcode == -9
    assert told(lake, last) == before
    assert lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot") == [(last,)]

    assert lake.lake.call(operation, **arguments).num_rows == 1
    assert told(lake, last) == before
    orphans = lake.lake.call("ducklake_delete_orphaned_files", cleanup_all=True).num_rows
    assert orphans >= 1
    lake.lake.call("ducklake_cleanup_old_files", cleanup_all=True)
    assert told(lake, last) == before
    paths = " union all ".join(f"select path from {{m}}.ducklake_{kind}_file" for kind in ("data", "delete"))
    known = {path.rsplit("/", 1)[-1] for (path,) in lake.catalog_rows(paths)}
    assert {path.name for path in Path(lake.data_path).rglob("*.parquet")} == known


@pytest.mark.processes
@pytest.mark.parametrize("after", [0, 1, 5])
@pytest.mark.parametrize("kind", CATALOGS)
def test_a_flush_that_is_killed(open_lake: Callable[..., Both], kind: str, after: int) -> None:
    check_after_a_kill(open_lake(kind), "ducklake_flush_inlined_data", {}, after)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("kind", "after"),
    [
        ("sqlite", 0),
        *(pytest.param(kind, after, marks=pytest.mark.long) for kind in CATALOGS for after in (0, 1, 3, 6)),
    ],
)
@pytest.mark.parametrize(
    ("operation", "arguments"),
    [("ducklake_rewrite_data_files", {"delete_threshold": 0}), ("ducklake_merge_adjacent_files", {})],
)
def test_a_compaction_that_is_killed(
    open_lake: Callable[..., Both], kind: str, after: int, operation: str, arguments: dict[str, Any]
) -> None:
    lake = open_lake(kind)
    if operation == "ducklake_merge_adjacent_files":
        lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)")
    check_after_a_kill(lake, operation, arguments, after)
