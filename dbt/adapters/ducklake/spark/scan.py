"""From the files, deletes and inlined rows of a table to one DataFrame, read by Spark's own Parquet scan."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash
from pyspark.sql import Column as Column_
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s
from pyspark.sql.pandas.types import from_arrow_schema

from ..lake.deletes import SNAPSHOT_COLUMN
from ..lake.errors import LakeError, UnsupportedError
from ..lake.files import DataFile, NameMap, NameMapEntry
from ..lake.inlined import InlinedRows
from ..lake.partitions import HIVE_NULL, hive_folder
from ..lake.snapshot import Table
from ..lake.stats import physical_types
from ..lake.types import Column
from .types import (
    EXISTS_DEFAULT,
    MISSING,
    TWO_FACED,
    default_literal,
    from_file,
    has_scan_default,
    needs_conversion,
    needs_default,
    query_type,
    quoted,
    stored_field,
    stored_leaf,
)

ROW_ID = "rowid"
SNAPSHOT_ID = "snapshot_id"
VIRTUAL_COLUMNS = (ROW_ID, SNAPSHOT_ID)

FILE, POSITION, OWN_ROW_ID = "_lake_file", "_lake_position", "_lake_row_id"
"""Where a row is: its file as in `file_keys`, NULL of an inlined row; the position in it, or the inlined row's id;
and the row id that the file has for it, if it has one."""

# Field ids of the columns that the format itself puts into files.
INTERNAL_ROW_ID = s.StructField("_ducklake_internal_row_id", s.LongType(), True, {"parquet.field.id": 2147483540})
INTERNAL_SNAPSHOT_ID = s.StructField(
    "_ducklake_internal_snapshot_id", s.LongType(), True, {"parquet.field.id": 2147483539}
)

_READERS = ThreadPoolExecutor(8, thread_name_prefix="lake-footer")


@dataclass(frozen=True)
class TableScan:
    """What must be read to have a table's rows at one version."""

    table: Table
    at: int
    files: Sequence[DataFile]
    name_maps: Mapping[int, NameMap]
    inlined: InlinedRows | None = None


@dataclass(frozen=True)
class Storage:
    """How the lake's paths are read: by Spark, and by the driver for footers."""

    spark_path: Callable[[str], str]
    open_footer: Callable[[str], pq.FileMetaData]
    deleted: Callable[[DataFile], pa.Table]
    """What a data file's delete file says."""
    size: Callable[[str], int]
    """How large a file is that is there."""
    kept: Callable[[Hashable, Callable[[], DataFrame]], DataFrame]
    """Rows of the driver's under a key, made where they are not there."""


def dataframe(
    spark: SparkSession, storage: Storage, scan: TableScan, virtual: bool = False, places: bool = False
) -> DataFrame:
    """The rows of a table; with the columns `rowid` and `snapshot_id`, and with each row's place, where asked for."""
    reader = _Reader(spark, storage, scan, virtual, places)
    return reader.rows()


def file_keys(files: Sequence[DataFile]) -> dict[str, DataFile]:
    """The files of a scan by what a row's place calls them: the name, where no other file has the same."""
    names = Counter(_base_name(f.path) for f in files)
    return {_base_name(f.path) if names[_base_name(f.path)] == 1 else f"#{f.id}": f for f in files}


class _Reader:
    def __init__(self, spark: SparkSession, storage: Storage, scan: TableScan, virtual: bool, places: bool) -> None:
        self.spark = spark
        self.places = places
        self.storage = storage
        self.scan = scan
        self.columns = scan.table.columns
        self.virtual = virtual

    def rows(self) -> DataFrame:
        parts = [self._files(group, files) for group, files in self._groups().items()]
        if self.scan.inlined is not None and len(self.scan.inlined):
            parts.append(self._inlined(self.scan.inlined))
        if not parts:
            return no_rows(self.spark, self._schema())
        return reduce(DataFrame.union, parts)

    def _schema(self) -> s.StructType:
        fields = [s.StructField(c.name, query_type(c), True) for c in self.columns]
        if self.virtual:
            fields += [s.StructField(name, s.LongType(), True) for name in VIRTUAL_COLUMNS]
        if self.places:
            fields.append(s.StructField(FILE, s.StringType(), True))
            fields += [s.StructField(name, s.LongType(), True) for name in (POSITION, OWN_ROW_ID)]
        return s.StructType(fields)

    # -- files

    def _groups(self) -> dict[_Group, list[DataFile]]:
        """The files by how they must be read: mostly one group."""
        faces = self._faces()
        groups: dict[_Group, list[DataFile]] = defaultdict(list)
        names: dict[str, int] = defaultdict(int)
        for file in self.scan.files:
            if file.has_deletes or self.places:
                names[_base_name(file.path)] += 1
        for file in self.scan.files:
            matters = file.has_deletes or self.places
            alone = file.id if matters and names[_base_name(file.path)] > 1 else None
            partial = file.partial_max is not None and file.partial_max > self.scan.at
            groups[_Group(file.mapping_id, faces.get(file.id, ()), partial, file.has_deletes, alone)].append(file)
        return groups

    def _faces(self) -> dict[int, tuple[tuple[int, str], ...]]:
        """How each file holds the columns of which that must be known; most tables have none."""
        ids = {c.id for top in self.columns for c in top.walk() if c.type in TWO_FACED or needs_default(c)}
        if not ids:
            return {}

        def of(file: DataFile) -> tuple[tuple[int, str], ...]:
            types = physical_types(self.storage.open_footer(file.path), self.columns)
            return tuple((column_id, types.get(column_id, MISSING)) for column_id in sorted(ids))

        return dict(zip((f.id for f in self.scan.files), _READERS.map(of, self.scan.files), strict=True))

    def _files(self, group: _Group, files: list[DataFile]) -> DataFrame:
        physical = dict(group.faces)
        if any(f.delete_file and f.delete_file.format != "parquet" for f in files):
            raise UnsupportedError(
                f"table {self.scan.table.name} has deletion vectors (puffin files), which Spark can not read;"
                " set the option write_deletion_vectors to false in DuckDB and rewrite the files with"
                " ducklake_rewrite_data_files"
            )
        name_map = None if group.mapping_id is None else self.scan.name_maps.get(group.mapping_id)
        if group.mapping_id is not None and name_map is None:
            raise LakeError(
                f"table {self.scan.table.name} has files with name mapping {group.mapping_id}, which is gone"
            )
        fields = [
            stored_field(c, physical) if name_map is None else self._mapped_field(c, name_map, physical)
            for c in self.columns
        ]
        internal = [INTERNAL_ROW_ID] if self.virtual or self.places else []
        if group.partial or self.virtual:
            internal.append(INTERNAL_SNAPSHOT_ID)
        paths = [self.storage.spark_path(f.path) for f in files]
        rows = read_parquet(self.spark, s.StructType(_unique(fields) + internal), paths)
        if group.partial:
            rows = rows.where(F.col(INTERNAL_SNAPSHOT_ID.name) <= self.scan.at)
        if group.has_deletes:
            rows = self._without_deleted(rows, files)
        if name_map is not None and any(c.id in _partition_ids(name_map) for c in self.columns):
            rows = self._with_partition_values(rows, name_map)
        return self._as_query(rows, fields, physical, files, group)

    def _as_query(
        self,
        rows: DataFrame,
        fields: Sequence[s.StructField],
        physical: Mapping[int, str],
        files: Sequence[DataFile],
        group: _Group,
    ) -> DataFrame:
        """The columns as a query sees them, converted only where they must be."""
        mapped, more = group.mapping_id is not None, self.virtual or self.places
        if not mapped and not more and not any(needs_conversion(c, physical) for c in self.columns):
            plain = [f.name for f in fields] == rows.columns
            return rows if plain else rows.select(*(F.col(quoted(c.name)) for c in self.columns))
        result = []
        for field, column in zip(_unique(fields), self.columns, strict=True):
            value = F.expr(from_file(quoted(field.name), column, physical))
            if mapped and column.children:
                value = value.cast(query_type(column))  # by position: the file's names give way to the table's
            result.append(value.alias(column.name))
        if self.virtual:
            rows, row_id, snapshot_id = self._with_origin(rows, files)
            result += [row_id.alias(ROW_ID), snapshot_id.alias(SNAPSHOT_ID)]
        if self.places:
            name = _file_name(f.path for f in files) if group.alone is None else F.lit(f"#{group.alone}")
            position = F.col("_metadata.row_index").alias(POSITION)
            result += [name.alias(FILE), position, F.col(INTERNAL_ROW_ID.name).alias(OWN_ROW_ID)]
        return rows.select(*result)

    def _with_origin(self, rows: DataFrame, files: Sequence[DataFile]) -> tuple[DataFrame, Any, Any]:
        """Where each row comes from: what the file says of it, else the file's own beginning."""
        origins = few(
            self.spark,
            [(_base_name(f.path), f.row_id_start, f.begin_snapshot) for f in files],
            _lake_file=pa.string(),
            _lake_row_id=pa.int64(),
            _lake_snapshot=pa.int64(),
        )
        names = _file_name(f.path for f in files)
        if len({_base_name(f.path) for f in files}) < len(files):
            raise UnsupportedError(
                f"rowid and snapshot_id of table {self.scan.table.name} can not be read: some of its files have"
                " the same name in different folders"
            )
        rows = rows.withColumn("_lake_position", F.col("_metadata.row_index")).withColumn("_lake_name", names)
        rows = rows.join(F.broadcast(origins), F.col("_lake_name") == F.col("_lake_file"), "left")
        row_id = F.coalesce(F.col(INTERNAL_ROW_ID.name), F.col("_lake_row_id") + F.col("_lake_position"))
        return rows, row_id, F.coalesce(F.col(INTERNAL_SNAPSHOT_ID.name), F.col("_lake_snapshot"))

    # -- files that are read by name

    def _mapped_field(self, column: Column, entries: NameMap, physical: Mapping[int, str]) -> s.StructField:
        entry = next((e for e in entries if e.column_id == column.id), None)
        if entry is None or entry.is_partition:
            metadata: dict[str, Any] = {}
            if has_scan_default(column) and entry is None:
                metadata[EXISTS_DEFAULT] = default_literal(column)
            kind = query_type(column) if column.children else stored_leaf(column, physical)
            return s.StructField(f"_lake_missing_{column.id}", kind, True, metadata)
        return s.StructField(entry.source_name, self._mapped_type(column, entry, physical), True)

    def _mapped_type(self, column: Column, entry: NameMapEntry, physical: Mapping[int, str]) -> s.DataType:
        below = {e.column_id: e for e in entry.children}

        def child(c: Column) -> s.DataType:
            return self._mapped_type(c, below[c.id], physical) if c.id in below else query_type(c)

        if column.type == "list":
            return s.ArrayType(child(column.children[0]), True)
        if column.type == "map":
            return s.MapType(child(column.children[0]), child(column.children[1]), True)
        if column.type == "struct":
            return s.StructType(
                [
                    s.StructField(below[c.id].source_name, child(c), True)
                    if c.id in below
                    else s.StructField(f"_lake_missing_{c.id}", query_type(c), True)
                    for c in column.children
                ]
            )
        return stored_leaf(column, physical)

    def _with_partition_values(self, rows: DataFrame, name_map: NameMap) -> DataFrame:
        """Columns that a file has in its path only, as Hive lays them out."""
        sources = {e.column_id: e.source_name for e in name_map if e.is_partition}
        for column in self.columns:
            if column.id in sources:
                # Spark's encoding of the path is around that of the folder's own.
                path = _decoded(F.col("_metadata.file_path"))
                folder = F.regexp_extract(path, f"/{_pattern(_escaped(sources[column.id]))}=([^/]*)/", 1)
                value = F.when(folder != HIVE_NULL, _decoded(folder))
                rows = rows.withColumn(f"_lake_missing_{column.id}", value.cast(query_type(column)))
        return rows

    # -- deletes

    def _without_deleted(self, rows: DataFrame, files: Sequence[DataFile]) -> DataFrame:
        """The rows whose position in their file is not deleted.

        Each 64 rows that follow each other are known by one number, their file's plus theirs, and have a mask
        that says which of them are deleted. Joining on one long is cheap, and cheaper still as a scan mostly
        asks for the entry that it just had.
        """
        start, starts = self._file_numbers(files)
        position = F.col("_metadata.row_index")
        columns = rows.columns
        keyed = rows.withColumns({"_lake_block": start + F.shiftright(position, 6), "_lake_row": position})
        masked = keyed.join(F.broadcast(self._masks(files, starts)), F.col("_lake_block") == F.col("_lake_key"), "left")
        kept = masked.where("_lake_mask is null or shiftright(_lake_mask, cast(_lake_row & 63 as int)) & 1 = 0")
        if self.virtual or self.places:
            return kept.drop("_lake_block", "_lake_row", "_lake_key", "_lake_mask")
        return kept.select(*(F.col(quoted(c)) for c in columns))

    def _file_numbers(self, files: Sequence[DataFile]) -> tuple[Column_, dict[int, int]]:
        """A number of each file that Spark can tell while it reads, and the same by the file's id.

        No two files' numbers meet when those of their rows are added. A file's size is at hand for Spark, its
        name must be hashed for each row.
        """
        if len(files) <= _FEW_FILES:
            sizes = list(_READERS.map(self.storage.size, (f.path for f in files)))
            room = (max(f.record_count for f in files) >> 6).bit_length()
            if len({*sizes}) == len(files) and max(sizes).bit_length() + room < 63:
                numbers = {f.id: size << room for f, size in zip(files, sizes, strict=True)}
                return F.shiftleft(F.col("_metadata.file_size"), room), numbers
        salt, by_name = place_keys({_base_name(f.path): f.record_count for f in files})
        name = _file_name(f.path for f in files)
        hashed = F.xxhash64(F.concat(name, F.lit(salt)) if salt else name)
        return hashed, {f.id: by_name[_base_name(f.path)] for f in files}

    def _masks(self, files: Sequence[DataFile], starts: Mapping[int, int]) -> DataFrame:
        """For each 64 rows of which some are deleted their number, and a mask with a bit for each that is."""
        inlined = [(starts[f.id], position) for f in files for position in f.inlined_deletes]
        delete_files = [f for f in files if f.delete_file is not None]
        count = sum(f.delete_file.delete_count for f in delete_files if f.delete_file)
        if len(delete_files) <= _FEW_FILES and count <= _FEW_POSITIONS:
            said = [f.delete_file for f in delete_files if f.delete_file]
            if any(f.id < 0 for f in said):  # staged, and soon something else
                return local_rows(self.spark, self._few_masks(delete_files, starts, inlined))
            # The catalog does not tell of every delete file which snapshots it names.
            named = (pc.max(found.column(SNAPSHOT_COLUMN)).as_py() for found in map(self.storage.deleted, delete_files))
            at = min(self.scan.at, max((last for last in named if last is not None), default=0))
            key = (*sorted((f.delete_file.path, starts[f.id]) for f in delete_files if f.delete_file), at, *inlined)
            return self.storage.kept(
                key, lambda: local_rows(self.spark, self._few_masks(delete_files, starts, inlined))
            )
        positions = self._deleted_positions(delete_files, starts)
        if inlined:
            positions = positions.union(few(self.spark, inlined, _lake_start=pa.int64(), pos=pa.int64()))
        block = (F.col("_lake_start") + F.shiftright("pos", 6)).alias("_lake_key")
        bit = F.expr("shiftleft(1L, cast(pos & 63 as int))")
        return positions.groupBy(block).agg(F.bit_or(bit).alias("_lake_mask"))

    def _few_masks(
        self, files: Sequence[DataFile], starts: Mapping[int, int], inlined: Sequence[tuple[int, int]]
    ) -> pa.Table:
        """The same by the driver, which has read what the delete files say perhaps for an earlier query."""
        in_catalog = list(zip(*inlined, strict=True)) or [(), ()]
        parts = [pa.table([pa.array(numbers, pa.int64()) for numbers in in_catalog], schema=_POSITIONS)]
        for file, found in zip(files, _READERS.map(self.storage.deleted, files), strict=True):
            assert file.delete_file is not None
            # A file that is only staged names the snapshot to come: all that it says holds.
            if file.delete_file.id >= 0:
                found = found.filter(pc.field(SNAPSHOT_COLUMN) <= self.scan.at)
            start = pa.repeat(pa.scalar(starts[file.id], pa.int64()), found.num_rows)
            parts.append(pa.table([start, found.column("pos")], schema=_POSITIONS))
        positions = pa.concat_tables(parts)
        pos = positions.column("pos")
        block = pc.add(positions.column("start"), pc.shift_right(pos, 6))
        bit = _BITS.take(pc.bit_wise_and(pos, 63))
        bits = pa.table([block, bit], ["_lake_key", "bit"]).group_by(["_lake_key", "bit"]).aggregate([])
        masks = bits.group_by("_lake_key").aggregate([("bit", "sum")])  # each bit is there once
        return masks.select(["_lake_key", "bit_sum"]).rename_columns(["_lake_key", "_lake_mask"])

    def _deleted_positions(self, files: Sequence[DataFile], starts: Mapping[int, int]) -> DataFrame:
        """What delete files name: the number of their data file's first rows, and positions."""
        begun = "_ducklake_internal_snapshot_id"
        schema = s.StructType([s.StructField(name, s.LongType(), True) for name in ("pos", begun)])
        paths = {f.delete_file.path: f for f in files if f.delete_file}
        rows = read_parquet(self.spark, schema, [self.storage.spark_path(path) for path in paths])
        # A file that is only staged names the snapshot to come: all that it says holds.
        known = [
            (_base_name(path), starts[f.id], self.scan.at if f.delete_file and f.delete_file.id >= 0 else None)
            for path, f in paths.items()
        ]
        begin = few(self.spark, known, _lake_name=pa.string(), _lake_begin=pa.int64(), _lake_at=pa.int64())
        rows = rows.withColumn("_lake_file", F.col("_metadata.file_name"))
        rows = rows.join(F.broadcast(begin), F.col("_lake_file") == F.col("_lake_name"))
        return rows.where(f"coalesce({begun} <= _lake_at, true)").selectExpr("_lake_begin as _lake_start", "pos")

    # -- inlined rows

    def _inlined(self, inlined: InlinedRows) -> DataFrame:
        names = [f"c{i}" for i in range(len(self.columns))] + ["row_id", "begin_snapshot"]
        table = inlined.rows.rename_columns(names)
        rows = local_rows(self.spark, table)
        result = [
            (F.parse_json(F.col(f"c{i}")) if c.type == "variant" else F.col(f"c{i}").cast(query_type(c))).alias(c.name)
            for i, c in enumerate(self.columns)
        ]
        if self.virtual:
            result += [F.col("row_id").alias(ROW_ID), F.col("begin_snapshot").alias(SNAPSHOT_ID)]
        if self.places:
            row_id = F.col("row_id")
            result += [F.lit(None).cast("string").alias(FILE), row_id.alias(POSITION), row_id.alias(OWN_ROW_ID)]
        return rows.select(*result)


@dataclass(frozen=True)
class _Group:
    mapping_id: int | None
    faces: tuple[tuple[int, str], ...]
    partial: bool
    has_deletes: bool
    alone: int | None
    """The file, where another one has the same name and rows are known by it."""


def few(spark: SparkSession, rows: Iterable[Sequence[Any]], **columns: pa.DataType) -> DataFrame:
    """Rows that the driver has. They go to Spark as Arrow: a list of tuples would pass through a Python worker."""
    values = list(rows)
    arrays = [pa.array([row[i] for row in values], kind) for i, kind in enumerate(columns.values())]
    return local_rows(spark, pa.table(arrays, names=list(columns)))


def local_rows(spark: SparkSession, table: pa.Table) -> DataFrame:
    """A small Arrow table as a DataFrame; Spark Connect takes none without rows."""
    return spark.createDataFrame(table) if table.num_rows else no_rows(spark, from_arrow_schema(table.schema))


def no_rows(spark: SparkSession, schema: s.StructType) -> DataFrame:
    return spark.range(0).select(*(F.lit(None).cast(f.dataType).alias(f.name) for f in schema.fields))


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

_FEW_FILES, _FEW_POSITIONS = 128, 1_000_000
"""Delete files up to these are read by the driver, sooner than Spark begins a job for them."""
_POSITIONS = pa.schema([("start", pa.int64()), ("pos", pa.int64())])
_BITS = pa.array([*(1 << bit for bit in range(63)), -(2**63)], pa.int64())
"""Arrow does not shift a one into the sign."""


def place_keys(counts: Mapping[str, int]) -> tuple[str, dict[str, int]]:
    """What makes one number of a file's name and a position in it: a salt for the name, and each name's hash.

    `counts` has the rows of each file. The position is added to the hash; no two files' numbers meet.
    """
    for attempt in range(20):
        salt = f"#{attempt}" if attempt else ""
        starts = {name: _signed(xxhash.xxh64_intdigest((name + salt).encode(), seed=42)) for name in counts}
        spans = sorted((start, start + counts[name]) for name, start in starts.items())
        apart = all(end <= begin for (_, end), (begin, _) in pairwise(spans))
        if apart and all(end < 2**63 for _, end in spans):
            return salt, starts
    raise LakeError("the files of a table have names that can not be told apart; compact the table")


def _signed(number: int) -> int:
    return number - 2**64 if number >= 2**63 else number


def _file_name(paths: Iterable[str]) -> Column_:
    """The name of the file that a row is from, as the catalog has it: Spark gives it URL-encoded."""
    name = F.col("_metadata.file_name")
    if all(_PLAIN_NAME.fullmatch(_base_name(path)) for path in paths):
        return name
    return _decoded(name)


def _decoded(text: Column_) -> Column_:
    """The text without its URL encoding, in which a plus is a plus."""
    return F.url_decode(F.regexp_replace(text, r"\+", "%2B"))


_PLAIN_NAME = re.compile(r"[A-Za-z0-9._-]+")


def _base_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def _partition_ids(name_map: NameMap) -> set[int]:
    return {e.column_id for e in name_map if e.is_partition}


def _escaped(name: str) -> str:
    """A column's name as a folder has it."""
    return hive_folder(name, "").removesuffix("=")


def _pattern(text: str) -> str:
    return "".join("\\" + c if c in r"\.[]{}()*+-?^$|" else c for c in text)


def _unique(fields: Sequence[s.StructField]) -> list[s.StructField]:
    """The fields, with names that differ for Spark, which takes `a` and `A` for one."""
    seen: set[str] = set()
    result = []
    for index, field in enumerate(fields):
        name = field.name
        if name.lower() in seen:
            name = f"_lake_{index}"
        seen.add(name.lower())
        result.append(field if name == field.name else s.StructField(name, field.dataType, True, field.metadata))
    return result
