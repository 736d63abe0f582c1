"""`publish: run`: what a dbt command changes becomes one snapshot at its end, after its tests have passed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dbt.adapters.events.logging import AdapterLogger
from dbt_common.events.event_manager_client import get_event_manager
from dbt_common.exceptions import CompilationError, DbtRuntimeError
from sqlalchemy.exc import SQLAlchemyError

from ..credentials import PUBLISH, PUBLISH_ON_FAILURE
from ..history.node_commit import dbt_command, default_message, invocation_info
from ..history.run_commit import run_commit_info
from ..lake.errors import CommitUnknownError, LakeError
from ..lake.snapshot import LakeState
from ..node_info import NodeInfo
from ..project_graph import ProjectGraph
from ..spark.session import LakeSession
from ..spark.shared_transaction import Fold, SharedTransaction
from .outcome import FAILED, RunOutcome, kept_folds, left_out, short_name
from .preview import RelationPreview, preview, preview_table, write_preview
from .run_results import amend_run_results

logger = AdapterLogger("DuckLake")

PREVIEW_VARIABLE = "ducklake_preview"
"""The variable of `--vars` that has the rows of changed tables compared: `rows`, or `only` to publish nothing."""

_PREVIEW_EVERY_SECONDS = 5.0
_COMMANDS = frozenset(("build", "run", "seed", "snapshot", "test", "clone", "retry"))


def _setting(config: Any, name: str, known: Collection[str]) -> str:
    """A setting of the profile, or of `--vars` by its name with `ducklake_` before it."""
    variable = f"ducklake_{name}"
    value = (getattr(config, "cli_vars", None) or {}).get(variable, getattr(config.credentials, name))
    if value not in known:
        raise CompilationError(f"{variable} is {' or '.join(known)}, and it is {value!r}")
    return str(value)


def _key(node: Any) -> Sequence[str]:
    """The columns of a node's unique_key."""
    key = getattr(getattr(node, "config", None), "unique_key", None)
    return [key] if isinstance(key, str) else list(key or ())


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
        if self._preview_setting is not None and is_command and not self._is_on:
            raise CompilationError(
                f"{PREVIEW_VARIABLE} needs a run that is published as one snapshot: set publish: run in the profile, or"
                " ducklake_publish: run beside it in --vars. Nothing was run"
            )
        self._on_failure = _setting(config, "publish_on_failure", PUBLISH_ON_FAILURE) if self._is_on else None
        self._has_begun = False
        self._is_cancelling = False
        self._next_preview = 0.0
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
            self._commit(session, shared, kept_folds(folds, self.left_out))
        relations = [replace(r, not_published=self.left_out.get(r.node_id or "")) for r in relations]
        write_preview(self._target_folder, relations, self.snapshot)
        if self.snapshot is not None:
            for follow_up_of, work in self._follow_ups:
                if follow_up_of not in self.left_out:
                    work()

    def _commit(self, session: LakeSession, shared: SharedTransaction, folds: Sequence[Fold]) -> None:
        infos = [
            (replace(f.label, message=f.message or f.label.message), f.changed_relations)
            for f in folds
            if isinstance(f.label, NodeInfo)
        ]
        count = len({info.id for info, _ in infos})
        nodes = f"{count} node{'' if count == 1 else 's'}"
        state = LakeState() if shared.lake is None else shared.transaction(shared.lake).state
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
        if self.snapshot is None:
            logger.info("Nothing to publish: no node changed anything")
        else:
            logger.info(f"Published {nodes} as snapshot {self.snapshot}")

    def _preview(self, session: LakeSession, shared: SharedTransaction) -> list[RelationPreview]:
        nodes = getattr(self._manifest(), "nodes", {})
        keys = {node_id: _key(node) for node_id, node in nodes.items()}
        return preview(session, shared, keys, compares_rows=self._preview_setting is not None)

    def _preview_meanwhile(self) -> None:
        """Writes what the run has changed so far, now and then. That it cannot be told never fails the run."""
        with self._lock:
            if not self.is_running or time.monotonic() < self._next_preview:
                return
            self._next_preview = time.monotonic() + _PREVIEW_EVERY_SECONDS
        session = self._session()
        shared = session.shared
        try:
            if shared is not None:
                write_preview(self._target_folder, preview(session, shared, {}, compares_rows=False), None, True)
        except (LakeError, SQLAlchemyError, OSError) as error:
            logger.debug(f"What the run has changed so far is not known: {error}")

    @property
    def _target_folder(self) -> Path:
        return Path(self._config.project_target_path)

    def end(self, failed: bool) -> None:
        """Ends a run that no connection ended: it is published, or dropped if the command failed."""
        if self.is_running and (failed or not self.outcome.statuses):
            self._leave_out_all("the run was stopped")
            self._session().discard_shared()
        elif self.is_running:
            self.publish()
        if failed and self._has_begun:  # dbt has written the results already, and then tells nobody
            self._amend_results(self._target_folder / "run_results.json")

    def _leave_out_all(self, reason: str) -> None:
        self.left_out = dict.fromkeys(self.outcome.built, reason)

    # -- what dbt reports

    def _note_event(self, event: Any) -> None:
        name, data = event.info.name, event.data
        if name == "NodeFinished":
            self._note_status(data.node_info.unique_id, data.run_result.status)
            self._preview_meanwhile()
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
            if self.outcome.statuses.get(node) not in FAILED:
                self.outcome.statuses[node] = status
