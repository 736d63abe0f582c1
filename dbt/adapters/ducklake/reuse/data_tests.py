"""`reuse: true` for data tests: one whose relations are what they were when it last passed is not run again.

What passed is kept in dbt's target folder, since it should cost no snapshot. Without that folder tests run again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from dbt_common.events.event_manager_client import get_event_manager

from ..connection_handle import Handle
from ..lake.null_counts import has_no_nulls
from ..lake.snapshot import Table
from ..spark.session import LakeSession
from .dependencies import changed_function, find_relation, function_digests, session_digest
from .recipe import Recipe
from .run import Run

PASSED_FILE = "ducklake_passed_tests.json"


@dataclass(frozen=True)
class PassedTest:
    """What a test read when it passed."""

    fingerprint: str
    inputs: Mapping[str, tuple[str, int | None]]
    """The UUID of each relation and the last snapshot that had changed it, by dotted name; None if it was staged."""
    functions: Mapping[str, str]


class ReusedTests:
    """The data tests that passed, in this command and in earlier ones. Threads share it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._waiting: dict[str, PassedTest] = {}
        """The tests of this command that read all that they read, and whose outcome dbt has not told yet."""
        self._new: dict[str, PassedTest] = {}
        self._known: dict[str, PassedTest] | None = None
        get_event_manager().add_callback(self._note_event)

    @cached_property
    def _file(self) -> Path:
        return Path(self._run.config.project_target_path) / PASSED_FILE

    @cached_property
    def _lake(self) -> str:
        return str(self._run.config.credentials.location)

    def why_passed(self, test: Any, handle: Handle) -> str | None:
        """Why a data test is known to pass. None if it is to run; `note` then tells what it read."""
        if not test.config.get("reuse") or handle.returned_rows:
            return None
        session = self._run.session()
        recipe = self._run.recipes.of(test, test.compiled_code, fetches_rows=False)
        recipe = replace(recipe, fingerprint=recipe.fingerprint + session_digest(session))
        if self._has_passed(test.unique_id, recipe.fingerprint, session):
            return "reused"
        tested = getattr(self._run.manifest(), "nodes", {}).get(getattr(test, "attached_node", None))
        if tested is not None and is_proved_not_null(test, tested, session):
            return "proved by statistics"
        handle.after_test = lambda: self._note(test.unique_id, recipe)
        return None

    def _has_passed(self, test_id: str, fingerprint: str, session: LakeSession) -> bool:
        """Whether a test passed on the same versions of everything that it reads."""
        with self._lock:
            if self._known is None:
                self._known = self._read()
            passed = self._known.get(test_id)
        if passed is None or passed.fingerprint != fingerprint:
            return False
        for name, (uuid, snapshot) in passed.inputs.items():
            lake, relation = find_relation(session, name)
            if relation is None or relation.uuid != uuid or snapshot is None or session.is_staged(relation, lake):
                return False
            if self._run.last_changes.of(session, lake, [relation])[relation.id] > snapshot:
                return False
        return changed_function(session, passed.functions) is None

    def _note(self, test_id: str, recipe: Recipe) -> None:
        """Notes what the test that the thread has just run read."""
        session = self._run.session()
        functions, outside = session.dependencies()
        if recipe.unrepeatable(session, outside) is not None:
            return
        inputs: dict[str, tuple[str, int | None]] = {}
        for read in session.inputs():
            _, relation = find_relation(session, read.name)
            if relation is None or relation.id != read.id or read.change_range is not None:
                return
            if inputs.setdefault(read.name, (relation.uuid, read.snapshot))[1] != read.snapshot:
                return  # it reads several versions
        with self._lock:
            self._waiting[test_id] = PassedTest(recipe.fingerprint, inputs, function_digests(functions))

    def write(self, published: int | None) -> None:
        """Keeps what passed. What was staged is of the published snapshot, or gone if there is none."""
        with self._lock:
            new = {test: p for test, p in self._new.items() if published is not None or not _reads_staged(p)}
            if not new:
                return
            known = self._known if self._known is not None else self._read()
            lakes = self._all()
            lakes[self._lake] = {test: _as_json(p, published) for test, p in {**known, **new}.items()}
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._file.with_suffix(".new")
            temporary.write_text(json.dumps(lakes), encoding="utf-8")
            temporary.replace(self._file)

    def _all(self) -> dict[str, Any]:
        try:
            content = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):  # there is none yet, or it was cut short
            return {}
        return content if isinstance(content, dict) else {}

    def _read(self) -> dict[str, PassedTest]:
        return {
            test: PassedTest(
                p["fingerprint"], {name: (uuid, at) for name, (uuid, at) in p["inputs"].items()}, p["functions"]
            )
            for test, p in self._all().get(self._lake, {}).items()
        }

    def _note_event(self, event: Any) -> None:
        if event.info.name != "NodeFinished":
            return
        with self._lock:
            passed = self._waiting.pop(event.data.node_info.unique_id, None)
            if passed is not None and event.data.run_result.status == "pass":
                self._new[event.data.node_info.unique_id] = passed


def _reads_staged(passed: PassedTest) -> bool:
    return any(snapshot is None for _, snapshot in passed.inputs.values())


def _as_json(passed: PassedTest, published: int | None) -> dict[str, Any]:
    inputs = {name: [uuid, published if at is None else at] for name, (uuid, at) in passed.inputs.items()}
    return {"fingerprint": passed.fingerprint, "inputs": inputs, "functions": dict(passed.functions)}


def is_proved_not_null(test: Any, tested: Any, session: LakeSession) -> bool:
    """Whether statistics prove a `not_null` test of a node's table: no data file has a NULL in the column."""
    metadata = getattr(test, "test_metadata", None)
    if metadata is None or metadata.name != "not_null" or metadata.namespace:
        return False
    relation = session.state(tested.database).find_relation(tested.schema, tested.alias)
    if not isinstance(relation, Table):
        return False
    name = str(getattr(test, "column_name", None) or metadata.kwargs.get("column_name") or "")
    column = next((c for c in relation.columns if c.name.lower() == name.strip("`").lower()), None)
    if column is None:
        return False
    transaction = session.transaction_on(tested.database)
    with transaction.catalog.read() as connection:
        changes = transaction.data_changes(relation)
        return has_no_nulls(connection, transaction.catalog, transaction.base.id, relation, column.id, changes)
