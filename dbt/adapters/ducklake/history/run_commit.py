"""The commit info of a run: one snapshot of many nodes."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..lake.commit.staged import CommitInfo
from ..node_info import NodeInfo
from .consumed_changes import PROGRESS_KEY
from .extra_info import NODES_KEY


def run_commit_info(
    message: str,
    shared_info: Mapping[str, Any],
    nodes: Sequence[tuple[NodeInfo, Collection[int]]],
    existing: Collection[int],
) -> CommitInfo:
    """The commit info of a run, from its nodes and the relations that each changed, by id.

    `shared_info` is what their extra info has in common, which is written once. `existing` are the tables and views at
    the end of the run: others that it created never get an id.
    """
    authors = {node.author for node, _ in nodes}

    def extra_info(snapshot_id: int, catalog_id: Callable[[int], int]) -> str:
        entries = []
        for node, changed in nodes:
            own = {k: v for k, v in node.extra_info.items() if k not in shared_info or v != shared_info[k]}
            reads = [r for r in node.extra_info.get("inputs", ()) if r["table_id"] >= 0 or r["table_id"] in existing]
            inputs = [_with_ids(read, snapshot_id, catalog_id) for read in reads]
            if PROGRESS_KEY in own:
                own[PROGRESS_KEY] = catalog_id(own[PROGRESS_KEY])
            changed_ids = sorted(catalog_id(i) for i in changed if i >= 0 or i in existing)
            entries.append({**own, "message": node.message, "inputs": inputs, "changed": changed_ids})
        return json.dumps({**shared_info, NODES_KEY: entries})

    return CommitInfo(authors.pop() if len(authors) == 1 else None, message, extra_info)


def _with_ids(read: Mapping[str, Any], snapshot_id: int, catalog_id: Callable[[int], int]) -> dict[str, Any]:
    """An input in which the snapshot of the run stands for what was staged in it."""
    found = {**read, "table_id": catalog_id(read["table_id"]), "snapshot": read["snapshot"] or snapshot_id}
    if "changes" in read:
        found["changes"] = {**read["changes"], "until": read["changes"]["until"] or snapshot_id}
    return found
