"""The rows of files that are not deleted.

Each 64 rows that follow each other are a block, which has a mask that says which of them are deleted. Where the
driver knows what is deleted, all masks are one array, and a row's is found by its index there. Else blocks have a
number, and the masks are joined on it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.deletes import SNAPSHOT_COLUMN
from ...lake.files import DataFile
from ..sql.types import quoted
from .local_rows import few, local_rows
from .parquet import WORKERS, Storage, base_name, file_name, read_parquet
from .row_positions import name_hash, place_keys

FEW_FILES = 128
"""So many delete files are read by the driver, sooner than Spark begins a job for them."""
FEW_POSITIONS, FEW_JOINED = 4_000_000, 1_000_000
"""Up to so many positions, for an array of masks and for a join."""
FEW_BLOCKS = 2**20
"""An array has the masks of up to so many blocks, which are 67 million rows, in 8 MB."""
_MOST_BITS = 16
_BITS = pa.array([*(1 << bit for bit in range(63)), -(2**63)], pa.int64())
"""Arrow does not shift a one into the sign."""
_BLOCK, _ROW, _KEY = "_lake_block", "_lake_row", "_lake_key"
_START, _MASK = "_lake_start", "_lake_mask"
_LONGS = pa.list_(pa.field("element", pa.int64(), nullable=False))
_ARRAYS = pa.schema([pa.field(name, _LONGS, nullable=False) for name in (_START, _MASK)])


def living(
    spark: SparkSession, storage: Storage, at: int, files: Sequence[DataFile], rows: DataFrame, *, plain: bool
) -> DataFrame:
    """The rows of these files that are not deleted at a snapshot; if not `plain`, Spark still tells where they are."""
    deleted = _Deleted(spark, storage, at, files)
    left = deleted.looked_up(rows)
    return deleted.joined(rows, plain) if left is None else left


def few_deleted(files: Sequence[DataFile], positions: int) -> bool:
    """Whether so little is deleted of files that the driver reads it."""
    said = [file for f in files for file in f.delete_files]
    return len(said) <= FEW_FILES and sum(file.delete_count for file in said) <= positions


@dataclass(frozen=True)
class _Numbers:
    """A small number for each file: a few bits of a larger one that Spark has of it."""

    shift: int
    bits: int
    of: Mapping[int, int]

    @classmethod
    def among(cls, larger: Mapping[int, int]) -> _Numbers | None:
        for bits in range((len(larger) - 1).bit_length(), _MOST_BITS + 1):
            for shift in range(max(number.bit_length() for number in larger.values())):
                numbers = {i: (number >> shift) & ((1 << bits) - 1) for i, number in larger.items()}
                if len({*numbers.values()}) == len(larger):
                    return cls(shift, bits, numbers)
        return None

    def in_row(self, larger: Column) -> Column:
        """The number of a row's file, of the larger one that Spark has of it."""
        return F.shiftright(larger, self.shift).bitwiseAND((1 << self.bits) - 1) if self.bits else F.lit(0)


@dataclass(frozen=True)
class _Deleted:
    """What is deleted of some files."""

    spark: SparkSession
    storage: Storage
    at: int
    files: Sequence[DataFile]

    def _few(self, positions: int) -> bool:
        return few_deleted(self.files, positions)

    @cached_property
    def _numbers(self) -> tuple[_Numbers, Column] | None:
        """The number of each file, and of a row's file; None if there are too many.

        Spark has a file's size at hand. Its name, where sizes are equal, is hashed for each row.
        """
        if len(self.files) > FEW_FILES:
            return None
        sizes = WORKERS.map(self.storage.size, (f.path for f in self.files))
        numbers = _Numbers.among(dict(zip((f.id for f in self.files), sizes, strict=True)))
        if numbers is not None:
            return numbers, numbers.in_row(F.col("_metadata.file_size"))
        numbers = _Numbers.among({f.id: name_hash(base_name(f.path)) for f in self.files})
        name = F.xxhash64(file_name(f.path for f in self.files))
        return None if numbers is None else (numbers, numbers.in_row(name))

    # -- an array

    def looked_up(self, rows: DataFrame) -> DataFrame | None:
        """The rows that an array of masks leaves, if there is to be one."""
        blocks = [(f.record_count + 63) // 64 for f in self.files]
        if self._numbers is None or sum(blocks) > FEW_BLOCKS or not self._few(FEW_POSITIONS):
            return None
        numbers, in_row = self._numbers
        room = (max(blocks) - 1).bit_length()
        length = 1 << (numbers.bits + room)
        roomy = length <= FEW_BLOCKS
        if roomy:  # as much room for each file, so that its number says where its masks begin
            starts = {f.id: numbers.of[f.id] << room for f in self.files}
        else:
            starts = dict(zip((f.id for f in self.files), accumulate(blocks, initial=0), strict=False))
            length = sum(blocks)
        way = (numbers.shift, numbers.bits, *(numbers.of[f.id] for f in self.files))
        found = self._kept(way, starts, lambda: self._arrays(numbers, starts, length))
        start = F.shiftleft(in_row, room) if roomy else F.get(found.select(_START).scalar(), in_row.cast("int"))
        position = F.col("_metadata.row_index")
        mask = F.get(found.select(_MASK).scalar(), (start + F.shiftright(position, 6)).cast("int"))
        return rows.where(F.getbit(mask, position.bitwiseAND(63).cast("int")) == 0)

    def _arrays(self, numbers: _Numbers, starts: Mapping[int, int], length: int) -> pa.Table:
        """One row: where each file's masks begin, by its number, and all masks."""
        begins, masks = array("q", bytes(8 << numbers.bits)), array("q", bytes(8 * length))
        for file_id, start in starts.items():
            begins[numbers.of[file_id]] = start
        found = self._masks(starts)
        for block, mask in zip(found.column(_KEY).to_pylist(), found.column(_MASK).to_pylist(), strict=True):
            masks[block] = mask
        return pa.table([_one_list(begins), _one_list(masks)], _ARRAYS)

    # -- a join

    def joined(self, rows: DataFrame, plain: bool) -> DataFrame:
        """The rows that a join with the masks leaves; it is cheap as a scan mostly asks for what it just had."""
        start, starts = self._apart()
        position = F.col("_metadata.row_index")
        columns = rows.columns
        keyed = rows.withColumns({_BLOCK: start + F.shiftright(position, 6), _ROW: position})
        known = self._kept("joined", starts, lambda: self._masks(starts)) if self._few(FEW_JOINED) else None
        masks = self._masks_by_spark(starts) if known is None else known
        masked = keyed.join(F.broadcast(masks), F.col(_BLOCK) == F.col(_KEY), "left")
        lives = F.expr(f"{_MASK} is null or getbit({_MASK}, cast({_ROW} & 63 as int)) = 0")
        # Spark asks conditions before it joins, where they could fail on a deleted row. That has no values here.
        left = masked.where(lives).withColumns({c: F.when(lives, F.col(quoted(c))) for c in columns})
        return left.select(*(F.col(quoted(c)) for c in columns)) if plain else left.drop(_BLOCK, _ROW, _KEY, _MASK)

    def _apart(self) -> tuple[Column, dict[int, int]]:
        """A number for each file, as Spark finds it and by the file's id; none meet when blocks are added."""
        if self._numbers is not None:
            numbers, in_row = self._numbers
            return F.shiftleft(in_row, 40), {i: n << 40 for i, n in numbers.of.items()}
        salt, by_name = place_keys({base_name(f.path): f.record_count for f in self.files})
        name = file_name(f.path for f in self.files)
        hashed = F.xxhash64(F.concat(name, F.lit(salt)) if salt else name)
        return hashed, {f.id: by_name[base_name(f.path)] for f in self.files}

    def _masks_by_spark(self, starts: Mapping[int, int]) -> DataFrame:
        positions = self._positions_by_spark(starts)
        inlined = [(starts[f.id], position) for f in self.files for position in f.inlined_deletes]
        if inlined:
            positions = positions.union(few(self.spark, inlined, _lake_start=pa.int64(), pos=pa.int64()))
        block = (F.col("_lake_start") + F.shiftright("pos", 6)).alias(_KEY)
        bit = F.expr("shiftleft(1L, cast(pos & 63 as int))")
        return positions.groupBy(block).agg(F.bit_or(bit).alias(_MASK))

    def _positions_by_spark(self, starts: Mapping[int, int]) -> DataFrame:
        """What delete files name: the number of their data file's first rows, and positions."""
        schema = s.StructType([s.StructField(name, s.LongType(), True) for name in ("pos", SNAPSHOT_COLUMN)])
        # A file that is only staged names the snapshot to come: all that it says holds.
        known = [
            (base_name(file.path), starts[f.id], self.at if file.id >= 0 else None)
            for f in self.files
            for file in f.delete_files
        ]
        paths = [self.storage.spark_path(file.path) for f in self.files for file in f.delete_files]
        begin = few(self.spark, known, _lake_name=pa.string(), _lake_begin=pa.int64(), _lake_at=pa.int64())
        rows = read_parquet(self.spark, schema, paths).withColumn("_lake_file", F.col("_metadata.file_name"))
        rows = rows.join(F.broadcast(begin), F.col("_lake_file") == F.col("_lake_name"))
        return rows.where(f"coalesce({SNAPSHOT_COLUMN} <= _lake_at, true)").selectExpr(
            "_lake_begin as _lake_start", "pos"
        )

    # -- what the driver knows

    def _kept(self, way: Hashable, starts: Mapping[int, int], made: Callable[[], pa.Table]) -> DataFrame:
        """Rows of the driver's for Spark, which stay for the next query that asks for the same in the same way."""
        if any(file.id < 0 for f in self.files for file in f.delete_files):  # staged, and soon something else
            return local_rows(self.spark, made())
        # The catalog does not tell of every delete file which snapshots it names.
        said = WORKERS.map(self.storage.deleted, [f for f in self.files if f.delete_files])
        last = max((pc.max(found.column(SNAPSHOT_COLUMN)).as_py() for found in said if found.num_rows), default=0)
        what = ((file.path for file in f.delete_files) for f in self.files)
        places = ((starts[f.id], *paths, *f.inlined_deletes) for f, paths in zip(self.files, what, strict=True))
        return self.storage.kept((way, min(self.at, last), *places), lambda: local_rows(self.spark, made()))

    def _masks(self, starts: Mapping[int, int]) -> pa.Table:
        """For each block of which something is deleted its number, and its mask."""
        parts = []
        deleted = WORKERS.map(lambda file: deleted_positions(self.storage, file, self.at), self.files)
        for file, found in zip(self.files, deleted, strict=True):
            blocks, masks = _masks_of(found)
            parts.append(pa.table([pc.add(blocks, starts[file.id]), masks], [_KEY, _MASK]))
        return pa.concat_tables(parts)


def deleted_positions(storage: Storage, file: DataFile, at: int) -> pa.Array:
    """The positions that are deleted of a file at a snapshot, in their order."""
    found = pa.chunked_array([pa.array(file.inlined_deletes, pa.int64())])
    if file.delete_files:
        said = storage.deleted(file)
        # A file that is only staged names the snapshot to come: all that it says holds.
        if all(by.id >= 0 for by in file.delete_files):
            said = said.filter(pc.field(SNAPSHOT_COLUMN) <= at)
        found = pa.chunked_array([*said.column("pos").chunks, *found.chunks])
    positions = found.combine_chunks()
    in_order = pc.all(pc.greater(positions[1:], positions[:-1])).as_py()
    return positions if in_order else positions.unique().sort()


def _masks_of(positions: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The blocks of positions that are in their order, and their masks: of a block's bits the sum."""
    if not len(positions):
        return positions, positions
    block = pc.shift_right(positions, 6)
    last = pa.concat_arrays([pc.not_equal(block[1:], block[:-1]), pa.array([True])])
    sums = pc.cumulative_sum(_BITS.take(pc.bit_wise_and(positions, 63))).filter(last)
    before = pa.concat_arrays([pa.array([0], pa.int64()), sums[:-1]])
    return block.filter(last), pc.subtract(sums, before)


def _one_list(values: array[int]) -> pa.Array:
    """A list of longs, for a table of one row."""
    longs = pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), longs, _LONGS)
