"""Whether the source of a join is small enough to be broadcast."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import types as s

from ..sql.quoting import quoted

MAX_BROADCAST_BYTES = 64 * 2**20
"""Rows of up to this size are sent to every task, so that the table that they are joined to is not shuffled."""


def fits_broadcast(rows: DataFrame) -> bool:
    """Whether checkpointed rows are few enough to be sent to every task.

    Spark knows no size of checkpointed rows. Without a hint it would shuffle and sort both sides of the join.
    """
    if (rows.sparkSession.conf.get("spark.sql.autoBroadcastJoinThreshold") or "").startswith("-"):
        return False
    sizes = ["8", *(_size_sql(f) for f in rows.schema.fields)]
    try:
        size = rows.selectExpr(f"sum({' + '.join(sizes)}) as bytes").toArrow().column(0)[0].as_py()
    except PySparkException:
        return False  # a nested value without a JSON form
    return (size or 0) <= MAX_BROADCAST_BYTES


def _size_sql(field: s.StructField) -> str:
    """The SQL for the approximate size of a value in bytes."""
    name = quoted(field.name)
    if isinstance(field.dataType, s.StringType | s.BinaryType):
        return f"coalesce(octet_length({name}), 0) + 8"
    if isinstance(field.dataType, s.StructType | s.ArrayType | s.MapType | s.VariantType):
        return f"coalesce(octet_length(to_json(named_struct('v', {name}))), 0)"
    return "8"
