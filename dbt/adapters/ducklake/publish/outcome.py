"""What of a run is published: how its nodes ended, and what they stand on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from ..node_info import NodeInfo
from ..project_graph import ProjectGraph
from ..spark.shared_transaction import Fold

FAILED = frozenset(("error", "fail", "runtime error", "partial success"))
_BUILT = ("model", "seed", "snapshot", "function")


@dataclass
class RunOutcome:
    """How the nodes of a run ended, as dbt reports it."""

    statuses: dict[str, str] = field(default_factory=dict)
    """By the unique id of the node, or by the name of a hook."""
    is_cut_short: bool = False
    """Whether dbt cancelled nodes that were running, so that others never ran."""

    @property
    def failures(self) -> list[str]:
        return [node for node, status in self.statuses.items() if status in FAILED]

    @property
    def built(self) -> list[str]:
        """The nodes that make something, other than tests and hooks."""
        return [node for node in self.statuses if node.split(".")[0] in _BUILT]


def left_out(outcome: RunOutcome, graph: ProjectGraph, folds: Collection[Fold]) -> dict[str, str]:
    """The nodes whose changes are not to be published, with the reasons.

    A node is published if it succeeded, its own tests passed, and everything that it stands on is published.
    """
    found: dict[str, str] = {}
    for node_id in outcome.built:
        status = outcome.statuses[node_id]
        if status == "skipped" or status in FAILED:
            found[node_id] = "it was skipped" if status == "skipped" else "it failed"
        elif reason := _untested(node_id, outcome, graph):
            found[node_id] = reason
    for fold in folds:
        own_id = node_of(fold)
        if own_id is not None and own_id not in outcome.statuses:
            found[own_id] = "it did not end"
    before = -1
    while len(found) > before:
        before = len(found)
        for node_id in outcome.built:
            missing = next((p for p in graph.ancestors(node_id) if p in found), None)
            if missing is not None:
                found.setdefault(node_id, f"it stands on {short_name(missing)}")
        without = [f for f in folds if node_of(f) in found]
        for fold in folds:
            own_id = node_of(fold)
            if own_id is not None and own_id not in found and any(fold.stands_on(other) for other in without):
                found[own_id] = "it stands on changes that are not published"
    return found


def _untested(node_id: str, outcome: RunOutcome, graph: ProjectGraph) -> str | None:
    """Why a node counts as not tested, if it does."""
    for test_id in sorted(graph.tests.get(node_id, ())):
        status = outcome.statuses.get(test_id)
        if status in FAILED:
            return f"the test {short_name(test_id)} failed"
        if status == "skipped" or (status is None and outcome.is_cut_short):
            return f"the test {short_name(test_id)} did not run"
    return None


def kept_folds(folds: Collection[Fold], left_out_nodes: Collection[str]) -> list[Fold]:
    """The changes of the other nodes, and those of hooks and schemas that do not stand on a node that is left out."""
    kept: list[Fold] = []
    dropped: list[Fold] = []
    for fold in folds:
        drops = node_of(fold) in left_out_nodes or any(fold.stands_on(other) for other in dropped)
        (dropped if drops else kept).append(fold)
    return kept


def node_of(fold: Fold) -> str | None:
    """The node whose changes these are; None for those of hooks, and for schemas."""
    return fold.label.id if isinstance(fold.label, NodeInfo) else None


def short_name(node_id: str) -> str:
    """`orders` of `model.shop.orders`, `not_null_orders_id` of `test.shop.not_null_orders_id.4f2a`."""
    parts = node_id.split(".")
    return parts[2] if len(parts) > 2 else node_id
