"""What the nodes of a dbt project stand on."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_TESTS = ("test", "unit_test")


@dataclass(frozen=True)
class ProjectGraph:
    """The nodes of the project: what each stands on, and which tests it has."""

    parents: Mapping[str, Collection[str]]
    tests: Mapping[str, Collection[str]]

    @classmethod
    def of(cls, manifest: Any) -> ProjectGraph:
        nodes: dict[str, Any] = {}
        for kind in ("nodes", "functions", "unit_tests"):
            nodes.update(getattr(manifest, kind, None) or {})
        tests: dict[str, set[str]] = {}
        for node_id, node in nodes.items():
            for tested in _tested_nodes(node):
                tests.setdefault(tested, set()).add(node_id)
        return cls({node_id: parents(node) for node_id, node in nodes.items()}, tests)

    def ancestors(self, node_id: str) -> Iterator[str]:
        """The nodes that a node reads, also through others."""
        todo, seen = list(self.parents.get(node_id, ())), set()
        while todo:
            parent = todo.pop()
            if parent not in seen:
                seen.add(parent)
                yield parent
                todo += self.parents.get(parent, ())


def parents(node: Any) -> tuple[str, ...]:
    """The nodes that a node depends on, by their ids."""
    return tuple(getattr(getattr(node, "depends_on", None), "nodes", None) or ())


def parents_first(nodes: Mapping[str, Any]) -> list[str]:
    """The nodes in an order in which each follows its parents."""
    order: dict[str, None] = {}
    todo = [*nodes]
    while todo:
        waiting = [i for i in parents(nodes[todo[-1]]) if i in nodes and i not in order]
        if waiting:
            todo += waiting
        else:
            order[todo.pop()] = None
    return list(order)


def _tested_nodes(node: Any) -> Collection[str]:
    """The nodes that a test is a test of: of a generic test the one that it stands at, of others all that they read."""
    if str(getattr(node, "resource_type", "")) not in _TESTS:
        return ()
    attached = getattr(node, "attached_node", None) or getattr(node, "tested_node_unique_id", None)
    return (attached,) if attached else parents(node)
