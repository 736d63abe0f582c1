"""The time 24:00:00, which DuckDB has. Spark's TIME holds and writes it, but no function of Spark's returns it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake.types import Column
from ..read.local_rows import arrow_dataframe
from .encoding import END_OF_DAY

_MICROSECONDS = 86_400 * 10**6


def with_end_of_day(rows: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The rows with the column `END_OF_DAY`, if the table has times."""
    if not any(field.type == "time" for column in columns for field in column.walk()):
        return rows
    time = pa.array([_MICROSECONDS], pa.int64()).cast(pa.time64("us"))
    return rows.crossJoin(F.broadcast(arrow_dataframe(rows.sparkSession, pa.table({END_OF_DAY: time}))))
