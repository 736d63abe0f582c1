"""The nodes of sqlglot's trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from sqlglot import exp

Node: TypeAlias = "exp.Expr"
"""Any node. Older versions of sqlglot call the class Expression."""


def arg(node: Node, name: str) -> Any:
    """Returns an argument of a node, under the name that it has in any version of sqlglot."""
    value = node.args.get(name)
    return node.args.get(f"{name}_") if value is None else value
