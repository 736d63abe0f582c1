"""The positions in delete files as DataFrames, where the driver should not hold them all.

Spark reads Parquet delete files itself. It has no reader of deletion vectors, and executors may have no package that
decodes them. So the driver decodes vectors, many at a time, and hands blocks to Spark: 24 bytes for 64 rows of a data
file at most, however many of them are deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.deletes import PARQUET, SNAPSHOT_COLUMN
from ...lake.files import DeleteFile
from .file_keys import base_name
from .local_rows import arrow_dataframe, small_dataframe
from .parquet import FILE_POOL, FileReader, read_parquet
from .position_blocks import block_masks

NUMBER, POSITION = "_lake_number", "pos"
"""The number that the caller gives a delete file, and a position in it."""
BLOCK, MASK = "_lake_block", "_lake_mask"

NumberedDeleteFile = tuple[DeleteFile, int]

_MAX_BLOCKS = 2_000_000
"""So many blocks go to Spark at once."""
_MAX_VECTORS = 1_000
"""So many vectors are decoded at once."""
_BLOCKS = pa.schema([(name, pa.int64()) for name in (NUMBER, BLOCK, MASK, SNAPSHOT_COLUMN)])


def deleted_positions(
    spark: SparkSession, file_reader: FileReader, files: Sequence[NumberedDeleteFile]
) -> list[DataFrame]:
    """DataFrames with NUMBER, POSITION, and the snapshot that deleted it; NULL if the delete file is only staged."""
    parts = []
    if parquet := [(file, number) for file, number in files if file.format == PARQUET]:
        parts.append(_parquet_positions(spark, file_reader, parquet, None))
    if vectors := [(file, number) for file, number in files if file.format != PARQUET]:
        blocks = _vector_blocks(spark, file_reader, vectors, None)
        row = F.expr(f"explode(filter(sequence(0, 63), row -> getbit({MASK}, row) = 1))").alias("_lake_row")
        rows = blocks.select(NUMBER, BLOCK, row, SNAPSHOT_COLUMN)
        position = (F.shiftleft(BLOCK, 6) + F.col("_lake_row")).alias(POSITION)
        parts.append(rows.select(NUMBER, position, SNAPSHOT_COLUMN))
    return parts


def deletion_blocks(
    spark: SparkSession, file_reader: FileReader, files: Sequence[NumberedDeleteFile], snapshot_id: int
) -> list[DataFrame]:
    """DataFrames with NUMBER, BLOCK and a MASK of positions that are deleted at a snapshot.

    A block may have several masks. All positions of a staged delete file count: they name the snapshot of the coming
    commit.
    """
    parts = []
    if parquet := [(file, number) for file, number in files if file.format == PARQUET]:
        bit = F.expr(f"shiftleft(1L, cast({POSITION} & 63 as int))").alias(MASK)
        positions = _parquet_positions(spark, file_reader, parquet, snapshot_id)
        parts.append(positions.select(NUMBER, F.shiftright(POSITION, 6).alias(BLOCK), bit))
    if vectors := [(file, number) for file, number in files if file.format != PARQUET]:
        parts.append(_vector_blocks(spark, file_reader, vectors, snapshot_id).select(NUMBER, BLOCK, MASK))
    return parts


def _parquet_positions(
    spark: SparkSession, file_reader: FileReader, files: Sequence[NumberedDeleteFile], snapshot_id: int | None
) -> DataFrame:
    schema = s.StructType([s.StructField(name, s.LongType(), True) for name in (POSITION, SNAPSHOT_COLUMN)])
    known = [
        (base_name(file.path), number, file.begin_snapshot, snapshot_id if file.id >= 0 else None)
        for file, number in files
    ]
    columns = {NUMBER: pa.int64(), "_lake_begin": pa.int64(), "_lake_at": pa.int64()}
    by_name = small_dataframe(spark, known, _lake_name=pa.string(), **columns)
    rows = read_parquet(spark, schema, file_reader, [file for file, _ in files])
    rows = rows.withColumn("_lake_file", F.col("_metadata.file_name"))
    rows = rows.join(F.broadcast(by_name), F.col("_lake_file") == F.col("_lake_name"))
    rows = rows.where(f"coalesce({SNAPSHOT_COLUMN} <= _lake_at, true)")
    snapshot = F.coalesce(F.col(SNAPSHOT_COLUMN), F.col("_lake_begin")).alias(SNAPSHOT_COLUMN)
    return rows.select(NUMBER, POSITION, snapshot)


def _vector_blocks(
    spark: SparkSession, file_reader: FileReader, files: Sequence[NumberedDeleteFile], snapshot_id: int | None
) -> DataFrame:
    chunks = (arrow_dataframe(spark, table) for table in _chunks(file_reader, files, snapshot_id))
    return reduce(DataFrame.union, chunks)


def _chunks(
    file_reader: FileReader, files: Sequence[NumberedDeleteFile], snapshot_id: int | None
) -> Iterator[pa.Table]:
    def read(numbered: NumberedDeleteFile) -> pa.Table:
        file, number = numbered
        return _blocks(file_reader.read_delete_file(file), number, snapshot_id if file.id >= 0 else None)

    tables: list[pa.Table] = []
    for first in range(0, len(files), _MAX_VECTORS):
        tables += FILE_POOL.map(read, files[first : first + _MAX_VECTORS])
        if sum(table.num_rows for table in tables) >= _MAX_BLOCKS:
            yield pa.concat_tables(tables).combine_chunks()
            tables = []
    if tables:
        yield pa.concat_tables(tables).combine_chunks()


def _blocks(deletes: pa.Table, number: int, snapshot_id: int | None) -> pa.Table:
    """The blocks of a delete file, each with one snapshot that deleted its positions."""
    has_snapshots = SNAPSHOT_COLUMN in deletes.column_names
    snapshots = pc.unique(deletes.column(SNAPSHOT_COLUMN)).to_pylist() if has_snapshots else [None]
    parts = []
    for snapshot in snapshots:
        if snapshot is not None and snapshot_id is not None and snapshot > snapshot_id:
            continue
        rows = deletes if len(snapshots) < 2 else deletes.filter(pc.field(SNAPSHOT_COLUMN) == snapshot)
        blocks, masks = block_masks(rows.column(POSITION).combine_chunks())
        repeated = [pa.repeat(pa.scalar(value, pa.int64()), len(blocks)) for value in (number, snapshot)]
        parts.append(pa.table([repeated[0], blocks, masks, repeated[1]], schema=_BLOCKS))
    return pa.concat_tables(parts) if parts else _BLOCKS.empty_table()
