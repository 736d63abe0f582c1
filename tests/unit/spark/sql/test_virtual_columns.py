"""Virtual columns (rowid, snapshot_id): where a query names them, and where a star leaves them out."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.sql.name_reader import find_names
from dbt.adapters.ducklake.spark.sql.rewriting import rewrite
from dbt.adapters.ducklake.spark.sql.virtual_columns import relations_with_virtual_columns

from .helpers import fixture_pairs

VIRTUAL_COLUMNS = ("rowid", "snapshot_id")


def with_virtual_columns(sql: str, **tables: str) -> str:
    """Rewrites a query whose tables have these columns: a table read with virtual columns gets its name in capitals."""
    names = find_names(sql, VIRTUAL_COLUMNS)
    columns = {ref: tables[ref.parts[-1]].split() for ref in names.relations if ref.parts[-1] in tables}
    full = {ref: ("lake", "main", ref.parts[-1]) for ref in columns}
    virtual = relations_with_virtual_columns(names, columns, full)
    views = {ref: ".".join(ref.parts).upper() for ref in virtual}
    return rewrite(sql, names, views, full, dict.fromkeys(virtual, VIRTUAL_COLUMNS))


@pytest.mark.parametrize(("sql", "expected"), fixture_pairs("virtual_columns.sql"))
def test_a_table_has_virtual_columns_where_they_are_named(sql: str, expected: str | None) -> None:
    assert with_virtual_columns(sql, t="id s", u="id", o="snapshot_id rowid") == (expected or sql)


@pytest.mark.parametrize(("sql", "expected"), fixture_pairs("stars.sql"))
def test_a_star_stands_for_no_virtual_columns(sql: str, expected: str) -> None:
    assert with_virtual_columns(sql, t="id s", u="id", o="snapshot_id rowid") == expected
