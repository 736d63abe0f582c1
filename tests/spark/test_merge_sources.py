"""MERGE: the sources it accepts, and how its expressions name them."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake import LakeSession

from .helpers import content, rows, run, value

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
def test_a_merge_reads_its_source_from(lake: LakeSession, source: str) -> None:
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


def test_tables_of_one_name_in_two_schemas_can_be_merged(lake: LakeSession) -> None:
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


def test_the_source_name_may_be_part_of_the_target_name(lake: LakeSession) -> None:
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
