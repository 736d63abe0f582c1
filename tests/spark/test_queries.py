"""SELECT: column names, file pruning, time travel, virtual columns and information_schema."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import NotFoundError

from .helpers import rows, run, snapshots, value


def test_qualified_columns_keep_working(lake: LakeSession) -> None:
    run(lake, "create schema s", "create table main.t as select 1 as a", "create table s.t as select 2 as a")
    assert rows(lake, "select main.t.a as x, lake.s.t.a as y from main.t join s.t on main.t.a < s.t.a") == [(1, 2)]
    assert rows(lake, "with t as (select 9 as a) select a, (select max(a) from main.t) from t") == [(9, 1)]
    assert rows(lake, "select 'from t' as x /* from s.t */ from t -- from nope") == [("from t",)]


def test_filters_prune_files_and_lose_no_row(lake: LakeSession) -> None:
    lake.execute("create table t (d date, n int, s string) partitioned by (month(d))")
    lake.execute(
        "insert into t select date_add(date'2026-01-01', cast(id as int)), id, concat('k', id % 10) from range(360)"
    )
    everything = len(lake.sql("select * from t").inputFiles())
    for condition, count in [
        ("d = date'2026-03-05'", 1),
        ("d between '2026-03-01' and '2026-03-31'", 31),
        ("n in (1, 2, 359)", 3),
        ("n < 10 or d >= date'2026-12-20'", 17),
        ("s like 'k1%' and n > 350", 1),
        ("n is null", 0),
    ]:
        assert value(lake, f"select count(*) from t where {condition}") == count, condition
    assert everything == 12
    assert len(lake.sql("select * from t where d = date'2026-03-05'").inputFiles()) == 1


def test_time_travel(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select 1 as a",
        "insert into t values (2)",
        "create or replace table t as select 'x' as s",
    )
    assert rows(lake, "select * from t version as of 1") == [(1,)]
    assert rows(lake, "select a from t at (version => 2) order by a") == [(1,), (2,)]
    assert rows(lake, "select * from t timestamp as of now()") == [("x",)]
    assert rows(lake, "select new.s, old.a from t as new join t version as of 1 as old on true") == [("x", 1)]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select * from t version as of 9", "no snapshot 9"),
        ("select * from t timestamp as of '2020-01-01'", "the lake's first is 0"),
        ("select * from t version as of 0", "no table main.t at snapshot 0.*since snapshot 1"),
    ],
)
def test_a_version_that_is_not_there_is_named(lake: LakeSession, query: str, message: str) -> None:
    lake.execute("create table t (a int)")
    with pytest.raises(NotFoundError, match=message):
        lake.execute(query)


def test_virtual_columns_hold_the_row_id_and_the_snapshot(lake: LakeSession) -> None:
    run(lake, "create table t as select 10 as a", "insert into t values (20)", "insert into t values (30)")
    assert rows(lake, "select rowid, snapshot_id, a from t order by a") == [(0, 1, 10), (1, 2, 20), (2, 3, 30)]


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("select * from t where note = 'rowid'", "a note"),
        ("select * from t where rowid = 0", "a note"),
        ("select *, rowid from t", "a note rowid"),
        ("select x.*, x.rowid as r from t as x join t as y on x.rowid = y.rowid", "a note r"),
        ("select * from t as x join main.t as y using (a) where x.rowid = y.rowid", "a note note"),
        ("select * except (a), rowid from t", "note rowid"),
        ("select * except (rowid, snapshot_id) from t", "a note"),
        ("select s.snapshot_id, t.* from ducklake_snapshots() s join t on true", "snapshot_id a note"),
        ("select * from (select *, rowid as r from t) where r = 0", "a note r"),
        ("select * from t as x left semi join t as y on x.rowid = y.rowid", "a note rowid snapshot_id"),
    ],
)
def test_a_star_stands_for_a_tables_own_columns(lake: LakeSession, query: str, columns: str) -> None:
    run(lake, "create table t as select 10 as a, 'rowid' as note")
    found = lake.execute(query).arrow()
    assert found.column_names == columns.split()
    assert found.num_rows == (snapshots(lake) + 1 if "ducklake" in query else 1)


def test_information_schema_lists_schemas_tables_columns_and_views(lake: LakeSession) -> None:
    run(
        lake,
        "create schema s comment 'of s'",
        "create table s.t (id bigint not null comment 'who', name string default 'x') comment 'of t'",
        "create view s.v as select id, name from s.t",
        "alter table s.t alter column name set default 'y'",  # rows from before a column keep its first default
        "create table s.u (n int default 1 + 1)",
    )
    where = "where table_schema = 's' order by table_name"
    assert rows(
        lake, f"select table_catalog, table_name, table_type, comment from information_schema.tables {where}"
    ) == [
        ("lake", "t", "BASE TABLE", "of t"),
        ("lake", "u", "BASE TABLE", None),
        ("lake", "v", "VIEW", None),
    ]
    columns = "select table_name, column_name, ordinal_position, is_nullable, data_type, column_default, comment"
    assert rows(lake, f"{columns} from lake.information_schema.columns {where}, ordinal_position") == [
        ("t", "id", 1, "NO", "bigint", None, "who"),
        ("t", "name", 2, "YES", "string", "'y'", None),
        ("u", "n", 1, "YES", "int", "1 + 1", None),
        ("v", "id", 1, "YES", "bigint", None, None),
        ("v", "name", 2, "YES", "string", None, None),
    ]
    assert rows(lake, "select schema_name from information_schema.schemata order by 1") == [("main",), ("s",)]
    assert rows(lake, "select view_definition from information_schema.views") == [("select id, name from s.t",)]
    assert rows(
        lake,
        "select tables.table_name from information_schema.tables where lake.information_schema.tables.table_name = 't'",
    ) == [("t",)]
