"""The handle of a dbt connection: the statements of one thread, and the transaction of the node that it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
from dbt.adapters.contracts.connection import AdapterResponse, Connection
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame

from .lake.transaction import ChangeCounts
from .node_info import NodeInfoFactory
from .progress import RunningNode, abbreviated_count, progress_log
from .spark.results import Result
from .spark.session import LakeSession
from .spark.sql.repeatability import normalized
from .spark.sql.statements import Commit, Statement, split

STAGED = "staged"
"""What a response says in the place of a snapshot while the run is not published."""

PASSED_TEST = "select 0 as failures, false as should_warn, false as should_error"
"""The query of a data test that is known to pass. It is answered without Spark."""

_view_numbers = count(1)
_node_numbers = count(1)


@dataclass(frozen=True)
class CommitContext:
    """How the changes of a thread are committed."""

    node_info: NodeInfoFactory | None = None
    """Set while a node runs: its statements become one snapshot with this info."""
    statement_message: str | None = None
    """The commit message of statements outside of a node: each of them is a snapshot of its own."""


@dataclass
class LakeResponse(AdapterResponse):
    """The response that dbt logs: of the statement, and after the commit of its node of the snapshot."""

    snapshot_id: int | None = None
    files_added: int | None = None
    notes: str | None = None
    """What is to be known besides, such as `Spark only` of a view that DuckDB cannot query."""


class Cursor:
    """The result of a statement, with the interface that dbt's SQL adapters expect."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._result = Result()

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        if bindings:
            raise DbtRuntimeError("statements take no bindings here; write the values into the SQL as literals")
        self._result = self._handle.execute(sql)

    def run_without_fetching(self) -> None:
        """Runs a query whose rows nobody fetches, for its errors and side effects."""
        if self._result.dataframe is not None:
            with self._handle.cancellable():
                self._result.dataframe.write.format("noop").mode("overwrite").save()

    @property
    def response(self) -> LakeResponse:
        return self._handle.response_to(self._result)

    @property
    def description(self) -> list[tuple[str, str]] | None:
        """The name and type of each column."""
        if self._result.dataframe is not None:
            return [(f.name, f.dataType.simpleString()) for f in self._result.dataframe.schema.fields]
        return [(f.name, str(f.type)) for f in self._result.table.schema] if self._result.table is not None else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        return self._rows(None)

    def fetchmany(self, count: int) -> list[tuple[Any, ...]]:
        return self._rows(count)

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(iter(self._rows(1)), None)

    def _rows(self, limit: int | None) -> list[tuple[Any, ...]]:
        self._handle.returned_rows = True
        dataframe = self._result.dataframe
        if dataframe is None:
            table = self._result.arrow()
            table = table if limit is None else table.slice(0, limit)
        else:
            with self._handle.cancellable():
                table = (dataframe if limit is None else dataframe.limit(limit)).toArrow()
        columns = [column.to_pylist(maps_as_pydicts="lossy") for column in table.columns]
        return list(zip(*columns, strict=True))


class Handle:
    """A thread's access to the lake: statements, and one transaction per node."""

    def __init__(self, session: LakeSession, connection: Connection) -> None:
        self.session = session
        self.commit_context = CommitContext()
        self.returned_rows = False
        """Whether the node fetched rows. Its later SQL may depend on them, so it cannot be replayed."""
        self.is_bound_to_snapshot = False
        """Whether the node's SQL names the snapshot that it reads, so that it cannot be replayed on another."""
        self._connection = connection
        self._responses: list[LakeResponse] = []
        self._temporary_views: list[str] = []
        self._cancelled = threading.Event()
        self._cancellable_blocks = 0
        self.start_node()

    def start_node(self) -> None:
        """Gives the Spark jobs that follow the name of the connection, which is that of the node."""
        name = str(getattr(self._connection, "name", None) or "dbt")
        self.passed_test: str | None = None
        """Why the data test that is the node is known to pass."""
        self.after_test: Callable[[], None] | None = None
        """Called when the data test that is the node has run, in its transaction."""
        self.committed_snapshot: int | None = None
        """The snapshot of the node, once it has committed one."""
        # Spark Connect separates tags with commas. A node can run more than once in a process.
        self._node = RunningNode(self.session, name, f"{name.replace(',', '_')}-{next(_node_numbers)}")

    def cursor(self) -> Cursor:
        return Cursor(self)

    @contextmanager
    def cancellable(self) -> Iterator[None]:
        """Tags the Spark jobs of the block, so that `cancel` can stop them, and logs their progress."""
        self._raise_if_cancelled()
        self._cancellable_blocks += 1
        try:
            with self.session.job_tag(self._node.tag, self._node.name), progress_log.of(self._node):
                yield
        finally:
            self._cancellable_blocks -= 1

    @contextmanager
    def cancelled_after(self, seconds: float) -> Iterator[None]:
        """Cancels the Spark jobs of the block when it takes longer."""
        timer = threading.Timer(seconds, self.session.cancel, [self._node.tag])
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _raise_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise DbtRuntimeError("the run was cancelled, and nothing of this node is committed")

    def execute(self, sql: str) -> Result:
        """Runs one or more statements. Returns the result of the last one."""
        result = Result()
        for text in split(sql):
            if self.passed_test is not None and normalized(text) == normalized(PASSED_TEST):
                passed = {"failures": [0], "should_warn": [False], "should_error": [False]}
                result = Result(table=pa.table(passed), notes=(self.passed_test,))
            else:
                result = self._run(self.session.parse(text))
        return result

    def _run(self, statement: Statement) -> Result:
        if isinstance(statement, Commit) and (
            self.commit_context.node_info is not None or not self.session.in_transaction
        ):
            # dbt sends COMMIT before hooks that run outside of the transaction, whether or not one is open.
            self.commit()
            self._connection.transaction_open = False
            return Result()
        with self.cancellable(), self.session.commit_message(self.commit_context.statement_message):
            return self.session.run(statement)

    def response_to(self, result: Result) -> LakeResponse:
        """The response for a result. In a transaction, `commit` completes it with the snapshot."""
        response = LakeResponse(
            _message="OK",
            rows_affected=result.rows_affected,
            snapshot_id=result.snapshot_id,
            notes=", ".join(result.notes) or None,
        )
        if result.snapshot_id is not None:
            response._message = _response_text(result, result.rows_affected, None, response.notes)
        if self.session.in_transaction:
            self._responses.append(response)
        return response

    def temporary_view(self, rows: DataFrame) -> str:
        """Registers rows as a temporary view that lives until the transaction ends. Returns its name."""
        name = f"_dbt_{next(_view_numbers)}"
        rows.createOrReplaceTempView(name)
        self._temporary_views.append(name)
        return name

    def begin(self) -> None:
        # Outside of a node each statement commits by itself, so that the changes of run-operation last.
        if self.commit_context.node_info is not None and not self.session.in_transaction:
            self.session.begin()

    def commit(self) -> None:
        """Commits the node, or stages it if the run is published as a whole."""
        if not self.session.in_transaction:
            return
        self._raise_if_cancelled()
        responses, self._responses = self._responses, []
        result, changes = self.session.lake().catalog.retry.on_conflict(self._commit_once, self._replay)
        self.committed_snapshot = result.snapshot_id
        rows_written = changes.rows_added + changes.rows_updated
        for response in responses:
            response._message = _response_text(result, rows_written, changes.files_added, response.notes)
            response.snapshot_id = result.snapshot_id
            response.rows_affected = rows_written
            response.files_added = changes.files_added
        self._drop_temporary_views()

    def _commit_once(self) -> tuple[Result, ChangeCounts]:
        session, changes = self.session, self.session.change_counts()
        make_info = self.commit_context.node_info
        if make_info is None:
            return session.commit(), changes
        inputs = session.inputs()
        info, noted_in = make_info(inputs, changes), None
        info = make_info.annotated(info, session, inputs)
        if not session.has_changes and (noted := make_info.with_progress(info, session, inputs)) is not None:
            info, noted_in = noted, make_info.database
        return session.commit(info.commit_info(), noted_in, label=info), changes

    def _replay(self) -> bool:
        """Runs the node's changes again after a conflict. False if its SQL may depend on rows that it fetched."""
        if self.returned_rows or self.is_bound_to_snapshot or self._temporary_views:
            return False
        with self.cancellable():
            return self.session.replay()

    def rollback(self) -> None:
        self._responses = []
        if self.session.in_transaction:
            self.session.rollback()
        self._drop_temporary_views()

    def _drop_temporary_views(self) -> None:
        views, self._temporary_views = self._temporary_views, []
        for view in views:
            self.session.spark.catalog.dropTempView(view)

    def close(self) -> None:
        self.rollback()

    def cancel(self) -> None:
        """Stops the Spark jobs of this handle's thread. Called by another thread. Nothing is committed after it."""
        self._cancelled.set()
        threading.Thread(target=self._cancel_jobs, name=f"cancel-{self._node.tag}", daemon=True).start()

    def _cancel_jobs(self) -> None:
        # Repeatedly: between two jobs, or while Spark is starting, a statement has no job to cancel.
        while self._cancellable_blocks:
            self.session.cancel(self._node.tag)
            time.sleep(0.5)


def _response_text(result: Result, rows: int, files: int | None, notes: str | None) -> str:
    if not result.is_staged and result.snapshot_id is None:
        return "no change" if notes is None else f"no change, {notes}"
    parts = [STAGED if result.is_staged else f"snapshot {result.snapshot_id}"]
    if rows or files:
        parts.append(f"{abbreviated_count(rows)} row{'' if rows == 1 else 's'}")
    if files:
        parts.append(f"{files} file{'' if files == 1 else 's'}")
    if notes is not None:
        parts.append(notes)
    return ", ".join(parts)
