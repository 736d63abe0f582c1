"""Scripts, string literals and quoted names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.spark.sql.ddl import CommentOn, Drop
from dbt.adapters.ducklake.spark.sql.quoting import quoted, quoted_name, string_literal
from dbt.adapters.ducklake.spark.sql.statements import parse, parse_name, split
from dbt.adapters.ducklake.spark.sql.tokens import StatementError, split_statements

from .helpers import parses


@parses(
    ("select 1; select 2", ["select 1", "select 2"]),
    ("select ';' ;;\n select `a;b` ; ", ["select ';'", "select `a;b`"]),
    ("select 1 -- one; two\n; select 2", ["select 1 -- one; two", "select 2"]),
    ("/* a; /* b; */ c; */ select 1;", ["/* a; /* b; */ c; */ select 1"]),
    (r"select 'it\'s;' ; select r'\' ; select 'a'';'", [r"select 'it\'s;'", r"select r'\'", "select 'a'';'"]),
    ('select "a;b" ; select 3', ['select "a;b"', "select 3"]),
    ("select 'open; select 2", ["select 'open; select 2"]),
    ("-- nothing\n; /* at all */", []),
)
def test_a_script_splits_at_semicolons_that_are_code(sql: str, expected: object) -> None:
    assert split_statements(sql) == expected


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
def test_a_string_literal_has_the_value_that_spark_reads(literal: str, text: str) -> None:
    assert parse(f"comment on table t is {literal}") == CommentOn("table", ("t",), text)


def test_names_may_start_with_digits_and_hold_keywords() -> None:
    assert parse("drop table lake.2024_a.table") == Drop("table", ("lake", "2024_a", "table"))
    assert parse("drop table lake . /* x */ `1`") == Drop("table", ("lake", "1"))


def test_a_name_is_parsed_as_in_a_statement() -> None:
    assert parse_name("lake.`my schema`.`a``.b`") == ("lake", "my schema", "a`.b")
    with pytest.raises(StatementError):
        parse_name("a.b c")


characters = st.text(st.characters(exclude_categories=["Cs"]))
names = st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=3).map(tuple)


@given(names)
def test_a_quoted_name_is_read_as_it_was(name: tuple[str, ...]) -> None:
    assert parse(f"drop table {quoted_name(name)}") == Drop("table", name)


@given(characters)
def test_a_quoted_string_is_read_as_it_was(text: str) -> None:
    assert parse(f"comment on table t is {string_literal(text)}") == CommentOn("table", ("t",), text)


@given(st.lists(st.tuples(characters, st.text(min_size=1)), max_size=4))
def test_a_script_of_quoted_text_splits_into_its_statements(parts: list[tuple[str, str]]) -> None:
    statements = [f"select {string_literal(text)} as {quoted(name)}" for text, name in parts]
    assert split_statements(" ;\n".join(statements)) == statements
