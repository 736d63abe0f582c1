"""Helpers for tests of SQL that is parsed or rewritten."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.ducklake.lake.types import Column
from dbt.adapters.ducklake.spark.sql.definitions import ColumnDefinition
from dbt.adapters.ducklake.spark.sql.name_reader import find_names
from dbt.adapters.ducklake.spark.sql.rewriting import rewrite
from dbt.adapters.ducklake.spark.sql.statements import parse
from dbt.adapters.ducklake.spark.sql.tokens import StatementError

FIXTURES = Path(__file__).parent / "fixtures"

A = Column(0, "a", "int32")
B = Column(0, "b", "varchar")


def define(column: Column, default: str | None = None) -> ColumnDefinition:
    return ColumnDefinition(column, default)


def parses(*cases: tuple[str, object]) -> pytest.MarkDecorator:
    """Runs a test for each pair of a text and its parsed value."""
    return pytest.mark.parametrize(("sql", "expected"), cases, ids=[sql[:60] for sql, _ in cases])


def refuses(*cases: tuple[str, str]) -> pytest.MarkDecorator:
    """Runs a test for each pair of a statement and a part of its error message."""
    return pytest.mark.parametrize(("sql", "message"), cases, ids=[sql[:60] for sql, _ in cases])


def message_of(sql: str) -> str:
    """Returns the message with which a statement is refused."""
    with pytest.raises(StatementError) as raised:
        parse(sql)
    return str(raised.value)


def with_views(sql: str, full_names: dict[str, tuple[str, ...]] | None = None, only: str = "") -> str:
    """Rewrites a query to read views v1, v2, ... in place of its relations, or of the one called `only`."""
    names = find_names(sql)
    chosen = [ref for ref in names.relations if not only or ".".join(ref.parts) == only]
    views = {ref: f"v{number}" for number, ref in enumerate(chosen, start=1)}
    full = {ref: full_names[ref.parts[-1]] for ref in chosen} if full_names else None
    return rewrite(sql, names, views, full)


def fixture_lines(name: str) -> list[str]:
    """Returns the lines of a fixture file without comments and blank lines."""
    lines = (FIXTURES / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def fixture_pairs(name: str) -> list[tuple[str, str | None]]:
    """Returns the pairs of a fixture file: two lines each, blank lines in between. The second line may be missing."""
    pairs: list[tuple[str, str | None]] = []
    for block in (FIXTURES / name).read_text(encoding="utf-8").split("\n\n"):
        sql, *expected = [line for line in block.splitlines() if not line.startswith("#")] or [""]
        if sql:
            pairs.append((sql, expected[0] if expected else None))
    return pairs
