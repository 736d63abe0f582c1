"""What snapshots record of builds, and with how many queries it is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from dbt.adapters.ducklake.reuse.records import BuildRecords

from ...lakes import Lake, LakeAddress, columns


def _commit(lake: Lake, extra_info: Any, table: str | None = None) -> int:
    with lake.transaction(extra_info=json.dumps(extra_info)) as tx:
        if table is None:
            tx.stage(is_snapshot_without_changes=True)
        else:
            tx.create_table(tx.state.schema("main"), table, columns(id="int64"))
    return lake.latest


def _info(node_id: str, fingerprint: str, **more: Any) -> dict[str, Any]:
    return {"node_id": node_id, "reuse": {"fingerprint": fingerprint}, **more}


def _fingerprint(found: tuple[int, Any] | None) -> tuple[int, str] | None:
    return None if found is None else (found[0], found[1]["reuse"]["fingerprint"])


def test_the_newest_record_of_a_node_counts_unless_others_changed_the_table_since(
    new_lake: Callable[[str], LakeAddress],
) -> None:
    lake = Lake(new_lake("sqlite"))
    built = _commit(lake, {"nodes": [_info("model.p.a", "a1"), _info("model.p.b", "b1")]}, "a")
    other = _commit(lake, {"node_id": "model.p.a"}, "x")
    _commit(lake, _info("model.p.a", "a2", progress_of_table="t"))
    noted = _commit(lake, _info("model.p.a", "a3", progress_of_table="t"))
    later = _commit(lake, "no object", "y")
    records = BuildRecords()

    def newest(node_id: str, last_change: int) -> tuple[int, str] | None:
        return _fingerprint(records.newest(lake.catalog, node_id, last_change, ()))

    assert newest("model.p.a", built) == (noted, "a3")
    assert newest("model.p.b", built) == (built, "b1")
    assert newest("model.p.b", other) is None
    assert newest("model.p.a", later) is None


def test_the_records_of_many_nodes_are_read_at_once(new_lake: Callable[[str], LakeAddress]) -> None:
    lake = Lake(new_lake("sqlite"))
    built = {f"model.p.t{i}": _commit(lake, _info(f"model.p.t{i}", str(i)), f"t{i}") for i in range(5)}
    records = BuildRecords()
    queries: list[str] = []

    def note(*of_cursor: Any) -> None:
        queries.append(of_cursor[2])

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        for i, (node_id, snapshot) in enumerate(built.items()):
            found = records.newest(lake.catalog, node_id, snapshot, built.values())
            assert _fingerprint(found) == (snapshot, str(i))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    assert len([q for q in queries if "ducklake_snapshot_changes" in q]) == 2
