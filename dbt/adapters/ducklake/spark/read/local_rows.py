"""Small DataFrames from rows that the driver holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s
from pyspark.sql.pandas.types import from_arrow_schema


def few(spark: SparkSession, rows: Iterable[Sequence[Any]], **columns: pa.DataType) -> DataFrame:
    """Rows that the driver has. They go to Spark as Arrow: a list of tuples would pass through a Python worker."""
    values = list(rows)
    arrays = [pa.array([row[i] for row in values], kind) for i, kind in enumerate(columns.values())]
    return local_rows(spark, pa.table(arrays, names=list(columns)))


def local_rows(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A small Arrow table as a DataFrame; Spark Connect takes none without rows."""
    return spark.createDataFrame(table) if table.num_rows else no_rows(spark, from_arrow_schema(table.schema))


def no_rows(spark: SparkSession, schema: s.StructType) -> DataFrame:
    return spark.range(0).select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields))
