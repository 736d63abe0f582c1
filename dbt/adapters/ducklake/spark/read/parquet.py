"""Reading Parquet files: with Spark, and small ones with the driver."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as s

from ...lake.files import DataFile, DeleteFile
from ...lake.paths import scheme_of, without_globs
from ...lake.snapshot_loader import ColumnHistory
from ..engine.java_classes import DATA_FILES, has_own_classes
from ..engine.parquet_encryption import encrypted_paths_in

FILE_POOL = ThreadPoolExecutor(16, thread_name_prefix="lake-files")
"""The threads with which the driver reads and writes small files."""


@dataclass(frozen=True)
class FileReader:
    """How a scan reads the files of a lake: functions that take the lake's paths and cache what they read."""

    spark_path: Callable[[DataFile | DeleteFile], str]
    """The path of a file in Spark."""
    read_footer: Callable[[DataFile], pq.FileMetaData]
    read_deletes: Callable[[DataFile], pa.Table]
    """The rows of a data file's delete files: positions, and the snapshots that deleted them."""
    read_delete_file: Callable[[DeleteFile], pa.Table]
    """The rows of one delete file, which are not cached."""
    file_size: Callable[[str], int]
    cached_dataframe: Callable[[Hashable, Callable[[], DataFrame]], DataFrame]
    """Returns the DataFrame that is cached under a key, created by the function if there is none."""
    column_history: Callable[[int], ColumnHistory]
    """Returns what the columns of a table were, given the table's id."""


def union_barrier(rows: DataFrame) -> DataFrame:
    """The same rows behind an operator that keeps EXISTS out of a union.

    Several scan groups form a union, and Spark pushes a projection over it into the branches. It fails (key not found)
    if the projection has a correlated EXISTS. Past a coalesce it pushes nothing but filters and column pruning.
    """
    return rows.coalesce(_MAX_TASKS)


def read_parquet(
    spark: SparkSession, schema: s.StructType, file_reader: FileReader, files: Sequence[DataFile | DeleteFile]
) -> DataFrame:
    """The rows of exactly these files."""
    reader: Any = spark.read.schema(schema)
    paths = [file_reader.spark_path(file) for file in files]
    with encrypted_paths_in(spark, *paths):
        if reads_known_sizes(spark, files):
            lines = (f"{file.file_size_bytes} {path}" for file, path in zip(files, paths, strict=True))
            rows: DataFrame = reader.format(DATA_FILES).option("files", "\n".join(lines)).load()
            return rows
        return _read_paths(spark, reader, [without_globs(path) for path in paths])


def reads_known_sizes(spark: SparkSession, files: Sequence[DataFile | DeleteFile]) -> bool:
    """Whether Spark takes the sizes of these files from the catalog, and so need not look the files up.

    On HDFS it does look them up: it learns where the blocks of a file are.
    """
    return has_own_classes(spark) and all(
        file.file_size_bytes is not None and "\n" not in file.path and scheme_of(file.path) not in ("hdfs", "viewfs")
        for file in files
    )


def _read_paths(spark: SparkSession, reader: Any, paths: Sequence[str]) -> DataFrame:
    """The rows of files that Spark looks up.

    A long list of paths goes to a local JVM as one string, since py4j needs a call for each element of a list.
    """
    jvm = getattr(spark, "_jvm", None) if len(paths) > _MAX_PY4J_PATHS and hasattr(reader, "_jreader") else None
    if jvm is None or any("\n" in path for path in paths):
        rows: DataFrame = reader.parquet(*paths)
        return rows
    from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

    array = jvm.org.apache.commons.lang3.StringUtils.split("\n".join(paths), "\n")
    return ClassicDataFrame(reader._jreader.parquet(array), spark)


_MAX_PY4J_PATHS = 100
"""Longer lists of paths go to the JVM as one string."""

_MAX_TASKS = 1_000_000
"""More tasks than a scan ever has, so that coalesce merges none."""
