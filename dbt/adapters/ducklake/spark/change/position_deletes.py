"""Writes position deletes: inlined deletes in the catalog, or one delete file per data file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake.deletes import (
    PARQUET,
    PUFFIN,
    SNAPSHOT_COLUMN,
    PositionDeletes,
    delete_file_schema,
    describe_delete_file,
    write_delete_file,
)
from ...lake.files import DataFile
from ...lake.paths import delete_file_end, new_delete_file_name
from ...lake.snapshot import Table
from ..read.delete_files import NUMBER, deleted_positions
from ..read.local_rows import small_dataframe
from ..read.parquet import FILE_POOL
from ..read.position_blocks import positions_in_blocks
from ..read.scan import FILE, POSITION
from ..write.data_files import remove_folder
from ..write.spark_files import SparkFile, write_with_spark
from ..write.write_folder import new_write_folder
from .command_context import CommandContext
from .row_positions import RowPositions, fits_driver

_DATA_FILE = "_lake_data_file"
_BLOCK, _MASK = "_lake_block", "_lake_mask"
_MAX_VECTOR_ROWS = 64_000_000
"""The driver encodes the vectors of data files with up to so many rows at once: 24 bytes for 64 rows at most."""


@dataclass
class PositionDeletesWriter:
    """Writes the position deletes of one statement.

    Few positions are stored in the catalog. Otherwise the driver writes the delete files without a Spark job if it
    holds the positions. If it does not, Spark writes Parquet delete files, and collects blocks of positions for the
    driver to write deletion vectors.
    """

    context: CommandContext
    table: Table
    files: Mapping[str, DataFile]
    """The data files by key. Each has a deleted position and keeps a row."""
    positions: RowPositions
    count: int
    """The number of positions."""

    def __post_init__(self) -> None:
        self.target = self.context.write_target(self.table)
        self.store = self.context.lake.file_store
        self.snapshot = self.context.transaction.base.id + 1  # the expected snapshot of the commit
        self.writes_vectors = self.target.flag("write_deletion_vectors")

    def write(self) -> dict[int, PositionDeletes]:
        """The position deletes by the id of the data file."""
        collected = self.positions.collected
        if collected is not None and self._fits_catalog():
            return {
                self.files[key].id: PositionDeletes(inlined_positions=tuple(positions.to_pylist()))
                for key, positions in collected.items()
                if key
            }
        earlier = sum(delete_file.delete_count for f in self.files.values() for delete_file in f.delete_files)
        if collected is not None and fits_driver(self.count + earlier):
            return dict(FILE_POOL.map(lambda key: self._write_on_driver(self.files[key], collected[key]), self.files))
        with_snapshots = {key: f for key, f in self.files.items() if _must_name_snapshots(f)}
        plain = {key: f for key, f in self.files.items() if key not in with_snapshots}
        write_plain = self._write_vectors if self.writes_vectors else self._write_with_spark
        return {**write_plain(plain), **self._write_with_spark(with_snapshots, with_snapshots=True)}

    def _fits_catalog(self) -> bool:
        limit = self.target.options.number("data_inlining_row_limit", self.table.schema_id, self.table.id) or 0
        supported = self.context.lake.catalog.database.supports_inlining
        return supported and self.count <= limit and all(f.id >= 0 for f in self.files.values())

    def _write_on_driver(self, file: DataFile, positions: pa.Array) -> tuple[int, PositionDeletes]:
        earlier = None
        if file.delete_file is not None:
            earlier = self.context.lake.read_deletes(file)
        snapshot = self.snapshot if _must_name_snapshots(file) else None
        fits_vector = snapshot is None or self.context.lake.catalog.format.vectors_name_snapshots
        format = PUFFIN if self.writes_vectors and fits_vector else PARQUET
        new = write_delete_file(self.store, self.target.folder, file.path, positions, earlier, snapshot, format)
        return file.id, PositionDeletes(new, replaced_delete_file_id=_committed_delete_file_id(file))

    def _write_vectors(self, files: Mapping[str, DataFile]) -> dict[int, PositionDeletes]:
        """Writes deletion vectors from blocks of positions, which Spark makes."""
        result: dict[int, PositionDeletes] = {}
        for chunk in _chunks(files, _MAX_VECTOR_ROWS):
            files_by_id = {f.id: f for f in chunk.values()}
            file_ids, blocks = zip(*self._blocks(chunk), strict=True)
            result.update(FILE_POOL.map(self._write_vector, (files_by_id[i] for i in file_ids), blocks))
        return result

    def _blocks(self, files: Mapping[str, DataFile]) -> Iterator[tuple[int, pa.Table]]:
        """The blocks of changed positions in these files, by data file id, in the order of the blocks."""
        ids = [(key, f.id) for key, f in files.items()]
        data_files = small_dataframe(
            self.positions.changed.sparkSession, ids, **{FILE: pa.string(), _DATA_FILE: pa.int64()}
        )
        rows = self.positions.changed.join(F.broadcast(data_files), FILE)
        bit = F.expr(f"shiftleft(1L, cast({POSITION} & 63 as int))")
        blocks = rows.groupBy(_DATA_FILE, F.shiftright(POSITION, 6).alias(_BLOCK)).agg(F.bit_or(bit).alias(_MASK))
        table = blocks.toArrow().sort_by([(_DATA_FILE, "ascending"), (_BLOCK, "ascending")])
        start = 0
        for count in pc.value_counts(table.column(_DATA_FILE)).to_pylist():
            yield count["values"], table.slice(start, count["counts"])
            start += count["counts"]

    def _write_vector(self, file: DataFile, blocks: pa.Table) -> tuple[int, PositionDeletes]:
        positions = positions_in_blocks(blocks.column(_BLOCK).combine_chunks(), blocks.column(_MASK).combine_chunks())
        return self._write_on_driver(file, positions)

    def _write_with_spark(
        self, files: Mapping[str, DataFile], with_snapshots: bool = False
    ) -> dict[int, PositionDeletes]:
        """Writes all Parquet delete files in one job: Spark partitions its output by data file."""
        if not files:
            return {}
        spark = self.positions.changed.sparkSession
        types = {FILE: pa.string(), _DATA_FILE: pa.int64(), "file_path": pa.string()}
        data_files = small_dataframe(spark, [(key, f.id, f.path) for key, f in files.items()], **types)
        rows = self.positions.changed.join(F.broadcast(data_files), FILE).select(
            _DATA_FILE, "file_path", F.col(POSITION).alias("pos"), F.lit(self.snapshot).alias(SNAPSHOT_COLUMN)
        )
        with_deletes = [f for f in files.values() if f.delete_file]
        if with_deletes:
            rows = reduce(DataFrame.union, self._earlier_deletes(with_deletes, data_files), rows)
        rows = rows.repartition(F.col(_DATA_FILE)).sortWithinPartitions(_DATA_FILE, "pos")
        fields = [
            F.col(field.name).alias(field.name, metadata={"parquet.field.id": int(field.metadata[b"PARQUET:field_id"])})
            for field in delete_file_schema(with_snapshots)
        ]
        writer = rows.select(_DATA_FILE, *fields).write.mode("error").partitionBy(_DATA_FILE)
        by_id = {f.id: f for f in files.values()}
        with new_write_folder(self.target) as folder:
            written = write_with_spark(
                spark, writer.option("compression", "zstd"), self.target, folder, name_end=delete_file_end()
            )

            def described(file: SparkFile) -> tuple[int, PositionDeletes]:
                path = file.path if written.are_in_place else self._move_to_final_name(file.path)
                footer = self.store.read_footer(path, written.key)
                snapshot = self.snapshot if with_snapshots else None
                new = describe_delete_file(footer, path, self.target.folder, snapshot, written.key)
                data_file = by_id[int(file.partition.removeprefix(f"{_DATA_FILE}="))]
                return data_file.id, PositionDeletes(new, replaced_delete_file_id=_committed_delete_file_id(data_file))

            deletes = dict(FILE_POOL.map(described, written.files))
            if not (written.are_in_place and deletes):
                remove_folder(self.target, folder)
            return deletes

    def _earlier_deletes(self, files: Sequence[DataFile], data_files: DataFrame) -> list[DataFrame]:
        """The positions in the current delete files, with the snapshots that deleted them."""
        spark, reader = self.positions.changed.sparkSession, self.context.lake.file_reader
        numbered = [(delete_file, f.id) for f in files for delete_file in f.delete_files]
        return [
            rows.withColumnRenamed(NUMBER, _DATA_FILE)
            .join(F.broadcast(data_files), _DATA_FILE)
            .select(_DATA_FILE, "file_path", "pos", SNAPSHOT_COLUMN)
            for rows in deleted_positions(spark, reader, numbered)
        ]

    def _move_to_final_name(self, path: str) -> str:
        """Moves a delete file that Spark wrote into the table's folder."""
        final = self.target.folder + new_delete_file_name()
        self.target.filesystem.move(self.target.native_path(path), self.target.native_path(final))
        return final


def _chunks(files: Mapping[str, DataFile], max_rows: int) -> Iterator[dict[str, DataFile]]:
    """The files in parts of up to so many rows; a larger file is a part of its own."""
    chunk: dict[str, DataFile] = {}
    rows = 0
    for key, file in files.items():
        if chunk and rows + file.record_count > max_rows:
            yield chunk
            chunk, rows = {}, 0
        chunk[key] = file
        rows += file.record_count
    if chunk:
        yield chunk


def _committed_delete_file_id(file: DataFile) -> int | None:
    return file.delete_file.id if file.delete_file and file.delete_file.id >= 0 else None


def _must_name_snapshots(file: DataFile) -> bool:
    """Whether the next delete file of a data file names the snapshot of each position; see `lake.deletes`."""
    before = file.delete_file
    is_second = before is not None and (before.id >= 0 or before.partial_max is not None)
    return is_second or file.partial_max is not None
