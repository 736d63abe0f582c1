"""Calls of DuckDB's macros: which implementation one means, and what it stands for in Spark's SQL."""

from __future__ import annotations

import pytest
from pyspark.sql import types as s

from dbt.adapters.ducklake.lake.errors import UnsupportedError
from dbt.adapters.ducklake.lake.snapshot import LakeState, Macro, MacroImpl, Parameter, Schema
from dbt.adapters.ducklake.spark.sql.macros import CallText, MacroCall, literal_argument
from dbt.adapters.ducklake.spark.sql.name_reader import find_names

X, Y = Parameter("x"), Parameter("y")


def implementation(sql: str, *parameters: Parameter, kind: str = "scalar") -> MacroImpl:
    return MacroImpl("duckdb", sql, kind, parameters)


MACROS = {
    "twice": [implementation("(x * 2)", X)],
    "quadruple": [implementation("twice(twice(x))", X)],
    "sized": [implementation("'one'", X), implementation("(x || y)", X, Y)],
    "plus": [implementation("(x + y)", X, Parameter("y", "unknown", "10", "int32"))],
    "typed": [
        implementation("(x + 1)", Parameter("x", "int32")),
        implementation("upper(x)", Parameter("x", "varchar")),
    ],
    "endless": [implementation("endless(x)", X)],
    "squared": [implementation("(x * x)", X)],
    "within": [implementation("((x >= 1) AND (x <= 3))", X)],
    "rounded": [implementation("round(x, 1)", X)],
    "numbers": [implementation("SELECT x AS v", X, kind="table")],
}
STATE = LakeState(
    schemas={0: Schema(0, "u", "main", "main/", True)},
    macros={number: Macro(number, 0, name, tuple(impls)) for number, (name, impls) in enumerate(MACROS.items())},
)


def call(name: str, *arguments: str, **named: str) -> MacroCall:
    texts = [CallText(None, text) for text in arguments] + [CallText(key, text) for key, text in named.items()]
    macro = STATE.find_macro("main", name)
    assert macro is not None
    return MacroCall(macro, f"main.{name}", texts, STATE, "lake", "main", lambda function: function in ("abs", "rand"))


def expand(macro_call: MacroCall, *types: s.DataType) -> str:
    found = macro_call.expression(types)
    assert not found.needs_function
    return found.with_arguments([argument.text for argument in macro_call.arguments])


@pytest.mark.parametrize(
    ("macro_call", "types", "expected"),
    [
        (call("sized", "a"), [s.IntegerType()], "('one')"),
        (call("sized", y="a", x="b"), [s.StringType(), s.StringType()], "((b) || (a))"),
        (call("plus", "a", y="b"), [s.DoubleType(), s.DoubleType()], "((a) + (b))"),
    ],
)
def test_a_call_stands_for_the_body_with_its_arguments(
    macro_call: MacroCall, types: list[s.DataType], expected: str
) -> None:
    assert expand(macro_call, *types) == expected


def test_the_types_of_the_arguments_choose_the_implementation() -> None:
    assert "upper" in expand(call("typed", "a"), s.StringType())
    assert "upper" not in expand(call("typed", "a"), s.ByteType())


def test_a_literal_needs_no_type_and_is_part_of_the_text() -> None:
    assert not call("twice", "21").needs_types
    assert not call("sized", "'a'", "'it''s'").needs_types
    assert call("twice", "a").needs_types
    assert "it\\'s" in expand(call("sized", "'a'", "'it''s'"), s.NullType(), s.NullType()).replace("''", "\\'")


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("2", "int"),
        ("-2", "int"),
        ("3000000000", "bigint"),
        ("1.50", "decimal(3,2)"),
        ("'x'", "string"),
        ("null", "void"),
    ],
)
def test_literals_have_the_types_that_duckdb_gives_them(text: str, type_: str) -> None:
    found = literal_argument(text)
    assert found is not None
    assert found.type.simpleString() == type_


@pytest.mark.parametrize("text", ["2L", "1e3", "X'00'", "a", "1 + 1", "date'2020-01-01'", "[1]"])
def test_other_arguments_are_no_literals(text: str) -> None:
    assert literal_argument(text) is None


@pytest.mark.parametrize(
    ("macro_call", "types", "reason"),
    [
        (call("twice"), [], "no implementation for no arguments"),
        (call("twice", "a", "b"), [s.IntegerType()] * 2, r"no implementation for \(int, int\)"),
        (call("twice", z="a"), [s.IntegerType()], r"\(z := int\)"),
        (call("typed", "a"), [s.DateType()], r"no implementation for \(date\)"),
        (call("endless", "a"), [s.IntegerType()], "it calls itself"),
        (call("twice", "a"), [s.VariantType()], "an argument of type variant"),
        (call("numbers", "a"), [s.IntegerType()], "call it in FROM"),
        (call("quadruple", "rand()"), [s.DoubleType()], "not deterministic"),
        (call("squared", "my_function(a)"), [s.LongType()], None),
    ],
)
def test_a_call_that_spark_cannot_compute_says_why(
    macro_call: MacroCall, types: list[s.DataType], reason: str | None
) -> None:
    if reason is None:  # named as often as it is evaluated
        assert expand(macro_call, *types).count("my_function(a)") == 2
        return
    with pytest.raises(UnsupportedError, match=reason):
        macro_call.expression(types)


def test_an_argument_that_may_vary_is_evaluated_once_where_duckdb_does() -> None:
    found = call("rounded", "rand()").expression([s.DoubleType()])
    assert found.sql.count("_lake_argument_0_") > 1
    assert found.needs_function
    assert found.signature == "(_lake_argument_0_ double)"
    assert not call("rounded", "abs(a)").expression([s.DoubleType()]).needs_function


def test_a_call_in_a_query_is_read_with_its_arguments() -> None:
    sql = "select main.f(a, y => main.g(1)), main.h() + 1, main.i(b) as c from t where main.j(a) = 1"
    calls = {ref.parts[-1]: ref for ref in find_names(sql).calls}
    assert [(a.keyword, sql[a.start : a.end]) for a in calls["f"].arguments] == [(None, "a"), ("y", "main.g(1)")]
    assert sql[calls["f"].start : calls["f"].call_end] == "main.f(a, y => main.g(1))"
    assert [name for name, ref in calls.items() if ref.is_column] == ["f"]
    assert find_names(sql).relations_around(calls["j"].scope) == {"t"}
