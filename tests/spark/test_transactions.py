"""Transactions: one snapshot each, with a message, or nothing at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.commit import protocol
from dbt.adapters.ducklake.lake.errors import CommitUnknownError, LakeError

from ..conftest import LoseAnswer
from .helpers import other_session, rows, run, snapshots, value


def test_each_statement_is_one_snapshot(lake: LakeSession) -> None:
    assert lake.execute("create table t (a int)").snapshot_id == 1
    done = lake.execute("insert into t values (1), (2)")
    assert (done.snapshot_id, done.rows_affected) == (2, 2)


def test_a_transaction_is_one_snapshot_with_its_message(lake: LakeSession) -> None:
    with lake.transaction(author="me", message="load", extra_info='{"a": 1}'):
        run(lake, "create table t (a int)", "insert into t values (1)", "insert into t values (2)")
        assert value(lake, "select sum(a) from t") == 3
    assert snapshots(lake) == 1
    last = rows(
        lake, "select author, commit_message, commit_extra_info from ducklake_snapshots() where snapshot_id = 1"
    )
    assert last == [("me", "load", '{"a": 1}')]


def test_an_error_leaves_nothing_of_a_transaction(lake: LakeSession) -> None:
    with pytest.raises(ZeroDivisionError), lake.transaction():
        run(lake, "create table t (a int)", "insert into t values (1)")
        raise ZeroDivisionError
    assert snapshots(lake) == 0
    assert rows(lake, "show tables") == []


def test_an_inner_transaction_joins_the_outer_one_whose_message_wins(lake: LakeSession) -> None:
    run(lake, "create table t (a int)")
    with lake.transaction(message="outer"):
        with lake.transaction(message="inner"):
            lake.execute("insert into t values (1)")
        with pytest.raises(ZeroDivisionError), lake.transaction():
            lake.execute("insert into t values (99)")
            raise ZeroDivisionError
        lake.execute("insert into t values (2)")
    assert rows(lake, "select a from t order by a") == [(1,), (2,)]
    assert value(lake, "select commit_message from ducklake_snapshots() where snapshot_id = 2") == "outer"


def test_begin_commit_and_rollback(lake: LakeSession) -> None:
    run(lake, "begin", "create table t as select 1 as a", "rollback")
    assert rows(lake, "show tables") == []
    run(lake, "begin transaction", "create table t as select 1 as a", "call ducklake_set_commit_message('me', 'why')")
    assert lake.execute("commit").snapshot_id == 1
    assert rows(lake, "select author, commit_message from ducklake_snapshots() where snapshot_id = 1") == [
        ("me", "why")
    ]
    with pytest.raises(LakeError, match="BEGIN one first"):
        lake.execute("commit")


def test_queries_in_a_transaction_read_one_snapshot(lake: LakeSession, spark: SparkSession) -> None:
    run(lake, "create table t as select 1 as a")
    other = other_session(lake, spark)
    with lake.transaction():
        assert value(lake, "select count(*) from t") == 1
        other.execute("insert into t values (2)")
        assert value(lake, "select count(*) from t") == 1
    assert value(lake, "select count(*) from t") == 2


def test_a_commit_message_can_be_required(lake: LakeSession) -> None:
    lake.execute("call ducklake_set_option('require_commit_message', true)")
    with pytest.raises(LakeError, match="asks for a commit message"):
        lake.execute("create table t (a int)")
    with lake.transaction(message="here it is"):
        lake.execute("create table t (a int)")


def test_statements_of_a_transaction_read_an_attached_lake_at_one_snapshot(lake: LakeSession, tmp_path: Path) -> None:
    catalog = f"sqlite:{tmp_path}/other.sqlite"
    with LakeSession(catalog, data_path=f"{tmp_path}/other/", spark=lake.spark) as other:
        run(other, "create table t as select 1 as id")
        lake.attach("other", catalog)
        with lake.transaction():
            run(lake, "create table first as select * from other.main.t")
            run(other, "insert into t values (2)")
            run(lake, "create table second as select * from other.main.t")
    assert rows(lake, "select * from first") == rows(lake, "select * from second") == [(1,)]


# -- the connection breaks during COMMIT


def test_a_commit_whose_answer_is_lost_succeeds_if_it_took_place(lake: LakeSession, lose_answer: LoseAnswer) -> None:
    run(lake, "create table t (a int)")
    lose_answer(lake.lake().catalog, commits=True)
    done = lake.execute("insert into t values (1), (2)")
    assert (done.snapshot_id, done.rows_affected) == (2, 2)
    lose_answer(lake.lake().catalog, commits=True)
    with lake.transaction(message="two"):
        run(lake, "insert into t values (3)", "insert into t values (4)")
    assert rows(lake, "select a from t order by a") == [(1,), (2,), (3,), (4,)]
    assert snapshots(lake) == 3


def test_a_commit_that_did_not_take_place_has_changed_nothing(lake: LakeSession, lose_answer: LoseAnswer) -> None:
    run(lake, "create table t (a int)")
    lose_answer(lake.lake().catalog, commits=False)
    with pytest.raises(LakeError, match="nothing was changed"):
        lake.execute("insert into t values (1)")
    assert not lake.in_transaction
    lake.execute("insert into t values (2)")
    assert rows(lake, "select a from t") == [(2,)]


def test_a_commit_that_may_have_taken_place_is_never_run_again(
    lake: LakeSession, lose_answer: LoseAnswer, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(lake, "create table t (a int)")

    def unknown(*_: object) -> bool:
        raise CommitUnknownError("nobody knows", "select 1")

    monkeypatch.setattr(protocol, "took_place", unknown)
    lose_answer(lake.lake().catalog, commits=True)
    lake.begin()
    lake.execute("insert into t values (1)")
    with pytest.raises(CommitUnknownError):
        lake.commit()
    assert not lake.replay()
    lose_answer(lake.lake().catalog, commits=True)
    with pytest.raises(CommitUnknownError):
        lake.execute("insert into t values (2)")
    assert rows(lake, "select a from t order by a") == [(1,), (2,)]
