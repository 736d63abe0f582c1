"""MERGE: which clause acts on which row, and what it stores."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConstraintError, LakeError, NotFoundError, SchemaChangeError

from .helpers import content, parquet_files, rows, run, snapshots


def _clauses(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, v string, n int default 7)",
        "insert into t select id, concat('t', id), id from range(6)",
        "create table s as select cast(id as int) as id, concat('s', id) as v, id % 3 as kind from range(2, 9)",
    )


def test_the_first_clause_whose_condition_holds_acts(lake: LakeSession) -> None:
    _clauses(lake)
    done = lake.execute(
        """
        merge into t using s on t.id = s.id
        when matched and s.kind = 0 then delete
        when matched and t.n >= 3 and s.kind > 0 then update set v = concat(t.v, s.v), n = s.id * 10
        when matched and t.n >= 0 then update set n = null
        when matched then delete
        when not matched and s.id = 6 then insert (id) values (s.id)
        when not matched and s.kind = 1 then insert (v, id, n) values (upper(s.v), s.id, default)
        when not matched by source and t.id = 0 then delete
        when not matched by source and t.id = 1 then update set t.v = concat(t.v, '?'), n = default
        """
    )
    assert content(lake) == [
        (1, "t1?", 7),
        (2, "t2", None),
        (4, "t4s4", 40),
        (5, "t5s5", 50),
        (6, None, 7),
        (7, "S7", 7),
    ]
    assert done.rows_affected == 8
    assert rows(lake, "select rowid from t where id < 6 order by id") == [(1,), (2,), (4,), (5,)]


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("when matched then delete", [(0, "t0", 0), (1, "t1", 1)]),
        ("when matched and t.v = 'nothing' then delete", None),
        (
            "when matched and cast(null as boolean) then delete"
            " when not matched and cast(null as boolean) then insert (id) values (1)",
            None,
        ),
        (
            "when not matched by source then delete",
            [(2, "t2", 2), (3, "t3", 3), (4, "t4", 4), (5, "t5", 5)],
        ),
        ("when not matched and s.id > 7 then insert (id, v) values (id, v)", "more"),
        ("when not matched by target and s.id > 7 then insert (id, v) values (s.id, s.v)", "more"),
        ("when not matched and s.id > 7 then insert values (s.id, s.v, 7)", "more"),
        (
            "when matched and t.id in (select max(id) from t) then update set v = (select min(v) from s)",
            [*((i, f"t{i}", i) for i in range(5)), (5, "s2", 5)],
        ),
        (
            "when matched and exists (select 1 from s as x where x.id = t.id and x.kind = 1) then delete",
            [(i, f"t{i}", i) for i in (0, 1, 2, 3, 5)],
        ),
        (
            "when not matched and s.id = (select max(id) from s) then insert (id, v) values (s.id, s.v)",
            "more",
        ),
    ],
)
def test_a_single_clause_acts_on_its_rows_only(lake: LakeSession, clauses: str, expected: Any) -> None:
    _clauses(lake)
    before, newest = content(lake), snapshots(lake)
    done = lake.execute(f"merge into t using s on t.id = s.id {clauses}")
    if expected is None:
        assert content(lake) == before
        assert snapshots(lake) == newest
        assert done.rows_affected == 0
    else:
        assert content(lake) == ([*before, (8, "s8", 7)] if expected == "more" else expected)


def test_a_statement_that_changes_nothing_makes_no_snapshot(lake: LakeSession) -> None:
    _clauses(lake)
    newest = snapshots(lake)
    for statement in (
        "merge into t using s on t.id = s.id and t.id < 0 when matched then update set v = s.v",
        "merge into t using (select * from s where false) as s on t.id = s.id when matched then delete"
        " when not matched then insert (id) values (s.id)",
        "merge into t using (select id, v, id as n from s) as s on t.id = s.id when matched and t.id > 9 then update"
        " set * when not matched and s.id > 99 then insert *",
        "update t set v = 'x' where id < 0",
        "delete from t where id < 0",
    ):
        done = lake.execute(statement)
        assert (done.rows_affected, done.snapshot_id) == (0, None), statement
    assert snapshots(lake) == newest


def test_keys_that_are_null_never_match(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select * from values (1, 'a'), (null, 'b') as s(id, v)",
        "create table s as select * from values (1, 'A'), (null, 'B') as s(id, v)",
        "merge into t using s on t.id = s.id when matched then update set v = s.v when not matched then insert *",
    )
    assert content(lake) == [(1, "A"), (None, "B"), (None, "b")]
    run(
        lake,
        "create table u as select * from values (1, 'a'), (null, 'b') as s(id, v)",
        "merge into u using s on u.id <=> s.id when matched then update set v = s.v when not matched then insert *",
    )
    assert content(lake, "u") == [(1, "A"), (None, "B")]


def test_every_clause_casts_values_to_the_types_of_the_table(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, big bigint, d decimal(10,2), s struct<x: bigint, y: string>)",
        "insert into t select id, 0, 0, named_struct('x', 0, 'y', 'q') from range(3)",
        """
        merge into t using (select cast(id as int) as id from range(5)) as s on t.id = s.id
        when matched and s.id = 0 then update set big = 1, d = 1.5, s = named_struct('x', 1, 'y', 'a')
        when matched and s.id = 1 then update set big = cast(2 as tinyint), d = 2, s = null
        when matched then update set s.x = cast(3 as smallint), d = cast(3.25 as double)
        when not matched and s.id = 3 then insert (id, big, d, s) values (s.id, 4, 4, named_struct('x', 4, 'y', 'd'))
        when not matched then insert (id, s) values (s.id, named_struct('x', 5L, 'y', null))
        """,
    )
    assert content(lake) == [
        (0, 1, Decimal("1.50"), {"x": 1, "y": "a"}),
        (1, 2, Decimal("2.00"), None),
        (2, 0, Decimal("3.25"), {"x": 3, "y": "q"}),
        (3, 4, Decimal("4.00"), {"x": 4, "y": "d"}),
        (4, None, None, {"x": 5, "y": None}),
    ]


@pytest.mark.parametrize(
    "clauses",
    [
        "when matched then update set n = trim('5')",
        "when matched and s.id = 2 then update set n = trim('5') when matched then update set n = 5",
        "when matched and s.id = 2 then update set n = trim('5') when matched then delete",
        "when not matched then insert (id, n) values (s.id, trim('5'))",
        "when not matched and s.id = 6 then insert (id, n) values (s.id, trim('5'))"
        " when not matched then insert (id, n) values (s.id, 5)",
        "when not matched by source then update set n = trim('5')",
    ],
)
def test_no_clause_stores_a_text_in_a_number(lake: LakeSession, clauses: str) -> None:
    _clauses(lake)
    before, newest = content(lake), snapshots(lake)
    with pytest.raises(Exception, match="INVALID_COLUMN_OR_FIELD_DATA_TYPE|DATATYPE_MISMATCH|CAST_INVALID_INPUT"):
        lake.execute(f"merge into t using s on t.id = s.id {clauses}")
    assert (content(lake), snapshots(lake)) == (before, newest)


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("on t.id = s.id when matched then update set nope = 1", NotFoundError, "nope"),
        ("on t.id = s.id when matched then update set v = 'a', t.v = 'b'", SchemaChangeError, "two values"),
        ("on t.id = s.id when matched then update set *", SchemaChangeError, "column n of table t.*id, v, kind"),
        ("on t.id = s.id when not matched then insert *", SchemaChangeError, "column n of table t"),
        ("on t.id = s.id when not matched then insert (id, id) values (1, 2)", SchemaChangeError, "twice"),
        ("on t.id = s.id when not matched then insert values (1, 2)", SchemaChangeError, "2 values for 3 columns"),
        ("on t.id = s.id when not matched then insert (id, x) values (1, 2)", NotFoundError, "x"),
        ("on t.id = s.id when not matched then insert (id) values (t.id)", Exception, "UNRESOLVED_COLUMN"),
        ("on t.id = s.nope when matched then delete", Exception, "UNRESOLVED_COLUMN"),
        ("on t.id = nobody.id when matched then delete", Exception, "UNRESOLVED_COLUMN"),
        ("on t.id = s.id when matched then update set id = null", ConstraintError, "column id of table t"),
        ("on t.id = s.id when not matched then insert (v) values ('x')", ConstraintError, "column id of table t"),
        (
            "on t.id = s.id when matched then delete when matched then update set v = 'x'",
            LakeError,
            "without a condition",
        ),
    ],
)
def test_a_merge_that_fails_leaves_nothing(
    lake: LakeSession, tmp_path: Path, statement: str, error: type[Exception], message: str
) -> None:
    run(
        lake,
        "call ducklake_set_option('data_inlining_row_limit', 0)",
        "create table t (id int not null, v string, n int)",
        "insert into t select id, concat('t', id), id from range(0, 4, 1, 1)",
        "create table s as select cast(id as int) as id, concat('s', id) as v, 0 as kind from range(2, 6)",
    )
    before, newest, on_disk = content(lake), snapshots(lake), parquet_files(tmp_path)
    with pytest.raises((error, ValueError), match=message):
        lake.execute(f"merge into t using s {statement}")
    assert (content(lake), snapshots(lake)) == (before, newest)
    assert parquet_files(tmp_path) == on_disk


@pytest.mark.parametrize(
    "clauses",
    [
        "when matched then update set v = s.v",
        "when matched and s.v = 'x' then update set v = s.v when matched then delete",
        "when matched then update set v = s.v when not matched then insert (id, v) values (s.id, s.v)",
    ],
)
def test_two_source_rows_for_one_target_row_are_refused_and_the_row_is_named(lake: LakeSession, clauses: str) -> None:
    run(
        lake,
        "create table t as select * from values (1, 'a'), (42, 'b') as s(id, v)",
        "create table s as select * from values (42, 'x'), (42, 'y'), (1, 'z'), (3, 'n') as s(id, v)",
    )
    newest = snapshots(lake)
    with pytest.raises(ConstraintError, match=r"2 rows of the source.*table t \(id = 42, v = 'b'\)"):
        lake.execute(f"merge into t using s on t.id = s.id {clauses}")
    assert content(lake) == [(1, "a"), (42, "b")]
    assert snapshots(lake) == newest


def test_a_row_that_matches_several_source_rows_is_deleted_once(lake: LakeSession, way: str) -> None:
    run(
        lake,
        "create table t as select * from values (1, 'a'), (42, 'b'), (43, 'c') as s(id, v)",
        "create table s as select * from values (42, 'x'), (42, 'y'), (7, 'z'), (7, 'z') as s(id, v)",
    )
    done = lake.execute(
        "merge into t using s on t.id = s.id when matched then delete when not matched then insert *"
        " when not matched by source and t.id = 1 then update set v = 'alone'"
    )
    assert content(lake) == [(1, "alone"), (43, "c"), (7, "z"), (7, "z")]
    assert done.rows_affected == 4


def test_unmatched_source_rows_may_be_equal(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select 1 as id",
        "merge into t using (select 2 as id union all select 2) s on t.id = s.id when matched then update set *"
        " when not matched then insert *",
    )
    assert content(lake) == [(1,), (2,), (2,)]


def test_a_merge_leaves_no_temporary_view_behind(lake: LakeSession, spark: Any) -> None:
    _clauses(lake)
    before = {view.name for view in spark.catalog.listTables()}
    lake.execute(
        "merge into t using s on t.id = s.id when matched then delete when not matched then insert (id) values (s.id)"
    )
    assert {view.name for view in spark.catalog.listTables()} == before
