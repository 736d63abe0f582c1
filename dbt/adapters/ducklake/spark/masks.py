"""Taking rows away from a table, known by their places: whole files, delete files, positions in the catalog."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ..lake.deletes import (
    SNAPSHOT_COLUMN,
    Mask,
    known_delete_file,
    positions_schema,
    read_positions,
    write_delete_file,
)
from ..lake.files import DataFile
from ..lake.paths import new_delete_file_name, new_uuid7
from ..lake.snapshot import Table
from .scan import FILE, POSITION, TableScan, file_keys, read_parquet
from .scope import Scope
from .write import remove_folder, written_files

DRIVER_POSITIONS = 1_000_000
"""Up to so many positions come to the driver, which writes the delete files without a Spark job."""

_WORKERS = 16
_DATA_FILE = "_lake_data_file"


@dataclass(frozen=True)
class Places:
    """Where rows are, by file and position, as columns of rows that are computed already."""

    rows: DataFrame
    known: pa.Table | None
    """The same on the driver, where they are not too many for it."""

    @classmethod
    def of(cls, rows: DataFrame) -> Places:
        return cls(rows, rows.toArrow() if rows.count() <= DRIVER_POSITIONS else None)

    def per_file(self) -> dict[str | None, int]:
        """How many there are in each file; those of inlined rows are in none."""
        if self.known is not None:
            counts = self.known.group_by(FILE).aggregate([([], "count_all")])
        else:
            counts = self.rows.groupBy(FILE).agg(F.count("*").alias("count_all")).toArrow()
        return dict(zip(counts.column(FILE).to_pylist(), counts.column("count_all").to_pylist(), strict=True))

    def inlined(self) -> frozenset[int]:
        """The row ids of inlined rows."""
        if self.known is not None:
            row_ids = self.known.filter(pc.field(FILE).is_null()).column(POSITION)
        else:
            row_ids = self.rows.where(F.col(FILE).isNull()).select(POSITION).toArrow().column(0)
        return frozenset(row_ids.to_pylist())

    def within(self, files: Collection[str]) -> Places:
        """Those in some files."""
        known = None if self.known is None else self.known.filter(pc.field(FILE).isin(list(files)))
        return Places(self.rows.where(F.col(FILE).isin(*files)) if len(files) < 100 else self.rows, known)

    def having(self, column: str) -> Places:
        """Those of rows with a value in another column."""
        known = None if self.known is None else self.known.filter(pc.field(column).is_valid())
        return Places(self.rows.where(F.col(column).isNotNull()), known)

    def repeated(self) -> tuple[str | None, int, int] | None:
        """A place that is there more than once, and how often; None if each is there once."""
        if self.known is not None:
            counts = self.known.group_by([FILE, POSITION]).aggregate([([], "count_all")])
            found = counts.filter(pc.field("count_all") > 1).slice(0, 1)
        else:
            counted = self.rows.groupBy(FILE, POSITION).agg(F.count("*").alias("count_all"))
            found = counted.where("count_all > 1").limit(1).toArrow()
        return next(((r[FILE], r[POSITION], r["count_all"]) for r in found.to_pylist()), None)

    def once(self) -> Places:
        """Each place, once."""
        known = None if self.known is None else self.known.group_by([FILE, POSITION]).aggregate([])
        return Places(self.rows.dropDuplicates([FILE, POSITION]), known)

    def __bool__(self) -> bool:
        return self.known is None or self.known.num_rows > 0


def take_away(scope: Scope, table: Table, scan: TableScan, places: Places, besides: Sequence[DataFile] = ()) -> int:
    """Stages that the rows at these places are gone, and whole files besides; says how many rows had a place.

    None of the places is there twice.
    """
    per_file = places.per_file()
    total = sum(per_file.values())
    if None in per_file:
        scope.transaction.end_inlined(table, places.inlined())
        del per_file[None]
    keys = file_keys(scan.files)
    touched = {key: keys[key] for key in per_file if key is not None}
    whole = {key for key, file in touched.items() if per_file[key] == file.live_rows}
    partly = {key: file for key, file in touched.items() if key not in whole}
    if partly:
        some = places.within(partly) if whole else places
        masks = _Masks(scope, table, partly, some, sum(per_file[key] for key in partly)).masks()
        scope.transaction.mask(table, masks, {file.id: per_file[key] for key, file in partly.items()})
    gone = [*besides, *(touched[key] for key in whole)]
    if gone:  # at last and at once, since the ids of staged files are theirs until one of them goes
        scope.transaction.end_files(table, gone)
    return total


@dataclass
class _Masks:
    """What is to be masked: some rows of some files."""

    scope: Scope
    table: Table
    files: Mapping[str, DataFile]
    places: Places
    count: int

    def __post_init__(self) -> None:
        self.target = self.scope.target(self.table)
        self.store = self.scope.lake.store
        self.snapshot = self.scope.transaction.base.id + 1

    def masks(self) -> dict[int, Mask]:
        known = self.places.known
        if known is not None and self._fits_catalog():
            return {file.id: Mask(positions=tuple(p.to_pylist())) for file, p in self._found(known)}
        before = sum(f.delete_file.delete_count for f in self.files.values() if f.delete_file)
        if known is not None and self.count + before <= DRIVER_POSITIONS:
            with ThreadPoolExecutor(_WORKERS, thread_name_prefix="lake-deletes") as pool:
                return dict(pool.map(lambda found: self._written(*found), self._found(known)))
        named = {k: f for k, f in self.files.items() if _names_snapshots(f)}
        plain = {k: f for k, f in self.files.items() if k not in named}
        return {**self._by_spark(plain, False), **self._by_spark(named, True)}

    def _fits_catalog(self) -> bool:
        limit = self.target.options.number("data_inlining_row_limit", self.table.schema_id, self.table.id) or 0
        inlines = self.scope.lake.catalog.database.supports_inlining
        return inlines and self.count <= limit and all(f.id >= 0 for f in self.files.values())

    # -- by the driver

    def _found(self, places: pa.Table) -> list[tuple[DataFile, pa.Array]]:
        """The positions of each file, in their order."""
        places = places.sort_by([(FILE, "ascending"), (POSITION, "ascending")])
        names = places.column(FILE).combine_chunks()
        positions = places.column(POSITION).combine_chunks()
        found, start = [], 0
        encoded = pc.run_end_encode(names)
        for name, end in zip(encoded.values.to_pylist(), encoded.run_ends.to_pylist(), strict=True):
            if name in self.files:
                found.append((self.files[name], positions[start:end]))
            start = end
        return found

    def _written(self, file: DataFile, positions: pa.Array) -> tuple[int, Mask]:
        before = None
        if file.delete_file is not None:
            before = read_positions(self.store, file.delete_file.path, file.delete_file.begin_snapshot)
        folder = self.target.folder
        new = write_delete_file(self.store, folder, file.path, positions, before, self.snapshot)
        return file.id, Mask(new, replaces=_replaced(file))

    # -- by Spark

    def _by_spark(self, files: Mapping[str, DataFile], with_snapshots: bool) -> dict[int, Mask]:
        """One delete file for each data file, written side by side."""
        if not files:
            return {}
        spark = self.places.rows.sparkSession
        known = spark.createDataFrame(
            [(key, f.id, f.path) for key, f in files.items()], f"{FILE} string, {_DATA_FILE} long, file_path string"
        )
        rows = self.places.rows.join(F.broadcast(known), FILE).select(
            _DATA_FILE, "file_path", F.col(POSITION).alias("pos"), F.lit(self.snapshot).alias(SNAPSHOT_COLUMN)
        )
        rows = reduce(DataFrame.union, [rows, *self._before([f for f in files.values() if f.delete_file])])
        rows = rows.repartition(F.col(_DATA_FILE)).sortWithinPartitions(_DATA_FILE, "pos")
        fields = [
            F.col(field.name).alias(field.name, metadata={"parquet.field.id": int(field.metadata[b"PARQUET:field_id"])})
            for field in positions_schema(with_snapshots)
        ]
        folder = f"{self.target.folder}ducklake-{new_uuid7()}/"
        writer = rows.select(_DATA_FILE, *fields).write.mode("error").partitionBy(_DATA_FILE)
        options = {"compression": "zstd", "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false"}
        try:
            writer.options(**options).parquet(self.target.spark_target(folder))
            snapshot = self.snapshot if with_snapshots else None
            with ThreadPoolExecutor(_WORKERS, thread_name_prefix="lake-deletes") as pool:
                paths = [path for path, _ in written_files(self.target, folder)]
                by_id = {f.id: f for f in files.values()}
                return dict(pool.map(lambda path: self._kept(path, by_id, snapshot), paths))
        finally:
            remove_folder(self.target, folder)

    def _before(self, files: Sequence[DataFile]) -> list[DataFrame]:
        """What the files' delete files say already."""
        if not files:
            return []
        spark = self.places.rows.sparkSession
        deleted = {f.delete_file.path: f for f in files if f.delete_file}
        schema = s.StructType([s.StructField(name, s.LongType(), True) for name in ("pos", SNAPSHOT_COLUMN)])
        rows = read_parquet(spark, schema, [self.scope.lake.storage.spark_path(path) for path in deleted])
        known = spark.createDataFrame(
            [
                (path.rsplit("/", 1)[-1], f.id, f.path, f.delete_file.begin_snapshot if f.delete_file else None)
                for path, f in deleted.items()
            ],
            f"_lake_name string, {_DATA_FILE} long, file_path string, _lake_begun long",
        )
        then = F.coalesce(F.col(SNAPSHOT_COLUMN), F.col("_lake_begun")).alias(SNAPSHOT_COLUMN)
        rows = rows.withColumn("_lake_name", F.col("_metadata.file_name"))
        return [rows.join(F.broadcast(known), "_lake_name").select(_DATA_FILE, "file_path", "pos", then)]

    def _kept(self, path: str, files: Mapping[int, DataFile], snapshot: int | None) -> tuple[int, Mask]:
        """A delete file under its lasting name."""
        file_id = int(path.rsplit("/", 2)[-2].removeprefix(f"{_DATA_FILE}="))
        lasting = self.target.folder + new_delete_file_name()
        self.target.filesystem.move(self.target.native(path), self.target.native(lasting))
        new = known_delete_file(self.store, lasting, self.target.folder, snapshot)
        return file_id, Mask(new, replaces=_replaced(files[file_id]))


def _replaced(file: DataFile) -> int | None:
    """The delete file that the catalog has for a data file."""
    return file.delete_file.id if file.delete_file and file.delete_file.id >= 0 else None


def _names_snapshots(file: DataFile) -> bool:
    """Whether a data file's next delete file is to name the snapshot of each position."""
    before = file.delete_file
    return before is not None and (before.id >= 0 or before.partial_max is not None)
