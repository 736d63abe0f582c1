"""The connection manager: opens a handle on the lake for each dbt thread, and runs statements on it."""

from __future__ import annotations

import atexit
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from typing import cast

import agate
from dbt.adapters.contracts.connection import (
    AdapterRequiredConfig,
    Connection,
    ConnectionState,
    LazyHandle,
)
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.exceptions.connection import FailedToConnectError
from dbt.adapters.sql.connections import SQLConnectionManager
from dbt_common.clients.agate_helper import empty_table
from dbt_common.exceptions import DbtDatabaseError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from sqlalchemy.exc import SQLAlchemyError

from .connection_handle import CommitContext, Cursor, Handle, LakeResponse
from .credentials import DucklakeCredentials
from .lake.errors import LakeError
from .lake.migration import Migration
from .maintenance import RunBudget
from .spark.engine.errors import message_of
from .spark.session import LakeSession

logger = AdapterLogger("DuckLake")


class _SessionCache:
    """The LakeSessions of this process, one per profile. They outlive an adapter: starting Spark takes seconds."""

    def __init__(self) -> None:
        self._sessions: dict[str, LakeSession] = {}
        self._lock = threading.Lock()

    def get(self, credentials: DucklakeCredentials) -> LakeSession:
        key = self._key(credentials)
        with self._lock:
            if key not in self._sessions:
                self._sessions[key] = credentials.lake_session()
            return self._sessions[key]

    @staticmethod
    def _key(credentials: DucklakeCredentials) -> str:
        return repr(sorted(credentials.to_dict().items()))

    def opened(self, credentials: DucklakeCredentials) -> LakeSession | None:
        """The session of a profile, if there is one yet."""
        with self._lock:
            return self._sessions.get(self._key(credentials))

    def close(self) -> None:
        with self._lock:
            for session in self._sessions.values():
                session.close()
            self._sessions.clear()


_session_cache = _SessionCache()
atexit.register(_session_cache.close)


class _ThreadState(threading.local):
    commit_context = CommitContext()


class DucklakeConnectionManager(SQLConnectionManager):
    TYPE = "ducklake"

    def __init__(self, profile: AdapterRequiredConfig, mp_context: SpawnContext) -> None:
        super().__init__(profile, mp_context)
        self._thread = _ThreadState()
        self._runs_nodes = False
        self.maintenance_budget = RunBudget()

    @property
    def session(self) -> LakeSession:
        """The session of the profile. It needs no open connection."""
        return _session_cache.get(cast(DucklakeCredentials, self.profile.credentials))

    def migrate(self, to_version: str | None, dry_run: bool) -> Migration:
        """Migrates the lake of the profile. It is not opened, because an older one cannot be."""
        credentials = cast(DucklakeCredentials, self.profile.credentials)
        session = _session_cache.opened(credentials)
        if session is not None:
            return session.lake().migrate(to_version, dry_run=dry_run)
        return LakeSession.migrate(
            credentials.catalog, to_version, metadata_schema=credentials.metadata_schema, dry_run=dry_run
        )

    def start_spark(self) -> None:
        """Opens the lake, then starts Spark while dbt still parses the project. Errors in the profile come first."""
        self._runs_nodes = True
        try:
            self.session.start_spark()
        except LakeError as error:
            raise FailedToConnectError(str(error)) from error

    @classmethod
    def open(cls, connection: Connection) -> Connection:
        if connection.state == ConnectionState.OPEN:
            return connection
        try:
            session = _session_cache.get(connection.credentials)
            session.raise_start_failure()
            connection.handle = Handle(session, connection)
        except LakeError as error:
            connection.handle = None
            connection.state = ConnectionState.FAIL
            raise FailedToConnectError(str(error)) from error
        connection.state = ConnectionState.OPEN
        return connection

    # -- nodes and transactions

    @contextmanager
    def commit_context(self, context: CommitContext) -> Iterator[None]:
        """Sets how this thread commits in the block."""
        outer = self._thread.commit_context
        self._thread.commit_context = context
        try:
            yield
        finally:
            self._thread.commit_context = outer
            connection = self.get_if_exists()
            if connection is not None and connection.state == ConnectionState.OPEN:
                connection.handle.commit_context = outer

    def set_connection_name(self, name: str | None = None) -> Connection:
        connection = super().set_connection_name(name)
        context = self._thread.commit_context

        def open_with_context(lazy: Connection) -> Connection:
            self.open(lazy)
            lazy.handle.commit_context = context
            lazy.handle.start_node()
            return lazy

        if connection.state == ConnectionState.OPEN:
            connection.handle.commit_context = context
            connection.handle.returned_rows = connection.handle.is_bound_to_snapshot = False
            connection.handle.start_node()
        else:
            connection.handle = LazyHandle(open_with_context)
        return connection

    def add_begin_query(self) -> None:
        with self.exception_handler("BEGIN"):
            self.get_thread_connection().handle.begin()

    def add_commit_query(self) -> None:
        with self.exception_handler("COMMIT"):
            self.get_thread_connection().handle.commit()

    def clear_transaction(self) -> None:
        """Rolls a running transaction back.

        dbt calls this first. If nodes are about to run, it opens the connection, so that an error in the profile comes
        before them. An operation may need no connection.
        """
        if self._runs_nodes:
            super().clear_transaction()
            return
        connection = self.get_if_exists()
        if connection is not None and connection.transaction_open:
            self._rollback(connection)

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
                cursor.run_without_fetching()
                table = empty_table()
        return self.get_response(cursor), table

    @classmethod
    def get_response(cls, cursor: Cursor) -> LakeResponse:
        return cursor.response

    @contextmanager
    def exception_handler(self, sql: str) -> Iterator[None]:
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
