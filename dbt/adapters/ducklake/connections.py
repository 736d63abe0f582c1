"""A dbt thread and a transaction on the lake: what dbt calls a connection."""

from __future__ import annotations

import atexit
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from multiprocessing.context import SpawnContext
from typing import Any, ClassVar

import agate
import pyarrow as pa
from dbt.adapters.contracts.connection import (
    AdapterRequiredConfig,
    AdapterResponse,
    Connection,
    ConnectionState,
    LazyHandle,
)
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions import FailedToConnectError
from dbt.adapters.sql import SQLConnectionManager
from dbt_common.clients.agate_helper import empty_table
from dbt_common.exceptions import DbtDatabaseError, DbtRuntimeError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from sqlalchemy.exc import SQLAlchemyError

from .credentials import DucklakeCredentials
from .lake.commit.staged import CommitInfo
from .lake.errors import LakeError
from .lake.transaction import Volume
from .spark.engine.errors import message_of
from .spark.results import Input, Result
from .spark.session import LakeSession
from .spark.sql.statements import Commit, Statement, parse, split

logger = AdapterLogger("DuckLake")
_view_numbers = count(1)

Describe = Callable[[list[Input], Volume], CommitInfo]
"""What says who commits a node's transaction and why, from what it read and changed."""


@dataclass
class LakeResponse(AdapterResponse):
    """What dbt shows of a statement; once its node committed, of the snapshot."""

    snapshot_id: int | None = None
    files_added: int | None = None


class Cursor:
    """A statement's result, in the shape that dbt's SQL adapters expect."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._result = Result()
        self._table: pa.Table | None = None

    def execute(self, sql: str, bindings: Sequence[Any] | None = None) -> None:
        if bindings:
            raise DbtRuntimeError("statements take no bindings here; write the values into the SQL as literals")
        self._table = None
        self._result = self._handle.execute(sql)

    def finish(self) -> None:
        """Carries out a query whose rows nobody wants, for what it may raise or do."""
        if self._result.dataframe is not None:
            with self._handle.running():
                self._result.dataframe.write.format("noop").mode("overwrite").save()

    @property
    def response(self) -> LakeResponse:
        return self._handle.respond(self._result)

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
        self._handle.told = True
        frame = self._result.dataframe
        if frame is None:
            table = self._result.arrow()
            table = table if limit is None else table.slice(0, limit)
        else:
            with self._handle.running():
                table = (frame if limit is None else frame.limit(limit)).toArrow()
        columns = [column.to_pylist(maps_as_pydicts="lossy") for column in table.columns]
        return list(zip(*columns, strict=True))


class Handle:
    """What a thread does to the lake: statements, and one transaction for a node."""

    def __init__(self, session: LakeSession, connection: Connection) -> None:
        self.session = session
        self.describe: Describe | None = None
        """Set while a node runs: its statements become one snapshot that this describes."""
        self.label: str | None = None
        """The commit message of statements that stand alone."""
        self.told = False
        """Whether the node was given rows, which may have become part of its text."""
        self._connection = connection
        self._responses: list[LakeResponse] = []
        self._views: list[str] = []
        self._cancelled = threading.Event()
        self._busy = 0

    def cursor(self) -> Cursor:
        return Cursor(self)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Marks the Spark jobs of a block, so that `cancel` can stop them."""
        self._refuse_if_cancelled()
        self._busy += 1
        try:
            with self.session.tagged(self._tag):
                yield
        finally:
            self._busy -= 1

    def _refuse_if_cancelled(self) -> None:
        if self._cancelled.is_set():
            raise DbtRuntimeError("the run was cancelled, and nothing of this node is committed")

    def execute(self, sql: str) -> Result:
        """Carries out one or more statements; the result is the last one's."""
        result = Result()
        for text in split(sql):
            result = self._run(parse(text))
        return result

    def _run(self, statement: Statement) -> Result:
        if isinstance(statement, Commit) and (self.describe is not None or not self.session.in_transaction):
            # dbt sends it before hooks that run outside of the transaction, whether one is open or not.
            self.commit()
            self._connection.transaction_open = False
            return Result()
        with self.running(), self.session.messages(self.label):
            return self.session.run(statement)

    def respond(self, result: Result) -> LakeResponse:
        response = LakeResponse(_message="OK", rows_affected=result.rows_affected, snapshot_id=result.snapshot_id)
        if result.snapshot_id is not None:
            response._message = _summary(result.snapshot_id, result.rows_affected, None)
        if self.session.in_transaction:
            self._responses.append(response)
        return response

    def temporary_view(self, rows: DataFrame) -> str:
        """A name for rows, until the transaction ends."""
        name = f"_dbt_{next(_view_numbers)}"
        rows.createOrReplaceTempView(name)
        self._views.append(name)
        return name

    def begin(self) -> None:
        # Outside of a node each statement is a snapshot of its own, so that operations last.
        if self.describe is not None and not self.session.in_transaction:
            self.session.begin()

    def commit(self) -> None:
        if not self.session.in_transaction:
            return
        self._refuse_if_cancelled()
        responses, self._responses = self._responses, []
        result, volume = self.session.lake().catalog.retry.planned(self._committed, self._repeated)
        written = volume.rows_added + volume.rows_updated
        for response in responses:
            response._message = _summary(result.snapshot_id, written, volume.files_added)
            response.snapshot_id = result.snapshot_id
            response.rows_affected = written
            response.files_added = volume.files_added
        self._drop_views()

    def _committed(self) -> tuple[Result, Volume]:
        volume = self.session.volume()
        info = self.describe(self.session.inputs(), volume) if self.describe else None
        return self.session.commit(info), volume

    def _repeated(self) -> bool:
        """Does the node's changes again, unless its text came of rows that were read before."""
        if self.told or self._views:
            return False
        with self.running():
            return self.session.repeat()

    def rollback(self) -> None:
        self._responses = []
        if self.session.in_transaction:
            self.session.rollback()
        self._drop_views()

    def _drop_views(self) -> None:
        views, self._views = self._views, []
        for view in views:
            self.session.spark.catalog.dropTempView(view)

    def close(self) -> None:
        self.rollback()

    def cancel(self) -> None:
        """Stops what this thread runs, from another one; nothing of it is committed any more."""
        self._cancelled.set()
        threading.Thread(target=self._interrupt, name=f"cancel-{self._tag}", daemon=True).start()

    def _interrupt(self) -> None:
        # Between two of its jobs, or while Spark is still starting, a statement has nothing to be stopped.
        while self._busy:
            self.session.cancel(self._tag)
            time.sleep(0.5)

    @property
    def _tag(self) -> str:
        return f"dbt-{id(self)}"


def _summary(snapshot: int | None, rows: int, files: int | None) -> str:
    if snapshot is None:
        return "no change"
    parts = [f"snapshot {snapshot}"]
    if rows or files:
        parts.append(f"{_short(rows)} row{'' if rows == 1 else 's'}")
    if files:
        parts.append(f"{files} file{'' if files == 1 else 's'}")
    return ", ".join(parts)


def _short(count: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 10 * size or (count >= size and size > 10**3):
            return f"{count / size:.1f}{unit}"
    return str(count)


class _Sessions:
    """One LakeSession a process for each profile: starting Spark twice would cost seconds."""

    def __init__(self) -> None:
        self._open: dict[str, LakeSession] = {}
        self._lock = threading.Lock()

    def get(self, credentials: DucklakeCredentials) -> LakeSession:
        key = repr(sorted(credentials.to_dict().items()))
        with self._lock:
            if key not in self._open:
                self._open[key] = credentials.lake_session()
            return self._open[key]

    def close(self) -> None:
        with self._lock:
            for session in self._open.values():
                session.close()
            self._open.clear()


_sessions = _Sessions()
atexit.register(_sessions.close)


class _Thread(threading.local):
    described: tuple[Describe | None, str | None] = (None, None)


class DucklakeConnectionManager(SQLConnectionManager):
    TYPE: ClassVar[str] = "ducklake"

    def __init__(self, profile: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(profile, mp_context)
        self._thread = _Thread()

    @property
    def session(self) -> LakeSession:
        """The process's session, for what needs no connection."""
        return _sessions.get(self.profile.credentials)

    def start_spark(self) -> None:
        """Starts Spark while dbt still reads the project; an error in the profile is met later, where it is shown."""
        try:
            self.session.start_spark()
        except LakeError as error:
            logger.debug(f"Spark is not started yet: {error}")

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            connection.handle = Handle(_sessions.get(connection.credentials), connection)
        except LakeError as error:
            connection.handle = None
            connection.state = ConnectionState.FAIL
            raise FailedToConnectError(str(error)) from error
        connection.state = ConnectionState.OPEN
        return connection

    # -- nodes and transactions

    @contextmanager
    def described(self, describe: Describe | None, label: str) -> Iterator[None]:
        """Says what describes this thread's commits in the block: of a node, and of statements outside of one."""
        before = self._thread.described
        self._thread.described = describe, label
        try:
            yield
        finally:
            self._thread.described = before
            connection = self.get_if_exists()
            if connection is not None and connection.state == ConnectionState.OPEN:
                connection.handle.describe, connection.handle.label = before

    def set_connection_name(self, name: str | None = None) -> Connection:
        connection = super().set_connection_name(name)
        described = self._thread.described

        def opened(lazy: Connection) -> Connection:
            self.open(lazy)
            lazy.handle.describe, lazy.handle.label = described
            return lazy

        if connection.state == ConnectionState.OPEN:
            connection.handle.describe, connection.handle.label = described
            connection.handle.told = False
        else:
            connection.handle = LazyHandle(opened)
        return connection

    def add_begin_query(self) -> None:
        with self.exception_handler("BEGIN"):
            self.get_thread_connection().handle.begin()

    def add_commit_query(self) -> None:
        with self.exception_handler("COMMIT"):
            self.get_thread_connection().handle.commit()

    def commit_if_has_connection(self) -> None:
        connection = self.get_if_exists()
        if connection is not None and connection.transaction_open:
            self.commit()

    def cancel(self, connection: Connection) -> None:
        connection.handle.cancel()

    # -- statements

    def execute(
        self, sql: str, auto_begin: bool = False, fetch: bool = False, limit: int | None = None
    ) -> tuple[LakeResponse, agate.Table]:
        sql = self._add_query_comment(sql)
        _, cursor = self.add_query(sql, auto_begin)
        with self.exception_handler(sql):
            if fetch:
                table = self.get_result_from_cursor(cursor, limit)
            else:
                cursor.finish()
                table = empty_table()
        return self.get_response(cursor), table

    @classmethod
    def get_response(cls, cursor: Cursor) -> LakeResponse:
        return cursor.response

    def exception_handler(self, sql: str) -> AbstractContextManager[None]:
        return self._handled(sql)

    @contextmanager
    def _handled(self, sql: str) -> Iterator[None]:
        try:
            yield
        except (LakeError, PySparkException, Py4JError, SQLAlchemyError) as error:
            logger.debug(f"Error while running:\n{sql}\n{traceback.format_exc()}")
            self.rollback_if_open()
            raise DbtDatabaseError(message_of(error)) from error
        except BaseException:
            self.rollback_if_open()
            raise

    @classmethod
    def data_type_code_to_name(cls, type_code: int | str) -> str:
        return str(type_code)
