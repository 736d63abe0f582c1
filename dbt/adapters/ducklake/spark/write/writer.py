"""Writes DataFrames as data files, with Spark's own Parquet writer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.files import NewDataFile
from ...lake.paths import resolve
from ...lake.types import Column, decimal_parts
from ..read.parquet import FILE_POOL
from ..read.scan import INTERNAL_ROW_ID, INTERNAL_SNAPSHOT_ID
from ..sql.kept_text import as_text
from ..sql.quoting import quoted
from ..sql.types import query_type, written_field
from .columns import NamedColumn, with_metadata
from .data_files import (
    MAX_STATISTICS_LENGTH,
    check_not_null,
    describe_data_file,
    move_to_partition_folder,
    name_map_of,
    remove_folder,
)
from .encoding import encode
from .end_of_day import with_end_of_day
from .geometry import check_geometries_writable, with_wkb
from .layout import in_one_partition, partition_and_sort, partition_values_of_folders
from .spark_files import SparkFile, SparkFiles, write_with_spark
from .target import WriteTarget
from .write_folder import new_write_folder


def write_dataframe(
    rows: DataFrame,
    target: WriteTarget,
    bytes_per_row: float | None = None,
    row_id: str | None = None,
    kept_text: bool = False,
) -> list[NewDataFile]:
    """Writes rows as data files of a table, which belong to no snapshot yet.

    The rows have the table's columns with their query types, in any order. For new versions of existing rows,
    `row_id` names the column with their row ids. With `kept_text`, some columns are text: see `sql.kept_text`.
    """
    table = target.table
    check_geometries_writable(rows.sparkSession, table)
    columns = tuple(map(as_text, table.columns)) if kept_text else table.columns
    converted = to_table_schema(rows, columns, row_id)
    with new_write_folder(target) as folder:
        files = _checked_files(target, folder, _write(converted, target, folder, bytes_per_row, kept_text))
    return files if row_id is None else [replace(file, holds_updated_rows=True) for file in files]


def write_plain_rows(
    converted: DataFrame, target: WriteTarget, bytes_per_row: float | None, few: int
) -> tuple[list[NewDataFile], pa.Table | None]:
    """Writes rows of plain types that have the table's schema already, as `write_dataframe` does.

    If they turn out to be so `few`, and not none, they are returned and leave no file.
    """
    with new_write_folder(target) as folder:
        files = _write(converted, target, folder, bytes_per_row)
        if 0 < sum(file.record_count for file in files) <= few:
            rows = _rows_of(target, files)
            remove_folder(target, folder)
            return [], rows
        return _checked_files(target, folder, files), None


def _write(
    converted: DataFrame, target: WriteTarget, folder: str, bytes_per_row: float | None, kept_text: bool = False
) -> list[NewDataFile]:
    arranged, partition_columns = partition_and_sort(converted, target, kept_text)
    return _write_arranged(arranged, partition_columns, target, folder, _writer_options(target, bytes_per_row))


def _write_arranged(
    rows: DataFrame,
    partition_columns: Sequence[str],
    target: WriteTarget,
    folder: str,
    options: Mapping[str, str],
    partition_values: tuple[str | None, ...] | None = None,
) -> list[NewDataFile]:
    writer = rows.write.mode("error").options(**options)
    if partition_columns:
        writer = writer.partitionBy(*partition_columns)
    written = write_with_spark(rows.sparkSession, writer, target, folder)
    return _described_files(target, written, partition_values)


def write_moved_rows(
    rows: DataFrame,
    target: WriteTarget,
    row_id: str,
    snapshot_id: str | None = None,
    partition_values: tuple[str | None, ...] | None = None,
    file_count: int = 1,
    bytes_per_row: float | None = None,
) -> list[NewDataFile]:
    """Writes rows that the table has already as other data files, with their row ids in the column `row_id`.

    `snapshot_id` names the column with the snapshot of each row, if the files are to stand for it. With
    `partition_values` all rows are of this partition, and go into at most `file_count` files. Otherwise `bytes_per_row`
    limits the size of files. Some columns are text: see `sql.kept_text`.
    """
    check_geometries_writable(rows.sparkSession, target.table)
    converted = to_table_schema(rows, tuple(map(as_text, target.table.columns)), row_id, snapshot_id)
    partition_columns: list[str] = []
    if partition_values is None:
        arranged, partition_columns = partition_and_sort(converted, target, kept_text=True, sorts=True)
    else:
        arranged = in_one_partition(converted, target, file_count, kept_text=True)
    options = _writer_options(target, bytes_per_row)
    if bytes_per_row is None:
        options["maxRecordsPerFile"] = "0"
    with new_write_folder(target) as folder:
        files = _write_arranged(arranged, partition_columns, target, folder, options, partition_values)
        return _checked_files(target, folder, files)


def _described_files(
    target: WriteTarget, written: SparkFiles, partition_values: tuple[str | None, ...] | None = None
) -> list[NewDataFile]:
    """The files that were just written. Those without rows are deleted.

    All are of the partition with these values, if they are given; otherwise folders tell the values of each.
    """
    table = target.table
    name_map = name_map_of(table.columns)

    def described(file: SparkFile) -> NewDataFile | None:
        values = partition_values or ()
        if table.partition and partition_values is None:
            values = partition_values_of_folders(file.partition, table.partition)
        footer = target.store.read_footer(file.path, written.key)
        return describe_data_file(target, file.path, footer, name_map, written.key, values)

    return [file for file in FILE_POOL.map(described, written.files) if file]


def _checked_files(target: WriteTarget, folder: str, files: list[NewDataFile]) -> list[NewDataFile]:
    """Files of one write, checked. Those of partitions are moved to their folders."""
    table = target.table
    check_not_null(files, table)
    if table.partition:  # the reference merges only files of a partition that are in the same folder
        files = list(FILE_POOL.map(lambda file: move_to_partition_folder(file, target), files))
    if table.partition or not files:
        remove_folder(target, folder)
    return files


def _rows_of(target: WriteTarget, files: Sequence[NewDataFile]) -> pa.Table:
    paths = [resolve(target.folder, file.path, file.path_is_relative) for file in files]
    parts = [target.store.read_table(path, file.encryption_key) for path, file in zip(paths, files, strict=True)]
    return pa.concat_tables(part.select([c.name for c in target.table.columns]) for part in parts)


def to_table_schema(
    rows: DataFrame, columns: Sequence[Column], row_id: str | None = None, snapshot_id: str | None = None
) -> DataFrame:
    """The rows with the types and field ids of the columns, cast by Spark's store assignment rules.

    A number becomes a wider or a narrower one, with an error if it is too large. A string does not become a number.
    """
    fields = [s.StructField(c.name, query_type(c), True) for c in columns]
    internal = {row_id: INTERNAL_ROW_ID, snapshot_id: INTERNAL_SNAPSHOT_ID}
    fields += [s.StructField(name, s.LongType(), True) for name in internal if name is not None]
    rows = with_end_of_day(with_wkb(rows, columns).to(s.StructType(fields)), columns)
    return with_metadata(
        rows, [*map(_written, columns), *_internal_columns(internal, name_map_of(columns) is not None)]
    )


def _internal_columns(internal: Mapping[str | None, s.StructField], by_name: bool) -> Iterator[NamedColumn]:
    """Internal columns as the reference finds them: by field id, or in name-mapped files by a name that is the id.

    Only the column with the usual name has the id: Spark finds a column by its id, but the statistics for a filter by
    its name.
    """
    for name, field in internal.items():
        if name is not None:
            if by_name:
                yield NamedColumn(str(field.metadata["parquet.field.id"]), quoted(name))
            yield NamedColumn(field.name, quoted(name), field.metadata)


def _written(column: Column) -> NamedColumn:
    field = written_field(column)
    sql = encode(quoted(column.name), column)
    value: str | SparkColumn = sql
    if column.children:
        value = nested = F.expr(sql).cast(field.dataType)
        if not column.nulls_allowed:
            message = f"column {column.name} is NOT NULL, and a row has no value for it"
            value = F.when(nested.isNull(), F.raise_error(F.lit(message))).otherwise(nested)
    metadata = dict(field.metadata)
    if column.type == "variant":
        # Spark drops an alias with the name and the metadata of the column in the scan, and then replaces variants in
        # the scan by columns without metadata.
        metadata["lake.written"] = True
    return NamedColumn(column.name, value, metadata)


def _writer_options(target: WriteTarget, bytes_per_row: float | None) -> dict[str, str]:
    compression = target.option("parquet_compression") or "snappy"
    options = {
        "compression": {"lz4_raw": "lz4raw", "lz4": "lz4raw"}.get(compression, compression),
        "parquet.statistics.truncate.length": str(MAX_STATISTICS_LENGTH),
    }
    if level := target.option("parquet_compression_level"):
        options["parquet.compression.codec.zstd.level"] = level
        options["zlib.compress.level"] = level
        options["compression.brotli.quality"] = level
    if rows := target.option("parquet_row_group_size"):
        options["parquet.block.row.count.limit"] = rows
    if size := target.option("parquet_row_group_size_bytes"):
        options["parquet.block.size"] = size
    # DuckDB can not decrypt data pages of version 2.
    if (target.option("parquet_version") or "V1").upper() == "V2" and not target.store.encrypts:
        options["parquet.writer.version"] = "PARQUET_2_0"
    file_size = int(target.option("target_file_size") or 0)
    if file_size:
        per_row = bytes_per_row or sum(_width(c) for c in target.table.columns)
        options["maxRecordsPerFile"] = str(max(1, int(file_size / max(per_row, 0.1))))
    return options


def _width(column: Column) -> float:
    """A guess of the bytes that a value of the column takes in a file, for a table without files."""
    if column.children:
        return sum(_width(c) for c in column.children)
    if decimal_parts(column.type):
        return 8.0
    return {"boolean": 0.2, "int8": 1, "int16": 2, "int32": 4, "float32": 4, "date": 4}.get(column.type, 8.0) + (
        8.0 if column.type in ("varchar", "json", "blob", "variant", "geometry") else 0.0
    )
