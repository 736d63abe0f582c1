"""Odd names of schemas, tables, columns and fields, in every statement."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake import LakeSession

from .helpers import content, rows, run


@pytest.mark.parametrize("name", ["a b", "c.d", "e`f", 'g"h', "é", "select", "Upper", "_x", "1", "x'y", "%41", "a/b"])
def test_odd_names_work_in_definitions_and_queries(lake: LakeSession, name: str) -> None:
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


@pytest.mark.parametrize("name", ["a b", "c.d", "e`f", 'g"h', "é", "select", "Upper", "1", "x'y", "s", "rowid"])
def test_odd_names_work_in_row_changes(lake: LakeSession, name: str) -> None:
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
