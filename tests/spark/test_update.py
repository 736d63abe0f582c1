"""UPDATE: the values it assigns, the casts it allows, and the files it writes."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConstraintError, LakeError, NotFoundError, SchemaChangeError

from .helpers import content, files, parquet_files, rows, run, snapshots, value


def test_an_update_computes_every_value_from_the_old_row(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id bigint, a int, b int, name string default 'none', d decimal(10,2))",
        "insert into t values (1, 10, 20, 'x', 1.5), (2, 30, 40, null, null), (3, null, 5, 'z', 2)",
        "create table u as select * from values (1, 100), (2, 200) as s(k, v)",
    )
    assert lake.execute("update t set a = b, b = a where id <= 2").rows_affected == 2
    assert rows(lake, "select a, b from t order by id") == [(20, 10), (40, 30), (None, 5)]
    run(
        lake,
        "update t as x set x.a = (select max(v) from u where u.k = x.id), d = x.d * 2 where exists"
        " (select 1 from u where k = x.id)",
        "update t set name = default, d = default where id = 1",
        "update main.t set t.name = upper(main.t.name) || lake.main.t.id where name = 'z'",
        "update t set b = case when b > 10 then null else b end",
    )
    assert rows(lake, "select * from t order by id") == [
        (1, 100, 10, "none", None),
        (2, 200, None, None, None),
        (3, None, 5, "Z3", Decimal("2.00")),
    ]


def test_an_update_takes_columns_by_the_alias_in_any_case(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select 1 as id, 'a' as name",
        "update t as Tgt set Tgt.name = upper(TGT.name), tgt.ID = 2 where Tgt.id = 1",
        "merge into t as DBT_DEST using (select 2 as id, 'b' as name) as DBT_SRC on DBT_SRC.id = DBT_DEST.id"
        " when matched then update set DBT_DEST.name = DBT_SRC.name",
    )
    assert content(lake) == [(2, "b")]


def test_an_update_may_use_common_table_expressions(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select id, 0L as n from range(4)",
        "with m as (select max(id) as top from t) update t set n = (select top from m) + id where id > 1",
    )
    assert content(lake) == [(0, 0), (1, 0), (2, 5), (3, 6)]


def test_struct_fields_are_assigned_one_by_one(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, s struct<x: bigint, `y z`: string, in: struct<p: int, q: int>>)",
        "insert into t values (1, named_struct('x', 1, 'y z', 'a', 'in', named_struct('p', 1, 'q', 2)))",
        "update t set s.x = s.x + 1, s.in.q = 9, id = 7",
        "update t set t.s.`y z` = concat(s.`y z`, '!')",
        "update t as k set k.s.in.p = null where k.s.x = 2",
    )
    assert content(lake) == [(7, {"x": 2, "y z": "a!", "in": {"p": None, "q": 9}})]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("update t set nope = 1", NotFoundError, "nope.*has not.*id, name, s"),
        ("update t set s.nope = 1", NotFoundError, "nope"),
        ("update t set x.id = 1", NotFoundError, "x.id"),
        ("update t set name = 'a', NAME = 'b'", SchemaChangeError, "name two values"),
        ("update t set s.x = 1, s = null", SchemaChangeError, "two values"),
        ("update t set s = null, s.x = 1", SchemaChangeError, "two values"),
        ("update t set id = 'seven'", Exception, "column id of table t: the value 'seven' can not be cast"),
        ("update t set id = trim('7')", Exception, "INVALID_COLUMN_OR_FIELD_DATA_TYPE"),
        ("update t set s.x = trim('7')", Exception, "INVALID_COLUMN_OR_FIELD_DATA_TYPE|DATATYPE_MISMATCH"),
        ("update t set small = 1000", Exception, "CAST_OVERFLOW"),
        ("update t set id = null where id = 1", ConstraintError, "column id of table t is NOT NULL"),
        ("update t set l = null where id = 1", Exception, "column l is NOT NULL"),
        ("update t set name = raise_error('stop') where id = 1", Exception, "stop"),
        ("update nope set id = 1", NotFoundError, "nope"),
        ("update t set id = u.id from u", LakeError, "MERGE INTO"),
    ],
)
def test_an_update_that_fails_leaves_nothing(
    lake: LakeSession, tmp_path: Path, statement: str, error: type[Exception], message: str
) -> None:
    run(
        lake,
        "call ducklake_set_option('data_inlining_row_limit', 0)",
        "create table t (id bigint not null, name string, s struct<x: int>, small tinyint, l array<int> not null)",
        "insert into t select id, 'a', named_struct('x', 1), 1, array(1) from range(0, 4, 1, 1)",
    )
    before, newest, on_disk = content(lake), snapshots(lake), parquet_files(tmp_path)
    with pytest.raises(error, match=message):
        lake.execute(statement)
    assert (content(lake), snapshots(lake)) == (before, newest)
    assert parquet_files(tmp_path) == on_disk


def test_an_update_casts_values_as_an_insert_does(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, big bigint, small tinyint, d decimal(5,2), text string, day date, at timestamp_ntz)",
        "insert into t (id) values (1)",
        "update t set big = 7, small = cast(8 as bigint), d = 1.5, text = 9, day = timestamp_ntz'2026-01-02 03:00:00',"
        " at = date'2026-01-02'",
    )
    found = rows(lake, "select big, small, d, text, cast(day as string), cast(at as string) from t")
    assert found == [(7, 8, Decimal("1.50"), "9", "2026-01-02", "2026-01-02 00:00:00")]


def test_lists_and_maps_survive_an_update(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, l array<struct<a: int>>, m map<string, array<int>>)",
        "insert into t values (1, array(named_struct('a', 1)), map('k', array(1, null))), (2, null, map())",
        "update t set id = id + 10 where id = 1",
        "update t set m = map('z', array(id)) where id = 2",
        "merge into t using (select 11 as id, array(named_struct('a', 5)) as l) as s on s.id = t.id"
        " when matched then update set l = s.l",
    )
    assert rows(lake, "select id, l, m['k'] as k, m['z'] as z from t order by id") == [
        (2, None, None, [2]),
        (11, [{"a": 5}], [1, None], None),
    ]


def test_columns_that_old_files_lack_can_be_updated(lake: LakeSession, way: str) -> None:
    run(
        lake,
        "create table t as select id from range(0, 4, 1, 1)",
        "alter table t add column n int default 5",
        "update t set n = n + 1 where id = 1",
        "alter table t alter column n set default 9",
        "update t set n = default where id = 2",
        "alter table t rename column id to key",
        "alter table t alter column n type bigint",
        "delete from t where n = 5 and key = 0",
    )
    assert content(lake) == [(1, 6), (2, 9), (3, 5)]


def test_updated_rows_follow_the_partitioning_and_the_sort_order(lake: LakeSession, way: str) -> None:
    run(
        lake,
        "create table t (id bigint, day date, v string) partitioned by (month(day)) sorted by (id desc)",
        "insert into t select id, date_add(date'2026-01-01', cast(id as int)), 'a' from range(90)",
        "update t set day = add_months(day, 1), v = 'moved' where id % 10 = 0",
        "merge into t using (select id, date'2026-07-07' as day, 'm' as v from range(85, 95)) as s on t.id = s.id"
        " when matched then update set * when not matched then insert *",
    )
    assert value(lake, "select count(*) from t where month(day) = 7") == 10
    assert value(lake, "select count(*) from t where v = 'moved'") == 9
    assert value(lake, "select count(distinct id) from t") == 95
    assert value(lake, "select count(*) from t where id < 90 and rowid >= 90") == 0
    before = len(files(lake))
    july = "select count(*) from t where day = date'2026-07-07'"
    assert len(lake.sql(july).inputFiles()) < before
    lake.execute("alter table t set partitioned by (bucket(3, id))")
    lake.execute("update t set v = 'again' where id in (1, 90)")
    assert rows(lake, "select id, v from t where v = 'again' order by id") == [(1, "again"), (90, "again")]


def test_an_update_of_every_row_writes_few_files(lake: LakeSession) -> None:
    lake.execute("create table t (id bigint, g int) partitioned by (g)")
    lake.execute("insert into t select id, id % 20 from range(400)")
    run(lake, "alter table t reset partitioned by", "update t set g = 0")
    assert len(files(lake)) == 1
    assert rows(lake, "select count(*), sum(id), min(rowid), max(rowid) from t") == [(400, 79800, 0, 399)]
