"""The commit info of a dbt node: author, message, and extra info such as its inputs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from dbt_common.invocation import get_invocation_id

from ..incremental import strategy_of
from ..lake.snapshot import Macro, Table, View
from ..lake.transaction import ChangeCounts
from ..node_info import NodeInfo
from ..spark.inputs import Input
from ..spark.session import LakeSession
from .consumed_changes import PROGRESS_KEY, must_note_progress
from .extra_info import REUSE_KEY


def dbt_command(config: Any) -> str:
    """The running dbt command, such as `run` or `build`."""
    return str(getattr(getattr(config, "args", None), "which", None) or "run")


def default_message(config: Any, subject: str) -> str:
    return f"dbt {dbt_command(config)}: {subject}"


class NodeCommit:
    """Makes the commit info of one node of a dbt project."""

    def __init__(self, node: Any, config: Any) -> None:
        self._node = node
        self._config = config
        self._settings: Mapping[str, Any] = {
            name: node.config.get(name) for name in ("commit_message", "commit_author", "commit_extra_info")
        }

        self.annotate: Callable[[NodeInfo, LakeSession, Sequence[Input]], NodeInfo] | None = None
        """Adds to the info what the setting `reuse` needs."""

    def annotated(self, info: NodeInfo, session: LakeSession, inputs: Sequence[Input]) -> NodeInfo:
        return info if self.annotate is None else self.annotate(info, session, inputs)

    def __call__(self, inputs: Sequence[Input], changes: ChangeCounts) -> NodeInfo:
        return NodeInfo(
            self._node.unique_id,
            self._settings["commit_author"],
            self._settings["commit_message"] or default_message(self._config, self._title()),
            self._extra_info(inputs, changes),
        )

    @property
    def database(self) -> str:
        """The lake that the node writes."""
        return str(self._node.database)

    def with_progress(self, info: NodeInfo, session: LakeSession, inputs: Sequence[Input]) -> NodeInfo | None:
        """The info for a node that changed nothing, if what it read is to be recorded all the same."""
        reuse = info.extra_info.get(REUSE_KEY)
        is_reusable = reuse is not None and "computed_since" not in reuse
        if not is_reusable and not must_note_progress(session, inputs):
            return None
        state = session.state(self.database)
        found: Table | View | Macro | None = state.find_relation(self._node.schema, self._node.alias)
        found = found or state.find_macro(self._node.schema, self._node.name)
        return None if found is None else replace(info, extra_info={**info.extra_info, PROGRESS_KEY: found.id})

    def _title(self) -> str:
        kinds = [kind for kind in (self._materialized, self._strategy) if kind]
        return f"{self._node.name} ({', '.join(kinds)})" if kinds else str(self._node.name)

    @property
    def _materialized(self) -> str | None:
        materialized = self._node.config.get("materialized")
        return str(materialized) if materialized else None

    @property
    def _strategy(self) -> str | None:
        if self._materialized == "incremental":
            return strategy_of(self._node.config)
        return str(self._node.config.get("strategy")) if self._materialized == "snapshot" else None

    def _extra_info(self, inputs: Sequence[Input], changes: ChangeCounts) -> dict[str, Any]:
        full_refresh = self._node.config.get("full_refresh")
        if full_refresh is None:
            full_refresh = getattr(getattr(self._config, "args", None), "full_refresh", None)
        derived = {
            **invocation_info(self._config),
            "node_id": self._node.unique_id,
            "materialized": self._materialized,
            "strategy": self._strategy,
            "full_refresh": bool(full_refresh),
            "batch": self._batch(),
            "inputs": [_input_json(i) for i in inputs],
            "rows": {
                "inserted": changes.rows_added,
                "updated": changes.rows_updated,
                "deleted": changes.rows_removed,
            },
        }
        configured = self._settings["commit_extra_info"] or {}
        return {**{k: v for k, v in derived.items() if v is not None}, **configured}

    def _batch(self) -> dict[str, str] | None:
        """The window of a microbatch model."""
        batch = getattr(self._node, "batch", None)
        return batch and {"start": batch.event_time_start.isoformat(), "end": batch.event_time_end.isoformat()}


def invocation_info(config: Any) -> dict[str, Any]:
    """The part of the extra info that is the same for all nodes of a command."""
    found = {
        "invocation_id": get_invocation_id(),
        "dbt_version": version("dbt-core"),
        "adapter_version": version("dbt-ducklake"),
        "target": config.target_name,
        "git_commit": git_commit(str(config.project_root)),
    }
    return {key: value for key, value in found.items() if value is not None}


def _input_json(relation: Input) -> dict[str, Any]:
    found: dict[str, Any] = {"relation": relation.name, "table_id": relation.id, "snapshot": relation.snapshot}
    if relation.change_range is not None:
        found["changes"] = {"since": relation.change_range.since, "until": relation.change_range.until}
    return found


@lru_cache(maxsize=8)
def git_commit(folder: str) -> str | None:
    """The HEAD commit of a project's repository. None if the folder is in no repository, or git is not installed."""
    try:
        completed = subprocess.run(
            ["git", "-C", folder, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return completed.stdout.strip() if completed.returncode == 0 else None
