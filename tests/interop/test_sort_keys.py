"""Sort keys that DuckDB set: expressions are obeyed where Spark can compute them, and never stop a write."""

from __future__ import annotations

import logging

import pyarrow.parquet as pq
import pytest

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


def sorted_by_duckdb(lake: Both, key: str) -> list[tuple[object, ...]]:
    with lake.connection() as connection:
        return list(connection.execute(f"select id from t order by {key}").fetchall())


def test_a_macro_ends_the_order_with_a_warning(lake: Both, caplog: pytest.LogCaptureFixture) -> None:
    table = f"on_{lake.address.kind}"  # each process warns of a table once
    lake.duckdb(
        "create macro shelf(x) as x % 3",
        f"create table {table} (id bigint, name varchar)",
        f"alter table {table} set sorted by (name, shelf(id))",
    )
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            lake.spark(f"insert into {table} select id, concat('N', 9 - id % 10) from range(100)")
    warnings = [record.getMessage() for record in caplog.records if "are not sorted by" in record.getMessage()]
    assert len(warnings) == 1
    assert f"new files of table {table} are not sorted by shelf(id), which Spark can not compute" in warnings[0]
    assert [value % 10 for value in newest_file(lake, table)] == [9 - n // 10 for n in range(100)]
    lake.compare()
