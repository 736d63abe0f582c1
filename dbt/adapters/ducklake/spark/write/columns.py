"""Columns with metadata, such as their field ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ..engine.java_classes import has_own_classes
from ..engine.progress import is_connect


@dataclass(frozen=True)
class NamedColumn:
    name: str
    value: str | Column
    """Its SQL, or the expression."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


def with_metadata(rows: DataFrame, columns: Sequence[NamedColumn]) -> DataFrame:
    """The columns, as aliases that carry the metadata.

    With `to` it would be lost where the optimizer replaces a column by the expression that computes it. A local JVM
    makes all of them in one call: from Python each takes a dozen.
    """
    spark = rows.sparkSession
    all_sql = all(isinstance(column.value, str) for column in columns)
    if not all_sql or is_connect(spark) or not has_own_classes(spark):
        return rows.select(
            *(
                (F.expr(c.value) if isinstance(c.value, str) else c.value).alias(c.name, metadata=dict(c.metadata))
                for c in columns
            )
        )
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    schema = s.StructType()
    for column in columns:
        metadata = {"sql": column.value, **({"metadata": dict(column.metadata)} if column.metadata else {})}
        schema.add(column.name, s.NullType(), metadata=metadata)
    java: Any = spark._jvm
    return ClassicDataFrame(java.dbt.ducklake.write.Columns.select(rows._jdf, schema.json()), spark)
