"""Small helpers for tests of parsed and rewritten SQL."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.types import Column
from dbt.adapters.ducklake.spark.sql.definitions import ColumnDefinition
from dbt.adapters.ducklake.spark.sql.names import (
    find_names,
)
from dbt.adapters.ducklake.spark.sql.rewriting import rewrite
from dbt.adapters.ducklake.spark.sql.statements import parse
from dbt.adapters.ducklake.spark.sql.tokens import StatementError

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


def replaced(sql: str, full_names: dict[str, tuple[str, ...]] | None = None, only: str = "") -> str:
    """The query with views v1, v2, ... in place of its relations, or of the one called `only`."""
    names = find_names(sql)
    chosen = [ref for ref in names.relations if not only or ".".join(ref.parts) == only]
    views = {ref: f"v{number}" for number, ref in enumerate(chosen, start=1)}
    full = {ref: full_names[ref.parts[-1]] for ref in chosen} if full_names else None
    return rewrite(sql, names, views, full)
