"""run_results.json of a run that is one snapshot: dbt writes it without knowing what was published."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from dbt_common.invocation import get_invocation_id

from ..connection_handle import STAGED


def amend_run_results(
    path: str | Path, snapshot: int | None, left_out: Mapping[str, str], tests: Mapping[str, Collection[str]]
) -> None:
    """Gives the results of published nodes their snapshot. Those of others become `skipped`, with the reason.

    So `dbt retry` builds what was not published, and tests it, although dbt had no error there.
    """
    file = Path(path)
    content = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if content.get("metadata", {}).get("invocation_id") != get_invocation_id():
        return  # the results of another command
    untested = {test: node for node in left_out for test in tests.get(node, ())}
    for result in content["results"]:
        node_id = result["unique_id"]
        response = result.get("adapter_response") or {}
        if node_id in left_out or node_id in untested:
            _leave_out(result, left_out.get(node_id) or f"{untested.get(node_id)} was not published")
        elif snapshot is not None and str(response.get("_message", "")).startswith(STAGED):
            response["_message"] = response["_message"].replace(STAGED, f"snapshot {snapshot}", 1)
            response["snapshot_id"] = snapshot
            result["message"] = response["_message"]
    temporary = file.with_name(f"{file.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content), encoding="utf-8")
    temporary.replace(file)


def _leave_out(result: dict[str, Any], reason: str) -> None:
    result["batch_results"] = None  # else dbt retry would run the failed batches alone
    if result["status"] in ("success", "pass", "warn", "no-op"):
        result["status"] = "skipped"
        result["message"] = f"not published: {reason}"
