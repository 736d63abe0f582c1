"""Column types, partition keys, sort keys and literals."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dbt.adapters.ducklake.lake.types import PRIMITIVES, Column
from dbt.adapters.ducklake.spark.sql.definitions import (
    PartitionKey,
    SortKey,
    parse_partition_keys,
    parse_sort_keys,
    parse_type,
)
from dbt.adapters.ducklake.spark.sql.literals import LiteralValue, parse_literal
from dbt.adapters.ducklake.spark.sql.tokens import StatementError

from .helpers import message_of, refuses


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
def test_type_names_of_spark_are_types_of_ducklake(words: str, type_: str) -> None:
    for word in words.split():
        assert parse_type(word, "c") == Column(0, "c", type_), word


@pytest.mark.parametrize("type_", sorted(PRIMITIVES - {"timestamp", "timestamp_us"}))
def test_type_names_of_ducklake_are_accepted(type_: str) -> None:
    assert parse_type(type_.upper(), "c") == Column(0, "c", type_)


def test_other_spellings_of_scalar_types() -> None:
    assert parse_type("interval day to second").type == "interval"
    assert parse_type("interval").type == "interval"
    assert parse_type("string collate utf8_binary").type == "varchar"
    assert parse_type("time(6)").type == "time"


def test_nested_types_are_trees() -> None:
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
def test_an_unknown_type_is_named_with_its_column(sql: str, message: str) -> None:
    assert message in message_of(sql)


def test_partition_keys_are_columns_and_transforms_of_them() -> None:
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bucket(a, 8)", "bucket(8, column), found a at 1:8"),
        ("bucket(0, a)", "a number of buckets above zero, found 0"),
        (
            "date(a)",
            "expected a column or one of year(c), month(c), day(c), hour(c), epoch_day(c), bucket(n, c), found date",
        ),
        ("a int", "whose type stands in the list of columns"),
        ("s.a", "s.a is a field of one"),
        ("year(a, b)", ") after the one column"),
        ("", "partition keys: expected a partition key's column, found the end"),
    ],
)
def test_an_invalid_partition_key_is_explained(text: str, message: str) -> None:
    with pytest.raises(StatementError) as raised:
        parse_partition_keys(text)
    assert message in str(raised.value)


def test_sort_keys_are_expressions_with_a_direction() -> None:
    assert parse_sort_keys("a, `b c` desc, (d + 1) * 2 asc nulls first, date_trunc('hour', e) desc nulls last") == (
        SortKey("a"),
        SortKey("`b c`", True),
        SortKey("(d + 1) * 2", False, True),
        SortKey("date_trunc('hour', e)", True, False),
    )
    assert parse_sort_keys("(a + b) * 2, (c)") == (SortKey("(a + b) * 2"), SortKey("(c)"))
    assert parse_sort_keys("(a, b desc)") == (SortKey("a"), SortKey("b", True))


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
def test_a_literal_has_a_value(text: str, value: object) -> None:
    literal = parse_literal(text)
    assert literal == LiteralValue(value)
    assert type(literal.value) is type(value)


@pytest.mark.parametrize("text", ["1 + 1", "now()", "a", "date '2020-01-01'", "", "'a' || 'b'", "x'zz'"])
def test_an_expression_has_no_value_until_it_is_computed(text: str) -> None:
    assert parse_literal(text) is None
