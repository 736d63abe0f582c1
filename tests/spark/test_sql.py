"""Statements and queries, on one lake with one engine."""

from __future__ import annotations

import datetime
import threading
from decimal import Decimal

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import (
    AlreadyExistsError,
    ConstraintError,
    LakeError,
    NotFoundError,
    SchemaChangeError,
    UnsupportedError,
)

from .helpers import rows, run, snapshots, value


def test_statements_without_data_start_no_spark(tmp_path) -> None:
    with LakeSession(f"sqlite:{tmp_path}/c.sqlite", data_path=f"{tmp_path}/data") as lake:
        run(
            lake,
            "create schema s",
            "create table s.t (a int not null, b string) partitioned by (bucket(2, a)) sorted by (b)",
            "alter table s.t add column c date default date'2026-01-01'",
            "comment on table s.t is 'x'",
            "call ducklake_set_option('parquet_compression', 'zstd')",
            "show tables in s",
            "describe extended s.t",
            "drop table s.t",
        )
        assert not lake.spark_started


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


def test_an_inner_block_folds_and_the_outer_message_wins(lake: LakeSession) -> None:
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


def test_queries_in_a_transaction_read_one_snapshot(lake: LakeSession, spark) -> None:
    run(lake, "create table t as select 1 as a")
    main = lake._lakes["lake"]
    other = LakeSession(f"sqlite:{main.catalog.database.url.database}", spark=spark)
    with lake.transaction():
        assert value(lake, "select count(*) from t") == 1
        other.execute("insert into t values (2)")
        assert value(lake, "select count(*) from t") == 1
    assert value(lake, "select count(*) from t") == 2


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


def test_replacing_keeps_the_table_and_its_past(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as a, 'x' as b")
    before = rows(lake, "select table_id, table_uuid from ducklake_table_info()")
    run(lake, "create or replace table t as select 2 as a, 3.5 as c")
    assert rows(lake, "select table_id, table_uuid from ducklake_table_info()") == before
    assert rows(lake, "select * from t") == [(2, Decimal("3.5"))]
    assert rows(lake, "select * from t version as of 1") == [(1, "x")]


def test_replacing_puts_columns_in_the_order_of_the_query(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as a, 2 as b, 3 as c", "create or replace table t as select 4 as c, 5 as a")
    assert lake.sql("select * from t").columns == ["c", "a"]
    assert rows(lake, "select * from t") == [(4, 5)]


def test_a_table_can_be_rewritten_from_itself(lake: LakeSession) -> None:
    run(lake, "create table t as select id from range(10)")
    run(
        lake,
        "create or replace table t as select id from t where id % 2 = 0",
        "insert overwrite t select id * 10 from t",
    )
    assert value(lake, "select sum(id) from t") == 200


def test_a_view_gives_way_to_a_table_and_back(lake: LakeSession) -> None:
    run(lake, "create view x as select 1 as a", "create or replace table x as select 2 as a")
    assert value(lake, "select a from x") == 2
    run(lake, "drop table x", "create view x as select 3 as a")
    assert value(lake, "select a from x") == 3


def test_inserts_by_position_by_name_and_with_defaults(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (a int, b string default 'none', c date default date'2026-01-01')",
        "insert into t values (1, 'x', date'2020-01-01')",
        "insert into t (c, a) select date'2021-01-01', 2",
        "insert into t by name select 'y' as b, 3 as a",
        "alter table t alter column b set default 'later'",
        "insert into t (a) values (4)",
    )
    assert rows(lake, "select * from t order by a") == [
        (1, "x", datetime.date(2020, 1, 1)),
        (2, "none", datetime.date(2021, 1, 1)),
        (3, "y", datetime.date(2026, 1, 1)),
        (4, "later", datetime.date(2026, 1, 1)),
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("insert into t values (1)", "takes 2 columns here"),
        ("insert into t by name select 1 as z", "has no column z"),
        ("insert into t (a, A) values (1, 2)", "given twice"),
        ("insert into nope values (1)", "no table or view main.nope"),
    ],
)
def test_rows_that_do_not_fit_are_refused(lake: LakeSession, statement: str, message: str) -> None:
    lake.execute("create table t (a int, b string)")
    with pytest.raises((SchemaChangeError, NotFoundError, ValueError), match=message):
        lake.execute(statement)


def test_values_are_cast_as_spark_stores(lake: LakeSession) -> None:
    lake.execute("create table t (a tinyint, b bigint, c decimal(5,2), d string)")
    lake.execute("insert into t select 7, cast(8 as smallint), 1.5, 9")
    assert rows(lake, "select * from t") == [(7, 8, Decimal("1.50"), "9")]
    with pytest.raises(Exception, match="CAST_OVERFLOW"):
        lake.execute("insert into t select 1000, 1, 1, 'x'")
    with pytest.raises(Exception, match="INVALID_COLUMN_OR_FIELD_DATA_TYPE"):
        lake.execute("insert into t select 'seven', 1, 1, 'x'")
    assert value(lake, "select count(*) from t") == 1


def test_not_null_is_enforced_before_anything_is_committed(lake: LakeSession) -> None:
    lake.execute("create table t (a int not null, s struct<x: int> not null, l array<int> not null)")
    newest = snapshots(lake)
    with pytest.raises(ConstraintError, match="column a of table t is NOT NULL, and 1 of the new rows"):
        lake.execute("insert into t select null, named_struct('x', 1), array(1)")
    with pytest.raises(Exception, match="column s is NOT NULL"):
        lake.execute("insert into t select 1, null, array(1)")
    lake.execute("insert into t select 1, named_struct('x', null), array(null)")
    assert snapshots(lake) == newest + 1
    assert rows(lake, "select data_file from ducklake_list_files('t')") != []


def test_a_failed_write_leaves_no_file(lake: LakeSession, tmp_path) -> None:
    lake.execute("create table t (a int not null) partitioned by (a)")
    with pytest.raises(ConstraintError):
        lake.execute("insert into t select if(id = 3, null, id) from range(5)")
    assert [p for p in tmp_path.rglob("*") if p.suffix in (".parquet", ".crc")] == []


def test_evolution_keeps_old_rows_readable(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, s struct<x: int, y: array<struct<p: int>>>, f float, gone string)",
        "insert into t select 1, named_struct('x', 10, 'y', array(named_struct('p', 100))), 0.5, 'old'",
        "alter table t add column s.z string",
        "alter table t add column s.y.element.q bigint",
        "alter table t rename column s.x to xx",
        "alter table t alter column id type bigint",
        "alter table t alter column f type double",
        "alter table t alter column s.xx type bigint",
        "alter table t rename column gone to kept",
        "alter table t add column d decimal(10,2) default 1.25",
        "alter table t drop column kept",
        "alter table t add column kept int",
    )
    assert rows(lake, "select * from t") == [
        (1, {"xx": 10, "y": [{"p": 100, "q": None}], "z": None}, 0.5, Decimal("1.25"), None)
    ]
    assert rows(lake, "select id, s.x, gone from t version as of 2") == [(1, 10, "old")]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("alter table t alter column a type smallint", SchemaChangeError, "only a wider type"),
        ("alter table t alter column s type int", SchemaChangeError, "only a wider type"),
        ("alter table t drop column p", SchemaChangeError, "is partitioned by it"),
        ("alter table t drop column o", SchemaChangeError, "is sorted by"),
        ("alter table t add column a int", AlreadyExistsError, "already has a column a"),
        ("alter table t add column n int not null", ConstraintError, "give it a DEFAULT"),
        ("alter table t add column n int first", UnsupportedError, "comes last"),
        ("alter table t add column n timestamp default now()", SchemaChangeError, "no fixed value"),
        ("alter table t drop column nope", NotFoundError, "has no column nope"),
        ("alter table t set partitioned by (month(a))", SchemaChangeError, "the column is int32"),
        ("alter table t set sorted by (nope)", SchemaChangeError, "it has no column"),
        ("alter table t rename to u", AlreadyExistsError, "main.u already exists"),
        ("alter table t alter column st.x set not null", SchemaChangeError, "whole columns only"),
        ("drop schema main", SchemaChangeError, "is not empty"),
        ("create table t (a int)", AlreadyExistsError, "OR REPLACE"),
        ("drop view t", NotFoundError, "is a table"),
        ("create table n as select null as x", SchemaChangeError, "cast\\(null as string\\)"),
    ],
)
def test_what_the_rules_forbid_is_refused_with_the_rule(lake: LakeSession, statement: str, error, message: str) -> None:
    run(
        lake,
        "create table t (a int, s string, p int, o int, st struct<x: int>) partitioned by (p) sorted by (o)",
        "create table u (a int)",
        "insert into t (a) values (1)",
    )
    newest = snapshots(lake)
    with pytest.raises(error, match=message):
        lake.execute(statement)
    assert snapshots(lake) == newest


def test_the_last_column_stays(lake: LakeSession) -> None:
    lake.execute("create table t (a int)")
    with pytest.raises(SchemaChangeError, match="the last one"):
        lake.execute("alter table t drop column a")


def test_set_not_null_looks_at_the_rows(lake: LakeSession) -> None:
    run(lake, "create table t (a int)", "insert into t values (1), (null)")
    with pytest.raises(ConstraintError, match="where `a` is null"):
        lake.execute("alter table t alter column a set not null")
    run(lake, "insert overwrite t values (1)", "alter table t alter column a set not null")
    with pytest.raises(ConstraintError):
        lake.execute("insert into t values (null)")
    run(lake, "alter table t alter column a drop not null", "insert into t values (null)")


@pytest.mark.parametrize("name", ["a b", "c.d", "e`f", 'g"h', "é", "select", "Upper", "_x", "1", "x'y", "%41", "a/b"])
def test_odd_names_work_everywhere(lake: LakeSession, name: str) -> None:
    quoted = "`" + name.replace("`", "``") + "`"
    run(
        lake,
        f"create schema {quoted}",
        f"create table {quoted}.{quoted} ({quoted} int, s struct<{quoted}: int>) partitioned by ({quoted})",
        f"insert into {quoted}.{quoted} select 1, struct(2 as {quoted})",
        f"comment on column {quoted}.{quoted}.{quoted} is 'odd'",
    )
    query = f"select t.{quoted} as x, t.s.{quoted} as y from lake.{quoted}.{quoted} as t where t.{quoted} = 1"
    assert rows(lake, query) == [(1, 2)]
    assert rows(lake, f"select {quoted}.{quoted} from {quoted}.{quoted}") == [(1,)]
    run(lake, f"alter table {quoted}.{quoted} rename column {quoted} to z", f"drop schema {quoted} cascade")


def test_qualified_columns_keep_working(lake: LakeSession) -> None:
    run(lake, "create schema s", "create table main.t as select 1 as a", "create table s.t as select 2 as a")
    assert rows(lake, "select main.t.a as x, lake.s.t.a as y from main.t join s.t on main.t.a < s.t.a") == [(1, 2)]
    assert rows(lake, "with t as (select 9 as a) select a, (select max(a) from main.t) from t") == [(9, 1)]
    assert rows(lake, "select 'from t' as x /* from s.t */ from t -- from nope") == [("from t",)]


def test_views_follow_their_own_schema_and_each_other(lake: LakeSession) -> None:
    run(
        lake,
        "create schema s",
        "create table s.t as select 1 as a, 'x' as b",
        "use s",
        "create view v (k, l) as select a, upper(b) from t",
        "create view w as select k + 1 as n, date_format(current_date(), 'yyyy') > '2000' as late from v",
        "use main",
    )
    assert rows(lake, "select * from s.v") == [(1, "X")]
    assert rows(lake, "select * from s.w") == [(2, True)]
    assert rows(lake, "show views in s") == [("s", "v", False), ("s", "w", False)]


def test_a_view_with_an_error_is_refused_when_it_is_made(lake: LakeSession) -> None:
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.execute("create view v as select * from nowhere")
    assert snapshots(lake) == 0


def test_temporary_views_may_read_the_lake(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as a", "create or replace temp view tv as select * from t")
    assert rows(lake, "select * from tv") == [(1,)]


def test_options_reach_the_files(lake: LakeSession, tmp_path) -> None:
    import pyarrow.parquet as pq

    run(
        lake,
        "create table t (id bigint) tblproperties ('parquet_compression' = 'zstd', 'parquet_row_group_size' = '1000')",
        "insert into t select id from range(0, 5000, 1, 1)",
        "create table small (id bigint, pad string) tblproperties ('target_file_size' = '20KB', 'owner' = 'me')",
        "insert into small select id, uuid() from range(0, 5000, 1, 1)",
    )
    (file,) = (r[0] for r in rows(lake, "select data_file from ducklake_list_files('t')"))
    footer = pq.read_metadata(file)
    assert footer.row_group(0).column(0).compression == "ZSTD"
    assert footer.num_row_groups == 5
    assert len(rows(lake, "select data_file from ducklake_list_files('small')")) > 3
    assert rows(lake, "show tblproperties small") == [("owner", "me"), ("target_file_size", "20000")]


def test_sorted_tables_come_out_range_clustered(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id bigint, x string) sorted by (id desc) tblproperties ('target_file_size' = '100KB')",
        "insert into t select (id * 7919) % 100000, uuid() from range(100000)",
    )
    query = "select id from t where id between 500 and 510"
    assert len(lake.sql(query).inputFiles()) < len(lake.sql("select * from t").inputFiles()) / 2
    assert value(lake, f"select count(*) from ({query})") == 11


def test_filters_leave_files_unread_and_lose_no_row(lake: LakeSession) -> None:
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


def test_an_empty_table_has_its_columns(lake: LakeSession) -> None:
    run(lake, "create table t (a int, s struct<x: array<string>>)", "insert into t select * from t")
    assert lake.sql("select * from t").schema.simpleString() == "struct<a:int,s:struct<x:array<string>>>"
    assert rows(lake, "select * from t") == []


def test_truncate_keeps_the_past(lake: LakeSession) -> None:
    run(lake, "create table t as select id from range(3)", "truncate table t", "insert into t values (9)")
    assert rows(lake, "select id from t") == [(9,)]
    assert value(lake, "select count(*) from t version as of 1") == 3


def test_a_message_can_be_required(lake: LakeSession) -> None:
    lake.execute("call ducklake_set_option('require_commit_message', true)")
    with pytest.raises(LakeError, match="asks for a commit message"):
        lake.execute("create table t (a int)")
    with lake.transaction(message="here it is"):
        lake.execute("create table t (a int)")


def test_a_lake_can_be_held_at_a_version_and_attached(lake: LakeSession, spark, tmp_path) -> None:
    run(lake, "create table t as select 1 as a", "insert into t values (2)")
    catalog = f"sqlite:{lake._lakes['lake'].catalog.database.url.database}"
    other = LakeSession(
        f"sqlite:{tmp_path}/other.sqlite",
        data_path=f"{tmp_path}/other/",
        spark=spark,
        attach=[{"name": "raw", "catalog": catalog, "snapshot_version": 1}, {"name": "live", "catalog": catalog}],
    )
    assert rows(other, "select count(*) from raw.main.t union all select count(*) from live.t") == [(1,), (2,)]
    other.execute("create table mine as select a from raw.main.t")
    with pytest.raises(LakeError, match="read-only"):
        other.execute("insert into raw.main.t values (3)")
    with pytest.raises(LakeError, match="can change one lake"), other.transaction():
        run(other, "insert into live.main.t values (5)", "insert into mine values (5)")


def test_read_only_refuses_every_change(lake: LakeSession, spark) -> None:
    lake.execute("create table t as select 1 as a")
    reader = LakeSession(f"sqlite:{lake._lakes['lake'].catalog.database.url.database}", spark=spark, read_only=True)
    assert rows(reader, "select * from t") == [(1,)]
    for statement in ("create table u (a int)", "insert into t values (2)", "drop table t", "truncate table t"):
        with pytest.raises(LakeError, match="read-only"):
            reader.execute(statement)


def test_names_that_are_no_lakes_go_to_spark(lake: LakeSession, spark, tmp_path) -> None:
    spark.range(3).write.parquet(f"{tmp_path}/plain")
    spark.range(4).createOrReplaceTempView("a_temp_view")
    assert value(lake, f"select count(*) from parquet.`{tmp_path}/plain`") == 3
    assert value(lake, "select count(*) from a_temp_view") == 4


def test_virtual_columns_tell_where_a_row_comes_from(lake: LakeSession) -> None:
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


def test_a_table_may_be_partitioned_twice_in_one_transaction(lake: LakeSession) -> None:
    with lake.transaction():
        run(
            lake,
            "create table t (a int, b int) partitioned by (a)",
            "insert into t values (1, 10), (2, 20)",
            "alter table t set partitioned by (bucket(2, b))",
            "insert into t values (3, 30)",
        )
    assert rows(lake, "select a from t where a = 2") == [(2,)]
    assert rows(lake, "select a from t where b = 30") == [(3,)]
    run(lake, "alter table t reset partitioned by", "insert into t values (4, 40)")
    assert value(lake, "select sum(a) from t") == 10


def test_a_view_can_not_read_itself(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as a", "create view v as select a from t")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        lake.execute("create or replace view v as select a from v")
    run(lake, "alter view v as select a + 1 as a from t", "alter view v rename to w")
    assert rows(lake, "select a from w") == [(2,)]
    assert lake.execute("drop view if exists nowhere.v").snapshot_id is None


# -- cancelling


def test_a_statement_can_be_stopped_from_another_thread(lake: LakeSession) -> None:
    started = threading.Event()
    outcome: list[BaseException] = []

    def work() -> None:
        with lake.tagged("slow"):
            started.set()
            try:
                lake.execute("create table t as select id % 10 as k, sum(hash(id)) from range(100000000000) group by 1")
            except BaseException as error:
                outcome.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    started.wait()
    while thread.is_alive():  # between two jobs there is nothing to stop
        lake.cancel("slow")
        thread.join(0.5)
    assert outcome
    assert lake.state().find("main", "t") is None
    assert lake.sql("select 1 as x").collect()  # what is not tagged goes on


# -- information_schema


def test_an_information_schema_tells_what_other_databases_tell(lake: LakeSession) -> None:
    run(
        lake,
        "create schema s comment 'of s'",
        "create table s.t (id bigint not null comment 'who', name string default 'x') comment 'of t'",
        "create view s.v as select id, name from s.t",
    )
    where = "where table_schema = 's' order by table_name"
    assert rows(
        lake, f"select table_catalog, table_name, table_type, comment from information_schema.tables {where}"
    ) == [
        ("lake", "t", "BASE TABLE", "of t"),
        ("lake", "v", "VIEW", None),
    ]
    columns = "select table_name, column_name, ordinal_position, is_nullable, data_type, column_default, comment"
    assert rows(lake, f"{columns} from lake.information_schema.columns {where}, ordinal_position") == [
        ("t", "id", 1, "NO", "bigint", None, "who"),
        ("t", "name", 2, "YES", "string", "'x'", None),
        ("v", "id", 1, "YES", "bigint", None, None),
        ("v", "name", 2, "YES", "string", None, None),
    ]
    assert rows(lake, "select schema_name from information_schema.schemata order by 1") == [("main",), ("s",)]
    assert rows(lake, "select view_definition from information_schema.views") == [("select id, name from s.t",)]
    assert rows(
        lake,
        "select tables.table_name from information_schema.tables where lake.information_schema.tables.table_name = 't'",
    ) == [("t",)]


def test_a_table_that_is_replaced_by_one_of_its_kind_keeps_its_definition(lake: LakeSession) -> None:
    replaced = """
        create or replace table t (id bigint not null comment 'who', day date)
        partitioned by (month(day), bucket(4, id)) sorted by (id desc)
        as select id, date'2026-01-01' as day from range({})
    """
    run(lake, replaced.format(3))
    before = lake.state()
    run(lake, replaced.format(5))
    assert lake.state() == before
    (changes,) = rows(lake, "select changes from ducklake_snapshots() order by snapshot_id desc limit 1")
    assert {kind for kind, _ in changes[0]} == {"tables_inserted_into", "tables_deleted_from"}
    run(lake, "create or replace table t as select 1L as id")
    assert lake.state().table("main", "t").partition is None
    assert lake.state().table("main", "t").sort is None
