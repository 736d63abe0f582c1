"""The words of Delta and Iceberg on lakes that DuckDB reads and writes too."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.ducklake.lake.errors import NotFoundError

from .engines import Both


def test_optimize_makes_files_fewer_and_keeps_every_version(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)", "create schema `s`".replace("`", '"'))
    lake.duckdb("create table s.t (id int)", *(f"insert into s.t select {i} from range(20)" for i in range(4)))
    lake.duckdb("delete from s.t where id = 2")
    [row] = lake.lake.execute("optimize lake.s.`t`").arrow().to_pylist()
    assert (row["schema_name"], row["table_name"], row["files_created"]) == ("s", "t", 1)
    assert row["files_processed"] >= 3
    lake.compare()
    assert lake.spark_rows("call ducklake_table_info('lake')")[0][4] == 1
    operations = lake.lake.execute("describe history s.t").arrow()["operation"].to_pylist()
    assert operations[0] == "merge files"
    assert operations[-1] == "create"


def test_a_table_is_restored_to_a_version_also_after_it_was_dropped(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create schema s", "create table s.t as select 1 as id", "insert into s.t values (2)")
    lake.spark("restore table s.t to version as of 2")
    lake.agree("select * from s.t", expected=[(1,)])
    lake.spark("drop table s.t", "restore s.t to version as of 3")
    lake.agree("select * from s.t", expected=[(1,), (2,)])
    lake.spark("truncate table s.t", "restore schema s to timestamp as of now() - interval 0 seconds")
    lake.agree("select count(*) from s.t", expected=[(0,)])


def test_duckdb_prunes_by_the_statistics_of_an_analysis(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)", "create table t (id int, v varchar)")
    lake.duckdb(*(f"insert into t select {i} * 100 + i, 'v' || i from range(50) r(i)" for i in range(3)))
    with lake.lake.lake().catalog.write() as connection:
        connection.exec_driver_sql("delete from ducklake_file_column_stats")
        connection.exec_driver_sql("delete from ducklake_table_column_stats")

    def files_read() -> str:
        with lake.connection() as connection:
            return str(connection.execute("explain analyze select * from t where id = 120").fetchall())

    assert "Total Files Read: 3" in files_read()
    lake.spark("call ducklake_analyze('t')")
    assert "Total Files Read: 1" in files_read()
    lake.agree("select * from t where id = 120", expected=[(120, "v20")])
    lake.agree("select count(*) from t where id > 249", expected=[(0,)])
    lake.duckdb("insert into t values (-5, null)")
    lake.agree("select * from t where id < 0 or v is null", expected=[(-5, None)])


def test_a_call_of_a_table_function_returns_its_rows(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t as select 1 as id", "call ducklake_set_option('target_file_size', '1MB')")
    assert [row[0] for row in lake.spark_rows("call ducklake_snapshots()")] == [0, 1]
    assert ("target_file_size", "1000000", "GLOBAL", None) in lake.spark_rows("call lake.options()")
    assert [row[0] for row in lake.spark_rows("call ducklake_table_info('lake')")] == ["t"]
    changes = lake.spark_rows("call ducklake_table_changes('t', 0, 1)")
    assert changes == lake.spark_rows("call ducklake_table_changes('lake', 'main', 't', 0, 1)") != []
    assert lake.spark_rows("call ducklake_list_files('t')") == lake.spark_rows("call ducklake_list_files('lake', 't')")


def test_tables_of_no_lake_are_left_to_spark(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table orders as select 1 as id")
    spark = lake.lake.spark
    spark.sql("create table spark_catalog.default.words using parquet as select 1 as id")
    try:
        lake.spark("analyze table spark_catalog.default.words compute statistics")
        described = spark.sql("describe extended spark_catalog.default.words").collect()
        assert any("1 rows" in row.data_type for row in described if row.col_name == "Statistics")
    finally:
        spark.sql("drop table spark_catalog.default.words")
    for statement in ("optimize ordrs", "vacuum ordrs", "desc history ordrs", "analyze table ordrs compute statistics"):
        with pytest.raises(
            NotFoundError, match=r"no table or view main\.ordrs in lake lake .*did you mean main\.orders"
        ):
            lake.spark(statement)
    with pytest.raises(NotFoundError, match="there is no lake lak "):
        lake.spark("describe detail lak.main.orders")
