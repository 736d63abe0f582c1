"""Row-level changes of concurrent sessions: conflicts, retries and repeated transactions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConflictError
from dbt.adapters.ducklake.lake.transaction import Transaction

from .helpers import content, other_session, rows, run, snapshots, value


def test_concurrent_deletes_in_different_files_both_commit(lake: LakeSession, spark: Any, way: str) -> None:
    run(
        lake,
        "create table t as select id from range(0, 5, 1, 1)",
        "insert into t select id + 10 from range(0, 5, 1, 1)",
    )
    other = other_session(lake, spark)
    with lake.transaction():
        lake.execute("delete from t where id = 1")
        other.execute("delete from t where id = 11")
    assert content(lake) == [(0,), (10,), (12,), (13,), (14,), (2,), (3,), (4,)]


def test_concurrent_changes_of_one_file_conflict(lake: LakeSession, spark: Any, way: str) -> None:
    run(lake, "create table t as select id from range(0, 20, 1, 1)", "delete from t where id = 0")
    other = other_session(lake, spark)
    for statement in ("delete from t where id in (1, 2)", "update t set id = 100 where id = 3"):
        with pytest.raises(ConflictError, match="changed rows of the same files"), lake.transaction():
            lake.execute(statement)
            other.execute("delete from t where id = (select max(id) from t)")
    assert content(lake) == sorted([(i,) for i in range(1, 18)], key=repr)


def test_a_merge_conflicts_with_inserted_rows_that_it_would_have_matched(lake: LakeSession, spark: Any) -> None:
    run(lake, "create table t as select id, 'a' as v from range(0, 5, 1, 1)")
    run(lake, "call ducklake_flush_inlined_data('main.t')")
    other = other_session(lake, spark)
    merge = (
        "merge into t using (select explode(array(3, 7)) as id) s on t.id = s.id when matched then update set v = 'm'"
        " when not matched then insert (id, v) values (s.id, 'm')"
    )
    run(lake, "insert into t values (100, 'far')")
    with lake.transaction():
        lake.execute(merge)
        other.execute("insert into t values (50, 'other')")
    with pytest.raises(ConflictError, match="inserted rows that it should have read"), lake.transaction():
        lake.execute(merge.replace("7", "8"))
        other.execute("insert into t values (8, 'other')")
    assert rows(lake, "select id, v from t where id > 2 order by id") == [
        (3, "m"),
        (4, "a"),
        (7, "m"),
        (8, "other"),
        (50, "other"),
        (100, "far"),
    ]


COUNT_UP = (
    "merge into t using (select 1 as id) s on t.id = s.id when matched then update set n = n + 1"
    " when not matched then insert (id, n) values (s.id, 1)"
)


def test_a_statement_that_conflicts_is_planned_again(lake: LakeSession) -> None:
    lake.execute("create table t (id int, n int)")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: lake.execute(COUNT_UP), range(9)))
    assert content(lake) == [(1, 9)]


def test_a_statement_gives_up_after_its_retries(lake: LakeSession, spark: Any, monkeypatch: Any) -> None:
    run(lake, "create table t as select 1 as id, 0 as n")
    hasty, tries = other_session(lake, spark, retry={"max_count": 2, "wait_ms": 1}), []
    commit = Transaction.commit

    def overtaken(transaction: Transaction) -> Any:
        if transaction.catalog is hasty.lake().catalog:
            tries.append(transaction.base.id)
            lake.execute("update t set n = n + 10")
        return commit(transaction)

    monkeypatch.setattr(Transaction, "commit", overtaken)
    with pytest.raises(ConflictError, match="run it again on the new state"):
        hasty.execute(COUNT_UP)
    assert len(set(tries)) == 3
    assert content(lake) == [(1, 30)]


def test_a_transaction_is_repeated_on_the_new_state(lake: LakeSession, spark: Any) -> None:
    run(lake, "create table t as select 1 as id, 0 as n", "create table log (n int)")
    other = other_session(lake, spark)
    lake.begin()
    run(lake, "create or replace temporary view seen as select n from t", COUNT_UP, "insert into log select n from t")
    other.execute("update t set n = 10")
    with pytest.raises(ConflictError):
        lake.commit()
    assert lake.replay()
    assert rows(lake, "select n from seen") == [(10,)]
    lake.commit()
    assert (content(lake), content(lake, "log")) == ([(1, 11)], [(11,)])


@pytest.mark.parametrize(
    ("mine", "theirs"),
    [
        ("select * from t", "update t set n = 10"),
        ("use main", "update t set n = 10"),
        ("create temporary view once as select n from t", "update t set n = 10"),
        ("", "alter table t add column c int"),
    ],
    ids=["rows were seen", "names mean something else", "a view can be made but once", "definitions changed"],
)
def test_a_transaction_is_not_repeated_when(lake: LakeSession, spark: Any, mine: str, theirs: str) -> None:
    run(lake, "create table t as select 1 as id, 0 as n")
    other = other_session(lake, spark)
    lake.begin()
    run(lake, COUNT_UP, *filter(None, [mine]))
    other.execute(theirs)
    with pytest.raises(ConflictError):
        lake.commit()
    assert not lake.replay()
    assert not lake.in_transaction


def test_a_delete_file_that_names_its_snapshot_needs_no_retry(lake: LakeSession, spark: Any) -> None:
    run(
        lake,
        "call ducklake_set_option('data_inlining_row_limit', 0)",
        "create table t as select id from range(0, 9, 1, 1)",
        "create table elsewhere (id int)",
        "delete from t where id = 0",
    )
    hasty = other_session(lake, spark, retry={"max_count": 0})
    with hasty.transaction():
        hasty.execute("delete from t where id = 1")
        lake.execute("insert into elsewhere values (1)")
    assert value(lake, "select count(*) from t") == 7
    assert value(lake, f"select count(*) from t version as of {snapshots(lake) - 1}") == 8
