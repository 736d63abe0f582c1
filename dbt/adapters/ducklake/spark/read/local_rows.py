"""DataFrames from a few rows that the driver holds. They go to Spark as Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as s
from pyspark.sql.pandas.types import from_arrow_schema


def small_dataframe(spark: SparkSession, rows: Iterable[Sequence[Any]], **columns: pa.DataType) -> DataFrame:
    """The rows as a DataFrame with these columns. A list of tuples would pass through a Python worker."""
    values = list(rows)
    arrays = [pa.array([row[i] for row in values], kind) for i, kind in enumerate(columns.values())]
    return arrow_dataframe(spark, pa.table(arrays, names=list(columns)))


def arrow_dataframe(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A small Arrow table as a DataFrame. Spark Connect does not take a table without rows."""
    # Otherwise Spark takes local times for moments in the session's time zone, which does not have all of them.
    schema = from_arrow_schema(table.schema, prefer_timestamp_ntz=True)
    return spark.createDataFrame(table, schema) if table.num_rows else empty_dataframe(spark, schema)


def empty_dataframe(spark: SparkSession, schema: s.StructType) -> DataFrame:
    return spark.range(0).select().to(schema)  # which adds columns that are missing
