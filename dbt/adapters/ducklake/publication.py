"""`publish: run`: what a dbt command changes becomes one snapshot at its end, after its tests have passed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.event_manager_client import get_event_manager
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from dbt_common.invocation import get_invocation_id

from .credentials import PUBLISH, PUBLISH_ON_FAILURE
from .history.node_commit import dbt_command, default_message, invocation_info
from .history.run_commit import run_commit_info
from .lake.errors import CommitUnknownError, LakeError
from .lake.snapshot import LakeState
from .node_info import NodeInfo
from .run_preview import RelationPreview, preview, preview_table, write_preview
from .run_results import amend_run_results
from .spark.session import LakeSession
from .spark.shared_transaction import Fold, SharedTransaction

logger = AdapterLogger("DuckLake")

PREVIEW_VARIABLE = "ducklake_preview"
"""The variable of `--vars` that has the rows of changed tables compared: `rows`, or `only` to publish nothing."""

_COMMANDS = frozenset(("build", "run", "seed", "snapshot", "test", "clone", "retry"))
_FAILED = frozenset(("error", "fail", "runtime error", "partial success"))
_BUILT = ("model", "seed", "snapshot", "function")
_TESTS = ("test", "unit_test")


def _setting(config: Any, name: str, known: Collection[str]) -> str:
    """A setting of the profile, or of `--vars` by its name with `ducklake_` before it."""
    variable = f"ducklake_{name}"
    value = (getattr(config, "cli_vars", None) or {}).get(variable, getattr(config.credentials, name))
    if value not in known:
        raise CompilationError(f"{variable} is {' or '.join(known)}, and it is {value!r}")
    return str(value)


@dataclass
class RunOutcome:
    """How the nodes of a run ended, as dbt reports it."""

    statuses: dict[str, str] = field(default_factory=dict)
    """By the unique id of the node, or by the name of a hook."""
    is_cut_short: bool = False
    """Whether dbt cancelled nodes that were running, so that others never ran."""

    @property
    def failures(self) -> list[str]:
        return [node for node, status in self.statuses.items() if status in _FAILED]


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
        return cls({node_id: tuple(_depends_on(node)) for node_id, node in nodes.items()}, tests)

    def built_ancestors(self, node_id: str) -> Iterator[str]:
        """The nodes that a node reads, also through ephemeral models."""
        todo, seen = list(self.parents.get(node_id, ())), set()
        while todo:
            parent = todo.pop()
            if parent not in seen:
                seen.add(parent)
                yield parent
                todo += self.parents.get(parent, ())


def _depends_on(node: Any) -> Collection[str]:
    return tuple(getattr(getattr(node, "depends_on", None), "nodes", None) or ())


def _tested_nodes(node: Any) -> Collection[str]:
    """The nodes that a test is a test of: of a generic test the one that it stands at, of others all that they read."""
    if str(getattr(node, "resource_type", "")) not in _TESTS:
        return ()
    attached = getattr(node, "attached_node", None) or getattr(node, "tested_node_unique_id", None)
    return (attached,) if attached else _depends_on(node)


def left_out(outcome: RunOutcome, graph: ProjectGraph, folds: Collection[Fold]) -> dict[str, str]:
    """The nodes whose changes are not to be published, with the reasons.

    A node is published if it succeeded, its own tests passed, and everything that it stands on is published.
    """
    found: dict[str, str] = {}
    built = [i for i in outcome.statuses if i.split(".")[0] in _BUILT]
    for node_id in built:
        status = outcome.statuses[node_id]
        if status in _FAILED or status == "skipped":
            found[node_id] = "it was skipped" if status == "skipped" else "it failed"
            continue
        for test_id in sorted(graph.tests.get(node_id, ())):
            result = outcome.statuses.get(test_id)
            if result in _FAILED or result == "skipped" or (result is None and outcome.is_cut_short):
                verb = "failed" if result in _FAILED else "did not run"
                found[node_id] = f"the test {short_name(test_id)} {verb}"
                break
    for fold in folds:
        if isinstance(fold.label, NodeInfo) and fold.label.id not in outcome.statuses:
            found[fold.label.id] = "it did not end"
    changed = True
    while changed:
        changed = False
        for node_id in built:
            missing = node_id not in found and next((p for p in graph.built_ancestors(node_id) if p in found), None)
            if missing:
                found[node_id] = f"it stands on {short_name(missing)}"
                changed = True
        without = [f for f in folds if _node_id(f) in found]
        for fold in folds:
            own_id = _node_id(fold)
            if own_id is not None and own_id not in found and any(fold.stands_on(other) for other in without):
                found[own_id] = "it stands on changes that are not published"
                changed = True
    return found


def kept_folds(folds: Collection[Fold], left_out_nodes: Collection[str]) -> list[Fold]:
    """The changes of the other nodes, and those of hooks and schemas that do not stand on a node that is left out."""
    kept: list[Fold] = []
    dropped: list[Fold] = []
    for fold in folds:
        drops = _node_id(fold) in left_out_nodes or any(fold.stands_on(other) for other in dropped)
        (dropped if drops else kept).append(fold)
    return kept


def _key(node: Any) -> Sequence[str]:
    """The columns of a node's unique_key."""
    key = getattr(getattr(node, "config", None), "unique_key", None)
    return [key] if isinstance(key, str) else list(key or ())


def _node_id(fold: Fold) -> str | None:
    return fold.label.id if isinstance(fold.label, NodeInfo) else None


def short_name(node_id: str) -> str:
    """`orders` of `model.shop.orders`, `not_null_orders_id` of `test.shop.not_null_orders_id.4f2a`."""
    parts = node_id.split(".")
    return parts[2] if len(parts) > 2 else node_id


class Publication:
    """Publishes the run of an adapter. Without `publish: run` it does nothing."""

    def __init__(self, config: Any, session: Callable[[], LakeSession], manifest: Callable[[], Any]) -> None:
        self._config = config
        self._session = session
        self._manifest = manifest
        self._lock = threading.Lock()
        self.outcome = RunOutcome()
        self.snapshot: int | None = None
        self.left_out: dict[str, str] = {}
        """The nodes that were not published, with the reasons."""
        self._follow_ups: list[tuple[str | None, Callable[[], object]]] = []
        is_command = dbt_command(config) in _COMMANDS and hasattr(config, "args")
        self._is_on = is_command and _setting(config, "publish", PUBLISH) == "run"
        self._preview_setting = (getattr(config, "cli_vars", None) or {}).get(PREVIEW_VARIABLE)
        if self._preview_setting not in (None, "rows", "only"):
            raise CompilationError(f"{PREVIEW_VARIABLE} is rows or only, and it is {self._preview_setting!r}")
        self._on_failure = _setting(config, "publish_on_failure", PUBLISH_ON_FAILURE) if self._is_on else None
        self._has_begun = False
        self._is_cancelling = False
        if self._is_on:
            get_event_manager().add_callback(self._note_event)

    @property
    def is_running(self) -> bool:
        """Whether the run has begun and is not published yet."""
        return self._has_begun and self._session().shared is not None

    @property
    def must_begin(self) -> bool:
        return self._is_on and not self._has_begun

    def begin(self) -> None:
        """Begins the run's transaction: what it reads is as of now."""
        session = self._session()
        session.discard_shared()  # of a run before this one that was never ended
        session.begin_shared()
        self._has_begun = True

    def cancel(self) -> None:
        """Notes that dbt stops the running nodes."""
        self.outcome.is_cut_short = self._is_cancelling = True

    def follow_up(self, node_id: str | None, work: Callable[[], object]) -> None:
        """Leaves work for when the run is published, or when the node is."""
        with self._lock:
            self._follow_ups.append((node_id, work))

    def end_of_connection(self) -> None:
        """Publishes, if dbt leaves the connection in which it ran the hooks of the run's end."""
        if self._is_cancelling:
            self._is_cancelling = False
        elif self.is_running and self.outcome.statuses:
            self.publish()

    def publish(self) -> None:
        session = self._session()
        shared = session.shared
        assert shared is not None
        folds, failures = shared.folds, self.outcome.failures
        relations = self._preview(session, shared)
        if self._preview_setting == "only":
            self._leave_out_all("it was a preview")
            session.discard_shared()
            logger.info(f"Nothing is published, since it was a preview.\n{preview_table(relations, None)}")
        elif failures and self._on_failure == "nothing":
            more = f" and {len(failures) - 1} more" if len(failures) > 1 else ""
            self._leave_out_all(f"{short_name(failures[0])} failed")
            session.discard_shared()
            logger.warning(
                f"Nothing is published, since {short_name(failures[0])}{more} failed:"
                f" {session.lake().catalog.database.location} is as it was. What would have changed is told by"
                " dbt run-operation ducklake_preview"
            )
        else:
            if failures:
                self.left_out = left_out(self.outcome, ProjectGraph.of(self._manifest()), folds)
            self._commit(session, kept_folds(folds, self.left_out) if failures else list(folds))
        relations = [replace(r, not_published=self.left_out.get(r.node_id or "")) for r in relations]
        write_preview(Path(self._config.project_target_path), get_invocation_id(), self.snapshot, relations)
        if self.snapshot is not None:
            for follow_up_of, work in self._follow_ups:
                if follow_up_of not in self.left_out:
                    work()

    def _commit(self, session: LakeSession, folds: Sequence[Fold]) -> None:
        infos = [
            (replace(f.label, message=f.message or f.label.message), f.changed_relations)
            for f in folds
            if isinstance(f.label, NodeInfo)
        ]
        count = len({info.id for info, _ in infos})
        nodes = f"{count} node{'' if count == 1 else 's'}"
        shared = session.shared
        state = shared.transaction(shared.lake).state if shared is not None and shared.lake is not None else LakeState()
        existing = {*state.tables, *state.views}
        info = run_commit_info(default_message(self._config, nodes), invocation_info(self._config), infos, existing)
        try:
            self.snapshot = session.publish(info, folds).snapshot_id
        except LakeError as error:
            if not isinstance(error, CommitUnknownError):
                self._leave_out_all("the run could not be published")
            raise DbtRuntimeError(f"the run is not published: {error}") from error
        for node_id, reason in self.left_out.items():
            logger.warning(f"Not published: {short_name(node_id)}, since {reason}")
        published = "Nothing to publish: no node changed anything"
        logger.info(published if self.snapshot is None else f"Published {nodes} as snapshot {self.snapshot}")

    def _preview(self, session: LakeSession, shared: SharedTransaction) -> list[RelationPreview]:
        nodes = getattr(self._manifest(), "nodes", {})
        keys = {node_id: _key(node) for node_id, node in nodes.items()}
        return preview(session, shared, keys, compares_rows=self._preview_setting is not None)

    def end(self, failed: bool) -> None:
        """Ends a run that no connection ended: it is published, or dropped if the command failed."""
        if self.is_running and (failed or not self.outcome.statuses):
            self._leave_out_all("the run was stopped")
            self._session().discard_shared()
        elif self.is_running:
            self.publish()
        if failed and self._has_begun:  # dbt has written the results already, and then tells nobody
            self._amend_results(Path(self._config.project_target_path) / "run_results.json")

    def _leave_out_all(self, reason: str) -> None:
        self.left_out = {i: reason for i in self.outcome.statuses if i.split(".")[0] in _BUILT}

    # -- what dbt reports

    def _note_event(self, event: Any) -> None:
        name, data = event.info.name, event.data
        if name == "NodeFinished":
            self._note_status(data.node_info.unique_id, data.run_result.status)
        elif name == "LogHookEndLine" and data.status not in ("success", "skipped"):
            self._note_status(data.statement, "error")
        elif name == "ArtifactWritten" and str(data.artifact_path).endswith("run_results.json"):
            if self.is_running:  # dbt writes the results before it stops
                self._leave_out_all("the run was stopped")
            self._amend_results(data.artifact_path)

    def _amend_results(self, path: str | Path) -> None:
        if self._has_begun:
            amend_run_results(path, self.snapshot, self.left_out, ProjectGraph.of(self._manifest()).tests)

    def _note_status(self, node: str, status: str) -> None:
        with self._lock:
            if self.outcome.statuses.get(node) not in _FAILED:
                self.outcome.statuses[node] = status
