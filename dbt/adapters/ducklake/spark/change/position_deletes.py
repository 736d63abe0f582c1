"""Taking rows away from a table, known by their places: whole files, delete files, positions in the catalog."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.deletes import SNAPSHOT_COLUMN, Mask, known_delete_file, positions_schema, write_delete_file
from ...lake.files import DataFile
from ...lake.paths import new_delete_file_name, new_uuid7
from ...lake.snapshot import Table
from ..read.deletion_masks import deleted_positions
from ..read.local_rows import few, local_rows
from ..read.parquet import WORKERS, Storage, read_parquet
from ..read.row_positions import place_keys
from ..read.scan import FILE, OWN_ROW_ID, POSITION, TableScan, dataframe, file_keys
from ..write.data_files import remove_folder, written_files
from .command_context import CommandContext

DRIVER_ROWS = 20_000_000
"""The places of rows of so many come to the driver straight away; of more, they are counted first."""
DRIVER_POSITIONS = 1_000_000
"""Of more rows, up to so many places come to the driver, which writes the delete files without a Spark job."""

_DATA_FILE = "_lake_data_file"
_ROW_ID, _BEGUN = "_lake_row_id_then", "_lake_begun"
_PLACE, _MEANT, _COUNT = "_lake_place", "_lake_meant", "_lake_count"


@dataclass(frozen=True)
class Places:
    """Where rows are, by file and position."""

    named: DataFrame
    """The rows that name them, some perhaps for nothing."""
    rows: DataFrame
    """Those of them that mean it; computed already where the driver does not know the places."""
    known: Mapping[str | None, pa.Array] | None
    """The positions of each file in their order, where they are not too many for the driver."""
    repeats: bool | None = None
    """Whether a place is named more than once, if the driver knows."""

    @classmethod
    def of(cls, rows: DataFrame, scan: TableScan, *, computed: bool = True, acted: str | None = None) -> Places:
        """The places of rows of a scan; with `acted`, of those that have a value in this column."""
        at_once = fit_driver(scan)
        named = rows if at_once or computed else rows.localCheckpoint()
        meant = named if acted is None else named.where(F.col(acted).isNotNull())
        if not at_once and named.count() > DRIVER_POSITIONS:
            return cls(named, meant, None)
        every, known = _known(named, scan, acted)
        repeats = any(pc.any(pc.equal(p[1:], p[:-1])).as_py() for p in every.values() if len(p) > 1)
        return cls(named, meant, known, repeats)

    @classmethod
    def of_living(cls, rows: DataFrame, scan: TableScan, storage: Storage) -> Places:
        """The places of rows of a scan that fits the driver, of which some are deleted already."""
        deleted = {key: file for key, file in file_keys(scan.files).items() if file.has_deletes}
        # They are read while Spark looks for the rows.
        positions = WORKERS.map(lambda file: deleted_positions(storage, file, scan.at), deleted.values())
        known, _ = _known(rows, scan, None)
        for key, before in zip(deleted, positions, strict=True):
            if key in known:
                known[key] = known[key].filter(pc.invert(pc.is_in(known[key], value_set=before)))
        return cls(rows, rows, {key: found for key, found in known.items() if len(found)}, repeats=False)

    def per_file(self) -> dict[str | None, int]:
        """How many there are in each file; those of inlined rows are in none."""
        if self.known is not None:
            return {file: len(positions) for file, positions in self.known.items()}
        counts = self.rows.groupBy(FILE).agg(F.count("*").alias(_COUNT)).toArrow()
        return dict(zip(counts.column(FILE).to_pylist(), counts.column(_COUNT).to_pylist(), strict=True))

    def inlined(self) -> frozenset[int]:
        """The row ids of inlined rows."""
        if self.known is not None:
            return frozenset(self.known[None].to_pylist())
        row_ids = self.rows.where(F.col(FILE).isNull()).select(POSITION).toArrow().column(0)
        return frozenset(row_ids.to_pylist())

    def within(self, files: Collection[str]) -> Places:
        """Those in some files."""
        known = None if self.known is None else {f: p for f, p in self.known.items() if f in files}
        rows = self.rows.where(F.col(FILE).isin(*files)) if len(files) < 100 else self.rows
        return replace(self, rows=rows, known=known)

    def repeated(self) -> tuple[str | None, int, int] | None:
        """A place that the rows name more than once, and how often; None if each is named once."""
        if self.repeats is False:
            return None
        counted = self.named.groupBy(FILE, POSITION).agg(F.count("*").alias(_COUNT))
        found = counted.where(F.col(_COUNT) > 1).limit(1).toArrow().to_pylist()
        return next(((r[FILE], r[POSITION], r[_COUNT]) for r in found), None)

    def once(self) -> Places:
        """Each place, once."""
        known = None if self.known is None else {file: pc.unique(p) for file, p in self.known.items()}
        return replace(self, rows=self.rows.dropDuplicates([FILE, POSITION]), known=known)

    def __bool__(self) -> bool:
        return self.known is None or bool(self.known)


def fit_driver(scan: TableScan) -> bool:
    """Whether the places of all rows of a scan may come to the driver."""
    inlined = len(scan.inlined) if scan.inlined else 0
    return sum(f.record_count for f in scan.files) + inlined <= DRIVER_ROWS


_Known = dict[str | None, pa.Array]


def _known(rows: DataFrame, scan: TableScan, acted: str | None) -> tuple[_Known, _Known]:
    """The positions of each file in their order: all that the rows name, and those that they mean.

    They come as one number each, the hash of the file's name and the position: names would be most of what comes.
    """
    keys = file_keys(scan.files)
    salt, starts = place_keys({key: f.record_count for key, f in keys.items()})
    name = F.concat(FILE, F.lit(salt)) if salt else F.col(FILE)
    columns = [F.when(F.col(FILE).isNotNull(), F.xxhash64(name) + F.col(POSITION)).alias(_PLACE)]
    if scan.inlined is not None:
        columns.append(F.when(F.col(FILE).isNull(), F.col(POSITION)).alias(POSITION))
    if acted is not None:
        columns.append(F.col(acted).isNotNull().alias(_MEANT))
    table = rows.select(*columns).toArrow()
    meant = table if acted is None else table.filter(pc.field(_MEANT))
    every = _by_file(table, starts)
    return every, every if len(meant) == len(table) else _by_file(meant, starts)


def _by_file(table: pa.Table, starts: Mapping[str, int]) -> _Known:
    found: _Known = {}
    if POSITION in table.column_names:
        row_ids = table.column(POSITION).drop_null().combine_chunks()
        if len(row_ids):
            found[None] = row_ids.sort()
    places = table.column(_PLACE).drop_null().combine_chunks().sort()
    order = sorted(starts, key=lambda key: starts[key])
    begins = [bisect_left(range(len(places)), starts[key], key=lambda i: places[i].as_py()) for key in order]
    for key, (begin, end) in zip(order, pairwise([*begins, len(places)]), strict=True):
        if end > begin:
            found[key] = pc.subtract(places[begin:end], starts[key])
    return found


def take_away(
    context: CommandContext, table: Table, scan: TableScan, places: Places, besides: Sequence[DataFile] = ()
) -> int:
    """Stages that the rows at these places are gone, and whole files besides; says how many rows had a place.

    None of the places is there twice.
    """
    per_file = places.per_file()
    total = sum(per_file.values())
    if None in per_file:
        context.transaction.end_inlined(table, places.inlined())
        del per_file[None]
    keys = file_keys(scan.files)
    touched = {key: keys[key] for key in per_file if key is not None}
    whole = {key for key, file in touched.items() if per_file[key] == file.live_rows}
    partly = {key: file for key, file in touched.items() if key not in whole}
    rewritten = _worth_rewriting(context, table, partly, per_file)
    if rewritten:
        _rewrite(context, table, replace(scan, files=list(rewritten.values()), inlined=None), places.within(rewritten))
        whole |= rewritten.keys()
        partly = {key: file for key, file in partly.items() if key not in rewritten}
    if partly:
        some = places.within(partly) if whole else places
        masks = _Masks(context, table, partly, some, sum(per_file[key] for key in partly)).masks()
        context.transaction.mask(table, masks, {file.id: per_file[key] for key, file in partly.items()})
    gone = [*besides, *(touched[key] for key in whole)]
    if gone:  # at last and at once, since the ids of staged files are theirs until one of them goes
        context.transaction.end_files(table, gone)
    return total


def _worth_rewriting(
    context: CommandContext, table: Table, files: Mapping[str, DataFile], per_file: Mapping[str | None, int]
) -> dict[str, DataFile]:
    """The files of which so much is deleted that their other rows are to be written anew, if the table asks for it.

    Nobody changed those rows, but the change feed shows them as updated: so it is done only where
    `rewrite_delete_threshold` is set.
    """
    threshold = context.transaction.options.set_value("rewrite_delete_threshold", table.schema_id, table.id)
    if threshold is None:
        return {}
    share = float(threshold)
    return {
        key: file
        for key, file in files.items()
        if file.id >= 0 and file.record_count - file.live_rows + per_file[key] >= share * file.record_count
    }


def _rewrite(context: CommandContext, table: Table, scan: TableScan, places: Places) -> None:
    """Writes the rows of files that are at none of the places into new files, with their row ids."""
    spark = context.planner.spark
    rows = dataframe(spark, context.lake.storage, scan, virtual=True, places=True)
    names = [f"_lake_c{index}" for index in range(len(table.columns))]
    rows = rows.toDF(*names, _ROW_ID, _BEGUN, FILE, POSITION, OWN_ROW_ID)
    gone = places.rows.select(FILE, POSITION)
    if places.known is not None:  # the plan would compute them anew, perhaps to others
        parts = [pa.table([pa.repeat(file, len(p)), p], [FILE, POSITION]) for file, p in places.known.items()]
        gone = local_rows(spark, pa.concat_tables(parts))
    left = rows.join(F.broadcast(gone) if places.known is not None else gone, [FILE, POSITION], "left_anti")
    kept = left.select(*names, _ROW_ID).toDF(*(c.name for c in table.columns), _ROW_ID)
    context.transaction.updates(table, context.write(kept, table, _ROW_ID))


@dataclass
class _Masks:
    """What is to be masked: some rows of some files."""

    context: CommandContext
    table: Table
    files: Mapping[str, DataFile]
    places: Places
    count: int

    def __post_init__(self) -> None:
        self.target = self.context.target(self.table)
        self.store = self.context.lake.store
        self.snapshot = self.context.transaction.base.id + 1

    def masks(self) -> dict[int, Mask]:
        known = self.places.known
        if known is not None and self._fits_catalog():
            return {self.files[key].id: Mask(positions=tuple(p.to_pylist())) for key, p in known.items() if key}
        before = sum(f.delete_file.delete_count for f in self.files.values() if f.delete_file)
        if known is not None and self.count + before <= DRIVER_ROWS:
            return dict(WORKERS.map(lambda key: self._written(self.files[key], known[key]), self.files))
        named = {k: f for k, f in self.files.items() if _names_snapshots(f)}
        plain = {k: f for k, f in self.files.items() if k not in named}
        return {**self._by_spark(plain, False), **self._by_spark(named, True)}

    def _fits_catalog(self) -> bool:
        limit = self.target.options.number("data_inlining_row_limit", self.table.schema_id, self.table.id) or 0
        inlines = self.context.lake.catalog.database.supports_inlining
        return inlines and self.count <= limit and all(f.id >= 0 for f in self.files.values())

    def _written(self, file: DataFile, positions: pa.Array) -> tuple[int, Mask]:
        before = None
        if file.delete_file is not None:
            before = self.context.lake.deleted(file)
        snapshot = self.snapshot if _names_snapshots(file) else None
        new = write_delete_file(self.store, self.target.folder, file.path, positions, before, snapshot)
        return file.id, Mask(new, replaces=_replaced(file))

    # -- by Spark

    def _by_spark(self, files: Mapping[str, DataFile], with_snapshots: bool) -> dict[int, Mask]:
        """One delete file for each data file, written side by side."""
        if not files:
            return {}
        spark = self.places.rows.sparkSession
        named = {FILE: pa.string(), _DATA_FILE: pa.int64(), "file_path": pa.string()}
        known = few(spark, [(key, f.id, f.path) for key, f in files.items()], **named)
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
            paths = [path for path, _ in written_files(self.target, folder)]
            by_id = {f.id: f for f in files.values()}
            return dict(WORKERS.map(lambda path: self._kept(path, by_id, snapshot), paths))
        finally:
            remove_folder(self.target, folder)

    def _before(self, files: Sequence[DataFile]) -> list[DataFrame]:
        """What the files' delete files say already."""
        if not files:
            return []
        spark = self.places.rows.sparkSession
        deleted = {f.delete_file.path: f for f in files if f.delete_file}
        schema = s.StructType([s.StructField(name, s.LongType(), True) for name in ("pos", SNAPSHOT_COLUMN)])
        rows = read_parquet(spark, schema, [self.context.lake.storage.spark_path(path) for path in deleted])
        named = {"_lake_name": pa.string(), _DATA_FILE: pa.int64(), "file_path": pa.string(), "_lake_begun": pa.int64()}
        known = few(
            spark,
            [
                (path.rsplit("/", 1)[-1], f.id, f.path, f.delete_file.begin_snapshot if f.delete_file else None)
                for path, f in deleted.items()
            ],
            **named,
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
    again = before is not None and (before.id >= 0 or before.partial_max is not None)
    return again or file.partial_max is not None
