"""What each statement is taken to ask for, and what is said of those that can not be taken."""

from __future__ import annotations

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake.types import PRIMITIVES, Column
from dbt.adapters.ducklake.spark.sql.statements import (
    AddColumn,
    Alter,
    Argument,
    Assignment,
    Begin,
    Call,
    ChangeType,
    ColumnDefinition,
    CommentOn,
    Commit,
    CreateFunction,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateTempView,
    CreateView,
    Delete,
    DescribeSchema,
    DescribeTable,
    Drop,
    DropColumn,
    DropDefault,
    DropFunction,
    DropNotNull,
    DropSchema,
    FunctionParameter,
    Insert,
    Literal,
    Merge,
    MergeClause,
    MergeDelete,
    MergeInsert,
    MergeUpdate,
    MoveColumn,
    PartitionKey,
    PartitionValue,
    Passthrough,
    Position,
    Query,
    RenameColumn,
    RenameRelation,
    Rollback,
    SetColumnComment,
    SetDefault,
    SetNotNull,
    SetPartitionKeys,
    SetProperties,
    SetSortKeys,
    SetViewQuery,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTableExtended,
    ShowTables,
    ShowViews,
    SortKey,
    StatementError,
    Truncate,
    UnsetProperties,
    Update,
    Use,
    ViewColumn,
    parse,
    parse_literal,
    parse_name,
    parse_partition_keys,
    parse_sort_keys,
    parse_type,
    quote,
    quote_name,
    quote_string,
    split,
    split_statements,
)

A = Column(0, "a", "int32")
B = Column(0, "b", "varchar")


def define(column: Column, default: str | None = None) -> ColumnDefinition:
    return ColumnDefinition(column, default)


def says(*cases: tuple[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("sql", "asked"), cases, ids=[sql[:60] for sql, _ in cases])


def refuses(*cases: tuple[str, str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("sql", "message"), cases, ids=[sql[:60] for sql, _ in cases])


def message_of(sql: str) -> str:
    with pytest.raises(StatementError) as raised:
        parse(sql)
    return str(raised.value)


# Scripts, comments, queries


@says(
    ("select 1; select 2", ["select 1", "select 2"]),
    ("select ';' ;;\n select `a;b` ; ", ["select ';'", "select `a;b`"]),
    ("select 1 -- one; two\n; select 2", ["select 1 -- one; two", "select 2"]),
    ("/* a; /* b; */ c; */ select 1;", ["/* a; /* b; */ c; */ select 1"]),
    (r"select 'it\'s;' ; select r'\' ; select 'a'';'", [r"select 'it\'s;'", r"select r'\'", "select 'a'';'"]),
    ('select "a;b" ; select 3', ['select "a;b"', "select 3"]),
    ("select 'open; select 2", ["select 'open; select 2"]),
    ("-- nothing\n; /* at all */", []),
)
def test_a_script_splits_at_semicolons_that_are_code(sql, asked):
    assert split_statements(sql) == asked


@says(
    ("select 1", Query("select 1")),
    ("  SELECT a\n FROM t ;; ", Query("SELECT a\n FROM t")),
    ('/* {"app": "dbt"} */ select 1 -- the end', Query("select 1")),
    ("with a as (select 1) select * from a", Query("with a as (select 1) select * from a")),
    (
        "with recursive r(n) as (select 1) select * from r",
        Query("with recursive r(n) as (select 1) select * from r"),
    ),
    ("with a (values (1)) from a", Query("with a (values (1)) from a")),
    ("values (1), (2)", Query("values (1), (2)")),
    ("table main.t", Query("table main.t")),
    ("from t |> where a > 1", Query("from t |> where a > 1")),
    ("from t select insert", Query("from t select insert")),
    ("(select 1) union (select 2)", Query("(select 1) union (select 2)")),
    ("explain extended select 1", Query("explain extended select 1")),
    ("desc select 1", Query("desc select 1")),
    ("describe query select 1", Query("describe query select 1")),
    ("describe with a as (select 1) table a", Query("describe with a as (select 1) table a")),
    ("selekt 1", Query("selekt 1")),
    ("select /*+ broadcast(t) */ * from t", Query("select /*+ broadcast(t) */ * from t")),
)
def test_what_is_no_command_is_a_query(sql, asked):
    assert parse(sql) == asked


@says(
    ("set spark.sql.ansi.enabled = true;", Passthrough("set spark.sql.ansi.enabled = true")),
    ("set some.text=it's", Passthrough("set some.text=it's")),
    ("/* dbt */ reset", Passthrough("reset")),
    ("add jar /tmp/*.jar", Passthrough("add jar /tmp/*.jar")),
    ("cache table t", Passthrough("cache table t")),
    ("refresh table t", Passthrough("refresh table t")),
    ("analyze table t compute statistics", Passthrough("analyze table t compute statistics")),
    ("msck repair table t", Passthrough("msck repair table t")),
    ("show functions", Passthrough("show functions")),
    ("describe function upper", Passthrough("describe function upper")),
    (
        "create or replace temporary function f as 'x.Y'",
        Passthrough("create or replace temporary function f as 'x.Y'"),
    ),
    ("drop temporary function f", Passthrough("drop temporary function f")),
    ("create function s.f as 'x.Y' using jar 'y'", Passthrough("create function s.f as 'x.Y' using jar 'y'")),
    ("create function s.f(x int) as 'x'", Passthrough("create function s.f(x int) as 'x'")),
    (
        "create temp view v using csv options (path 'x')",
        Passthrough("create temp view v using csv options (path 'x')"),
    ),
)
def test_what_is_about_the_session_is_sparks(sql, asked):
    assert parse(sql) == asked


@pytest.mark.parametrize(
    "sql",
    [
        "create temporary view v as select * from main.t",
        "/* dbt */ create or replace global temporary view v (a comment 'as', b) comment 'as' as select * from main.t;",
    ],
)
def test_a_temporary_view_says_where_its_query_starts(sql):
    view = parse(sql)
    assert isinstance(view, CreateTempView)
    assert view.text.startswith("create")
    assert view.text[view.query_start :] == "select * from main.t"


# Functions


@says(
    (
        "create function s.f(a int) returns varchar(9) return upper(a); ",
        CreateFunction(
            ("s", "f"),
            (FunctionParameter("a", A, None),),
            Column(0, "f", "varchar"),
            "(a int) returns varchar(9)",
            "upper(a)",
        ),
    ),
    (
        "create or replace function lake.s.`f g`() return /* why */ select 1 as `return`",
        CreateFunction(("lake", "s", "f g"), (), None, "()", "select 1 as `return`", or_replace=True),
    ),
    (
        "create function if not exists f (a int default coalesce(1, 2) comment 'the, first', b string)\n"
        "comment 'return it' not deterministic RETURN a",
        CreateFunction(
            ("f",),
            (FunctionParameter("a", A, "coalesce(1, 2)"), FunctionParameter("b", B, None)),
            None,
            "(a int default coalesce(1, 2) comment 'the, first', b string)\ncomment 'return it' not deterministic",
            "a",
            "return it",
            if_not_exists=True,
        ),
    ),
    ("drop function if exists s.f;", DropFunction(("s", "f"), True)),
    ("drop function f", DropFunction(("f",))),
)
def test_a_function_keeps_its_words_as_text(sql, asked):
    assert parse(sql) == asked


# Schemas, tables, views


@says(
    ("create schema s", CreateSchema(("s",))),
    ("CREATE DATABASE IF NOT EXISTS lake.s COMMENT 'x'", CreateSchema(("lake", "s"), True, "x")),
    ("create namespace `a.b`", CreateSchema(("a.b",))),
    ("drop schema s", DropSchema(("s",))),
    ("drop database if exists lake.s cascade", DropSchema(("lake", "s"), True, True)),
    ("drop namespace s restrict", DropSchema(("s",))),
    ("drop table if exists s.t purge", Drop("table", ("s", "t"), True)),
    ("drop view v", Drop("view", ("v",))),
    ("truncate table s.t;", Truncate(("s", "t"))),
)
def test_schemas_and_relations_are_made_and_dropped(sql, asked):
    assert parse(sql) == asked


@says(
    (
        "create table t (a int, b string)",
        CreateTable(("t",), (define(A), define(B))),
    ),
    (
        "create table lake.s.t (a int not null default 1 + 2 comment 'it''s', `b c` decimal(5, 2))",
        CreateTable(
            ("lake", "s", "t"),
            (
                define(Column(0, "a", "int32", False, tags=(("comment", "it's"),)), "1 + 2"),
                define(Column(0, "b c", "decimal(5,2)")),
            ),
        ),
    ),
    (
        "create table t (a int default null comment 'x' not null, b string default coalesce('a,b', f()))",
        CreateTable(
            ("t",),
            (
                define(Column(0, "a", "int32", False, tags=(("comment", "x"),)), "null"),
                define(B, "coalesce('a,b', f())"),
            ),
        ),
    ),
    (
        "create table t (check int, unique string)",
        CreateTable(("t",), (define(Column(0, "check", "int32")), define(Column(0, "unique", "varchar")))),
    ),
    (
        "create table if not exists t (a int) using ducklake comment 'x' tblproperties ('k' = 'v', a.b = 1, c 'd')",
        CreateTable(
            ("t",),
            (define(A),),
            if_not_exists=True,
            comment="x",
            properties=(("k", "v"), ("a.b", "1"), ("c", "d")),
        ),
    ),
    (
        "create or replace table t options (k = true) partitioned by (a, month(b)) sorted by (c desc) as select 1",
        CreateTable(
            ("t",),
            query="select 1",
            or_replace=True,
            partition_keys=(PartitionKey("identity", "a"), PartitionKey("month", "b")),
            sort_keys=(SortKey("c", True),),
            properties=(("k", "true"),),
        ),
    ),
    (
        "create table t as with x as (select 1) table x",
        CreateTable(("t",), query="with x as (select 1) table x"),
    ),
    ("create table t select 1", CreateTable(("t",), query="select 1")),
    (
        "create table t (values int, table string)",
        CreateTable(("t",), (define(Column(0, "values", "int32")), define(Column(0, "table", "varchar")))),
    ),
    ("create table t (select 1)", CreateTable(("t",), query="(select 1)")),
    ("create table t comment 'x' as (select 1)", CreateTable(("t",), query="(select 1)", comment="x")),
    ("create table t (a int) as select 1 as a", CreateTable(("t",), (define(A),), "select 1 as a")),
    ("replace table t as select 1", CreateTable(("t",), query="select 1", or_replace=True, must_exist=True)),
    ("create table a.b like c.d", CreateTableLike(("a", "b"), ("c", "d"))),
    (
        "create table if not exists a like b using ducklake tblproperties (k = 'v')",
        CreateTableLike(("a",), ("b",), True, (("k", "v"),)),
    ),
)
def test_a_table_is_made_with_all_that_is_said_of_it(sql, asked):
    assert parse(sql) == asked


@says(
    ("create view v as select 1", CreateView(("v",), "select 1")),
    (
        "create or replace view s.v (a, `b` comment 'x') comment 'y' tblproperties ('k' = 'v') as select 1, 2",
        CreateView(
            ("s", "v"),
            "select 1, 2",
            (ViewColumn("a"), ViewColumn("b", "x")),
            or_replace=True,
            comment="y",
            properties=(("k", "v"),),
        ),
    ),
    ("create view if not exists v as (select 1)", CreateView(("v",), "(select 1)", if_not_exists=True)),
)
def test_a_view_keeps_its_query_as_text(sql, asked):
    assert parse(sql) == asked


@says(
    ("comment on table s.t is 'x'", CommentOn("table", ("s", "t"), "x")),
    ("comment on column t.a.b is null", CommentOn("column", ("t", "a", "b"), None)),
    ('comment on database s is "it\'s"', CommentOn("schema", ("s",), "it's")),
    ("comment on view v is 'a' 'b'", CommentOn("view", ("v",), "ab")),
)
def test_comments_are_set_and_taken_away(sql, asked):
    assert parse(sql) == asked


# ALTER


@says(
    ("add column b string", [AddColumn(define(B))]),
    ("add a int", [AddColumn(define(A))]),
    (
        "add columns (a int not null comment 'x' first, s.b string default 'y' after `c d`)",
        [
            AddColumn(define(Column(0, "a", "int32", False, tags=(("comment", "x"),))), (), Position()),
            AddColumn(define(B, "'y'"), ("s",), Position("c d")),
        ],
    ),
    ("add column if not exists x.y.a int", [AddColumn(define(A), ("x", "y"), None, True)]),
    ("add columns a int, b string", [AddColumn(define(A)), AddColumn(define(B))]),
    ("drop column a.b", [DropColumn(("a", "b"))]),
    ("drop a", [DropColumn(("a",))]),
    ("drop columns if exists (a, b.c)", [DropColumn(("a",), True), DropColumn(("b", "c"), True)]),
    ("drop column a, b", [DropColumn(("a",)), DropColumn(("b",))]),
    ("rename column a.b to c", [RenameColumn(("a", "b"), "c")]),
    ("rename a to b", [RenameColumn(("a",), "b")]),
    ("rename to s.u", [RenameRelation(("s", "u"))]),
    ("alter column a type bigint", [ChangeType(("a",), Column(0, "a", "int64"))]),
    ("alter column s.a set data type bigint", [ChangeType(("s", "a"), Column(0, "a", "int64"))]),
    ("alter a set type bigint", [ChangeType(("a",), Column(0, "a", "int64"))]),
    ("change column a type bigint", [ChangeType(("a",), Column(0, "a", "int64"))]),
    ("alter column a set not null", [SetNotNull(("a",))]),
    ("alter column a drop not null", [DropNotNull(("a",))]),
    ("alter column a set default 1 + 1", [SetDefault(("a",), "1 + 1")]),
    ("alter column a drop default", [DropDefault(("a",))]),
    ("alter column a comment 'x'", [SetColumnComment(("a",), "x")]),
    ("alter column a first", [MoveColumn(("a",), Position())]),
    ("alter column a after b", [MoveColumn(("a",), Position("b"))]),
    (
        "alter column a type int, b comment 'x'",
        [ChangeType(("a",), A), SetColumnComment(("b",), "x")],
    ),
    (
        "change a b int comment 'x' after c",
        [
            ChangeType(("a",), A),
            SetColumnComment(("a",), "x"),
            MoveColumn(("a",), Position("c")),
            RenameColumn(("a",), "b"),
        ],
    ),
    ("change column a a int", [ChangeType(("a",), A)]),
    (
        "set partitioned by (year(a), bucket(8, b))",
        [SetPartitionKeys((PartitionKey("year", "a"), PartitionKey("bucket", "b", 8)))],
    ),
    ("reset partitioned by", [SetPartitionKeys(())]),
    ("set sorted by (a asc nulls last)", [SetSortKeys((SortKey("a", False, False),))]),
    ("reset sorted by", [SetSortKeys(())]),
    ("set tblproperties ('a' = 'b')", [SetProperties((("a", "b"),))]),
    ("unset tblproperties if exists ('a', b.c)", [UnsetProperties(("a", "b.c"), True)]),
)
def test_a_table_is_altered_action_by_action(sql, asked):
    assert parse(f"alter table lake.s.t {sql};") == Alter("table", ("lake", "s", "t"), tuple(asked))


@says(
    ("rename to w", RenameRelation(("w",))),
    ("as select 2", SetViewQuery("select 2")),
    ("set tblproperties (a = 'b')", SetProperties((("a", "b"),))),
    ("unset tblproperties (a)", UnsetProperties(("a",))),
)
def test_a_view_is_altered(sql, asked):
    assert parse(f"alter view s.v {sql}") == Alter("view", ("s", "v"), (asked,))


# Rows


@says(
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
def test_an_insert_says_where_rows_go_and_keeps_the_query(sql, asked):
    assert parse(sql) == asked


def test_the_full_query_of_an_insert_holds_its_common_tables():
    insert = parse("with x as (select 1) insert into t with y as (table x) table y")
    assert isinstance(insert, Insert)
    assert insert.full_query == "with x as (select 1) (with y as (table x) table y)"


@says(
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
def test_updates_and_deletes_keep_their_expressions(sql, asked):
    assert parse(sql) == asked


def test_a_merge_is_read_clause_by_clause():
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


@says(
    ("s.u", ("s.u", None)),
    ("s.u x", ("s.u", "x")),
    ("u as `x y`", ("u", "x y")),
    ("u version as of 3", ("u version as of 3", None)),
    ("u version as of 3 as x", ("u version as of 3", "x")),
    ("u at (version => 3) x", ("u at (version => 3)", "x")),
    ("ducklake_table_changes('t', 1, 2) x", ("ducklake_table_changes('t', 1, 2)", "x")),
    ("(select 1 as id)", ("(select 1 as id)", None)),
)
def test_a_merge_takes_any_source_that_may_stand_in_from(sql, asked):
    merge = parse(f"merge into t using {sql} on t.id = 1 when matched then delete")
    assert isinstance(merge, Merge)
    assert (merge.source, merge.source_alias, merge.condition) == (*asked, "t.id = 1")


def test_a_merge_may_evolve_the_schema_and_use_common_tables():
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


def test_a_merge_takes_duckdbs_short_actions():
    merge = parse("merge into t using u on true when matched then update when not matched then insert")
    assert isinstance(merge, Merge)
    assert [clause.action for clause in merge.clauses] == [MergeUpdate(None), MergeInsert()]


# Looking around, transactions, calls


@says(
    ("describe t", DescribeTable(("t",))),
    ("desc table extended s.t", DescribeTable(("s", "t"), True)),
    ("describe formatted t a.b", DescribeTable(("t",), True, ("a", "b"))),
    ("describe extended", DescribeTable(("extended",))),
    ("describe query", DescribeTable(("query",))),
    ("describe schema extended lake.s", DescribeSchema(("lake", "s"), True)),
    ("desc namespace s", DescribeSchema(("s",))),
    ("show schemas", ShowSchemas()),
    ("show databases in lake like 'a*'", ShowSchemas(("lake",), "a*")),
    ("show tables", ShowTables()),
    ("show tables from lake.s 'a|b'", ShowTables(("lake", "s"), "a|b")),
    ("show views in s like 'x'", ShowViews(("s",), "x")),
    ("show table extended in s like '*'", ShowTableExtended("*", ("s",))),
    ("show columns from t", ShowColumns(("t",))),
    ("show columns in x.t from s", ShowColumns(("s", "t"))),
    ("show create table s.t", ShowCreateTable(("s", "t"))),
    ("show tblproperties t", ShowProperties(("t",))),
    ("show tblproperties t ('a.b')", ShowProperties(("t",), "a.b")),
    ("show partitions t", ShowPartitions(("t",))),
    ("use s", Use(("s",))),
    ("use lake.s", Use(("lake", "s"))),
    ("use schema s", Use(("s",), "schema")),
    ("use schema", Use(("schema",))),
    ("use catalog lake", Use(("lake",), "catalog")),
    ("set catalog lake;", Use(("lake",), "catalog")),
    ("begin", Begin()),
    ("BEGIN TRANSACTION;", Begin()),
    ("start transaction", Begin()),
    ("commit work", Commit()),
    ("rollback", Rollback()),
    ("abort", Rollback()),
)
def test_the_session_is_asked_and_told(sql, asked):
    assert parse(sql) == asked


def test_a_call_gives_its_arguments_as_text_and_as_values():
    assert parse(
        "call lake.ducklake_set_option('a', 5, -1.50, table_name => 't', "
        "older_than => now() - interval 1 week, dry_run => true, versions => [1, 2], a = b)"
    ) == Call(
        ("lake", "ducklake_set_option"),
        (
            Argument(None, "'a'", Literal("a")),
            Argument(None, "5", Literal(5)),
            Argument(None, "-1.50", Literal(Decimal("-1.50"))),
            Argument("table_name", "'t'", Literal("t")),
            Argument("older_than", "now() - interval 1 week"),
            Argument("dry_run", "true", Literal(True)),
            Argument("versions", "[1, 2]", Literal((1, 2))),
            Argument(None, "a = b"),
        ),
    )
    assert parse("call ducklake_checkpoint()") == Call(("ducklake_checkpoint",))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a'", "a"),
        ("'a' \"b\"", "ab"),
        ("12", 12),
        ("-12L", -12),
        ("1.0", Decimal("1.0")),
        ("1bd", Decimal("1")),
        ("1e2", 100.0),
        ("1.5f", 1.5),
        ("null", None),
        ("False", False),
        ("x'0aFF'", b"\x0a\xff"),
        ("array('a', null)", ("a", None)),
        ("[]", ()),
    ],
)
def test_a_literal_has_a_value(text, value):
    literal = parse_literal(text)
    assert literal == Literal(value)
    assert type(literal.value) is type(value)


@pytest.mark.parametrize("text", ["1 + 1", "now()", "a", "date '2020-01-01'", "", "'a' || 'b'", "x'zz'"])
def test_an_expression_has_no_value_until_it_is_computed(text):
    assert parse_literal(text) is None


# Types, keys


@pytest.mark.parametrize(
    ("words", "type_"),
    [
        ("boolean", "boolean"),
        ("tinyint byte", "int8"),
        ("smallint short", "int16"),
        ("int integer INT", "int32"),
        ("bigint long", "int64"),
        ("float real", "float32"),
        ("double", "float64"),
        ("decimal dec numeric", "decimal(10,0)"),
        ("decimal(7) numeric(7,0)", "decimal(7,0)"),
        ("string varchar varchar(5) char(2) character(2)", "varchar"),
        ("binary blob", "blob"),
        ("timestamp timestamp_ltz timestamptz", "timestamptz"),
        ("timestamp_ntz timestamp_us", "timestamp"),
    ],
)
def test_sparks_words_are_ducklakes_types(words, type_):
    for word in words.split():
        assert parse_type(word, "c") == Column(0, "c", type_), word


@pytest.mark.parametrize("type_", sorted(PRIMITIVES - {"timestamp", "timestamp_us"}))
def test_ducklakes_own_types_have_their_names(type_):
    assert parse_type(type_.upper(), "c") == Column(0, "c", type_)


def test_other_spellings_of_scalar_types():
    assert parse_type("interval day to second").type == "interval"
    assert parse_type("interval").type == "interval"
    assert parse_type("string collate utf8_binary").type == "varchar"
    assert parse_type("time(6)").type == "time"


def test_nested_types_are_trees():
    assert parse_type(
        "array<struct<id: int NOT NULL COMMENT 'x', `a b` map<string, array<decimal(3,1)>>>>", "c"
    ) == Column(
        0,
        "c",
        "list",
        children=(
            Column(
                0,
                "element",
                "struct",
                children=(
                    Column(0, "id", "int32", False, tags=(("comment", "x"),)),
                    Column(
                        0,
                        "a b",
                        "map",
                        children=(
                            Column(0, "key", "varchar"),
                            Column(0, "value", "list", children=(Column(0, "element", "decimal(3,1)"),)),
                        ),
                    ),
                ),
            ),
        ),
    )


@refuses(
    (
        "create table t (a int, b money(3))",
        "CREATE TABLE t: column b has the type money(3) at 1:26, which is not known",
    ),
    ("create table t (a struct<b: array<foo>>)", "column a.b.element has the type foo"),
    ("alter table t alter column a type foo", "Accepted are boolean, tinyint"),
    ("create table t (a decimal(39, 2))", "a precision from 1 to 38"),
    ("create table t (a decimal(2, 3))", "column a has the type decimal(2, 3)"),
    ("create table t (a string collate unicode)", "Leave COLLATE out"),
    ("create table t (a struct<x: int, X: int>)", "field `X` is there twice"),
    ("create table t (a int, A int)", "column `A` is there twice"),
    ("create table t (a)", "expected the type of column a, found ) at 1:18"),
    ("create table t (a int[])", "expected a comma or ), found [ at 1:22"),
)
def test_a_type_that_is_not_known_is_named_with_its_column(sql, message):
    assert message in message_of(sql)


def test_partition_keys_are_columns_and_transforms_of_them():
    keys = (
        PartitionKey("identity", "a"),
        PartitionKey("year", "b"),
        PartitionKey("month", "b"),
        PartitionKey("day", "b c"),
        PartitionKey("hour", "b"),
        PartitionKey("bucket", "d", 16),
    )
    text = "a, years(b), MONTH(b), days(`b c`), hours(b), bucket(16, d)"
    assert parse_partition_keys(text) == keys
    assert parse_partition_keys(f"({text})") == keys


def test_sort_keys_are_expressions_with_a_direction():
    assert parse_sort_keys("a, `b c` desc, (d + 1) * 2 asc nulls first, date_trunc('hour', e) desc nulls last") == (
        SortKey("a"),
        SortKey("`b c`", True),
        SortKey("(d + 1) * 2", False, True),
        SortKey("date_trunc('hour', e)", True, False),
    )
    assert parse_sort_keys("(a + b) * 2, (c)") == (SortKey("(a + b) * 2"), SortKey("(c)"))
    assert parse_sort_keys("(a, b desc)") == (SortKey("a"), SortKey("b", True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bucket(a, 8)", "bucket(8, column), found a at 1:8"),
        ("bucket(0, a)", "a number of buckets above zero, found 0"),
        (
            "date(a)",
            "expected a column or one of year(c), month(c), day(c), hour(c), bucket(n, c), found date",
        ),
        ("a int", "whose type stands in the list of columns"),
        ("s.a", "s.a is a field of one"),
        ("year(a, b)", ") after the one column"),
        ("", "partition keys: expected a partition key's column, found the end"),
    ],
)
def test_a_partition_key_that_is_none_is_explained(text, message):
    with pytest.raises(StatementError) as raised:
        parse_partition_keys(text)
    assert message in str(raised.value)


# Refusals


@refuses(
    ("create schema s location '/x'", "CREATE SCHEMA s: LOCATION at 1:17 is not supported: the lake chooses"),
    ("create schema s managed location '/x'", "the lake chooses"),
    ("create schema s with dbproperties (a = 'b')", "a DuckLake schema has no properties"),
    ("create table t (a int) location '/x'", "the lake chooses where files go"),
    ("create table t (a int) using delta", "USING delta at 1:30 is not supported"),
    ("create table t (a int) clustered by (a) into 4 buckets", "CLUSTERED BY"),
    ("create table t (a int) cluster by (a)", "PARTITIONED BY (bucket(n, column)) or SORTED BY"),
    ("create table t (a int) stored as orc", "Parquet"),
    ("create table t (a int) comment 'x' comment 'y'", "COMMENT at 1:36 is there twice"),
    (
        "create table t (a int primary key)",
        "PRIMARY KEY at 1:23 is not supported: DuckLake knows no constraint",
    ),
    ("create table t (a int, unique (a))", "UNIQUE"),
    ("create table t (a int, constraint c check (a > 1))", "CHECK at 1:24 is not supported"),
    ("create table t (a int references u (b))", "REFERENCES"),
    ("create table t (a int, foreign key (a) references u (b))", "FOREIGN KEY"),
    ("create table t (a int generated always as (1))", "GENERATED of column a"),
    (
        "create table t",
        "expected a list of columns, or AS and a query, found the end of the statement at 1:15",
    ),
    ("create table t as", "expected a query"),
    ("create table t (a int) as 1", "expected a query, found 1"),
    ("create or replace table if not exists t (a int)", "exclude each other"),
    ("create or replace table t like u", "Drop the old one first"),
    ("create temporary table t (a int)", "TEMPORARY at"),
    ("create external table t (a int)", "EXTERNAL at"),
    ("create materialized view v as select 1", "expected SCHEMA, TABLE, VIEW"),
    ("create or replace function if not exists f() return 1", "CREATE FUNCTION f: OR REPLACE and IF NOT EXISTS"),
    ("create function f(a) return 1", "column a"),
    ("create function f(a int not null) return 1", "CREATE FUNCTION f: expected ), found not"),
    ("create function f() returns table (a int) return select 1", "RETURNS TABLE at 1:29 is not supported"),
    ("create function f() returns int return", "expected a body, found the end"),
    ("drop function s.f(int)", "DROP FUNCTION s.f: expected the end of the statement"),
    ("alter schema s set dbproperties (a = 'b')", "ALTER SCHEMA at"),
    ("alter table t add partition (a = 1)", "ALTER TABLE t: ADD PARTITION at 1:19 is not supported"),
    ("alter table t add if not exists partition (a = 1)", "ADD PARTITION"),
    ("alter table t drop partition (a = 1)", "DROP PARTITION"),
    ("alter table t drop if exists partition (a = 1)", "DROP PARTITION"),
    ("alter table t partition (a = 1) rename to partition (a = 2)", "expected ADD, DROP"),
    ("alter table t set location '/x'", "LOCATION"),
    ("alter table t set serde 'x'", "SERDE"),
    ("alter table t set x", "expected PARTITIONED BY, SORTED BY or TBLPROPERTIES, found x"),
    ("alter table t replace columns (a int)", "REPLACE COLUMNS"),
    ("alter table t add constraint c primary key (a)", "PRIMARY KEY"),
    ("alter table t add primary key (a)", "PRIMARY KEY"),
    ("alter table t drop constraint c", "CONSTRAINT"),
    ("alter table t alter column a frob", "expected TYPE, SET, DROP NOT NULL"),
    ("alter table t alter column a type int using b", "expected the end of the statement, found using"),
    ("insert overwrite directory '/x' select 1", "DIRECTORY"),
    ("insert overwrite local directory '/x' select 1", "LOCAL"),
    ("insert overwrite t partition (a = 1) if not exists select 1", "IF NOT EXISTS"),
    ("insert into t (a) by name select 1 as a", "exclude each other"),
    ("insert into t", "INSERT INTO t: expected a query, found the end of the statement at 1:14"),
    ("insert t select 1", "expected INTO or OVERWRITE, found t"),
    ('insert into "t" select 1', 'expected a table (names are quoted with backquotes), found "t"'),
    ("from u insert into t select a insert into v select b", "write INSERT INTO ... SELECT ... FROM"),
    ("with x as (select 1) from x insert into t select *", "write INSERT INTO"),
    ("update t set a = u.a from u", "Write MERGE INTO"),
    ("update t set a where b", "expected =, found where"),
    ("update t set a = where b", "expected a value, found where"),
    ("delete from t using u", "MERGE INTO"),
    ("delete from t where", "expected a condition"),
    ("truncate table t partition (a = 1)", "write DELETE FROM"),
    ("merge into t using u using (id) when matched then delete", "write ON target.column"),
    ("merge into t using u on true", "expected WHEN"),
    ("merge into t using u on true when matched then insert *", "UPDATE or DELETE, what WHEN MATCHED can do"),
    ("merge into t using u on true when not matched then delete", "INSERT, what WHEN NOT MATCHED can do"),
    ("merge into t using u on true when not matched by source then update set *", "List the columns"),
    (
        "merge into t using u on true when matched then delete when matched then update set *",
        "would never act",
    ),
    (
        "merge into t using u on true when not matched then insert (a, b) values (1)",
        "2 columns and gives 1 values",
    ),
    ("comment on column a is 'x'", "COMMENT ON COLUMN table.column"),
    ("comment on table t is", "expected a comment or NULL"),
    ("describe t partition (a = 1)", "Query the table"),
    ("show table extended in s", "LIKE and a pattern"),
    ("use a.b.c", "too many parts"),
    ("begin select 1", "expected the end of the statement, found select at 1:7"),
    ("call f(a =>)", "expected an argument, found )"),
    ("drop table a.", "expected a name, continued after the dot, found the end"),
    ("drop table ``", "that is not empty"),
    ("drop table a b", "DROP TABLE a: expected the end of the statement, found b at 1:14"),
    ("select 1; select 2", "a second statement follows the ; at 1:9"),
    ("drop table\n  `a", "the ` at 2:3 is never closed"),
    ("select 'abc", "the ' at 1:8 is never closed"),
    ("select 1 /* x", "the /* at 1:10 is never closed"),
    ("", "The statement is empty"),
    (" -- only words", "The statement is empty"),
)
def test_what_can_not_be_taken_is_named_with_its_place_and_a_way_out(sql, message):
    assert message in message_of(sql)


# Quoting


@pytest.mark.parametrize(
    ("literal", "text"),
    [
        ("'a''b'", "a'b"),
        ('"a""b"', 'a"b'),
        ("'a\"\"b'", 'a""b'),
        (r"'\n\t\\\'\"\0\Z\b\r'", "\n\t\\'\"\0\x1a\b\r"),
        (r"'\%\_\q'", r"\%\_q"),
        (r"'A\U0001F600\101'", "A😀A"),
        (r"'\uD83D\uDE00'", "😀"),
        (r"r'\n'", r"\n"),
        (r'R"\d"', r"\d"),
        ("'a' 'b'\n\"c\"", "abc"),
        ("'-- no /* comment'", "-- no /* comment"),
    ],
)
def test_a_string_says_what_spark_reads_in_it(literal, text):
    assert parse(f"comment on table t is {literal}") == CommentOn("table", ("t",), text)


def test_names_may_start_with_digits_and_hold_keywords():
    assert parse("drop table lake.2024_a.table") == Drop("table", ("lake", "2024_a", "table"))
    assert parse("drop table lake . /* x */ `1`") == Drop("table", ("lake", "1"))


characters = st.text(st.characters(exclude_categories=["Cs"]))
names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=3).map(tuple)


@given(names)
def test_a_quoted_name_is_read_as_it_was(name):
    assert parse(f"drop table {quote_name(name)}") == Drop("table", name)


@given(characters)
def test_a_quoted_string_is_read_as_it_was(text):
    assert parse(f"comment on table t is {quote_string(text)}") == CommentOn("table", ("t",), text)


@given(st.lists(st.tuples(characters, st.text(min_size=1)), max_size=4))
def test_a_script_of_quoted_text_splits_into_its_statements(parts):
    statements = [f"select {quote_string(text)} as {quote(name)}" for text, name in parts]
    assert split_statements(" ;\n".join(statements)) == statements


VOCABULARY = """
    create drop alter table view schema insert into overwrite update delete from merge using on when not
    matched by source target then set values select with as and comment is null default add column columns
    rename to type first after if exists or replace partitioned sorted partition tblproperties constraint
    primary key check describe show extended call use begin catalog max recursion level like case end in
    directory change unset reset struct<a: array< map< > decimal ( ) , . = => * [ ] ; 'x' 1 a b.c `d` int
"""
WORDS = VOCABULARY.split()
LONG_STATEMENTS = split_statements("""
    create or replace table s . t (
        a int not null default 1 comment 'x' , b struct< c : int > , values array< map< int , string >>
    ) using ducklake partitioned by ( year ( a ) , bucket ( 8 , b ) ) sorted by ( a desc nulls last )
        tblproperties ( k = 'v' ) as with x as ( select 1 ) select 2 ;
    create view if not exists v ( a comment 'x' ) comment 'y' as select 1 ;
    create global temp view v as select 1 ;
    alter table s . t add columns if not exists ( a . b int default 1 after c , d int first ) ;
    alter table t change column a b decimal ( 1 , 1 ) comment 'x' first ;
    alter table t drop column if exists ( a , b ) ;
    alter table t set sorted by ( a ) ;
    alter table t unset tblproperties if exists ( a ) ;
    with recursive r ( n ) max recursion level 5 as ( select 1 )
        insert overwrite table t partition ( a = 1 , b ) ( c ) select 1 ;
    insert into t by name replace where a = 1 select 1 ;
    merge with schema evolution into t as x using ( select 1 ) as y on x . a = y . a
        when matched and case when a then b end then update set a = 1 , b = 2
        when not matched by target then insert ( a , b ) values ( 1 , 2 )
        when not matched by source then delete ;
    update t as x set a = b : : map< int , int > , c = 1 where d ;
    delete from t as x where a ;
    comment on column t . a is 'x' ;
    describe table extended t a . b ;
    show table extended in s like 'x' ;
    show tblproperties t ( 'a' ) ;
    call a . b ( c => array ( 1 , - 2 ) , [ 1 ] ) ;
    set catalog x
""")


def assert_taken_or_refused(sql: str) -> None:
    """No other exception gets out."""
    with contextlib.suppress(StatementError):
        parse(sql)


@pytest.mark.parametrize("sql", LONG_STATEMENTS, ids=[sql[:40] for sql in LONG_STATEMENTS])
def test_a_statement_with_words_missing_is_a_statement_or_a_statement_error(sql):
    words = sql.split()
    parse(sql)
    for at in range(len(words)):
        assert_taken_or_refused(" ".join(words[:at]))
        assert_taken_or_refused(" ".join(words[:at] + words[at + 1 :]))
        assert_taken_or_refused(" ".join([*words[:at], words[at], *words[at:]]))


@settings(max_examples=300)
@given(st.sampled_from([word for word in WORDS if word.isalpha()]), st.lists(st.sampled_from(WORDS), max_size=14))
def test_any_words_are_a_statement_or_a_statement_error(first, rest):
    assert_taken_or_refused(" ".join([first, *rest]))


# -- several statements in one text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select 1", ["select 1"]),
        ("select 1;", ["select 1"]),
        ("a; b ;; c", ["a", " b ", " c"]),
        ("select ';' -- ;\n; select `;`", ["select ';' -- ;\n", " select `;`"]),
        ("/* ; */ commit;", ["/* ; */ commit"]),
        ("begin; insert into t values (1); commit", ["begin", " insert into t values (1)", " commit"]),
        ("begin declare x int; set x = 1; end", ["begin declare x int; set x = 1; end"]),
        ("", [""]),
    ],
)
def test_a_text_is_split_between_its_statements(text: str, expected: list[str]) -> None:
    assert split(text) == expected


def test_a_name_is_taken_apart_as_in_a_statement() -> None:
    assert parse_name("lake.`my schema`.`a``.b`") == ("lake", "my schema", "a`.b")
    with pytest.raises(StatementError):
        parse_name("a.b c")
