"""What the nodes and the data tests of one dbt command share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ..spark.session import LakeSession
from .last_changes import LastChanges
from .recipe import Recipes


@dataclass(frozen=True)
class Run:
    config: Any
    session: Callable[[], LakeSession]
    manifest: Callable[[], Any]
    recipes: Recipes
    last_changes: LastChanges

    @classmethod
    def of(cls, config: Any, session: Callable[[], LakeSession], manifest: Callable[[], Any]) -> Run:
        return cls(config, session, manifest, Recipes(config, manifest), LastChanges())
