"""Queries, statements that Spark runs itself, DESCRIBE, SHOW, USE, transactions and CALL."""

from __future__ import annotations

from decimal import Decimal

from dbt.adapters.ducklake.spark.sql.ddl import Passthrough
from dbt.adapters.ducklake.spark.sql.dml import Query
from dbt.adapters.ducklake.spark.sql.literals import LiteralValue
from dbt.adapters.ducklake.spark.sql.statements import (
    Argument,
    Begin,
    Call,
    Commit,
    DescribeSchema,
    DescribeTable,
    Rollback,
    ShowColumns,
    ShowCreateTable,
    ShowPartitions,
    ShowProperties,
    ShowSchemas,
    ShowTableExtended,
    ShowTables,
    ShowViews,
    Use,
    parse,
)

from .helpers import parses


@parses(
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
def test_other_text_is_a_query(sql: str, expected: object) -> None:
    assert parse(sql) == expected


@parses(
    ("set spark.sql.ansi.enabled = true;", Passthrough("set spark.sql.ansi.enabled = true")),
    ("set some.text=it's", Passthrough("set some.text=it's")),
    ("/* dbt */ reset", Passthrough("reset")),
    ("add jar /tmp/*.jar", Passthrough("add jar /tmp/*.jar")),
    ("cache table t", Passthrough("cache table t")),
    ("refresh table t", Passthrough("refresh table t")),
    ("analyze tables in s compute statistics", Passthrough("analyze tables in s compute statistics")),
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
def test_statements_about_the_session_are_passed_to_spark(sql: str, expected: object) -> None:
    assert parse(sql) == expected


@parses(
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
def test_describe_show_use_and_transactions_are_parsed(sql: str, expected: object) -> None:
    assert parse(sql) == expected


def test_a_call_gives_its_arguments_as_text_and_as_values() -> None:
    assert parse(
        "call lake.ducklake_set_option('a', 5, -1.50, table_name => 't', "
        "older_than => now() - interval 1 week, dry_run => true, versions => [1, 2], a = b)"
    ) == Call(
        ("lake", "ducklake_set_option"),
        (
            Argument(None, "'a'", LiteralValue("a")),
            Argument(None, "5", LiteralValue(5)),
            Argument(None, "-1.50", LiteralValue(Decimal("-1.50"))),
            Argument("table_name", "'t'", LiteralValue("t")),
            Argument("older_than", "now() - interval 1 week"),
            Argument("dry_run", "true", LiteralValue(True)),
            Argument("versions", "[1, 2]", LiteralValue((1, 2))),
            Argument(None, "a = b"),
        ),
    )
    assert parse("call ducklake_checkpoint()") == Call(("ducklake_checkpoint",))
