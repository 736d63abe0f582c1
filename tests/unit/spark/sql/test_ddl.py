"""CREATE, DROP, TRUNCATE and COMMENT ON."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.types import Column
from dbt.adapters.ducklake.spark.sql.ddl import (
    CommentOn,
    CreateFunction,
    CreateSchema,
    CreateTable,
    CreateTableLike,
    CreateTempView,
    CreateView,
    Drop,
    DropFunction,
    DropSchema,
    FunctionParameter,
    ViewColumn,
)
from dbt.adapters.ducklake.spark.sql.definitions import PartitionKey, SortKey
from dbt.adapters.ducklake.spark.sql.dml import Truncate
from dbt.adapters.ducklake.spark.sql.statements import parse

from .helpers import A, B, define, parses


@parses(
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
def test_schemas_and_relations_are_created_and_dropped(sql: str, expected: object) -> None:
    assert parse(sql) == expected


@parses(
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
def test_create_table_keeps_every_clause(sql: str, expected: object) -> None:
    assert parse(sql) == expected


@parses(
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
def test_a_view_keeps_its_query_as_text(sql: str, expected: object) -> None:
    assert parse(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "create temporary view v as select * from main.t",
        "/* dbt */ create or replace global temporary view v (a comment 'as', b) comment 'as' as select * from main.t;",
    ],
)
def test_a_temporary_view_knows_where_its_query_starts(sql: str) -> None:
    view = parse(sql)
    assert isinstance(view, CreateTempView)
    assert view.text.startswith("create")
    assert view.text[view.query_start :] == "select * from main.t"


@parses(
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
def test_a_function_keeps_its_signature_and_body_as_text(sql: str, expected: object) -> None:
    assert parse(sql) == expected


@parses(
    ("comment on table s.t is 'x'", CommentOn("table", ("s", "t"), "x")),
    ("comment on column t.a.b is null", CommentOn("column", ("t", "a", "b"), None)),
    ('comment on database s is "it\'s"', CommentOn("schema", ("s",), "it's")),
    ("comment on view v is 'a' 'b'", CommentOn("view", ("v",), "ab")),
)
def test_comments_are_set_and_removed(sql: str, expected: object) -> None:
    assert parse(sql) == expected
