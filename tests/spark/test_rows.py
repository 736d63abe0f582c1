"""DELETE, UPDATE and MERGE, on one lake with one engine."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import (
    ConflictError,
    ConstraintError,
    LakeError,
    NotFoundError,
    SchemaChangeError,
)
from dbt.adapters.ducklake.lake.transaction import Transaction
from dbt.adapters.ducklake.spark.change import position_deletes as masks
from dbt.adapters.ducklake.spark.read import deletion_masks as living
from dbt.adapters.ducklake.spark.read.lakes import Lake

from .helpers import rows, run, snapshots, value

WAYS = ("in the catalog", "by the driver", "by Spark")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, lake: LakeSession, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the positions of deleted rows are kept: each test with it runs in all three ways, usually in one of them."""
    if request.param != "in the catalog":
        lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    if request.param == "by Spark":
        for name in ("DRIVER_ROWS", "DRIVER_POSITIONS"):
            monkeypatch.setattr(masks, name, 0)
        monkeypatch.setattr(living, "FEW_FILES", 0)
    return str(request.param)


def content(lake: LakeSession, table: str = "t") -> list[tuple[Any, ...]]:
    """All rows of a table, in a fixed order."""
    return sorted(rows(lake, f"select * from {table}"), key=repr)


def files(lake: LakeSession, table: str = "t") -> list[tuple[str, str | None]]:
    """The data files of a table, each with its delete file."""
    return rows(lake, f"select data_file, delete_file from ducklake_list_files('{table}')")


def parquet_files(folder: Path) -> set[str]:
    return {str(p) for p in folder.rglob("*") if p.suffix in (".parquet", ".crc")}


def other_session(lake: LakeSession, spark: Any, **options: Any) -> LakeSession:
    """A second session on the same lake."""
    return LakeSession(f"sqlite:{lake.lake().catalog.database.url.database}", spark=spark, **options)


# -- DELETE


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
def test_a_delete_takes_the_rows_for_which_its_condition_is_true(
    lake: LakeSession, condition: str, left: list[int]
) -> None:
    run(
        lake,
        "create table t as select * from values (0, 'a'), (1, 'b'), (2, null), (3, 'd'), (4, 'e') as s(id, name)",
        "create table u as select * from values (1), (3), (null) as s(k)",
    )
    if condition == "id in (with x as (select k + 1 as k from u) select k from x)":
        left = [0, 1, 3]
    if condition == "name > 'a'":
        left = [0, 2]
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


def test_a_common_table_helps_to_choose_the_rows(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select id from range(5)",
        "with gone as (select id from t where id % 2 = 0), more as (select id + 1 as id from gone where id > 2)"
        " delete from t where id in (select id from gone) or id in (select id from more)",
    )
    assert content(lake) == [(1,), (3,)]


def test_a_condition_is_not_asked_of_deleted_rows_where_it_could_fail(lake: LakeSession, way: str) -> None:
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


@pytest.mark.parametrize("blocks", [2**20, 20, 0])
def test_files_of_equal_sizes_keep_their_deletes_apart(
    lake: LakeSession, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    monkeypatch.setattr(living, "FEW_BLOCKS", blocks)
    run(
        lake,
        "call ducklake_set_option('data_inlining_row_limit', 0)",
        "create table t (part int, id bigint) partitioned by (part)",
        "insert into t select id % 8, id div 8 from range(0, 1600, 1, 1)",
        "delete from t where id = part or id = 191 - part",
    )
    sizes = [row[0] for row in rows(lake, "select data_file_size_bytes from ducklake_list_files('t')")]
    assert len(set(sizes)) < len(sizes) == 8
    assert content(lake) == sorted(
        ((part, i) for part in range(8) for i in range(200) if i not in (part, 191 - part)), key=repr
    )
    assert value(lake, "select count(*) from t where id = 3 and part <> 3") == 7


def test_a_delete_without_a_condition_empties_the_table(lake: LakeSession) -> None:
    run(lake, "create table t as select id from range(7)", "delete from t where id = 0")
    assert lake.execute("delete from t").rows_affected == 6
    assert content(lake) == []
    assert value(lake, "select count(*) from t version as of 1") == 7


def test_a_column_of_the_tables_own_called_rowid_is_that_column(lake: LakeSession) -> None:
    run(lake, "create table t as select 10 - id as rowid, id from range(5)", "delete from t where rowid = 10")
    assert sorted(r[1] for r in content(lake)) == [1, 2, 3, 4]


def test_deletes_name_what_is_not_there(lake: LakeSession) -> None:
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


# -- how deletes are kept


def test_deletes_of_one_file_add_up(lake: LakeSession, way: str) -> None:
    lake.execute("create table t as select id, id % 10 as g from range(0, 100, 1, 1)")
    first = snapshots(lake)
    for condition, count in (("g = 1", 10), ("g = 2", 10), ("id in (3, 13)", 2), ("id >= 90", 8)):
        assert lake.execute(f"delete from t where {condition}").rows_affected == count
    assert [value(lake, f"select count(*) from t version as of {first + n}") for n in range(5)] == [100, 90, 80, 78, 70]
    assert value(lake, "select sum(id) from t") == sum(
        i for i in range(90) if i % 10 not in (1, 2) and i not in (3, 13)
    )
    ((_, delete_file),) = files(lake)
    assert (delete_file is None) == (way == "in the catalog")


def test_a_file_that_loses_all_its_rows_goes_without_a_delete_file(lake: LakeSession, way: str, tmp_path: Path) -> None:
    run(
        lake,
        "create table t as select id from range(0, 5, 1, 1)",
        "insert into t select id + 10 from range(0, 5, 1, 1)",
    )
    (_, (kept, _)) = files(lake)
    if way == "in the catalog":
        run(lake, "delete from t where id < 5")
    else:
        run(lake, "delete from t where id < 2", "delete from t where id in (2, 3, 4)")
    assert files(lake) == [(kept, None)]
    assert len(parquet_files(tmp_path)) == (2 if way == "in the catalog" else 3)
    assert lake.execute("update t set id = id + 100").rows_affected == 5
    assert [f for f in files(lake) if f[0] == kept or f[1]] == []
    assert content(lake) == [(110,), (111,), (112,), (113,), (114,)]


def test_rows_that_change_again_and_again_keep_their_row_ids(lake: LakeSession, way: str) -> None:
    run(
        lake,
        "create table t as select id, 0 as n from range(0, 6, 1, 1)",
        "update t set n = n + 1 where id < 4",
        "update t set n = n + 1 where id < 3",
        "merge into t using (select 1 as id) as s on t.id = s.id when matched then update set n = t.n + 1",
        "delete from t where id = 0",
        "update t set n = n + 10 where n = 3",
        "insert into t values (9, 9)",
    )
    found = rows(lake, "select rowid, id, n from t order by id")
    assert found[:5] == [(1, 1, 13), (2, 2, 2), (3, 3, 1), (4, 4, 0), (5, 5, 0)]
    assert found[5][1:] == (9, 9)
    assert found[5][0] > 5


@pytest.mark.parametrize("last", [100, 107])
def test_deleted_rows_of_files_of_one_size_and_of_several_are_told_apart(lake: LakeSession, last: int) -> None:
    lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.execute("create table t (id bigint)")
    for end in (100, last):
        lake.execute(f"insert into t select id from range(0, {end}, 1, 1)")
    files = rows(lake, "select data_file_size_bytes from ducklake_list_files('t')")
    assert len(set(files)) == (1 if last == 100 else 2)
    gone = {3, 63, 64, 130}
    lake.execute(f"delete from t where rowid in ({', '.join(map(str, gone))})")
    left = [(i,) for i in range(100 + last) if i not in gone]
    assert rows(lake, "select rowid from t order by 1") == left
    lake.execute("delete from t where rowid in (5, 105)")
    assert rows(lake, "select rowid from t order by 1") == [r for r in left if r[0] not in (5, 105)]
    assert rows(lake, "select count(*) from t version as of 4") == [(len(left),)]


def test_the_same_deletes_of_tables_that_are_alike_are_kept_apart(lake: LakeSession, way: str) -> None:
    def rows_of(number: int) -> list[range]:
        """The rows of both files, of which sometimes the one is larger and sometimes the other."""
        return [range(first, first + 10 + (number * 17 + first) % 47) for first in (0, 100)]

    for number in range(6):
        lake.execute(f"create table t{number} (id int)")
        for ids in rows_of(number):
            lake.execute(f"insert into t{number} select id from range({ids.start}, {ids.stop}, 1, 1)")
        lake.execute(f"delete from t{number} where id in (3, 104)")
    for number in range(6):
        expected = [(id,) for ids in rows_of(number) for id in ids if id not in (3, 104)]
        assert rows(lake, f"select id from t{number} order by id") == expected


def test_exists_is_selected_of_a_table_that_is_read_in_parts(lake: LakeSession, way: str) -> None:
    """Spark can not move an EXISTS into a union, which some files with deletes and some without are."""
    run(
        lake,
        "create table t as select id, 0 as v from range(0, 40, 1, 1)",
        "insert into t select id, 0 from range(40, 60, 1, 1)",
        "delete from t where id in (1, 3)",
        "create table o as select id from range(5)",
        "create view w as select * from t",
    )
    for relation in ("t", "w", "(select id from w)"):
        query = f"select id, exists(select 1 from o where o.id = x.id) from {relation} x where id < 6 order by id"
        assert rows(lake, query) == [(0, True), (2, True), (4, True), (5, False)]
    changes = f"ducklake_table_changes('t', 1, {snapshots(lake)})"
    feed = f"select id, EXISTS(select 1 from o where o.id = c.id) as e from {changes} c"
    assert {id for (id,) in rows(lake, f"select id from ({feed}) where e")} == {0, 1, 2, 3, 4}
    run(
        lake,
        "update t set v = case when exists (select 1 from o where o.id = t.id) then 1 else 2 end where id < 6",
        """merge into t using (select 2 as id) s on t.id = s.id
        when matched and exists (select 1 from o where o.id = t.id) then update set v = 3
        when not matched by source and exists (select 1 from o where o.id = t.id and o.id > 2) then delete""",
    )
    assert rows(lake, "select id, v from t where id < 7 order by id") == [(0, 1), (2, 3), (5, 2), (6, 0)]


def test_a_large_change_of_many_files_goes_through_spark(lake: LakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DRIVER_ROWS", "DRIVER_POSITIONS"):
        monkeypatch.setattr(masks, name, 0)
    lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.execute("create table t (id bigint, p int, v string) partitioned by (p)")
    lake.execute("insert into t select id, id % 5, 'old' from range(500)")
    row_ids = dict(rows(lake, "select id, rowid from t"))
    for step in range(3):
        left = [i for i in range(step, 500, 7) if i % 11 >= step]
        done = lake.execute(f"update t set v = concat('new', {step}), p = (p + 1) % 5 where id % 7 = {step}")
        assert done.rows_affected == len(left)
        assert lake.execute(f"delete from t where id % 11 = {step}").rows_affected > 0
    expected = []
    for i in range(500):
        if i % 11 > 2:
            touched = i % 7 <= 2
            expected.append((i, (i % 5 + 1) % 5 if touched else i % 5, f"new{i % 7}" if touched else "old"))
    assert sorted(rows(lake, "select * from t")) == sorted(expected)
    assert dict(rows(lake, "select id, rowid from t")) == {i: row_ids[i] for i, *_ in expected}


# -- UPDATE


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


def test_with_before_update_names_common_tables(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select id, 0L as n from range(4)",
        "with m as (select max(id) as top from t) update t set n = (select top from m) + id where id > 1",
    )
    assert content(lake) == [(0, 0), (1, 0), (2, 5), (3, 6)]


def test_fields_of_structs_change_alone(lake: LakeSession) -> None:
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
        ("update t set id = 'seven'", Exception, "INVALID_COLUMN_OR_FIELD_DATA_TYPE"),
        ("update t set id = '7'", Exception, "INVALID_COLUMN_OR_FIELD_DATA_TYPE"),
        ("update t set s.x = '7'", Exception, "INVALID_COLUMN_OR_FIELD_DATA_TYPE|DATATYPE_MISMATCH"),
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


def test_values_are_cast_as_an_insert_casts_them(lake: LakeSession) -> None:
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


# -- MERGE: sources

SOURCES = {
    "a table": "src as s",
    "a table of another schema": "other.src s",
    "a full name": "lake.other.src as s",
    "a view": "src_view as s",
    "a temporary view": "temp_src as s",
    "a query": "(select * from src) as s",
    "a query of values": "(select * from values (1, 'one'), (5, 'five') as x(id, name)) as s",
    "a query that unites": "(select * from src where id = 1 union all select 5, 'five') s",
    "an earlier version": "src_now version as of 4 as s",
    "a version at": "src_now at (version => 4) as s",
    "the table itself": "(select case when id = 3 then 5 else 1 end as id, case when id = 3 then 'five' else 'one' end"
    " as name from t where id in (1, 3)) as s",
}


def _sources(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select * from values (1, 'a'), (2, 'b'), (3, 'c') as s(id, name)",
        "create table src as select * from values (1, 'one'), (5, 'five') as s(id, name)",
        "create view src_view as select id, name from src",
        "create table src_now as select * from src",
        "insert into src_now values (2, 'later')",
        "create schema other",
        "create table other.src as select * from src",
        "create or replace temp view temp_src as select * from src",
    )


@pytest.mark.parametrize("source", SOURCES)
def test_a_merge_takes_its_rows_from(lake: LakeSession, source: str) -> None:
    _sources(lake)
    done = lake.execute(
        f"merge into t using {SOURCES[source]} on t.id = s.id"
        " when matched then update set name = s.name when not matched then insert (id, name) values (s.id, s.name)"
    )
    assert content(lake) == [(1, "one"), (2, "b"), (3, "c"), (5, "five")]
    assert done.rows_affected == 2


@pytest.mark.parametrize(
    "text",
    [
        "merge into t using src on t.id = src.id {}",
        "merge into t using src on main.t.id = main.src.id {}",
        "merge into main.t using main.src on t.id = src.id {}",
        "merge into lake.main.t using lake.other.src on lake.main.t.id = lake.other.src.id {}",
        "merge into t x using src on x.id = src.id {}",
        "merge into t as x using other.src on x.id = other.src.id {}",
        "merge into t using temp_src on t.id = temp_src.id {}",
        "merge into t using src_view on t.id = main.src_view.id {}",
        "merge into t as x using src_now version as of 4 on x.id = src_now.id {}",
        "merge into t using (select id as k, id, name from src) on t.id = k {}",
        "with s as (select * from src) merge into t using s on t.id = s.id {}",
        "with s as (select * from src) merge into t as x using s as y on x.id = y.id {}",
        "merge into t using `SRC` on `T`.ID = `Src`.iD {}",
    ],
)
def test_stars_take_each_column_from_the_source(lake: LakeSession, text: str) -> None:
    _sources(lake)
    lake.execute(text.format("when matched then update set * when not matched then insert *"))
    assert content(lake) == [(1, "one"), (2, "b"), (3, "c"), (5, "five")]


def test_two_tables_of_one_name_merge_by_their_schemas(lake: LakeSession) -> None:
    run(
        lake,
        "create schema a",
        "create schema b",
        "create table a.t as select * from values (1, 'x'), (2, 'y') as s(id, v)",
        "create table b.t as select * from values (2, 'new'), (3, 'z') as s(id, v)",
        "merge into a.t using b.t on a.t.id = b.t.id when matched then update set v = b.t.v"
        " when not matched then insert (id, v) values (b.t.id, b.t.v)",
    )
    assert content(lake, "a.t") == [(1, "x"), (2, "new"), (3, "z")]
    assert content(lake, "b.t") == [(2, "new"), (3, "z")]


def test_a_table_is_merged_into_itself(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select id, id * 10 as n from range(3)",
        "merge into t using t as s on t.id = s.id + 1 when matched then update set n = t.n + s.n"
        " when not matched then insert (id, n) values (100 + s.id, s.n)"
        " when not matched by source then update set n = -1",
    )
    assert content(lake) == [(0, -1), (1, 10), (102, 20), (2, 30)]
    lake.execute("merge into t as x using t on x.id = t.id and t.id = 1 when matched then delete")
    assert content(lake) == [(0, -1), (102, 20), (2, 30)]
    lake.execute(
        "merge into t as x using t version as of 1 on x.id = t.id when matched then update set *"
        " when not matched then insert * when not matched by source then delete"
    )
    assert content(lake) == [(0, 0), (1, 10), (2, 20)]


def test_the_sources_name_may_be_part_of_the_targets(lake: LakeSession) -> None:
    run(
        lake,
        "create table `my src` as select 1 as id, 'a' as v",
        "create table src as select * from values (1, 'b'), (2, 'c') as s(id, v)",
        "merge into `my src` using src on `my src`.id = src.id when matched then update set *"
        " when not matched then insert *",
    )
    assert content(lake, "`my src`") == [(1, "b"), (2, "c")]


def test_an_empty_source_and_an_empty_table_merge(lake: LakeSession) -> None:
    run(lake, "create table t (id int, v string)", "create table s (id int, v string)")
    both = "merge into t using s on t.id = s.id when matched then update set * when not matched then insert *"
    assert lake.execute(both).rows_affected == 0
    lake.execute("insert into s values (1, 'a')")
    assert lake.execute(both).rows_affected == 1
    lake.execute("truncate table s")
    assert lake.execute(both).rows_affected == 0
    assert content(lake) == [(1, "a")]
    assert lake.execute(f"{both} when not matched by source then delete").rows_affected == 1
    assert content(lake) == []


# -- MERGE: clauses


def _clauses(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, v string, n int default 7)",
        "insert into t select id, concat('t', id), id from range(6)",
        "create table s as select cast(id as int) as id, concat('s', id) as v, id % 3 as kind from range(2, 9)",
    )


def test_the_first_clause_that_holds_acts(lake: LakeSession) -> None:
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
        ("when matched and v = 'nothing' then delete", None),
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
def test_clauses_act_alone(lake: LakeSession, clauses: str, expected: Any) -> None:
    _clauses(lake)
    before, newest = content(lake), snapshots(lake)
    if "v = 'nothing'" in clauses:
        clauses = clauses.replace("v =", "t.v =")
    done = lake.execute(f"merge into t using s on t.id = s.id {clauses}")
    if expected is None:
        assert content(lake) == before
        assert snapshots(lake) == newest
        assert done.rows_affected == 0
    else:
        assert content(lake) == ([*before, (8, "s8", 7)] if expected == "more" else expected)


def test_what_changes_nothing_makes_no_snapshot(lake: LakeSession) -> None:
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


def test_every_clause_gives_values_of_the_tables_types(lake: LakeSession) -> None:
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
        "when matched then update set n = '5'",
        "when matched and s.id = 2 then update set n = '5' when matched then update set n = 5",
        "when matched and s.id = 2 then update set n = '5' when matched then delete",
        "when not matched then insert (id, n) values (s.id, '5')",
        "when not matched and s.id = 6 then insert (id, n) values (s.id, '5')"
        " when not matched then insert (id, n) values (s.id, 5)",
        "when not matched by source then update set n = '5'",
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


# -- MERGE: one source row for each row of the table


@pytest.mark.parametrize(
    "clauses",
    [
        "when matched then update set v = s.v",
        "when matched and s.v = 'x' then update set v = s.v when matched then delete",
        "when matched then update set v = s.v when not matched then insert (id, v) values (s.id, s.v)",
    ],
)
def test_two_source_rows_for_one_row_are_refused_with_the_row(lake: LakeSession, clauses: str) -> None:
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


def test_a_row_is_deleted_once_however_many_source_rows_it_meets(lake: LakeSession, way: str) -> None:
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


def test_source_rows_that_match_nothing_may_be_equal(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select 1 as id",
        "merge into t using (select 2 as id union all select 2) s on t.id = s.id when matched then update set *"
        " when not matched then insert *",
    )
    assert content(lake) == [(1,), (2,), (2,)]


# -- MERGE: what is computed, and how often


def test_a_source_is_computed_once(lake: LakeSession) -> None:
    run(lake, "create table t as select id, 'old' as u from range(5)")
    lake.execute(
        "merge into t using (select id, u from range(10) cross join (select uuid() as u)) as s on t.id = s.id"
        " when matched and t.id < 4 then update set u = s.u when matched then delete"
        " when not matched then insert *"
    )
    assert rows(lake, "select count(*), count(distinct u) from t") == [(9, 1)]


def test_a_source_row_is_either_matched_or_inserted(lake: LakeSession) -> None:
    run(lake, "create table t as select id, 0 as n from range(500)")
    done = lake.execute(
        "merge into t using (select distinct cast(floor(rand() * 1000) as bigint) as id from range(600)) as s"
        " on t.id = s.id when matched then update set n = 1 when not matched then insert (id, n) values (s.id, 2)"
        " when not matched by source then update set n = 3"
    )
    assert value(lake, "select count(*) - count(distinct id) from t") == 0
    assert value(lake, "select count(*) from t where n = 0 or (n = 2) = (id < 500)") == 0
    assert done.rows_affected == value(lake, "select count(*) from t")


def test_a_view_that_was_merged_from_is_gone_from_spark(lake: LakeSession, spark: Any) -> None:
    _clauses(lake)
    before = {view.name for view in spark.catalog.listTables()}
    lake.execute(
        "merge into t using s on t.id = s.id when matched then delete when not matched then insert (id) values (s.id)"
    )
    assert {view.name for view in spark.catalog.listTables()} == before


# -- names


@pytest.mark.parametrize("name", ["a b", "c.d", "e`f", 'g"h', "é", "select", "Upper", "1", "x'y", "s", "rowid"])
def test_odd_names_work_in_every_clause(lake: LakeSession, name: str) -> None:
    odd = "`" + name.replace("`", "``") + "`"
    run(
        lake,
        f"create table {odd} (id int, {odd} string, st struct<{odd}: int>)",
        f"insert into {odd} values (1, 'a', struct(1 as {odd})), (2, 'b', null), (3, 'c', null)",
        f"create table source as select 2 as id, 'B' as {odd}, struct(5 as {odd}) as st union all"
        f" select 4, 'd', struct(4 as {odd})",
        f"update {odd} set {odd}.{odd} = upper({odd}.{odd}), st.{odd} = 9 where {odd} = 'a'",
        f"merge into {odd} using source on {odd}.id = source.id when matched then update set * "
        " when not matched then insert *",
        f"merge into {odd} as `my ``x` using (select 4 as {odd}) as `the s` on `my ``x`.id = `the s`.{odd}"
        f" when matched then update set `my ``x`.{odd} = concat({odd if name != name else '`my ``x`.' + odd}, '!')",
        f"delete from {odd} where {odd}.{odd} = 'c'",
    )
    assert content(lake, odd) == [(1, "A", {name: 9}), (2, "B", {name: 5}), (4, "d!", {name: 4})]


# -- pruning


def _scanned(lake: LakeSession, monkeypatch: pytest.MonkeyPatch, statement: str, table: str = "t") -> int:
    """How many data files of a table a statement looks at, at most."""
    counts = [0]
    scan = Lake.scan

    def spy(self: Lake, which: Any, *arguments: Any, **named: Any) -> Any:
        found = scan(self, which, *arguments, **named)
        if which.name == table:
            counts.append(len(found.files))
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "scan", spy)
        lake.execute(statement)
    return max(counts)


@pytest.fixture
def many_files(lake: LakeSession) -> LakeSession:
    """A table of 30 files, each with ten numbers of its own."""
    run(
        lake,
        "create table t (id bigint, name string, g int) partitioned by (g)",
        "insert into t select id, concat('n', lpad(id, 3, '0')), id div 10 from range(300)",
        "alter table t reset partitioned by",
    )
    assert len(files(lake)) == 30
    return lake


@pytest.mark.parametrize(
    ("source", "condition", "count"),
    [
        ("(select * from values (5), (6), (155), (299), (1000) as x(id))", "t.id = s.id", 3),
        ("(select * from values (5), (155), (299) as x(id))", "s.id + 0 = t.id and t.name > 'a'", 3),
        ("(select * from values ('n005'), ('n155'), ('n299') as x(id))", "t.name = s.id", 3),
        ("(select * from values (5L), (155L), (299L), (null) as x(id))", "t.id = s.id", 3),
        ("(select id from range(145, 1500))", "t.id = s.id", 16),
        ("(select cast(null as bigint) as id)", "t.id = s.id", 0),
        ("(select 5 as id)", "t.id = s.id or t.name = 'n299'", 30),
        ("(select 5 as id)", "t.id = s.id and t.g = 7", 0),
        ("(select 5 as id)", "abs(t.id) = s.id", 30),
        ("(select 5 as id)", "t.id <=> s.id", 30),
    ],
)
def test_a_merge_reads_the_files_that_the_source_can_match(
    many_files: LakeSession, monkeypatch: pytest.MonkeyPatch, source: str, condition: str, count: int
) -> None:
    text = f"merge into t using {source} as s on {condition} when matched then update set g = -1"
    found = _scanned(many_files, monkeypatch, text)
    assert found <= count
    if count == 30:
        assert found == 30


def test_deletes_and_updates_read_the_files_that_can_match(
    many_files: LakeSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _scanned(many_files, monkeypatch, "delete from t where id = 7") == 1
    assert _scanned(many_files, monkeypatch, "update t set g = 0 where name in ('n015', 'n095')") == 2
    assert _scanned(many_files, monkeypatch, "delete from main.t as x where x.id between 195 and 205") == 2


def test_rows_without_a_source_row_are_looked_for_in_every_file(many_files: LakeSession) -> None:
    done = many_files.execute(
        "merge into t using (select 5 as id) s on t.id = s.id when matched then update set g = -1"
        " when not matched by source and t.id >= 290 then delete"
    )
    assert done.rows_affected == 11
    assert value(many_files, "select count(*) from t") == 290


@pytest.mark.parametrize(
    ("kind", "source", "condition", "count"),
    [
        ("int", "select ' 5 ' as k union all select '0155'", "t.k = s.k", 2),
        ("int", "select 5.0D as k union all select 155.5D", "t.k = s.k", 1),
        ("int", "select cast(5 as decimal(20,5)) as k", "t.k = s.k", 1),
        ("string", "select 5 as k union all select 155", "t.k = s.k", 2),
        ("double", "select 5 as k union all select double('NaN')", "t.k = s.k", 1),
        ("double", "select -0.0D as k", "t.k = s.k", 1),
        ("date", "select timestamp'1970-01-06 00:00:00' as k", "t.k = s.k", 1),
        ("date", "select '1970-01-06' as k", "t.k = s.k", 1),
        ("timestamp", "select date'1970-01-06' as k", "t.k = s.k", 1),
        ("timestamp", "select timestamp_ntz'1970-01-06 00:00:00' as k", "t.k = s.k", 1),
        ("timestamp_ntz", "select timestamp'1970-01-06 00:00:00+00' as k", "t.k = s.k", 1),
        ("decimal(10,2)", "select 5 as k union all select 6.001", "t.k = s.k", 1),
        ("boolean", "select 1 as k", "t.k = cast(s.k as boolean)", 299),
        ("binary", "select 'n005' as k", "t.k = cast(s.k as binary)", 1),
        ("bigint", "select 9007199254740993 as k", "t.k + 9007199254740988L = s.k", 1),
        ("bigint", "select 11 as k", "t.k = s.k div 2", 1),
        ("bigint", "select '005,6' as k", "t.k = int(split(s.k, ',')[0])", 1),
        ("bigint", "select date'1970-01-09' as k", "t.k = dayofweek(s.k)", 1),
        ("bigint", "select date'1970-01-09' as k", "t.k = weekday(s.k)", 1),
        ("string", "select 'N005' as k", r"t.k = regexp_replace(lower(s.k), '\\d{3}', '005')", 1),
        ("string", "select 'n,005' as k", "t.k = replace(s.k, ',')", 1),
        ("string", "select 5 as k union all select 155", "t.k = concat('n', to_char(s.k, '000'))", 2),
        ("string", "select 5 as k union all select 155", "t.k = format_string('n%03d', s.k)", 2),
        ("string", "select 'n005  ' as k", "t.k = trim(s.k)", 1),
        ("string", "select 'n005n005' as k", "t.k = substr(s.k, -4)", 1),
        ("date", "select date'1970-01-05' as k", "t.k = date_add(s.k, 1)", 1),
        ("date", "select '06.01.1970' as k", "t.k = to_date(s.k, 'dd.MM.yyyy')", 1),
        ("date", "select date'1969-12-06' as k", "t.k = add_months(s.k, 1)", 1),
        ("timestamp", "select 5 as k", "t.k = timestamp'1970-01-01 00:00:00' + make_dt_interval(s.k)", 1),
    ],
)
def test_no_match_is_missed_for_keys_of_other_types(
    lake: LakeSession, kind: str, source: str, condition: str, count: int
) -> None:
    values = {
        "string": "concat('n', lpad(id, 3, '0'))",
        "binary": "cast(concat('n', lpad(id, 3, '0')) as binary)",
        "date": "date_from_unix_date(cast(id as int))",
        "timestamp": "timestamp_seconds(id * 86400)",
        "timestamp_ntz": "cast(timestamp_seconds(id * 86400) as timestamp_ntz)",
        "boolean": "id <> 0",
    }
    if condition == "t.k = s.k" and kind == "string" and source.startswith("select 5 "):
        values["string"] = "lpad(id, 4, '0')"
    run(
        lake,
        f"create table t (k {kind}, g int) partitioned by (g)",
        f"insert into t select {values.get(kind, 'id')}, id div 10 from range(300)",
    )
    done = lake.execute(f"merge into t using ({source}) as s on {condition} when matched then delete")
    assert done.rows_affected == count


def test_keys_that_can_not_be_computed_for_rows_that_match_nothing_do_no_harm(many_files: LakeSession) -> None:
    done = many_files.execute(
        "merge into t using (select * from values ('number', '5'), ('text', 'five') as x(kind, k)) as s"
        " on s.kind = 'number' and t.id = cast(s.k as bigint) when matched then delete"
    )
    assert done.rows_affected == 1


def test_a_source_of_very_many_keys_misses_none(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id bigint, g int) partitioned by (g)",
        "insert into t select id * 3, id div 1000 from range(20000)",
    )
    done = lake.execute(
        "merge into t using (select id * 2 as id from range(5000) union all select 50000 + id from range(4000)) as s"
        " on t.id = s.id when matched then delete"
    )
    expected = set(range(0, 60000, 3)) & ({*range(0, 10000, 2)} | {*range(50000, 54000)})
    assert done.rows_affected == len(expected)


# -- several statements in one transaction


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


def test_alterations_and_changes_of_rows_mix_in_a_transaction(lake: LakeSession, way: str) -> None:
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


def test_a_table_emptied_and_filled_in_a_transaction_is_changed_on(lake: LakeSession, way: str) -> None:
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
        found = lake.volume()
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


# -- arrangements of tables


def test_new_versions_go_where_the_tables_arrangement_puts_them(lake: LakeSession, way: str) -> None:
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


def test_columns_that_old_files_lack_get_values(lake: LakeSession, way: str) -> None:
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


def test_an_update_of_everything_writes_few_files(lake: LakeSession) -> None:
    lake.execute("create table t (id bigint, g int) partitioned by (g)")
    lake.execute("insert into t select id, id % 20 from range(400)")
    run(lake, "alter table t reset partitioned by", "update t set g = 0")
    assert len(files(lake)) == 1
    assert rows(lake, "select count(*), sum(id), min(rowid), max(rowid) from t") == [(400, 79800, 0, 399)]


# -- others at work


def test_two_deletes_in_different_files_pass_each_other(lake: LakeSession, spark: Any, way: str) -> None:
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


def test_two_changes_of_one_file_do_not_pass_each_other(lake: LakeSession, spark: Any, way: str) -> None:
    run(lake, "create table t as select id from range(0, 20, 1, 1)", "delete from t where id = 0")
    other = other_session(lake, spark)
    for statement in ("delete from t where id in (1, 2)", "update t set id = 100 where id = 3"):
        with pytest.raises(ConflictError, match="changed rows of the same files"), lake.transaction():
            lake.execute(statement)
            other.execute("delete from t where id = (select max(id) from t)")
    assert content(lake) == sorted([(i,) for i in range(1, 18)], key=repr)


def test_a_merge_does_not_pass_rows_that_it_would_have_matched(lake: LakeSession, spark: Any) -> None:
    run(lake, "create table t as select id, 'a' as v from range(0, 5, 1, 1)")
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


def test_statements_that_lose_races_are_planned_again(lake: LakeSession) -> None:
    lake.execute("create table t (id int, n int)")
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda _: lake.execute(COUNT_UP), range(9)))
    assert content(lake) == [(1, 9)]


def test_a_statement_is_planned_again_only_so_often(lake: LakeSession, spark: Any, monkeypatch: Any) -> None:
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


def test_a_transaction_is_repeated_on_what_others_did(lake: LakeSession, spark: Any) -> None:
    run(lake, "create table t as select 1 as id, 0 as n", "create table log (n int)")
    other = other_session(lake, spark)
    lake.begin()
    run(lake, "create or replace temporary view seen as select n from t", COUNT_UP, "insert into log select n from t")
    other.execute("update t set n = 10")
    with pytest.raises(ConflictError):
        lake.commit()
    assert lake.repeat()
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
def test_a_transaction_is_not_repeated_where(lake: LakeSession, spark: Any, mine: str, theirs: str) -> None:
    run(lake, "create table t as select 1 as id, 0 as n")
    other = other_session(lake, spark)
    lake.begin()
    run(lake, COUNT_UP, *filter(None, [mine]))
    other.execute(theirs)
    with pytest.raises(ConflictError):
        lake.commit()
    assert not lake.repeat()
    assert not lake.in_transaction


def test_a_delete_file_that_names_its_snapshot_needs_no_patience(lake: LakeSession, spark: Any) -> None:
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


# -- Spark Connect

SCRIPT = """
import sys
from dbt.adapters.ducklake import LakeSession

settings = {"remote": "local[2]", "config": {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}}
with LakeSession("sqlite:catalog.sqlite", data_path="data/", spark=settings) as lake:
    if sys.argv[1] == "files":
        from dbt.adapters.ducklake.spark import masks
        masks.DRIVER_ROWS = masks.DRIVER_POSITIONS = 0
        lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.execute("create table t as select id, 'a' as v, array(id) as l from range(0, 40, 1, 1)")
    lake.execute("create table s as select id, 'm' as v, array(0L) as l from range(35, 45)")
    lake.execute("delete from t where id in (select id from s where id > 37)")
    with lake.transaction():
        lake.execute("update t set v = concat(v, 'u') where id < 3")
        lake.execute(
            "merge into t using s on t.id = s.id when matched then update set v = s.v"
            " when not matched and s.id < 43 then insert *"
            " when not matched by source and t.id between 10 and 19 then delete"
        )
        lake.execute("merge into t using (select id, uuid() as u from range(2)) x on t.id = x.id"
                     " when matched then update set v = x.u")
    print(lake.sql("select count(*) as n, sum(id) as s, count_if(v = 'm') as m, sum(size(l)) as l from t")
          .toArrow().to_pylist())
    print(lake.sql("select count(*) as n from t where rowid = id and v not in ('a', 'm')").toArrow().to_pylist())
"""


@pytest.mark.usefixtures("connect_port")
@pytest.mark.parametrize("how", ["inlined", "files"])
def test_rows_change_over_spark_connect(tmp_path: Path, how: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, how], cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ids = [*range(10), *range(20, 38), *range(38, 43)]
    assert [line for line in done.stdout.splitlines() if line.startswith("[{")] == [
        f"[{{'n': {len(ids)}, 's': {sum(ids)}, 'm': 8, 'l': {len(ids)}}}]",
        "[{'n': 3}]",
    ]
