"""The rows of a change feed as DataFrames: inserted and deleted rows, and both as changes.

While they are computed, rows have internal column names, since a table's columns may have any name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ...lake.change_feed import ChangeFeed, DataFileDeletes
from ...lake.deletes import SNAPSHOT_COLUMN
from ...lake.inlined_inserts import only_staged
from ...lake.snapshot import Table
from ..sql.virtual_columns import ROW_ID, SNAPSHOT_ID
from .delete_files import NUMBER, deleted_positions
from .delete_files import POSITION as DELETED_POSITION
from .local_rows import small_dataframe
from .parquet import FileReader
from .position_keys import position_keys
from .scan import FILE, POSITION, TableScan, internal_names, scan_dataframe

CHANGE_TYPE = "change_type"

_ROW_ID, _SNAPSHOT, _POSITION_KEY, _DELETED_AT = "_lake_row_id", "_lake_snapshot", "_lake_position_key", "_lake_gone"
_MAX_BROADCAST_POSITIONS = 2_000_000
"""Up to so many deleted positions are broadcast."""


def changes(spark: SparkSession, file_reader: FileReader, feed: ChangeFeed) -> DataFrame:
    """The inserted and deleted rows with their change type.

    A row that is both inserted and deleted in one snapshot, by its row id, is updated.
    """
    inserted, deleted = _inserted(spark, file_reader, feed), _deleted(spark, file_reader, feed)
    if not (feed.inserted_files or feed.inserted_inlined_rows):
        rows = deleted.withColumn(CHANGE_TYPE, F.lit("delete"))
    elif not (feed.file_deletes or feed.deleted_inlined_rows):
        rows = inserted.withColumn(CHANGE_TYPE, F.lit("insert"))
    else:
        rows = _with_change_types(inserted, deleted)
    return _change_columns(rows, feed.table)


def staged_changes(
    spark: SparkSession, file_reader: FileReader, before: TableScan, now: TableScan, snapshot: int
) -> DataFrame:
    """The changes that a transaction has staged, as those of the coming `snapshot`. For the scans see `_staged`."""
    gone, added = _staged(spark, file_reader, before, now)
    inserted, deleted = (rows.withColumn(_SNAPSHOT, F.lit(snapshot).cast("bigint")) for rows in (added, gone))
    return _change_columns(_with_change_types(inserted, deleted), now.table)


def staged_rows_with_id(
    spark: SparkSession, file_reader: FileReader, before: TableScan, now: TableScan, row_id: str
) -> tuple[DataFrame, DataFrame]:
    """The rows that a transaction has deleted and those that it has added, with their ids in a column of this name."""
    gone, added = _staged(spark, file_reader, before, now)
    return _with_row_id(gone, now.table, row_id), _with_row_id(added, now.table, row_id)


def _staged(
    spark: SparkSession, file_reader: FileReader, before: TableScan, now: TableScan
) -> tuple[DataFrame, DataFrame]:
    """The deleted and the added rows, by the scans of one table without what is staged and with it.

    Files that the transaction left alone are not read.
    """
    files_now = {file.id: file for file in now.files}
    changed = [file for file in before.files if files_now.get(file.id) != file]
    left = [files_now[file.id] for file in changed if file.id in files_now]
    ids_left = _scan(spark, file_reader, replace(now, files=left)).select(F.col(_ROW_ID).alias("_lake_left"))
    gone = _scan(spark, file_reader, replace(before, files=changed))
    gone = gone.join(ids_left, F.col(_ROW_ID) == F.col("_lake_left"), "left_anti")
    inlined = now.inlined and only_staged(now.inlined)
    return gone, _scan(spark, file_reader, replace(now, files=[f for f in now.files if f.id < 0], inlined=inlined))


def _with_change_types(inserted: DataFrame, deleted: DataFrame) -> DataFrame:
    sides = (inserted, deleted, "insert", "update_postimage"), (deleted, inserted, "delete", "update_preimage")
    parts = []
    for rows, other_side, change_type, update_type in sides:
        # Some transactions insert and delete a row more than once.
        keys = other_side.select(
            F.col(_ROW_ID).alias("_lake_other_row_id"),
            F.col(_SNAPSHOT).alias("_lake_other_snapshot"),
            F.lit(True).alias("_lake_is_update"),
        ).distinct()
        is_same = (F.col(_ROW_ID) == F.col("_lake_other_row_id")) & (F.col(_SNAPSHOT) == F.col("_lake_other_snapshot"))
        kind = F.when(F.col("_lake_is_update"), F.lit(update_type)).otherwise(F.lit(change_type))
        parts.append(rows.join(keys, is_same, "left").select(*rows.columns, kind.alias(CHANGE_TYPE)))
    return parts[0].union(parts[1])


def all_rows_as_inserts(spark: SparkSession, file_reader: FileReader, scan: TableScan) -> DataFrame:
    """All rows of a table as changes of type `insert`, each with the snapshot that inserted it or, staged, will."""
    coming = F.lit(scan.snapshot_id + 1).cast("bigint")
    rows = _scan(spark, file_reader, scan).withColumn(_SNAPSHOT, F.coalesce(F.col(_SNAPSHOT), coming))
    return _change_columns(rows.withColumn(CHANGE_TYPE, F.lit("insert")), scan.table)


def inserted_rows(
    spark: SparkSession, file_reader: FileReader, feed: ChangeFeed, with_virtual_columns: bool
) -> DataFrame:
    return _table_columns(_inserted(spark, file_reader, feed), feed.table, with_virtual_columns)


def deleted_rows(
    spark: SparkSession, file_reader: FileReader, feed: ChangeFeed, with_virtual_columns: bool
) -> DataFrame:
    return _table_columns(_deleted(spark, file_reader, feed), feed.table, with_virtual_columns)


def deleted_rows_with_id(spark: SparkSession, file_reader: FileReader, feed: ChangeFeed, row_id: str) -> DataFrame:
    """The deleted rows, with their row ids in a column of this name."""
    return _with_row_id(_deleted(spark, file_reader, feed), feed.table, row_id)


def rows_with_id_since(
    spark: SparkSession, file_reader: FileReader, scan: TableScan, since: int, row_id: str
) -> DataFrame:
    """The rows of a scan that were inserted after a snapshot, with their row ids in a column of this name."""
    files = [f for f in scan.files if max(f.begin_snapshot or 0, f.partial_max or 0) > since]
    inlined = None if scan.inlined is None else scan.inlined.since(since)
    rows = _scan(spark, file_reader, replace(scan, files=files, inlined=inlined)).where(F.col(_SNAPSHOT) > since)
    return _with_row_id(rows, scan.table, row_id)


# -- inserted and deleted rows, under internal names, with row id and snapshot


def _inserted(spark: SparkSession, file_reader: FileReader, feed: ChangeFeed) -> DataFrame:
    scan = TableScan(feed.table, feed.end, feed.inserted_files, feed.name_maps or {}, feed.inserted_inlined_rows)
    rows = _scan(spark, file_reader, scan).where(F.col(_SNAPSHOT).between(feed.start, feed.end))
    return rows.where(~F.col(_SNAPSHOT).isin(*feed.rewrites)) if feed.rewrites else rows


def _deleted(spark: SparkSession, file_reader: FileReader, feed: ChangeFeed) -> DataFrame:
    rows = _scan(spark, file_reader, TableScan(feed.table, feed.end, (), {}, feed.deleted_inlined_rows))
    return rows.union(_deleted_from_files(spark, file_reader, feed)) if feed.file_deletes else rows


def _scan(spark: SparkSession, file_reader: FileReader, scan: TableScan) -> DataFrame:
    rows = scan_dataframe(spark, file_reader, scan, with_virtual_columns=True)
    return rows.toDF(*internal_names(scan.table), _ROW_ID, _SNAPSHOT)


def _deleted_from_files(spark: SparkSession, file_reader: FileReader, feed: ChangeFeed) -> DataFrame:
    """The deleted rows of data files, each with the snapshot that deleted it.

    A deleted row stays deleted, so the first snapshot that deletes a position counts. Later delete files may repeat it.
    The end of a data file deletes the rows that are left.
    """
    scan = TableScan(feed.table, feed.end, [d.data_file for d in feed.file_deletes], feed.name_maps or {})
    salt, starts = position_keys({key: f.record_count for key, f in scan.files_by_key.items()})
    key_of = {f.id: key for key, f in scan.files_by_key.items()}
    all_rows = scan_dataframe(spark, file_reader, scan, with_virtual_columns=True, with_row_positions=True)
    rows = all_rows.toDF(*internal_names(feed.table), _ROW_ID, "_lake_begun", FILE, POSITION, "_lake_own")
    if feed.existing_at is not None:
        rows = rows.where(F.col("_lake_begun") <= feed.existing_at)
    position_key = F.xxhash64(F.concat(FILE, F.lit(salt)) if salt else F.col(FILE)) + F.col(POSITION)
    starts_by_id = {file_id: starts[key] for file_id, key in key_of.items()}
    deletes = _deleted_positions(spark, file_reader, feed.file_deletes, starts_by_id)
    ends = [(key_of[d.data_file.id], d.end_snapshot) for d in feed.file_deletes if d.end_snapshot is not None]
    rows = rows.withColumn(_POSITION_KEY, position_key).join(deletes, _POSITION_KEY, "left" if ends else "inner")
    deleted_at = F.col(_DELETED_AT)
    if ends:
        ended = small_dataframe(spark, ends, _lake_key=pa.string(), _lake_ended=pa.int64())
        rows = rows.join(F.broadcast(ended), F.col(FILE) == F.col("_lake_key"), "left")
        deleted_at = F.coalesce(deleted_at, F.col("_lake_ended"))
    rows = rows.withColumn(_SNAPSHOT, deleted_at).where(F.col(_SNAPSHOT).between(feed.start, feed.end))
    return rows.select(*internal_names(feed.table), _ROW_ID, _SNAPSHOT)


def _deleted_positions(
    spark: SparkSession, file_reader: FileReader, file_deletes: Sequence[DataFileDeletes], starts: Mapping[int, int]
) -> DataFrame:
    """Each deleted position as a position key, with the snapshot that deleted it.

    `starts` has the key of each data file's first row, by file id.
    """
    inlined = [(starts[d.data_file.id] + position, at) for d in file_deletes for position, at in d.inlined_deletes]
    parts = [small_dataframe(spark, inlined, **{_POSITION_KEY: pa.int64(), _DELETED_AT: pa.int64()})]
    files = [(f, starts[d.data_file.id]) for d in file_deletes for f in d.delete_files]
    count = len(inlined) + sum(f.delete_count for f, _ in files)
    for rows in deleted_positions(spark, file_reader, files):
        key = (F.col(NUMBER) + F.col(DELETED_POSITION)).alias(_POSITION_KEY)
        parts.append(rows.select(key, F.col(SNAPSHOT_COLUMN).alias(_DELETED_AT)))
    every = reduce(DataFrame.union, parts)
    first = every.groupBy(_POSITION_KEY).agg(F.min(_DELETED_AT).alias(_DELETED_AT))
    return F.broadcast(first) if count <= _MAX_BROADCAST_POSITIONS else first


# -- columns


def _change_columns(rows: DataFrame, table: Table) -> DataFrame:
    """The columns of the change feed. A table's column of the same name as another gets a number appended."""
    taken = {SNAPSHOT_ID, ROW_ID, CHANGE_TYPE}
    names = []
    for column in table.columns:
        numbered = (f"{column.name}_{number}" for number in range(1, len(table.columns) + 4))
        name = column.name if column.name.lower() not in taken else next(n for n in numbered if n.lower() not in taken)
        taken.add(name.lower())
        names.append(name)
    internal = rows.select(_SNAPSHOT, _ROW_ID, CHANGE_TYPE, *internal_names(table))
    return internal.toDF(SNAPSHOT_ID, ROW_ID, CHANGE_TYPE, *names)


def _with_row_id(rows: DataFrame, table: Table, row_id: str) -> DataFrame:
    """The table's columns, and the row ids in a column of this name."""
    return rows.select(*internal_names(table), _ROW_ID).toDF(*(c.name for c in table.columns), row_id)


def _table_columns(rows: DataFrame, table: Table, with_virtual_columns: bool) -> DataFrame:
    """The table's columns, followed by the virtual columns unless the table has columns of these names."""
    names = [c.name for c in table.columns]
    if not with_virtual_columns or {ROW_ID, SNAPSHOT_ID} & {name.lower() for name in names}:
        return rows.select(*internal_names(table)).toDF(*names)
    return rows.select(*internal_names(table), _ROW_ID, _SNAPSHOT).toDF(*names, ROW_ID, SNAPSHOT_ID)
