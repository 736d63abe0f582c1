"""What a node's snapshot says of itself: author, message, and what it was made from."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from dbt_common.invocation import get_invocation_id

from ..lake.commit.staged import CommitInfo
from ..lake.transaction import Volume
from ..spark.results import Input


def command_of(config: Any) -> str:
    """The dbt command that runs, such as `run` or `build`."""
    return str(getattr(getattr(config, "args", None), "which", None) or "run")


def label(config: Any, what: str) -> str:
    return f"dbt {command_of(config)}: {what}"


class NodeCommit:
    """Describes the commits of one node of a dbt project."""

    def __init__(self, node: Any, config: Any) -> None:
        self._node = node
        self._config = config
        self._settings: Mapping[str, Any] = {
            name: node.config.get(name) for name in ("commit_message", "commit_author", "commit_extra_info")
        }

    def __call__(self, inputs: Sequence[Input], volume: Volume) -> CommitInfo:
        return CommitInfo(
            self._settings["commit_author"],
            self._settings["commit_message"] or label(self._config, self._title()),
            json.dumps(self._extra_info(inputs, volume)),
        )

    def _title(self) -> str:
        how = [part for part in (self._materialized, self._strategy) if part]
        return f"{self._node.name} ({', '.join(how)})" if how else str(self._node.name)

    @property
    def _materialized(self) -> str | None:
        found = self._node.config.get("materialized")
        return str(found) if found else None

    @property
    def _strategy(self) -> str | None:
        if self._materialized == "incremental":
            return str(self._node.config.get("incremental_strategy") or default_strategy(self._node.config))
        return str(self._node.config.get("strategy")) if self._materialized == "snapshot" else None

    def _extra_info(self, inputs: Sequence[Input], volume: Volume) -> dict[str, Any]:
        full_refresh = self._node.config.get("full_refresh")
        if full_refresh is None:
            full_refresh = getattr(getattr(self._config, "args", None), "full_refresh", None)
        derived = {
            "invocation_id": get_invocation_id(),
            "node_id": self._node.unique_id,
            "materialized": self._materialized,
            "strategy": self._strategy,
            "full_refresh": bool(full_refresh),
            "batch": self._batch(),
            "dbt_version": version("dbt-core"),
            "adapter_version": version("dbt-ducklake"),
            "target": self._config.target_name,
            "git_commit": git_commit(str(self._config.project_root)),
            "inputs": [_input(i) for i in inputs],
            "rows": {
                "inserted": volume.rows_added,
                "updated": volume.rows_updated,
                "deleted": volume.rows_removed,
            },
        }
        given = self._settings["commit_extra_info"] or {}
        return {**{k: v for k, v in derived.items() if v is not None}, **given}

    def _batch(self) -> dict[str, str] | None:
        """The window of a microbatch."""
        batch = getattr(self._node, "batch", None)
        return batch and {"start": batch.event_time_start.isoformat(), "end": batch.event_time_end.isoformat()}


def _input(read: Input) -> dict[str, Any]:
    found = {"relation": read.name, "table_id": read.id, "snapshot": read.snapshot}
    if read.consumed is not None:
        found["changes"] = {"since": read.consumed.since, "until": read.consumed.until}
    return found


def default_strategy(config: Any) -> str:
    """The incremental strategy of a model that names none."""
    return "merge" if config.get("unique_key") else "append"


@lru_cache(maxsize=8)
def git_commit(folder: str) -> str | None:
    """The commit that a project's folder is at; None where it is in no repository, or there is no git."""
    try:
        found = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() if found.returncode == 0 else None
