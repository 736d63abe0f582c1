"""Deletion masks: bitmaps by which a scan hides the deleted rows of data files.

The mask of a block of 64 rows has a set bit for each deleted row: see `position_blocks`. A row finds its mask in one
of two ways:

* Lookup: the driver reads the deletes and sends all masks to Spark as one array. A row's mask is at the start of its
  file plus its block. Small numbers identify the files: bits of the file size, which Spark has at hand, or bits of the
  hash of the file key where sizes are equal.
* Join: if files, blocks or deletes are too many for that, rows are joined with masks on the number of their block.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from ...lake.deletes import SNAPSHOT_COLUMN
from ...lake.errors import LakeError
from ...lake.files import DataFile
from ..sql.quoting import quoted
from .delete_files import BLOCK, MASK, NUMBER, deletion_blocks
from .file_keys import FileKeys
from .local_rows import arrow_dataframe, small_dataframe
from .parquet import FILE_POOL, FileReader, reads_known_sizes
from .position_blocks import block_masks
from .position_keys import key_hash, position_keys

MAX_FILES = 128
"""The driver reads up to so many delete files, which is faster than a Spark job for them. Likewise, up to so many data
files get small numbers."""
MAX_POSITIONS = 4_000_000
"""The driver reads up to so many deleted positions for an array of masks."""
MAX_JOINED_POSITIONS = 1_000_000
"""The driver reads up to so many deleted positions for a join with masks."""
MAX_BLOCKS = 2**20
"""An array has the masks of up to so many blocks: 8 MB for 67 million rows."""
_MAX_NUMBER_BITS = 16
_BLOCK, _ROW, _KEY = "_lake_block", "_lake_row", "_lake_key"
_START, _MASK = "_lake_start", "_lake_mask"
_LONGS = pa.list_(pa.field("element", pa.int64(), nullable=False))
_ARRAYS = pa.schema([pa.field(name, _LONGS, nullable=False) for name in (_START, _MASK)])


def without_deleted_rows(
    spark: SparkSession,
    file_reader: FileReader,
    snapshot_id: int,
    files: Sequence[DataFile],
    rows: DataFrame,
    *,
    needs_metadata: bool,
) -> DataFrame:
    """The rows of these files that are not deleted at a snapshot.

    With `needs_metadata` the result keeps Spark's `_metadata` column, which has a row's file and position.
    """
    masks = _DeletionMasks(spark, file_reader, snapshot_id, files)
    filtered = masks.filter_by_lookup(rows)
    return masks.filter_by_join(rows, needs_metadata) if filtered is None else filtered


def driver_can_read_deletes(files: Sequence[DataFile], max_positions: int) -> bool:
    """Whether the delete files are small enough for the driver to read them itself."""
    delete_files = [delete_file for f in files for delete_file in f.delete_files]
    return len(delete_files) <= MAX_FILES and sum(file.delete_count for file in delete_files) <= max_positions


@dataclass(frozen=True)
class _FileNumbers:
    """Small numbers that identify files: some bits of a larger number that Spark has for each row's file."""

    shift: int
    bits: int
    by_file_id: Mapping[int, int]

    @classmethod
    def distinguishing(cls, larger: Mapping[int, int]) -> _FileNumbers | None:
        """The fewest bits of these numbers that differ for all files; None if no 16 bits do."""
        for bits in range((len(larger) - 1).bit_length(), _MAX_NUMBER_BITS + 1):
            for shift in range(max(number.bit_length() for number in larger.values())):
                numbers = {i: (number >> shift) & ((1 << bits) - 1) for i, number in larger.items()}
                if len({*numbers.values()}) == len(larger):
                    return cls(shift, bits, numbers)
        return None

    def column(self, larger: Column) -> Column:
        """The number of a row's file, from the larger one."""
        return F.shiftright(larger, self.shift).bitwiseAND((1 << self.bits) - 1) if self.bits else F.lit(0)


@dataclass(frozen=True)
class _DeletionMasks:
    """The deletion masks of some files at a snapshot."""

    spark: SparkSession
    file_reader: FileReader
    snapshot_id: int
    files: Sequence[DataFile]

    @cached_property
    def _file_numbers(self) -> tuple[_FileNumbers, Column] | None:
        """The numbers of the files, and the column with the number of a row's file; None for too many files.

        Spark has a file's size at hand. Where sizes are equal, it hashes the file key of each row.
        """
        if len(self.files) > MAX_FILES:
            return None
        if reads_known_sizes(self.spark, self.files):
            sizes: Iterable[int] = (f.file_size_bytes for f in self.files)
        else:
            sizes = FILE_POOL.map(self.file_reader.file_size, (f.path for f in self.files))
        numbers = _FileNumbers.distinguishing(dict(zip((f.id for f in self.files), sizes, strict=True)))
        if numbers is not None:
            return numbers, numbers.column(F.col("_metadata.file_size"))
        numbers = _FileNumbers.distinguishing({f.id: key_hash(self._file_keys.key(f.path)) for f in self.files})
        return None if numbers is None else (numbers, numbers.column(F.expr(f"xxhash64({self._file_keys.sql()})")))

    @cached_property
    def _file_keys(self) -> FileKeys:
        return FileKeys.of(f.path for f in self.files)

    # -- lookup

    def filter_by_lookup(self, rows: DataFrame) -> DataFrame | None:
        """The rows that an array of masks does not hide; None if there is too much for an array."""
        blocks = [(f.record_count + 63) // 64 for f in self.files]
        if (
            self._file_numbers is None
            or sum(blocks) > MAX_BLOCKS
            or not driver_can_read_deletes(self.files, MAX_POSITIONS)
        ):
            return None
        numbers, file_number = self._file_numbers
        block_bits = (max(blocks) - 1).bit_length()
        length = 1 << (numbers.bits + block_bits)
        is_aligned = length <= MAX_BLOCKS
        if is_aligned:  # each file has as much space as the largest one, so its start follows from its number
            starts = {f.id: numbers.by_file_id[f.id] << block_bits for f in self.files}
        else:
            starts = dict(zip((f.id for f in self.files), accumulate(blocks, initial=0), strict=False))
            length = sum(blocks)
        layout = (numbers.shift, numbers.bits, *(numbers.by_file_id[f.id] for f in self.files))
        arrays = self._cached(layout, starts, lambda: self._arrays(numbers, starts, length))
        start = (
            F.shiftleft(file_number, block_bits)
            if is_aligned
            else F.get(arrays.select(_START).scalar(), file_number.cast("int"))
        )
        position = F.col("_metadata.row_index")
        mask = F.get(arrays.select(_MASK).scalar(), (start + F.shiftright(position, 6)).cast("int"))
        return rows.where(F.getbit(mask, position.bitwiseAND(63).cast("int")) == 0)

    def _arrays(self, numbers: _FileNumbers, starts: Mapping[int, int], length: int) -> pa.Table:
        """One row with two arrays: where each file's masks begin, by the file's number, and all masks."""
        starts_by_number, masks = array("q", bytes(8 << numbers.bits)), array("q", bytes(8 * length))
        for file_id, start in starts.items():
            starts_by_number[numbers.by_file_id[file_id]] = start
        found = self._masks(starts)
        for block, mask in zip(found.column(_KEY).to_pylist(), found.column(_MASK).to_pylist(), strict=True):
            masks[block] = mask
        return pa.table([_single_list(starts_by_number), _single_list(masks)], _ARRAYS)

    # -- join

    def filter_by_join(self, rows: DataFrame, needs_metadata: bool) -> DataFrame:
        """The rows that a join with the masks does not hide. It is cheap: consecutive rows probe for the same block."""
        start, starts = self._file_starts()
        position = F.col("_metadata.row_index")
        columns = rows.columns
        with_block = rows.withColumns({_BLOCK: start + F.shiftright(position, 6), _ROW: position})
        if driver_can_read_deletes(self.files, MAX_JOINED_POSITIONS):
            masks = self._cached("join", starts, lambda: self._masks(starts))
        else:
            masks = self._masks_by_spark(starts)
        joined = with_block.join(F.broadcast(masks), F.col(_BLOCK) == F.col(_KEY), "left")
        is_live = F.expr(f"{_MASK} is null or getbit({_MASK}, cast({_ROW} & 63 as int)) = 0")
        # Spark moves a query's conditions below the join, where they could fail on a deleted row. So the columns
        # depend on the mask, and a deleted row has NULL in each.
        live = joined.where(is_live).withColumns({c: F.when(is_live, F.col(quoted(c))) for c in columns})
        if needs_metadata:
            return live.drop(_BLOCK, _ROW, _KEY, _MASK)
        return live.select(*(F.col(quoted(c)) for c in columns))

    def _file_starts(self) -> tuple[Column, dict[int, int]]:
        """The number of a file's first block: a column for a row's file, and the numbers by file id.

        No two files share a block number.
        """
        if self._file_numbers is not None:
            numbers, file_number = self._file_numbers
            return F.shiftleft(file_number, 40), {i: n << 40 for i, n in numbers.by_file_id.items()}
        keys = {f.id: self._file_keys.key(f.path) for f in self.files}
        salt, by_key = position_keys({keys[f.id]: f.record_count for f in self.files})
        key = F.expr(self._file_keys.sql())
        hashed = F.xxhash64(F.concat(key, F.lit(salt)) if salt else key)
        return hashed, {f.id: by_key[keys[f.id]] for f in self.files}

    def _masks_by_spark(self, starts: Mapping[int, int]) -> DataFrame:
        """The masks by block number, computed by Spark."""
        delete_files = [(delete_file, starts[f.id]) for f in self.files for delete_file in f.delete_files]
        blocks = deletion_blocks(self.spark, self.file_reader, delete_files, self.snapshot_id)
        inlined = [
            (starts[f.id], block, mask)
            for f in self.files
            if f.inlined_deletes
            for block, mask in zip(*(a.to_pylist() for a in block_masks(_sorted(f.inlined_deletes))), strict=True)
        ]
        if inlined:
            columns = {name: pa.int64() for name in (NUMBER, BLOCK, MASK)}
            blocks.append(small_dataframe(self.spark, inlined, **columns))
        key = (F.col(NUMBER) + F.col(BLOCK)).alias(_KEY)
        return reduce(DataFrame.union, blocks).groupBy(key).agg(F.bit_or(MASK).alias(_MASK))

    # -- masks that the driver computes

    def _cached(self, layout: Hashable, starts: Mapping[int, int], make: Callable[[], pa.Table]) -> DataFrame:
        """Masks as a DataFrame, which the next query reuses if it needs the same masks in the same layout."""
        if any(file.id < 0 for f in self.files for file in f.delete_files):
            return arrow_dataframe(self.spark, make())  # the next statement may replace a staged delete file
        # All snapshots from the last one that the delete files name share the masks. The catalog does not have that
        # snapshot for every delete file, so it comes from the files.
        found = FILE_POOL.map(self.file_reader.read_deletes, [f for f in self.files if f.delete_files])
        last = max((pc.max(table.column(SNAPSHOT_COLUMN)).as_py() for table in found if table.num_rows), default=0)
        deletes = (
            (starts[f.id], *(delete_file.path for delete_file in f.delete_files), *f.inlined_deletes)
            for f in self.files
        )
        key = (layout, min(self.snapshot_id, last), *deletes)
        return self.file_reader.cached_dataframe(key, lambda: arrow_dataframe(self.spark, make()))

    def _masks(self, starts: Mapping[int, int]) -> pa.Table:
        """The masks of the blocks that have deleted rows, by block number."""
        parts = []
        deleted = FILE_POOL.map(lambda file: deleted_positions(self.file_reader, file, self.snapshot_id), self.files)
        for file, positions in zip(self.files, deleted, strict=True):
            blocks, masks = block_masks(positions)
            parts.append(pa.table([pc.add(blocks, starts[file.id]), masks], [_KEY, _MASK]))
        return pa.concat_tables(parts)


def deleted_positions(file_reader: FileReader, file: DataFile, snapshot_id: int) -> pa.Array:
    """The positions of a data file that are deleted at a snapshot, sorted and unique."""
    deleted = pa.chunked_array([pa.array(file.inlined_deletes, pa.int64())])
    if file.delete_files:
        found = file_reader.read_deletes(file)
        # A staged delete file names the snapshot of the coming commit, so all of its positions count.
        if all(delete_file.id >= 0 for delete_file in file.delete_files):
            found = found.filter(pc.field(SNAPSHOT_COLUMN) <= snapshot_id)
        deleted = pa.chunked_array([*found.column("pos").chunks, *deleted.chunks])
    positions = deleted.combine_chunks()
    if not pc.all(pc.greater(positions[1:], positions[:-1])).as_py():
        positions = positions.unique().sort()
    if len(positions) and positions[-1].as_py() >= file.record_count:  # its mask would be that of another file's rows
        raise LakeError(
            f"a delete file of {file.path} has the position {positions[-1].as_py()}, and the file has"
            f" {file.record_count} rows: {', '.join(f.path for f in file.delete_files)}"
        )
    return positions


def _sorted(positions: Iterable[int]) -> pa.Array:
    return pa.array(sorted(set(positions)), pa.int64())


def _single_list(values: array[int]) -> pa.Array:
    """A column of one row, whose value is a list of longs."""
    longs = pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), longs, _LONGS)
