"""Every keyword of the catalog databases is the name of a column.

A table with a column called `nothing` could not be read on SQLite: no list of reserved words has that word.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.mysql.reserved_words import RESERVED_WORDS_MARIADB, RESERVED_WORDS_MYSQL
from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS as RESERVED_WORDS_POSTGRES

from dbt.adapters.ducklake.lake import inlined
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.table_summary import table_summaries
from dbt.adapters.ducklake.lake.types import Column

from ...lakes import Lake
from .catalogs import NewLake, every_reference_catalog

# https://www.sqlite.org/lang_keywords.html
SQLITE = """
abort action add after all alter always analyze and as asc attach autoincrement before begin between by cascade case
cast check collate column commit conflict constraint create cross current current_date current_time current_timestamp
database default deferrable deferred delete desc detach distinct do drop each else end escape except exclude exclusive
exists explain fail filter first following for foreign from full generated glob group groups having if ignore immediate
in index indexed initially inner insert instead intersect into is isnull join key last left like limit match
materialized natural no not nothing notnull null nulls of offset on or order others outer over partition plan pragma
preceding primary query raise range recursive references regexp reindex release rename replace restrict returning right
rollback row rows savepoint select set table temp temporary then ties to transaction trigger unbounded union unique
update using vacuum values view virtual when where window with within without
"""

NOT_BY_DUCKDB = {
    "sqlite": {"autoincrement"},
    "duckdb": set[str](),
    "postgres": {
        *("current_catalog", "current_date", "current_role", "current_schema", "current_time", "current_timestamp"),
        *("current_user", "localtime", "localtimestamp", "session_user", "system_user"),
    },
}
"""Words that DuckDB writes without quotes where the catalog database needs them: its CREATE TABLE fails."""


def keywords(lake: Lake) -> list[str]:
    """The keywords of every database, and what the lake's own database calls its keywords."""
    with duckdb.connect() as connection:
        words = {word for (word,) in connection.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()}
    words |= {*SQLITE.split(), *RESERVED_WORDS_POSTGRES, *RESERVED_WORDS_MYSQL, *RESERVED_WORDS_MARIADB}
    words |= NOT_BY_DUCKDB["postgres"]
    own = {
        "postgres": "SELECT word FROM pg_get_keywords()",
        "mysql": "SELECT word FROM information_schema.keywords",
    }
    if query := own.get(lake.address.kind):
        with lake.catalog.read() as connection:
            words |= {word.lower() for (word,) in connection.exec_driver_sql(query)}
    return sorted(words)


def tables_of(kind: str, words: list[str]) -> dict[str, list[str]]:
    """The columns of each table to try. PostgreSQL alone folds the case of a name that is not quoted."""
    return {"lower": words, **({"mixed": [word.capitalize() for word in words]} if kind == "postgres" else {})}


def inlined_rows(lake: Lake, name: str) -> list[tuple[Any, ...]]:
    with lake.catalog.read() as connection:
        found = inlined.read_inlined_rows(connection, lake.catalog, lake.table(name), lake.latest)
        summary = table_summaries(connection, lake.catalog, lake.latest, [lake.table(name).id])
    rows = [] if found is None else found.rows.to_pylist()
    assert sum(s.row_count for s in summary.values()) >= len(rows)
    columns = [c.name for c in lake.table(name).columns]
    return [tuple(row[c] for c in columns) for row in rows]


def delete_inlined_rows(lake: Lake, name: str, *row_ids: int) -> None:
    with lake.transaction() as tx:
        tx.delete_inlined_rows(tx.state.table("main", name), frozenset(row_ids))


@every_reference_catalog
def test_inlined_rows_of_duckdb_are_read_and_deleted_whatever_their_columns_are_called(
    kind: str, new_lake: NewLake
) -> None:
    lake = Lake(new_lake(kind))
    words = [word for word in keywords(lake) if word not in NOT_BY_DUCKDB[kind]]
    first, second = tuple(range(len(words))), tuple(range(len(words), 0, -1))
    with lake.duckdb() as connection:
        for name, columns in tables_of(kind, words).items():
            connection.execute(f'CREATE TABLE "{name}" ({", ".join(f"{_quoted(c)} INTEGER" for c in columns)})')
            connection.execute(f'INSERT INTO "{name}" VALUES {first}, {second}')
    for name in tables_of(kind, words):
        assert inlined_rows(lake, name) == [first, second]
        delete_inlined_rows(lake, name, 0)
        assert inlined_rows(lake, name) == lake.seen_by_duckdb(f'FROM "{name}"') == [second]


@every_reference_catalog
def test_a_table_made_here_inlines_whatever_its_columns_are_called(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    words = keywords(lake)
    row, other = tuple(range(len(words))), tuple(range(1, len(words) + 1))
    for name, columns in tables_of(kind, words).items():
        with lake.transaction() as tx:
            tx.create_table(tx.state.schema("main"), name, tuple(Column(0, c, "int32") for c in columns))
        lake.append({c: [value] for c, value in zip(columns, other, strict=True)}, name)
        with lake.duckdb() as connection:
            connection.execute(f'INSERT INTO "{name}" VALUES {row}')
            assert sorted(connection.execute(f'FROM "{name}"').fetchall()) == [row, other]
            names = [column[0] for column in connection.description or ()]
        assert names == columns
        assert inlined_rows(lake, name) == [row]
        with lake.duckdb() as connection:
            connection.execute(f'UPDATE "{name}" SET {_quoted(columns[0])} = -1 WHERE {_quoted(columns[5])} = 5')
        ((first, *rest),) = inlined_rows(lake, name)
        assert (first, *rest) == (-1, *row[1:])
        delete_inlined_rows(lake, name, 1)
        assert lake.seen_by_duckdb(f'FROM "{name}"') == [other]


@pytest.mark.catalogs
def test_any_column_name_is_stored_in_a_catalog_that_never_inlines(new_lake: NewLake) -> None:
    lake = Lake(new_lake("mysql"))
    words = keywords(lake)
    with lake.transaction() as tx:
        tx.create_table(tx.state.schema("main"), "t", tuple(Column(0, word, "int32") for word in words))
    lake.append({word: [0] for word in words})
    assert [c.name for c in lake.table().columns] == words


def test_names_of_users_are_quoted_even_where_sqlalchemy_sees_no_need() -> None:
    source = t.inlined_data("plain", ["nothing", "plain"], ("row_id", "begin_snapshot", "end_snapshot"))
    query = str(sa.select(source.c.c0, source.c.c1))
    assert query.split() == ["SELECT", '"plain"."nothing",', '"plain"."plain"', "FROM", '"plain"']


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
