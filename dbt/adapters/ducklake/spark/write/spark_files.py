"""Spark's Parquet writer, and the files that it has written.

With the commit protocol in `engine/java_classes/write`, Spark writes files where they stay, and lists those of tasks
that counted. Without it, in a Spark that was started elsewhere, Hadoop's committer moves them when the job is done to
the folder of the write, in folders by Spark's names of the partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow.fs as pafs
from pyspark.sql import DataFrameWriter, SparkSession

from ...lake.encryption import FileKey
from ...lake.paths import as_folder, new_uuid7, spark_path
from ..engine.java_classes import WRITTEN_FILES, has_own_classes
from ..engine.parquet_encryption import encrypted_path, encrypted_paths_in
from .target import WriteTarget

_OPTIONS = {"mapreduce.fileoutputcommitter.marksuccessfuljobs": "false", "parquet.summary.metadata.level": "NONE"}


@dataclass(frozen=True)
class SparkFile:
    path: str
    partition: str
    """The folders by which Spark tells its partition, `a=1/b=2`; empty if there is none."""


@dataclass(frozen=True)
class SparkFiles:
    """The files of a write, in the order of their rows."""

    files: Sequence[SparkFile]
    are_in_place: bool
    key: FileKey | None
    """The key that they are encrypted with."""


def write_with_spark(
    spark: SparkSession,
    writer: DataFrameWriter,
    target: WriteTarget,
    folder: str,
    name_end: str | None = None,
) -> SparkFiles:
    """Writes Parquet files into a new folder of the lake. Those that are written in place have names with this end."""
    write_id = new_uuid7()
    writer = writer.options(**_OPTIONS).option("ducklake.write.id", write_id)
    if name_end is not None:
        writer = writer.option("ducklake.write.name.end", name_end)
    key, path = target.store.new_key(), spark_path(folder)
    if key is not None:
        path = encrypted_path(path, key)
    with encrypted_paths_in(spark, path):
        writer.parquet(path)
    if not has_own_classes(spark):
        return SparkFiles(_files_in(target, folder), False, key)
    (listed,) = spark.read.format(WRITTEN_FILES).option("id", write_id).load().schema.names
    files = [line.split("\t") for line in listed.split("\n") if line]
    return SparkFiles([SparkFile(folder + name, partition) for partition, name in files], True, key)


def _files_in(target: WriteTarget, folder: str) -> list[SparkFile]:
    """Every Parquet file below a folder. Removes the checksum files of Hadoop on the way."""
    native = target.native_path(folder)
    found = target.filesystem.get_file_info(pafs.FileSelector(native, recursive=True, allow_not_found=True))
    base = as_folder(native)
    for info in found:  # Hadoop writes checksums beside local files, and nothing else would ever remove them
        if info.base_name.endswith(".crc"):
            target.filesystem.delete_file(info.path)
    names = sorted(
        info.path[len(base) :]
        for info in found
        if info.type == pafs.FileType.File and info.base_name.endswith(".parquet")
    )
    return [SparkFile(folder + name, name.rpartition("/")[0]) for name in names]
