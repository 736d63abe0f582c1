"""Merge keys of an ON condition: columns of the target that must equal an expression of the source."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.snapshot import Table
from dbt.adapters.ducklake.lake.types import Column
from dbt.adapters.ducklake.spark.change.key_pruning import equality_keys

NAMES = ("id", "k", "Name", "day", "extra", "a b")

TABLE = Table(
    id=1,
    uuid="u",
    schema_id=0,
    name="t",
    path="t/",
    path_is_relative=True,
    columns=(
        Column(1, "id", "int64"),
        Column(2, "Name", "varchar"),
        Column(3, "day", "date"),
        Column(4, "own", "int64"),
        Column(5, "st", "struct", children=(Column(6, "x", "int64"),)),
        Column(7, "x y", "int64"),
    ),
)


def keys(condition: str, label: str = "t", source: str | None = "s") -> list[tuple[str, str]]:
    return [(key.column, key.expression) for key in equality_keys(condition, TABLE, label, source, NAMES)]


def columns(condition: str) -> list[str]:
    return [column for column, _ in keys(condition)]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("t.id = s.id", [("id", "s.id")]),
        ("s.id = t.id", [("id", "s.id")]),
        ("t.id == s.id", [("id", "s.id")]),
        ("((t.id = s.id))", [("id", "s.id")]),
        ("(t.id) = (s.id)", [("id", "(s.id)")]),
        ("T.ID = S.Id", [("id", "S.Id")]),
        ("t.name = s.name", [("Name", "s.name")]),
        ("`t`.`x y` = s.`a b`", [("x y", "s.`a b`")]),
        ("own = k", [("own", "k")]),
        ("own = s.id", [("own", "s.id")]),
        ("t.id = k + 1", [("id", "k + 1")]),
        ("t.id = s.k and t.day = s.day", [("id", "s.k"), ("day", "s.day")]),
        ("t.id = s.k and (t.day = s.day and t.name = s.name)", [("id", "s.k")]),
        ("t.id = s.k and t.day > s.day and t.own < 5", [("id", "s.k")]),
        ("t.id = s.k and (t.day = s.day or t.name = s.name)", [("id", "s.k")]),
        ("t.id = s.k and exists (select 1 from u where u.a = t.own)", [("id", "s.k")]),
        ("t.id = s.k and rand() < 0.5", [("id", "s.k")]),
    ],
)
def test_equality_with_the_source_gives_a_key(condition: str, expected: list[tuple[str, str]]) -> None:
    found = keys(condition)
    assert found[: len(expected)] == expected
    assert {column for column, _ in found} <= {"id", "Name", "day", "own", "x y"}


@pytest.mark.parametrize(
    "condition",
    [
        "t.id = s.id or t.name = s.name",
        "(t.id = s.id or t.own = s.k) or true",
        "not (t.id = s.id)",
        "t.id <=> s.id",
        "t.id <> s.id",
        "t.id != s.id",
        "t.id >= s.id",
        "t.id between s.id and s.id",
        "t.id in (s.id)",
        "t.id is not distinct from s.id",
        "(t.id = s.id) = true",
        "coalesce(t.id = s.id, true)",
        "case when s.k = 1 then t.id = s.id else true end",
        "if(s.k = 1, t.id = s.id, true)",
        "t.id = s.id is null",
        "true",
        "",
        "t.id =",
    ],
)
def test_a_condition_without_a_required_equality_gives_no_key(condition: str) -> None:
    assert keys(condition) == []


@pytest.mark.parametrize(
    "condition",
    [
        "abs(t.id) = s.id",
        "t.id + 1 = s.id",
        "cast(t.id as string) = s.name",
        "upper(t.name) = upper(s.name)",
        "coalesce(t.id, 0) = s.id",
        "t.st.x = s.id",
        "t.id = t.own",
        "t.id = 5",
        "s.id = s.k",
        "s.id = 5",
        "t.id = s.id + t.own",
        "t.id = coalesce(s.id, own)",
        "t.id = concat(s.id, t.name)",
    ],
)
def test_a_key_is_a_bare_column_that_equals_an_expression_of_the_source(condition: str) -> None:
    assert keys(condition) == []


@pytest.mark.parametrize(
    "condition",
    [
        "t.id = (select max(id) from u)",
        "t.id = (select max(u.id) from u where u.k = s.k)",
        "t.id = s.k + (select 1)",
        "t.id = s.k + rand()",
        "t.id = s.k + random()",
        "t.id = s.k + randn()",
        "t.name = concat(s.name, uuid())",
        "t.id = s.k + uniform(1, 5)",
        "t.name = concat(s.name, randstr(3))",
        "t.id = s.k + monotonically_increasing_id()",
        "t.id = s.k + spark_partition_id()",
        "t.name = concat(s.name, input_file_name())",
        "t.id = my_function(s.k)",
        "t.id = s.k + my.function(s.k)",
        "t.id = max(s.k)",
        "t.id = row_number() over (order by s.k)",
        "t.id = s.k + shuffle(array(1, 2))[0]",
    ],
)
def test_a_nondeterministic_expression_gives_no_key(condition: str) -> None:
    assert keys(condition) == []


@pytest.mark.parametrize(
    "condition",
    [
        "id = s.k",
        "name = s.name",
        "t.own = id",
        "t.own = day",
        "id = id",
        "t.own = nowhere",
        "t.nowhere = s.k",
        "t.own = s.nowhere",
        "u.own = s.k",
        "main.t.own = s.k",
        "t.own = main.s.k",
        "t.own = k.x",
        "t.own = u.k",
        "st.x = s.k",
    ],
)
def test_an_ambiguous_or_unknown_name_gives_no_key(condition: str) -> None:
    assert keys(condition) == []


def test_columns_are_qualified_by_the_aliases_of_the_statement() -> None:
    assert keys("x.id = y.id", "X", "Y") == [("id", "y.id")]
    assert keys("t.id = s.id", "x", "s") == []
    assert keys("t.id = x.id", "t", "s") == []


def test_a_source_without_a_name_has_its_own_columns_only() -> None:
    assert keys("t.id = k", source=None) == [("id", "k")]
    assert keys("t.id = s.k", source=None) == []
    assert keys("t.id = id", source=None) == []


def test_several_equalities_of_one_column_are_several_keys() -> None:
    assert columns("t.id = s.id and t.id = s.k") == ["id", "id"]


def test_a_column_may_equal_an_expression_over_many_columns_of_the_source() -> None:
    assert columns("t.day = cast(s.day as date) and t.id = (s.k + s.id) * 2") == ["day", "id"]


@pytest.mark.large
def test_deep_conditions_give_an_answer() -> None:
    assert isinstance(keys(" and ".join(["t.id = s.id"] * 3000)), list)
    assert isinstance(keys("t.id = " + "(" * 3000 + "s.id" + ")" * 3000), list)
