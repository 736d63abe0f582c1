"""From a DataFrame to data files: Spark's own Parquet writer, then one look at each footer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pyarrow.fs as pafs
import pyarrow.parquet as pq
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.errors import ConstraintError, LakeError, UnsupportedError
from ...lake.files import NameMap, NameMapEntry, NewDataFile
from ...lake.options import Options
from ...lake.partitions import (
    HIVE_NULL,
    Identity,
    PartitionField,
    PartitionSpec,
    hive_folder,
    parse_hive_folder,
    partition_text_sql,
)
from ...lake.paths import as_folder, new_file_name, new_uuid7, relative_to
from ...lake.snapshot import Table
from ...lake.sorting import SortKey
from ...lake.stats import file_stats
from ...lake.types import Column, decimal_parts
from ..read.parquet import WORKERS
from ..read.scan import INTERNAL_ROW_ID
from ..sql.types import query_type, quoted, string_literal, written_field
from .encoding import to_file

TRUNCATE_AT = 2000
"""Bytes of a string that statistics keep: more, and the writer leaves them out altogether."""

_PART = "_lake_part_"
_EMPTY = "~"
"""What comes before texts in a folder's name that Spark would take for NULL, and before those that begin so."""


@dataclass(frozen=True)
class Target:
    """Where a table's files go, and how."""

    table: Table
    folder: str
    options: Options
    filesystem: pafs.FileSystem
    native: Callable[[str], str]
    spark_target: Callable[[str], str]

    def option(self, name: str) -> str | None:
        return self.options.get(name, self.table.schema_id, self.table.id)

    def flag(self, name: str) -> bool:
        return self.options.flag(name, self.table.schema_id, self.table.id)


def write(
    rows: DataFrame, target: Target, bytes_per_row: float | None = None, row_id: str | None = None
) -> list[NewDataFile]:
    """Writes the rows as files of the table; they are part of no snapshot yet.

    The rows have the table's columns, as a query sees them, in any order. New versions of rows that
    were there keep their row ids, which the column `row_id` has.
    """
    table = target.table
    _check_writable(table)
    folder = f"{target.folder}ducklake-{new_uuid7()}/"
    shaped = as_table(rows, table.columns, row_id)
    arranged, keys = _arrange(shaped, target)
    writer = arranged.write.mode("error").options(**_writer_options(target, bytes_per_row))
    if keys:
        writer = writer.partitionBy(*keys)
    try:
        writer.parquet(target.spark_target(folder))
        files = _committable(target, folder)
        return files if row_id is None else [replace(file, versions=True) for file in files]
    except BaseException:
        remove_folder(target, folder)
        raise


def _committable(target: Target, folder: str) -> list[NewDataFile]:
    """The files in a folder that was just written, checked and under their lasting names."""
    table = target.table
    name_map = name_map_of(table.columns)
    written = written_files(target, folder)
    files = [f for f in WORKERS.map(lambda f: data_file(target, f[0], f[1], name_map), written) if f]
    check_not_null(files, table)
    if table.partition:
        files = list(WORKERS.map(lambda file: _moved(file, target), files))
    if table.partition or not files:
        remove_folder(target, folder)
    return files


def _check_writable(table: Table) -> None:
    for column in table.columns:
        if any(c.type == "geometry" for c in column.walk()):
            raise UnsupportedError(
                f"column {column.name} of table {table.name} is a geometry, which Spark can read but not write yet;"
                " write to this table with DuckDB, or keep the shape in a blob column"
            )


def as_table(rows: DataFrame, columns: Sequence[Column], row_id: str | None = None) -> DataFrame:
    """The rows with the types and field ids of the columns, cast as Spark stores into a table.

    Spark's own rules decide what may be cast: a number into a wider or narrower one (too large is
    an error), but no text into a number.
    """
    fields = [s.StructField(c.name, query_type(c), True) for c in columns]
    if row_id is not None:
        fields.append(s.StructField(row_id, s.LongType(), True))
    rows = rows.to(s.StructType(fields))
    # The ids are put on with aliases: those that `to` puts on columns are lost where the optimizer
    # replaces a column by what it is computed from.
    written = [_written_column(c) for c in columns]
    if row_id is not None:
        written += _row_id_columns(F.col(row_id), by_name=name_map_of(columns) is not None)
    return rows.select(*written)


def _row_id_columns(row_id: SparkColumn, by_name: bool) -> list[SparkColumn]:
    """The row ids as the reference finds them: by their field id, called like it where columns go by names."""
    metadata = INTERNAL_ROW_ID.metadata
    if not by_name:
        return [row_id.alias(INTERNAL_ROW_ID.name, metadata=metadata)]
    return [row_id.alias(str(metadata["parquet.field.id"]), metadata=metadata), row_id.alias(INTERNAL_ROW_ID.name)]


def _written_column(column: Column) -> SparkColumn:
    field = written_field(column)
    value = F.expr(to_file(quoted(column.name), column))
    if column.children:
        value = value.cast(field.dataType)
        if not column.nulls_allowed:
            message = f"column {column.name} is NOT NULL, and a row has no value for it"
            value = F.when(value.isNull(), F.raise_error(F.lit(message))).otherwise(value)
    return value.alias(column.name, metadata=field.metadata)


def _arrange(rows: DataFrame, target: Target) -> tuple[DataFrame, list[str]]:
    """The rows in the partitions and the order of the table, and the columns that split them."""
    spec, sort = target.table.partition, target.table.sort
    order = sort_columns(sort.keys, target.table) if sort and target.flag("sort_on_insert") else []
    if spec is None:
        if order:
            # Each task gets one range, so that the files' bounds overlap little.
            rows = rows.repartitionByRange(*order).sortWithinPartitions(*order)
        return rows, []
    keys = []
    for field in spec.fields:
        column = next(c for c in target.table.columns if c.id == field.column_id)
        text = _key_text(column, field)
        keys.append(f"{_PART}{field.index}")
        rows = rows.withColumn(keys[-1], F.expr(text))
    # One task a partition, as far as it is not too large for one: few files, each full.
    rows = rows.hint("rebalance", *(F.col(k) for k in keys))
    if order:
        rows = rows.sortWithinPartitions(*keys, *order)
    return rows, keys


def partition_text(column: Column, field: PartitionField) -> str:
    """The Spark SQL for a row's partition value as the catalog has it."""
    value = quoted(column.name)
    if column.type == "time":
        moment = f"cast(concat('1970-01-01 ', cast({value} as string)) as timestamp_ntz)"
        value = f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {moment})"
    if isinstance(field.transform, Identity):
        return partition_text_sql(value, column.type)
    return f"cast({field.transform.spark_sql(value, column.type)} as string)"


def _key_text(column: Column, field: PartitionField) -> str:
    """The same, as Spark makes a folder's name of it and takes neither '' nor its own word for NULL."""
    text = partition_text(column, field)
    if column.type not in ("varchar", "json", "blob") or not isinstance(field.transform, Identity):
        return text
    mark, null = string_literal(_EMPTY), string_literal(HIVE_NULL)
    taken = f"{text} in ('', {null}) or startswith({text}, {mark})"
    return f"case when {taken} then concat({mark}, {text}) else {text} end"


def sort_columns(keys: Sequence[SortKey], table: Table) -> list[SparkColumn]:
    """A table's sort order in Spark; keys in DuckDB's words are translated."""
    result = []
    for key in keys:
        value = F.expr(sort_expression(key, table))
        if key.descending:
            result.append(value.desc_nulls_first() if key.nulls_first else value.desc_nulls_last())
        else:
            result.append(value.asc_nulls_first() if key.nulls_first else value.asc_nulls_last())
    return result


def sort_expression(key: SortKey, table: Table) -> str:
    """What a key sorts by, in Spark's SQL."""
    return key.expression if key.dialect == "spark" else _translated(key.expression, key.dialect, table)


def _translated(expression: str, dialect: str, table: Table) -> str:
    import sqlglot

    try:
        return sqlglot.transpile(expression, read=dialect, write="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)[0]
    except sqlglot.errors.SqlglotError as error:
        raise LakeError(
            f"table {table.name} is sorted by {expression!r}, which can not be said in Spark's SQL;"
            " set another order (ALTER TABLE ... SET SORTED BY), or the option sort_on_insert to false"
        ) from error


def _writer_options(target: Target, bytes_per_row: float | None) -> dict[str, str]:
    compression = target.option("parquet_compression") or "snappy"
    options = {
        "compression": {"lz4_raw": "lz4raw", "lz4": "lz4raw"}.get(compression, compression),
        "parquet.statistics.truncate.length": str(TRUNCATE_AT),
        "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "parquet.summary.metadata.level": "NONE",
    }
    if level := target.option("parquet_compression_level"):
        options["parquet.compression.codec.zstd.level"] = level
        options["zlib.compress.level"] = level
        options["compression.brotli.quality"] = level
    if rows := target.option("parquet_row_group_size"):
        options["parquet.block.row.count.limit"] = rows
    if size := target.option("parquet_row_group_size_bytes"):
        options["parquet.block.size"] = size
    if (target.option("parquet_version") or "V1").upper() == "V2":
        options["parquet.writer.version"] = "PARQUET_2_0"
    file_size = int(target.option("target_file_size") or 0)
    if file_size:
        per_row = bytes_per_row or sum(_width(c) for c in target.table.columns)
        options["maxRecordsPerFile"] = str(max(1, int(file_size / max(per_row, 0.1))))
    return options


def _width(column: Column) -> float:
    """About how many bytes a value of the column takes in a file, before anything is known of it."""
    if column.children:
        return sum(_width(c) for c in column.children)
    if decimal_parts(column.type):
        return 8.0
    return {"boolean": 0.2, "int8": 1, "int16": 2, "int32": 4, "float32": 4, "date": 4}.get(column.type, 8.0) + (
        8.0 if column.type in ("varchar", "json", "blob", "variant") else 0.0
    )


def written_files(target: Target, folder: str) -> list[tuple[str, int]]:
    """The path and size of every Parquet file below a folder."""
    native = target.native(folder)
    found = target.filesystem.get_file_info(pafs.FileSelector(native, recursive=True, allow_not_found=True))
    base = as_folder(native)
    checksums = [f.path for f in found if f.base_name.endswith(".crc")]
    for path in checksums:  # Hadoop's checksums of local files: nobody would ever clean them up
        target.filesystem.delete_file(path)
    return sorted(
        (folder + info.path[len(base) :], info.size)
        for info in found
        if info.type == pafs.FileType.File and info.base_name.endswith(".parquet")
    )


def data_file(target: Target, path: str, size: int, name_map: NameMap | None) -> NewDataFile | None:
    """What the catalog keeps of a file; None of one without rows, which is removed."""
    native = target.native(path)
    metadata = pq.read_metadata(native, filesystem=target.filesystem)
    if metadata.num_rows == 0:
        target.filesystem.delete_file(native)
        return None
    _check_ids(metadata, target.table)
    spec = target.table.partition
    values = _partition_values(path, spec) if spec else ()
    relative, is_relative = relative_to(path, target.folder)
    return NewDataFile(
        path=relative,
        path_is_relative=is_relative,
        record_count=metadata.num_rows,
        file_size_bytes=size,
        footer_size=metadata.serialized_size,
        stats=file_stats(metadata, target.table.columns, truncated_at=TRUNCATE_AT),
        partition_id=spec.id if spec else None,
        partition_values=values,
        name_map=name_map,
        partition=spec,
    )


def _check_ids(metadata: pq.FileMetaData, table: Table) -> None:
    """Raises where a file lacks the field id of a column: readers would take it for missing."""
    fields = {f.name: (f.metadata or {}).get(b"PARQUET:field_id") for f in metadata.schema.to_arrow_schema()}
    for column in table.columns:
        if fields.get(column.name) != str(column.id).encode():
            raise LakeError(
                f"Spark wrote column {column.name} of table {table.name} without its field id; nothing was changed."
                " This is a bug: please report it with the query"
            )


def _partition_values(path: str, spec: PartitionSpec) -> tuple[str | None, ...]:
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        if folder.startswith(_PART):
            key, value = parse_hive_folder(folder)
            found[key] = value[len(_EMPTY) :] if value is not None and value.startswith(_EMPTY) else value
    return tuple(found[f"{_PART}{field.index}"] for field in spec.fields)


def check_not_null(files: Sequence[NewDataFile], table: Table) -> None:
    """Raises where a file holds a NULL that its column does not take."""
    for column in table.columns:
        if column.nulls_allowed or column.children:  # a nested column is checked row by row
            continue
        for file in files:
            stats = file.stats.get(column.id)
            if stats is None or stats.null_count != 0:
                count = stats.null_count if stats else file.record_count
                raise ConstraintError(
                    f"column {column.name} of table {table.name} is NOT NULL, and {count} of the new rows have no"
                    " value for it; nothing was written to the table"
                )


def _moved(file: NewDataFile, target: Target) -> NewDataFile:
    """The file under its lasting name: in folders that tell its partition, or in the table's own."""
    spec = target.table.partition
    assert spec is not None
    where = ""
    if target.flag("hive_file_pattern"):
        used: set[str] = set()
        for field, value in zip(spec.fields, file.partition_values, strict=True):
            column = next(c for c in target.table.columns if c.id == field.column_id)
            key = field.transform.hive_key(column.name, used)
            used.add(key)
            where += hive_folder(key, value) + "/"
    new = where + new_file_name()
    target.filesystem.create_dir(target.native(target.folder + where), recursive=True)
    target.filesystem.move(target.native(target.folder + file.path), target.native(target.folder + new))
    return replace(file, path=new)


def remove_folder(target: Target, folder: str) -> None:
    """Removes the folder of one write, from which everything of use is gone."""
    native = target.native(folder)
    if target.filesystem.get_file_info(native).type == pafs.FileType.Directory:
        target.filesystem.delete_dir(native)


def name_map_of(columns: Sequence[Column]) -> NameMap | None:
    """The names by which the reference finds what Spark gives no field ids: parts of lists and maps."""
    if not any(c.type in ("list", "map") for top in columns for c in top.walk()):
        return None

    def entry(column: Column, in_list: bool = False) -> NameMapEntry:
        return NameMapEntry(
            "list" if in_list else column.name,
            column.id,
            False,
            tuple(entry(c, column.type == "list") for c in column.children),
        )

    return tuple(entry(c) for c in columns)
