"""Taking rows away from a table, known by their places: whole files, delete files, positions in the catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
"""Up to so many positions the driver writes the delete files, which takes no Spark job; 16 bytes each."""

_WORKERS = 16
_DATA_FILE = "_lake_data_file"


def take_away(scope: Scope, table: Table, scan: TableScan, places: DataFrame, besides: Sequence[DataFile] = ()) -> int:
    """Stages that the rows at these places are gone, and whole files besides; says how many rows had a place.

    The places are computed already, and none is there twice.
    """
    counts = places.groupBy(FILE).agg(F.count("*").alias("rows")).toArrow()
    per_file: dict[str | None, int] = dict(zip(*(counts.column(i).to_pylist() for i in (0, 1)), strict=True))
    total = sum(per_file.values())
    if None in per_file:
        row_ids = places.where(F.col(FILE).isNull()).select(POSITION).toArrow().column(0)
        scope.transaction.end_inlined(table, frozenset(row_ids.to_pylist()))
        del per_file[None]
    keys = file_keys(scan.files)
    touched = {key: keys[key] for key in per_file if key is not None}
    whole = {key for key, file in touched.items() if per_file[key] == file.live_rows}
    partly = {key: file for key, file in touched.items() if key not in whole}
    if partly:
        rows = places.where(F.col(FILE).isin(*partly)) if whole and len(whole) < 100 else places
        masks = _Masks(scope, table, partly, rows, sum(per_file[key] for key in partly)).masks()
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
    places: DataFrame
    count: int

    def __post_init__(self) -> None:
        self.target = self.scope.target(self.table)
        self.store = self.scope.lake.store
        self.snapshot = self.scope.transaction.base.id + 1

    def masks(self) -> dict[int, Mask]:
        if self._fits_catalog():
            return {file.id: Mask(positions=tuple(p.to_pylist())) for file, p in self._collected()}
        before = sum(f.delete_file.delete_count for f in self.files.values() if f.delete_file)
        if self.count + before <= DRIVER_POSITIONS:
            with ThreadPoolExecutor(_WORKERS, thread_name_prefix="lake-deletes") as pool:
                return dict(pool.map(lambda found: self._written(*found), self._collected()))
        named = {k: f for k, f in self.files.items() if _names_snapshots(f)}
        plain = {k: f for k, f in self.files.items() if k not in named}
        return {**self._by_spark(plain, False), **self._by_spark(named, True)}

    def _fits_catalog(self) -> bool:
        limit = self.target.options.number("data_inlining_row_limit", self.table.schema_id, self.table.id) or 0
        inlines = self.scope.lake.catalog.database.supports_inlining
        return inlines and self.count <= limit and all(f.id >= 0 for f in self.files.values())

    # -- by the driver

    def _collected(self) -> list[tuple[DataFile, pa.Array]]:
        """The positions of each file, in their order."""
        places = self.places.select(FILE, POSITION).toArrow().sort_by([(FILE, "ascending"), (POSITION, "ascending")])
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
        spark = self.places.sparkSession
        known = spark.createDataFrame(
            [(key, f.id, f.path) for key, f in files.items()], f"{FILE} string, {_DATA_FILE} long, file_path string"
        )
        rows = self.places.join(F.broadcast(known), FILE).select(
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
        spark = self.places.sparkSession
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
