"""Several row-level changes in one transaction."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConstraintError

from .helpers import content, files, rows, run, snapshots, value


def test_a_transaction_changes_the_same_rows_again(lake: LakeSession, way: str) -> None:
    run(lake, "create table t as select id, 'base' as v from range(0, 20, 1, 1)")
    first = snapshots(lake)
    with lake.transaction():
        lake.execute("insert into t select id, 'new' from range(20, 25)")
        assert lake.execute("update t set v = concat(v, '+') where id in (1, 2, 20, 21)").rows_affected == 4
        assert lake.execute("delete from t where id in (2, 3, 21, 22)").rows_affected == 4
        assert lake.execute("delete from t where id in (2, 3, 21, 22)").rows_affected == 0
        done = lake.execute(
            "merge into t using (select explode(array(1, 2, 4, 20, 24, 30)) as id) as s on t.id = s.id"
            " when matched and t.id = 4 then delete when matched then update set v = concat(t.v, 'm')"
            " when not matched then insert (id, v) values (s.id, 'merged')"
        )
        assert done.rows_affected == 6
        lake.execute("update t set v = 'last' where id in (1, 30, 5)")
        expected = [
            (0, "base"),
            (1, "last"),
            (2, "merged"),
            (5, "last"),
            *((i, "base") for i in range(6, 20)),
            (20, "new+m"),
            (23, "new"),
            (24, "newm"),
            (30, "last"),
        ]
        assert sorted(rows(lake, "select * from t")) == expected
        assert value(lake, "select count(*) from t where id between 20 and 24") == 3
    assert snapshots(lake) == first + 1
    assert sorted(rows(lake, "select * from t")) == expected
    assert rows(lake, "select rowid, id from t where id in (0, 1, 5, 19) order by id") == [
        (0, 0),
        (1, 1),
        (5, 5),
        (19, 19),
    ]
    assert value(lake, "select count(*) - count(distinct rowid) from t") == 0
    assert value(lake, f"select count(*) from t version as of {first}") == 20


def test_rows_that_come_and_go_in_one_transaction_leave_no_trace(lake: LakeSession, way: str) -> None:
    run(lake, "create table t as select id from range(0, 3, 1, 1)")
    newest = snapshots(lake)
    with lake.transaction():
        lake.execute("insert into t select id + 10 from range(0, 4, 1, 1)")
        lake.execute("insert into t select id + 20 from range(0, 4, 1, 1)")
        assert lake.execute("delete from t where id in (10, 12)").rows_affected == 2
        assert lake.execute("delete from t where id between 11 and 20").rows_affected == 3
        assert lake.execute("update t set id = id + 100 where id > 20").rows_affected == 3
        assert lake.execute("delete from t where id >= 10").rows_affected == 3
        assert content(lake) == [(0,), (1,), (2,)]
    assert content(lake) == [(0,), (1,), (2,)]
    assert snapshots(lake) == newest
    assert len(files(lake)) == 1


def test_a_table_made_in_the_transaction_is_changed_in_it(lake: LakeSession, way: str) -> None:
    newest = snapshots(lake)
    with lake.transaction():
        run(
            lake,
            "create table t (id bigint, v string) partitioned by (bucket(2, id))",
            "insert into t select id, 'a' from range(6)",
            "delete from t where id = 0",
            "update t set v = 'b' where id = 1",
            "alter table t add column n int default 5",
            "merge into t using (select 2 as id union all select 9) as s on t.id = s.id"
            " when matched then update set n = 6 when not matched then insert (id) values (s.id)",
        )
        assert content(lake) == [(1, "b", 5), (2, "a", 6), (3, "a", 5), (4, "a", 5), (5, "a", 5), (9, None, 5)]
    assert snapshots(lake) == newest + 1
    assert content(lake) == [(1, "b", 5), (2, "a", 6), (3, "a", 5), (4, "a", 5), (5, "a", 5), (9, None, 5)]


def test_a_statement_that_fails_leaves_the_transaction_as_it_was(lake: LakeSession, way: str) -> None:
    run(lake, "create table t (id int not null, v string)", "insert into t select id, 'a' from range(5)")
    with lake.transaction():
        lake.execute("delete from t where id = 0")
        with pytest.raises(ConstraintError):
            lake.execute("update t set id = null where id > 2")
        lake.execute("update t set v = 'b' where id = 1")
    assert content(lake) == [(1, "b"), (2, "a"), (3, "a"), (4, "a")]


def test_a_rollback_leaves_nothing(lake: LakeSession, way: str) -> None:
    run(lake, "create table t as select id, 'a' as v from range(0, 20, 1, 1)", "delete from t where id = 0")
    before, newest = content(lake), snapshots(lake)
    run(
        lake,
        "begin",
        "delete from t where id < 5",
        "update t set v = 'b' where id < 15",
        "merge into t using (select id from range(100)) s on t.id = s.id when matched then delete"
        " when not matched then insert (id) values (s.id)",
        "rollback",
    )
    assert (content(lake), snapshots(lake)) == (before, newest)
    assert lake.execute("delete from t where id = 1").rows_affected == 1


def test_alter_table_and_row_changes_mix_in_a_transaction(lake: LakeSession, way: str) -> None:
    run(lake, "create table t as select id, id * 2 as n from range(0, 6, 1, 1)")
    with lake.transaction():
        run(
            lake,
            "update t set n = -1 where id = 1",
            "alter table t rename column n to m",
            "alter table t add column k string default 'k'",
            "update t set k = 'x', m = m * 10 where id in (1, 2)",
            "alter table t rename to u",
            "delete from u where m = 8",
            "alter table u drop column k",
        )
    assert content(lake, "u") == [(0, 0), (1, -10), (2, 40), (3, 6), (5, 10)]


def test_a_table_truncated_and_refilled_in_a_transaction_can_be_changed(lake: LakeSession, way: str) -> None:
    run(lake, "create table t as select id, 'old' as v from range(0, 5, 1, 1)")
    with lake.transaction():
        run(
            lake,
            "delete from t where id = 0",
            "truncate table t",
            "insert into t select id, 'new' from range(0, 4, 1, 1)",
            "delete from t where id = 1",
            "update t set v = 'up' where id = 2",
        )
        assert content(lake) == [(0, "new"), (2, "up"), (3, "new")]
        assert lake.execute("delete from t").rows_affected == 3
        lake.execute("insert into t values (7, 'end')")
    assert content(lake) == [(7, "end")]


def test_the_volume_of_a_transaction_counts_each_row_once(lake: LakeSession) -> None:
    def volume() -> tuple[int, int, int]:
        found = lake.change_counts()
        return found.rows_added, found.rows_updated, found.rows_removed

    run(lake, "create table t as select id, 0 as n from range(0, 10, 1, 1)")
    with lake.transaction():
        lake.execute("update t set n = 1 where id < 4")
        assert volume() == (0, 4, 0)
        lake.execute("update t set n = 2 where id < 2")
        assert volume() == (0, 4, 0)
        lake.execute("delete from t where id = 9")
        assert volume() == (0, 4, 1)
        lake.execute("insert into t values (20, 0), (21, 0)")
        assert volume() == (2, 4, 1)
        lake.execute("update t set n = 5 where id = 20")
        assert volume() == (2, 4, 1)
        lake.execute("delete from t where id = 0")
        assert volume() == (2, 3, 2)
