"""The transaction of a dbt thread, without dbt's commands around it."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.adapters.contracts.connection import Connection, ConnectionState, Identifier
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.connection_handle import CommitContext, Handle
from dbt.adapters.ducklake.connections import DucklakeConnectionManager
from dbt.adapters.ducklake.lake.transaction import ChangeCounts
from dbt.adapters.ducklake.node_info import NodeInfo


@pytest.fixture
def handle(spark: SparkSession, tmp_path: Path) -> Iterator[Handle]:
    session = LakeSession(f"sqlite:{tmp_path}/metadata.sqlite", f"{tmp_path}/data/", spark=spark)
    connection: Any = SimpleNamespace(transaction_open=False)
    yield Handle(session, connection)
    session.close()


class RowsAdded:
    """Has a node's snapshot say how many rows it added."""

    database = "lake"

    def __call__(self, inputs: Any, changes: ChangeCounts) -> NodeInfo:
        return NodeInfo("model.p.t", None, f"{changes.rows_added} rows", {})

    def annotated(self, info: NodeInfo, session: LakeSession, inputs: Any) -> NodeInfo:
        return info

    def with_progress(self, info: NodeInfo, session: LakeSession, inputs: Any) -> NodeInfo | None:
        return None


def node(handle: Handle) -> None:
    handle.commit_context = CommitContext(RowsAdded())
    handle.begin()


def snapshots(handle: Handle) -> list[Any]:
    rows = handle.session.sql("select commit_message from ducklake_snapshots() where snapshot_id > 0").collect()
    return [row[0] for row in rows]


def test_statements_of_a_node_are_one_snapshot(handle: Handle) -> None:
    node(handle)
    handle.execute("create table t (id int); insert into t values (1), (2)")
    assert snapshots(handle) == []
    handle.commit()
    assert snapshots(handle) == ["2 rows"]


def test_responses_tell_of_the_snapshot_once_it_is_there(handle: Handle) -> None:
    node(handle)
    cursor = handle.cursor()
    cursor.execute("create table t as select id from range(11)")
    response = cursor.response
    assert str(response) == "OK"
    handle.commit()
    assert str(response) == "snapshot 1, 11 rows, 1 file"
    assert (response.snapshot_id, response.rows_affected, response.files_added) == (1, 11, 1)


def test_outside_of_a_node_each_statement_stands_alone(handle: Handle) -> None:
    handle.commit_context = CommitContext(statement_message="dbt run-operation: clean")
    handle.begin()
    handle.execute("create table t (id int)")
    handle.execute("insert into t values (1)")
    handle.rollback()
    assert snapshots(handle) == ["dbt run-operation: clean"] * 2


def test_a_commit_statement_without_a_transaction_does_nothing(handle: Handle) -> None:
    handle.execute("/* a comment */ commit;")
    assert snapshots(handle) == []


def test_a_message_that_a_statement_gave_stays(handle: Handle) -> None:
    node(handle)
    handle.execute("create table t (id int); call ducklake_set_commit_message('Ada', 'by hand')")
    handle.commit()
    assert snapshots(handle) == ["by hand"]


def test_after_a_cancel_nothing_is_committed(handle: Handle) -> None:
    node(handle)
    handle.execute("create table t (id int)")
    handle.cancel()
    with pytest.raises(DbtRuntimeError, match="cancelled"):
        handle.execute("insert into t values (1)")
    with pytest.raises(DbtRuntimeError, match="cancelled"):
        handle.commit()
    handle.rollback()
    assert snapshots(handle) == []


def test_temporary_views_end_with_the_transaction(handle: Handle) -> None:
    node(handle)
    view = handle.temporary_view(handle.session.sql("select 1 as id"))
    handle.execute(f"create table t as select * from {view}")
    handle.commit()
    assert not handle.session.spark.catalog.tableExists(view)


def test_what_nobody_fetches_is_still_carried_out(handle: Handle) -> None:
    cursor = handle.cursor()
    cursor.execute("select raise_error('carried out') from range(3)")
    with pytest.raises(Exception, match="carried out"):
        cursor.run_without_fetching()


def test_rows_are_python_values(handle: Handle) -> None:
    cursor = handle.cursor()
    cursor.execute("select 1 as id, 'x' as name, array(1, 2) as list, map('a', 1) as map, null as nothing")
    assert [name for name, _ in cursor.description or []] == ["id", "name", "list", "map", "nothing"]
    assert cursor.fetchall() == [(1, "x", [1, 2], {"a": 1}, None)]
    cursor.execute("select id from range(10)")
    assert len(cursor.fetchmany(3)) == 3


def test_what_describes_commits_is_as_before_when_a_block_ends(handle: Handle) -> None:
    profile: Any = SimpleNamespace(credentials=None)
    manager = DucklakeConnectionManager(profile, get_context("spawn"))
    connection = Connection(Identifier("ducklake"), "open", profile, ConnectionState.OPEN, handle=handle)
    manager.set_thread_connection(connection)
    with manager.commit_context(CommitContext(statement_message="outer")):
        manager.set_connection_name("outer")
        with manager.commit_context(CommitContext(RowsAdded(), "inner")):
            manager.set_connection_name("inner")
            assert handle.commit_context.node_info is not None
            assert handle.commit_context.statement_message == "inner"
        assert handle.commit_context == CommitContext(statement_message="outer")
