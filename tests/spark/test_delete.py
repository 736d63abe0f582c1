"""DELETE and TRUNCATE: which rows go, and how the statement names its table."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import LakeError, NotFoundError

from .helpers import content, files, rows, run, snapshots, value


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("id < 3", [3, 4]),
        ("id = 1 or name = 'd'", [0, 2, 4]),
        ("t.id = 1", [0, 2, 3, 4]),
        ("main.t.id = 1", [0, 2, 3, 4]),
        ("lake.main.t.id = 1 and `T`.`ID` = 1", [0, 2, 3, 4]),
        ("name = 'nobody'", [0, 1, 2, 3, 4]),
        ("name > 'a'", [0, 2]),
        ("not (name > 'a')", [1, 2, 3, 4]),
        ("name is null", [0, 1, 3, 4]),
        ("cast(null as boolean)", [0, 1, 2, 3, 4]),
        ("true", []),
        ("rowid = 3", [0, 1, 2, 4]),
        ("t.rowid in (0, 4) and snapshot_id = 1", [1, 2, 3]),
        ("id in (select k from u)", [0, 2, 4]),
        ("id not in (select k from u where k is not null)", [1, 3]),
        ("id not in (select k from u)", [0, 1, 2, 3, 4]),
        ("exists (select 1 from u where u.k = t.id)", [0, 2, 4]),
        ("not exists (select 1 from main.u where k = main.t.id)", [1, 3]),
        ("id > (select avg(id) from t)", [0, 1, 2]),
        ("id = (select max(id) from t as x where x.name is not null)", [0, 1, 2, 3]),
        ("(select count(*) from u where u.k <= t.id) = 2", [0, 1, 2]),
        ("id in (with x as (select k + 1 as k from u) select k from x)", [0, 1, 3]),
    ],
)
def test_a_delete_removes_the_rows_for_which_its_condition_is_true(
    lake: LakeSession, condition: str, left: list[int]
) -> None:
    run(
        lake,
        "create table t as select * from values (0, 'a'), (1, 'b'), (2, null), (3, 'd'), (4, 'e') as s(id, name)",
        "create table u as select * from values (1), (3), (null) as s(k)",
    )
    done = lake.execute(f"delete from t where {condition}")
    assert [r[0] for r in sorted(rows(lake, "select id from t"))] == left
    assert done.rows_affected == 5 - len(left)
    assert snapshots(lake) == (3 if len(left) < 5 else 2)


def test_a_delete_finds_its_table_by_alias_and_by_every_form_of_its_name(lake: LakeSession) -> None:
    run(lake, "create schema s", "create table s.t as select id from range(8)", "create table t as select 100 as id")
    run(
        lake,
        "delete from s.t where id = 0",
        "delete from lake.s.t where s.t.id = 1",
        "delete from lake.s.t where lake.s.t.id = 2",
        "delete from s.t as x where x.id = 3",
        "delete from `S`.`T` X where x.ID = 4",
        "use s",
        "delete from t where t.id = 5 and s.t.id = 5",
    )
    assert content(lake, "s.t") == [(6,), (7,)]
    assert content(lake, "main.t") == [(100,)]


def test_a_delete_may_use_common_table_expressions(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select id from range(5)",
        "with gone as (select id from t where id % 2 = 0), more as (select id + 1 as id from gone where id > 2)"
        " delete from t where id in (select id from gone) or id in (select id from more)",
    )
    assert content(lake) == [(1,), (3,)]


def test_a_condition_that_may_fail_is_not_evaluated_for_deleted_rows(lake: LakeSession, way: str) -> None:
    run(
        lake,
        "create table t as select * from values (1, 0, 'x'), (2, 5, '7'), (3, 10, '8'), (4, 20, '9') as s(id, n, name)",
        "delete from t where id = 1",
    )
    assert rows(lake, "select id from t where 100 / n = 20 and id < 3") == [(2,)]
    assert rows(lake, "select id from t where name > 7 and n between 1 and 10 and id in (3, 4)") == [(3,)]
    run(lake, "delete from t where 100 / n = 20", "delete from t where name = 8")
    assert content(lake) == [(4, 20, "9")]


def test_rows_are_deleted_once(lake: LakeSession, way: str) -> None:
    run(lake, "create table t as select id, id % 10 as n from range(0, 1000, 1, 2)")
    assert lake.execute("delete from t where n = 3").rows_affected == 100
    assert lake.execute("delete from t where n % 2 = 1 and id >= 500").rows_affected == 200
    before = snapshots(lake)
    assert lake.execute("delete from t where n = 3").rows_affected == 0
    assert snapshots(lake) == before
    assert lake.execute("delete from t where id >= 500").rows_affected == 250
    assert content(lake) == sorted(((i, i % 10) for i in range(500) if i % 10 != 3), key=repr)
    assert sum(1 for _ in files(lake)) == 1


def test_a_delete_without_a_condition_empties_the_table(lake: LakeSession) -> None:
    run(lake, "create table t as select id from range(7)", "delete from t where id = 0")
    assert lake.execute("delete from t").rows_affected == 6
    assert content(lake) == []
    assert value(lake, "select count(*) from t version as of 1") == 7


def test_a_column_named_rowid_hides_the_virtual_column(lake: LakeSession) -> None:
    run(lake, "create table t as select 10 - id as rowid, id from range(5)", "delete from t where rowid = 10")
    assert sorted(r[1] for r in content(lake)) == [1, 2, 3, 4]


def test_a_delete_error_names_what_is_missing(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as id", "create view v as select id from t")
    newest = snapshots(lake)
    with pytest.raises(NotFoundError, match="nope"):
        lake.execute("delete from nope where id = 1")
    with pytest.raises(LakeError, match="view"):
        lake.execute("delete from v where id = 1")
    with pytest.raises(Exception, match="UNRESOLVED_COLUMN"):
        lake.execute("delete from t where x = 1")
    assert snapshots(lake) == newest
    assert content(lake) == [(1,)]


def test_truncate_keeps_older_snapshots(lake: LakeSession) -> None:
    run(lake, "create table t as select id from range(3)", "truncate table t", "insert into t values (9)")
    assert rows(lake, "select id from t") == [(9,)]
    assert value(lake, "select count(*) from t version as of 1") == 3
