"""From the files, deletes and inlined rows of a table to one DataFrame, read by Spark's own Parquet scan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.errors import LakeError, UnsupportedError
from ...lake.files import DataFile, NameMap, NameMapEntry
from ...lake.inlined import InlinedRows
from ...lake.partitions import HIVE_NULL, hive_folder
from ...lake.predicates import Predicate
from ...lake.snapshot import Table
from ...lake.stats import physical_types
from ...lake.types import Column
from ..sql.safe_predicates import harmless_part
from ..sql.types import (
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
from ..sql.virtual_columns import ROW_ID, SNAPSHOT_ID, VIRTUAL_COLUMNS
from .deletion_masks import living
from .local_rows import few, local_rows, no_rows
from .parquet import WORKERS, Storage, base_name, decoded, file_name, read_parquet, undivided

FILE, POSITION, OWN_ROW_ID = "_lake_file", "_lake_position", "_lake_row_id"
"""Where a row is: its file as in `file_keys`, NULL of an inlined row; the position in it, or the inlined row's id;
and the row id that the file has for it, if it has one."""

# Field ids of the columns that the format itself puts into files.
INTERNAL_ROW_ID = s.StructField("_ducklake_internal_row_id", s.LongType(), True, {"parquet.field.id": 2147483540})
INTERNAL_SNAPSHOT_ID = s.StructField(
    "_ducklake_internal_snapshot_id", s.LongType(), True, {"parquet.field.id": 2147483539}
)


@dataclass(frozen=True)
class TableScan:
    """What must be read to have a table's rows at one version."""

    table: Table
    at: int
    files: Sequence[DataFile]
    name_maps: Mapping[int, NameMap]
    inlined: InlinedRows | None = None


def dataframe(
    spark: SparkSession,
    storage: Storage,
    scan: TableScan,
    virtual: bool = False,
    places: bool = False,
    exists: bool = False,
    says: Predicate | None = None,
    deleted_too: bool = False,
) -> DataFrame:
    """The rows of a table; with the columns `rowid` and `snapshot_id`, and with each row's place, where asked for.

    `exists` is whether the query says EXISTS: see `undivided`. Rows for which what the query `says` does not hold
    may be missing. With `deleted_too` rows of files are there
    that are deleted.
    """
    if any(by.format != "parquet" for f in scan.files for by in f.delete_files):
        raise UnsupportedError(
            f"table {scan.table.name} has deletion vectors (puffin files), which Spark can not read; set the option"
            " write_deletion_vectors to false in DuckDB and rewrite the files with ducklake_rewrite_data_files"
        )
    if deleted_too:
        scan = replace(scan, files=[replace(f, delete_files=(), inlined_deletes=()) for f in scan.files])
    reader = _Reader(spark, storage, scan, virtual, places, says)
    parts = reader.parts()
    rows = reduce(DataFrame.union, parts)
    return undivided(rows) if exists and len(parts) > 1 else rows


def file_keys(files: Sequence[DataFile]) -> dict[str, DataFile]:
    """The files of a scan by what a row's place calls them: the name, where no other file has the same."""
    names = Counter(base_name(f.path) for f in files)
    return {base_name(f.path) if names[base_name(f.path)] == 1 else f"#{f.id}": f for f in files}


@dataclass(frozen=True)
class _Reader:
    spark: SparkSession
    storage: Storage
    scan: TableScan
    virtual: bool
    places: bool
    says: Predicate | None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.table.columns

    def parts(self) -> list[DataFrame]:
        """The rows, in as many parts as they must be read in."""
        parts = [self._files(group, files) for group, files in self._groups().items()]
        if self.scan.inlined is not None and len(self.scan.inlined):
            parts.append(self._inlined(self.scan.inlined))
        return parts or [no_rows(self.spark, self._schema())]

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
                names[base_name(file.path)] += 1
        for file in self.scan.files:
            matters = file.has_deletes or self.places
            alone = file.id if matters and names[base_name(file.path)] > 1 else None
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

        return dict(zip((f.id for f in self.scan.files), WORKERS.map(of, self.scan.files), strict=True))

    def _files(self, group: _Group, files: list[DataFile]) -> DataFrame:
        physical = dict(group.faces)
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
            as_they_are = [] if name_map else [c for c in self.columns if not needs_conversion(c, physical)]
            first = harmless_part(self.says, as_they_are)
            rows = rows if first is None else rows.where(first)
            rows = living(self.spark, self.storage, self.scan.at, files, rows, plain=not (self.virtual or self.places))
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
            name = file_name(f.path for f in files) if group.alone is None else F.lit(f"#{group.alone}")
            position = F.col("_metadata.row_index").alias(POSITION)
            result += [name.alias(FILE), position, F.col(INTERNAL_ROW_ID.name).alias(OWN_ROW_ID)]
        return rows.select(*result)

    def _with_origin(self, rows: DataFrame, files: Sequence[DataFile]) -> tuple[DataFrame, Any, Any]:
        """Where each row comes from: what the file says of it, else the file's own beginning."""
        origins = few(
            self.spark,
            [(base_name(f.path), f.row_id_start, f.begin_snapshot) for f in files],
            _lake_file=pa.string(),
            _lake_row_id=pa.int64(),
            _lake_snapshot=pa.int64(),
        )
        names = file_name(f.path for f in files)
        if len({base_name(f.path) for f in files}) < len(files):
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
                path = decoded(F.col("_metadata.file_path"))
                folder = F.regexp_extract(path, f"/{_pattern(_escaped(sources[column.id]))}=([^/]*)/", 1)
                value = F.when(folder != HIVE_NULL, decoded(folder))
                rows = rows.withColumn(f"_lake_missing_{column.id}", value.cast(query_type(column)))
        return rows

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
