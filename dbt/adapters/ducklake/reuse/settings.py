"""The setting `reuse` of models, seeds, snapshots, functions and data tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dbt_common.exceptions import CompilationError

DETERMINISTIC = "deterministic"
"""The value by which the author says that a node makes the same of the same inputs."""


def check_reuse(value: Any) -> None:
    if value not in (None, True, False, DETERMINISTIC):
        raise CompilationError(f"reuse takes true, false or {DETERMINISTIC}, and it is {value!r}")


def is_configured(config: Any) -> bool:
    """Whether dbt_project.yml sets `reuse` for some node, so that Spark is not started before one needs it."""

    def has_reuse(settings: Any) -> bool:
        if not isinstance(settings, Mapping):
            return False
        return any(settings.get(key) for key in ("reuse", "+reuse")) or any(map(has_reuse, settings.values()))

    kinds = ("models", "seeds", "snapshots", "functions", "data_tests")
    return any(has_reuse(getattr(config, kind, None)) for kind in kinds)
