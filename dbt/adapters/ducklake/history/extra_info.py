"""The extra info of commits."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any


def parse_extra_info(text: str | None) -> Mapping[str, Any]:
    """The extra info of any commit. Empty for text of other writers that is not a JSON object."""
    try:
        extra_info = json.loads(text or "{}")
    except ValueError:
        return {}
    return extra_info if isinstance(extra_info, Mapping) else {}


NODES_KEY = "nodes"
"""The key in the extra info of a run that is one snapshot. Its value has the extra info of each node."""


REUSE_KEY = "reuse"
"""The key in the extra info of a node by which the next run finds out whether it has to be computed."""


def node_infos(extra_info: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The extra info of each node that a snapshot is of: of one, or of all nodes of a run."""
    nodes = extra_info.get(NODES_KEY)
    if not isinstance(nodes, list):
        return [extra_info]
    shared = {key: value for key, value in extra_info.items() if key != NODES_KEY}
    return [{**shared, **node} for node in nodes if isinstance(node, Mapping)]


def changed_by(node: Mapping[str, Any]) -> frozenset[int] | None:
    """The tables and views by id that a node of a run changed. None if the snapshot is of one node alone."""
    ids = node.get("changed")
    return frozenset(i for i in ids if isinstance(i, int)) if isinstance(ids, list) else None
