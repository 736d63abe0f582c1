"""Sort keys that DuckDB set: expressions are obeyed where Spark can compute them, and never stop a write."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from dbt.adapters.ducklake.lake.errors import SchemaChangeError

from .engines import Both


def newest_file(lake: Both, table: str = "t") -> list[object]:
    """The first column of the newest data file, in the order of the file."""
    path = lake.spark_rows(f"select data_file from ducklake_list_files('{table}')")[-1][0]
    return list(pq.read_table(path).column(0).to_pylist())


@pytest.mark.parametrize("key", ["abs(id - 50), id", '"id" % 10, id desc', "lower(name) desc, id"])
def test_expressions_are_obeyed(lake: Both, key: str) -> None:
    lake.duckdb("create table t (id bigint, name varchar)", f"alter table t set sorted by ({key})")
    lake.spark("insert into t select id, concat('N', id % 7) from range(100)")
    assert newest_file(lake) == [r[0] for r in sorted_by_duckdb(lake, key)]


def sorted_by_duckdb(lake: Both, key: str, table: str = "t") -> list[tuple[object, ...]]:
    with lake.connection() as connection:
        return list(connection.execute(f"select id from {table} order by {key}").fetchall())


MACROS = (
    "create macro shelf(x) as x % 3",
    "create macro below(x, most := 50) as case when x < most then 0 else shelf(x) end",
    "create schema stock",
    "create macro stock.row(x, y) as x % y",
)


def test_macros_are_obeyed(lake: Both) -> None:
    lake.duckdb(*MACROS)
    keys = ["shelf(id), id desc", "below(id), id", "stock.row(id, 7), id", "main.below(most := 10, x := id), id"]
    for number, key in enumerate(keys):
        table = f"t{number}"
        lake.duckdb(f"create table {table} (id bigint, name varchar)", f"alter table {table} set sorted by ({key})")
        lake.spark(f"insert into {table} select id, concat('N', id % 7) from range(100)")
        assert newest_file(lake, table) == [r[0] for r in sorted_by_duckdb(lake, key, table)], key
    lake.compare()


def test_expressions_that_spark_sets_are_obeyed_by_both(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(*MACROS, "call lake.set_option('data_inlining_row_limit', 0)")
    keys = {
        "lower(name) desc, id": None,
        "abs(id - 50), id desc": None,
        "main.shelf(id) desc, id": "shelf(id) desc, id",
    }
    for number, (key, in_duckdb) in enumerate(keys.items()):
        table = f"t{number}"
        lake.spark(
            f"create table {table} (id bigint, name string)",
            f"alter table {table} set sorted by ({key})",
            f"insert into {table} select id, concat('N', id % 7) from range(100)",
        )
        expected = [r[0] for r in sorted_by_duckdb(lake, in_duckdb or key, table)]
        assert newest_file(lake, table) == expected, key
        lake.duckdb(f"delete from {table}", f"insert into {table} select i, 'N' || (i % 7) from range(100) r(i)")
        assert newest_file(lake, table) == expected, key


def test_a_key_that_duckdb_cannot_compute_is_refused(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t (id bigint, name string)")
    for key in ("xxhash64(id)", "main.nothing(id)", "date_format(name, 'w')"):
        with pytest.raises(SchemaChangeError, match=r"table t can not be sorted by .* would stop its inserts"):
            lake.spark(f"alter table t set sorted by ({key})")
    lake.duckdb("insert into t values (1, 'a')")


@pytest.mark.parametrize("key", ["typed(id)", "list_unique([id])"])
def test_what_spark_cannot_compute_ends_the_order_with_a_warning(
    lake: Both, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    table = f"on_{lake.address.kind}_{key.partition('(')[0]}"  # each process warns of a table once
    lake.duckdb(
        "create macro typed(x integer) as x % 3",
        f"create table {table} (id bigint, name varchar)",
        f"alter table {table} set sorted by (name, {key})",
    )
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            lake.spark(f"insert into {table} select id, concat('N', 9 - id % 10) from range(100)")
    warnings = [record.getMessage() for record in caplog.records if "are not sorted by" in record.getMessage()]
    assert len(warnings) == 1
    assert f"new files of table {table} are not sorted by " in warnings[0]
    assert [value % 10 for value in newest_file(lake, table)] == [9 - n // 10 for n in range(100)]
    lake.compare()
