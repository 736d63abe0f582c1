"""INSERT, UPDATE, DELETE and MERGE."""

from __future__ import annotations

from dbt.adapters.ducklake.spark.sql.dml import (
    Assignment,
    Delete,
    Insert,
    Merge,
    MergeClause,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    PartitionValue,
    Update,
)
from dbt.adapters.ducklake.spark.sql.statements import parse

from .helpers import parses


@parses(
    ("insert into t select 1", Insert(("t",), "select 1")),
    ("insert into table s.t values (1, ';')", Insert(("s", "t"), "values (1, ';')")),
    ("insert into t table u", Insert(("t",), "table u")),
    ("insert into t (a, `b c`) select 1, 2", Insert(("t",), "select 1, 2", ("a", "b c"))),
    ("insert into t (select 1)", Insert(("t",), "(select 1)")),
    ("insert into t ((select 1) union (select 2))", Insert(("t",), "((select 1) union (select 2))")),
    ("insert into t (select, values) select 1, 2", Insert(("t",), "select 1, 2", ("select", "values"))),
    ("insert into t by name select 1 as a", Insert(("t",), "select 1 as a", by_name=True)),
    (
        "insert overwrite t partition (a = 1 + 1, b) select 3",
        Insert(("t",), "select 3", overwrite=True, partition=(PartitionValue("a", "1 + 1"), PartitionValue("b"))),
    ),
    (
        "insert overwrite table t partition (a = 1) (b) from u select b",
        Insert(("t",), "from u select b", ("b",), overwrite=True, partition=(PartitionValue("a", "1"),)),
    ),
    (
        "insert into t replace where a in (select 1) and b is distinct from c select 2",
        Insert(("t",), "select 2", replace_where="a in (select 1) and b is distinct from c"),
    ),
    (
        "insert into t replace where map('a', 1)['a'] = 1 values (1)",
        Insert(("t",), "values (1)", replace_where="map('a', 1)['a'] = 1"),
    ),
    (
        "insert with schema evolution into t by name select 1 as z",
        Insert(("t",), "select 1 as z", by_name=True, schema_evolution=True),
    ),
    (
        "with x as (select ')' as c), y(a) as (select 2) insert into t select * from x",
        Insert(("t",), "select * from x", with_clause="with x as (select ')' as c), y(a) as (select 2)"),
    ),
)
def test_an_insert_keeps_its_target_and_its_query(sql: str, expected: object) -> None:
    assert parse(sql) == expected


def test_the_full_query_of_an_insert_holds_its_common_tables() -> None:
    insert = parse("with x as (select 1) insert into t with y as (table x) table y")
    assert isinstance(insert, Insert)
    assert insert.full_query == "with x as (select 1) (with y as (table x) table y)"


@parses(
    ("update t set a = 1", Update(("t",), (Assignment(("a",), "1"),))),
    (
        "update s.t as x set x.a = case when b = 1 then 2 else 3 end, b = default where x.c = (select 1)",
        Update(
            ("s", "t"),
            (Assignment(("x", "a"), "case when b = 1 then 2 else 3 end"), Assignment(("b",), "default")),
            "x",
            "x.c = (select 1)",
        ),
    ),
    (
        "update t x set a = b::map<string, int>, c = t.case where a < 3",
        Update(
            ("t",),
            (Assignment(("a",), "b::map<string, int>"), Assignment(("c",), "t.case")),
            "x",
            "a < 3",
        ),
    ),
    (
        "with x as (select 1) update t set a = 1 where a in (table x)",
        Update(("t",), (Assignment(("a",), "1"),), None, "a in (table x)", "with x as (select 1)"),
    ),
    ("delete from t", Delete(("t",))),
    ("delete from s.t as x where x.a = ';' -- all", Delete(("s", "t"), "x", "x.a = ';'")),
)
def test_updates_and_deletes_keep_their_expressions(sql: str, expected: object) -> None:
    assert parse(sql) == expected


def test_a_merge_is_read_clause_by_clause() -> None:
    assert parse("""
        /* {"app": "dbt"} */
        merge into lake.main.t as target using (select 1 as id) as source
        on target.id = source.id and (target.a or false)
        when matched and case when source.gone then true else false end then delete
        when matched and target.a <> source.a then update set a = source.a, target.b = if(true, 1, 2)
        when matched then update set *
        when not matched by target and source.id > 0
            then insert (id, `a b`) values (source.id, concat('a', 'b'))
        when not matched then insert *
        when not matched by source and target.a then update set a = false
        when not matched by source then delete;
    """) == Merge(
        ("lake", "main", "t"),
        "(select 1 as id)",
        "target.id = source.id and (target.a or false)",
        (
            MergeClause("matched", MergeDelete(), "case when source.gone then true else false end"),
            MergeClause(
                "matched",
                MergeUpdate((Assignment(("a",), "source.a"), Assignment(("target", "b"), "if(true, 1, 2)"))),
                "target.a <> source.a",
            ),
            MergeClause("matched", MergeUpdate(None)),
            MergeClause(
                "not matched",
                MergeInsert((("id",), ("a b",)), ("source.id", "concat('a', 'b')")),
                "source.id > 0",
            ),
            MergeClause("not matched", MergeInsert()),
            MergeClause("not matched by source", MergeUpdate((Assignment(("a",), "false"),)), "target.a"),
            MergeClause("not matched by source", MergeDelete()),
        ),
        "target",
        "source",
    )


@parses(
    ("s.u", ("s.u", None)),
    ("s.u x", ("s.u", "x")),
    ("u as `x y`", ("u", "x y")),
    ("u version as of 3", ("u version as of 3", None)),
    ("u version as of 3 as x", ("u version as of 3", "x")),
    ("u at (version => 3) x", ("u at (version => 3)", "x")),
    ("ducklake_table_changes('t', 1, 2) x", ("ducklake_table_changes('t', 1, 2)", "x")),
    ("(select 1 as id)", ("(select 1 as id)", None)),
)
def test_a_merge_source_is_any_relation_of_a_from_clause(sql: str, expected: tuple[str, str | None]) -> None:
    merge = parse(f"merge into t using {sql} on t.id = 1 when matched then delete")
    assert isinstance(merge, Merge)
    assert (merge.source, merge.source_alias, merge.condition) == (*expected, "t.id = 1")


def test_a_merge_may_evolve_the_schema_and_use_common_tables() -> None:
    merge = parse(
        "with u as (select 1) merge with schema evolution into t using u on true "
        "when not matched then insert values (1)"
    )
    assert merge == Merge(
        ("t",),
        "u",
        "true",
        (MergeClause("not matched", MergeInsert(None, ("1",))),),
        schema_evolution=True,
        with_clause="with u as (select 1)",
    )


def test_a_merge_accepts_the_short_actions_of_duckdb() -> None:
    merge = parse("merge into t using u on true when matched then update when not matched then insert")
    assert isinstance(merge, Merge)
    assert [clause.action for clause in merge.clauses] == [MergeUpdate(None), MergeInsert()]
