"""Reading Parquet files with Spark, and what a row knows of its file."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.files import DataFile

WORKERS = ThreadPoolExecutor(16, thread_name_prefix="lake-files")
"""Who reads and writes small files for the driver."""


@dataclass(frozen=True)
class Storage:
    """How the lake's paths are read: by Spark, and by the driver for footers."""

    spark_path: Callable[[str], str]
    open_footer: Callable[[str], pq.FileMetaData]
    deleted: Callable[[DataFile], pa.Table]
    """What a data file's delete files say."""
    size: Callable[[str], int]
    """How large a file is that is there."""
    kept: Callable[[Hashable, Callable[[], DataFrame]], DataFrame]
    """Rows of the driver's under a key, made where they are not there."""


def undivided(rows: DataFrame) -> DataFrame:
    """The same rows, for a query that says EXISTS.

    Rows of several groups of files are a union, into which Spark moves what is selected of it. It fails to move an
    EXISTS (key not found), and moves nothing past this, but for conditions and the choice of columns.
    """
    return rows.coalesce(_MOST_TASKS)


def read_parquet(spark: SparkSession, schema: s.StructType, paths: Sequence[str]) -> DataFrame:
    """These files, and no others.

    Where there is a JVM at hand a long list of paths goes there as one text: py4j would take a call
    for each of them.
    """
    reader: Any = spark.read.schema(schema)
    jvm = getattr(spark, "_jvm", None) if len(paths) > _MANY and hasattr(reader, "_jreader") else None
    if jvm is None or any("\n" in path for path in paths):
        rows: DataFrame = reader.parquet(*paths)
        return rows
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    array = jvm.org.apache.commons.lang3.StringUtils.split("\n".join(paths), "\n")
    return ClassicDataFrame(reader._jreader.parquet(array), spark)


_MANY = 100

_MOST_TASKS = 1_000_000
"""More than there are, so that none are joined."""


def file_name(paths: Iterable[str]) -> Column:
    """The name of the file that a row is from, as the catalog has it: Spark gives it URL-encoded."""
    name = F.col("_metadata.file_name")
    if all(_PLAIN_NAME.fullmatch(base_name(path)) for path in paths):
        return name
    return decoded(name)


def decoded(text: Column) -> Column:
    """The text without its URL encoding, in which a plus is a plus."""
    return F.url_decode(F.regexp_replace(text, r"\+", "%2B"))


_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")


def base_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
