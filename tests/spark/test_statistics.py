"""Statistics and paths of the files that Spark writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from dbt.adapters.ducklake.lake.parquet_footer import file_stats
from dbt.adapters.ducklake.lake.paths import path_from_spark, spark_path, without_globs
from dbt.adapters.ducklake.lake.stats import ColumnStats
from dbt.adapters.ducklake.lake.types import Column


def stats_of(frame: DataFrame, folder: Path, *columns: Column, **options: Any) -> dict[int, ColumnStats]:
    target = str(folder / "written")
    writer = frame.coalesce(1).write.option("parquet.statistics.truncate.length", options.get("cut", 10**6))
    writer.option("parquet.block.size", options.get("block", 128 << 20)).parquet(spark_path(target))
    (file,) = (folder / "written").glob("*.parquet")
    return file_stats(pq.read_metadata(file), columns, options.get("cut"))


def bounds(stats: ColumnStats) -> tuple[Any, ...]:
    return (
        stats.min_value,
        stats.max_value,
        stats.value_count,
        stats.null_count,
        stats.contains_nan,
        stats.exact,
    )


def test_scalars(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        """SELECT * FROM VALUES
        (true, 1Y, 3, 4L, -1.10BD, CAST(1.1 AS DECIMAL(38, 2)), CAST(18446744073709551615 AS DECIMAL(20, 0)),
         DATE'1969-12-31', TIMESTAMP'1969-12-31 23:59:59.5', TIMESTAMP_NTZ'0001-01-01 00:00:00',
         'héllo', X'00FF', '{}'),
        (null, null, null, null, null, null, null, null, null, null, null, null, null)
        AS t(b, i8, i32, i64, d, d38, u64, dt, tz, ts, v, bl, j)"""
    )
    types = "boolean int8 int32 int64 decimal(3,2) decimal(38,2) uint64 date timestamptz timestamp"
    types += " varchar blob json"
    columns = [Column(i, name, type_) for i, (name, type_) in enumerate(zip(frame.columns, types.split(), strict=True))]
    stats = stats_of(frame, tmp_path, *columns)
    assert [s.min_value for s in stats.values()] == [
        "1",
        "1",
        "3",
        "4",
        "-1.10",
        "1.10",
        "18446744073709551615",
        "1969-12-31",
        "1969-12-31 23:59:59.5+00",
        "0001-01-01 00:00:00",
        "héllo",
        "00FF",
        "{}",
    ]
    assert all(s.min_value == s.max_value and (s.value_count, s.null_count) == (1, 1) for s in stats.values())
    assert all(s.exact for s in stats.values())


def test_a_nan_takes_the_upper_bound(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT double(x) AS d, float(x) AS f FROM VALUES ('NaN'), ('1.5'), ('-0.1') AS t(x)")
    stats = stats_of(frame, tmp_path, Column(1, "d", "float64"), Column(2, "f", "float32"))
    for one in stats.values():
        assert bounds(one) == ("-0.1", None, 3, 0, True, False)


def test_a_nan_in_one_row_group_of_many(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT if(id = 150000, double('NaN'), double(id)) AS d, uuid() AS u FROM range(0, 200000, 1, 1)")
    one = stats_of(frame, tmp_path, Column(1, "d", "float64"), block=2_000_000)[1]
    (file,) = (tmp_path / "written").glob("*.parquet")
    assert pq.read_metadata(file).num_row_groups > 1
    assert bounds(one) == ("0.0", None, 200_000, 0, True, False)


def test_without_a_nan_the_bounds_are_exact(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT double(x) AS d FROM VALUES ('Infinity'), ('1.5'), (null) AS t(x)")
    assert bounds(stats_of(frame, tmp_path, Column(1, "d", "float64"))[1]) == ("1.5", "inf", 2, 1, False, True)


def test_long_strings_have_neither_bounds_nor_counts(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT if(id = 0, repeat('x', 5000), null) AS v FROM range(2)")
    assert bounds(stats_of(frame, tmp_path, Column(1, "v", "varchar"))[1]) == (None, None, None, None, None, False)


def test_cut_strings_bound_but_are_not_exact(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql("SELECT repeat('x', 50) AS a, repeat('é', 50) AS b, 'short' AS c")
    stats = stats_of(
        frame, tmp_path, Column(1, "a", "varchar"), Column(2, "b", "varchar"), Column(3, "c", "varchar"), cut=11
    )
    assert bounds(stats[1])[:2] == ("x" * 11, "x" * 10 + "y")
    assert [s.exact for s in stats.values()] == [False, False, True]
    assert (stats[2].min_value or "z") <= "é" * 50 <= (stats[2].max_value or "")


def test_nested_fields_with_and_without_ids(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.sql(
        """SELECT array(named_struct('q', map('k', array(1, null)))) AS deep,
        named_struct('a.b', 1, 'c', 'x') AS s, CAST(null AS array<int>) AS l"""
    )
    columns = (
        Column(
            1,
            "deep",
            "list",
            children=(
                Column(
                    2,
                    "element",
                    "struct",
                    children=(
                        Column(
                            3,
                            "q",
                            "map",
                            children=(
                                Column(4, "key", "varchar"),
                                Column(5, "value", "list", children=(Column(6, "element", "int32"),)),
                            ),
                        ),
                    ),
                ),
            ),
        ),
        Column(7, "s", "struct", children=(Column(8, "a.b", "int32"), Column(9, "c", "varchar"))),
        Column(10, "l", "list", children=(Column(11, "element", "int32"),)),
    )
    stats = stats_of(frame, tmp_path, *columns)
    assert {i: bounds(s)[:4] for i, s in stats.items()} == {
        4: ("k", "k", 1, 0),
        6: ("1", "1", 1, 1),
        8: ("1", "1", 1, 0),
        9: ("x", "x", 1, 0),
        11: (None, None, 0, 1),
    }


def test_field_ids_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.sql import types as T

    inner = T.StructType([T.StructField("a", T.IntegerType(), True, {"parquet.field.id": 2})])
    schema = T.StructType([T.StructField("s", inner, True, {"parquet.field.id": 1})])
    frame = spark.createDataFrame([((5,),)], schema)
    columns = Column(1, "renamed", "struct", children=(Column(2, "also_renamed", "int32"), Column(3, "a", "int32")))
    assert {i: s.min_value for i, s in stats_of(frame, tmp_path, columns).items()} == {2: "5"}


@pytest.mark.parametrize(
    "name",
    [
        "a b",
        "a%20b",
        "a%b",
        "a#b",
        "a[1]b",
        "a*b",
        "a?b",
        "a{1,2}b",
        "a\\b",
        "héllo日本",
        "x=EU%2Fx",
        "[!a]",
        "a+b&c",
    ],
)
def test_spark_reads_and_writes_exactly_the_named_file(spark: SparkSession, tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for other in ("aXb", "a1b"):  # a glob pattern would find these as well
        (tmp_path / other).mkdir()
        pq.write_table(pa.table({"x": [2]}), tmp_path / other / f"{name} f.parquet")
    file = str(folder / f"{name} f.parquet")
    pq.write_table(pa.table({"x": [1]}), file)
    row = (
        spark.read.schema("x LONG")
        .parquet(without_globs(spark_path(file)))
        .selectExpr("x", "_metadata.file_path AS p")
        .collect()
    )
    assert [r.x for r in row] == [1]
    assert path_from_spark(row[0].p) == f"file://{file}"
    spark.range(3).write.parquet(spark_path(str(folder / "w")))
    assert spark.read.parquet(without_globs(spark_path(str(folder / "w")))).count() == 3
    assert (folder / "w").is_dir()
