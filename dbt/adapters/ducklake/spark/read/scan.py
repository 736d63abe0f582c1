"""Table scans: the data files, deletes and inlined rows of one table as a DataFrame.

Spark's own Parquet scan reads the files by field id, so renamed, added, dropped and widened columns are its business.
Files form groups only where they must be read in different ways. The DataFrame is the union of the groups.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.arrow_types import has_plain_type
from ...lake.errors import LakeError
from ...lake.files import DataFile, NameMap
from ...lake.inlined import InlinedRows
from ...lake.inlined_inserts import FIRST_STAGED_ROW_ID, only_staged
from ...lake.predicates import Predicate
from ...lake.snapshot import Table
from ...lake.snapshot_loader import ColumnHistory
from ...lake.types import Column
from ..sql.decoding import decode, decode_as_text, int128_of_text, needs_decoding, timestamp_ns_of_text
from ..sql.kept_text import as_text, is_kept_as_text, kept_text_name
from ..sql.quoting import quoted, string_literal
from ..sql.safe_predicates import safe_part
from ..sql.types import convert_leaves, query_type, read_field
from ..sql.virtual_columns import ROW_ID, SNAPSHOT_ID, VIRTUAL_COLUMNS
from .deletion_masks import without_deleted_rows
from .file_keys import FileKeys
from .local_rows import arrow_dataframe, empty_dataframe, small_dataframe
from .name_mapped_files import mapped_field, with_partition_values
from .parquet import FileReader, read_parquet, union_barrier
from .predicate_columns import predicate_column
from .stored_columns import FileColumns, StoredColumns

FILE, POSITION, OWN_ROW_ID = "_lake_file", "_lake_position", "_lake_row_id"
"""The columns of a row position. FILE is the file's key in the scan, NULL for an inlined row. POSITION is the
position in the file, or the row id of an inlined row. OWN_ROW_ID is the row id stored with the row, if there is one.
Inlined rows that a transaction inserted have none."""

# Internal columns of data files, with their field ids from the specification.
INTERNAL_ROW_ID = s.StructField("_ducklake_internal_row_id", s.LongType(), True, {"parquet.field.id": 2147483540})
INTERNAL_SNAPSHOT_ID = s.StructField(
    "_ducklake_internal_snapshot_id", s.LongType(), True, {"parquet.field.id": 2147483539}
)


@dataclass(frozen=True)
class TableScan:
    """What must be read for the rows of a table at one snapshot."""

    table: Table
    snapshot_id: int
    files: Sequence[DataFile]
    name_maps: Mapping[int, NameMap]
    inlined: InlinedRows | None = None
    whole: TableScan | None = None
    """The scan of which this is a part. Its files, too, differ in their keys."""
    column_history: ColumnHistory | None = None
    """What the columns of the table were; None if the scanner is to read it when it needs it."""

    def part(self, files: Sequence[DataFile]) -> TableScan:
        """The scan of some of the files, which keep their keys."""
        return replace(self, files=files, inlined=None, whole=self.whole or self)

    @property
    def has_staged_rows(self) -> bool:
        """Whether some rows have no row id yet, since the transaction that reads them inserted them."""
        return any(f.id < 0 for f in self.files) or bool(self.inlined and len(only_staged(self.inlined)))

    @cached_property
    def file_keys(self) -> FileKeys:
        return self.whole.file_keys if self.whole else FileKeys.of(f.path for f in self.files)

    @cached_property
    def repeated_keys(self) -> frozenset[str]:
        """The keys of files that were added to the table more than once."""
        if self.whole:
            return self.whole.repeated_keys
        counts = Counter(self.file_keys.key(f.path) for f in self.files)
        return frozenset(key for key, count in counts.items() if count > 1)

    def file_key(self, file: DataFile) -> str:
        """The key of a file in row positions. A file that was added more than once is known by its ids."""
        key = self.file_keys.key(file.path)
        return f"#{file.id}" if key in self.repeated_keys else key

    @cached_property
    def files_by_key(self) -> dict[str, DataFile]:
        return {self.file_key(f): f for f in self.files}


def internal_names(table: Table) -> list[str]:
    """A name for each column of a table, for as long as its own may be that of a column beside them."""
    return [f"_lake_c{index}" for index in range(len(table.columns))]


def scan_dataframe(
    spark: SparkSession,
    file_reader: FileReader,
    scan: TableScan,
    with_virtual_columns: bool = False,
    with_row_positions: bool = False,
    with_kept_text: bool = False,
    has_exists: bool = False,
    pushed_predicate: Predicate | None = None,
    include_deleted: bool = False,
) -> DataFrame:
    """The rows of a table as a DataFrame.

    With virtual columns it has `rowid` and `snapshot_id`. With row positions it has FILE, POSITION and OWN_ROW_ID.
    With kept text, last, the text of columns of which Spark cannot hold every value: see `sql.kept_text`.
    `has_exists` says that the query contains EXISTS: see `union_barrier`. Rows that do not fulfill the pushed predicate
    may be missing. With `include_deleted` the deleted rows of files are present.
    """
    if include_deleted:
        scan = replace(scan, files=[replace(f, delete_files=(), inlined_deletes=()) for f in scan.files])
    kept = [c for c in scan.table.columns if is_kept_as_text(c)] if with_kept_text else []
    scanner = _Scanner(spark, file_reader, scan, with_virtual_columns, with_row_positions, kept, pushed_predicate)
    groups = scanner.groups()
    rows = reduce(DataFrame.union, groups)
    return union_barrier(rows) if has_exists and len(groups) > 1 else rows


@dataclass(frozen=True)
class _Scanner:
    spark: SparkSession
    file_reader: FileReader
    scan: TableScan
    with_virtual_columns: bool
    with_row_positions: bool
    text_columns: Sequence[Column]
    """The columns that the result has as text, too."""
    pushed_predicate: Predicate | None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.scan.table.columns

    @property
    def _locates_rows(self) -> bool:
        """Whether a row's file and position in it are needed."""
        return self.with_virtual_columns or self.with_row_positions

    def groups(self) -> list[DataFrame]:
        """One DataFrame for each scan group and one for the inlined rows; at least one."""
        groups = [self._scan_group(group, files) for group, files in self._scan_groups().items()]
        if self.scan.inlined is not None and len(self.scan.inlined):
            groups.append(self._inlined_rows(self.scan.inlined))
        return groups or [empty_dataframe(self.spark, self._schema())]

    def _schema(self) -> s.StructType:
        fields = [s.StructField(c.name, query_type(c), True) for c in self.columns]
        if self.with_virtual_columns:
            fields += [s.StructField(name, s.LongType(), True) for name in VIRTUAL_COLUMNS]
        if self.with_row_positions:
            fields.append(s.StructField(FILE, s.StringType(), True))
            fields += [s.StructField(name, s.LongType(), True) for name in (POSITION, OWN_ROW_ID)]
        fields += [s.StructField(kept_text_name(c), query_type(as_text(c)), True) for c in self.text_columns]
        return s.StructType(fields)

    # -- data files

    def _scan_groups(self) -> dict[_ScanGroup, list[DataFile]]:
        """The files by how they must be read; most tables have one group."""
        groups: dict[_ScanGroup, list[DataFile]] = defaultdict(list)
        columns = StoredColumns(self.scan.table, self.file_reader, self.scan.name_maps).in_files(self.scan.files)
        usual = FileColumns(None, ())
        for file in self.scan.files:
            # Row ids, row positions and deletion masks find a row's file by its key.
            needs_key = file.has_deletes or self._locates_rows
            is_repeated = needs_key and self.scan.file_keys.key(file.path) in self.scan.repeated_keys
            group = _ScanGroup(
                mapping=columns.get(file.id, usual).name_map if file.mapping_id is None else file.mapping_id,
                converted_types=columns.get(file.id, usual).converted_types,
                has_later_rows=file.partial_max is not None and file.partial_max > self.scan.snapshot_id,
                has_deletes=file.has_deletes,
                only_file_id=file.id if is_repeated else None,
                names_may_differ=file.begin_snapshot is None
                or file.begin_snapshot in self._column_history.snapshots_of_changes,
            )
            groups[group].append(file)
        return groups

    def _scan_group(self, group: _ScanGroup, files: list[DataFile]) -> DataFrame:
        physical = dict(group.converted_types)
        name_map = self.scan.name_maps.get(group.mapping) if isinstance(group.mapping, int) else group.mapping
        if name_map is None and group.mapping is not None:
            raise LakeError(f"table {self.scan.table.name} has files with name mapping {group.mapping}, which is gone")
        fields = [
            read_field(c, physical) if name_map is None else mapped_field(c, name_map, physical) for c in self.columns
        ]
        internal = [INTERNAL_ROW_ID] if self._locates_rows else []
        if group.has_later_rows or self.with_virtual_columns:
            internal.append(INTERNAL_SNAPSHOT_ID)
        reused = frozenset[int]() if name_map else self._with_reused_names(group)
        rows = self._read(_unique(fields), internal, files, reused)
        if group.has_later_rows:
            rows = rows.where(F.col(INTERNAL_SNAPSHOT_ID.name) <= self.scan.snapshot_id)
        if group.has_deletes:
            # Before the masks only safe predicates may run, on columns that the files have as a query sees them.
            unconverted = [] if name_map else [c for c in self.columns if not needs_decoding(c, physical)]
            safe = safe_part(self.pushed_predicate, unconverted)
            rows = rows if safe is None else rows.where(predicate_column(safe))
            rows = without_deleted_rows(
                self.spark,
                self.file_reader,
                self.scan.snapshot_id,
                files,
                rows,
                needs_metadata=self._locates_rows,
            )
        if name_map is not None:
            rows = with_partition_values(rows, self.columns, name_map)
        return self._query_columns(rows, fields, physical, files, group, name_map)

    def _read(
        self,
        fields: Sequence[s.StructField],
        internal: Sequence[s.StructField],
        files: Sequence[DataFile],
        reused: Collection[int],
    ) -> DataFrame:
        """The fields in files; `reused` are the ids of the columns under whose name a file may have another one.

        Spark reads columns by their ids, but finds the statistics for a filter by name: with those of another column
        it would skip row groups that have matching rows. So a simple column of these is read under a name that no file
        has, and a struct goes through an array, past which Spark pushes no filter.
        """
        in_file, names, structs = [], {}, {}
        for field, column in zip(fields, self.columns, strict=True):
            if column.id in reused and column.type == "struct":
                structs[field.name] = F.element_at(F.array(F.col(quoted(field.name))), 1)
            elif column.id in reused and not column.children:
                names[f"_lake_column_{column.id}"] = field.name
                field = s.StructField(f"_lake_column_{column.id}", field.dataType, True, field.metadata)
            in_file.append(field)
        rows = read_parquet(self.spark, s.StructType([*in_file, *internal]), self.file_reader, files)
        rows = rows.withColumnsRenamed(names) if names else rows
        return rows.withColumns(structs) if structs else rows

    def _with_reused_names(self, group: _ScanGroup) -> frozenset[int]:
        """The ids of the columns of which the files of a group may have another column under the same name."""
        if group.names_may_differ:
            return frozenset(column.id for column in self.columns)
        return self._column_history.with_reused_names(self.columns)

    @cached_property
    def _column_history(self) -> ColumnHistory:
        return self.scan.column_history or self.file_reader.column_history(self.scan.table.id)

    def _query_columns(
        self,
        rows: DataFrame,
        fields: Sequence[s.StructField],
        physical: Mapping[int, str],
        files: Sequence[DataFile],
        group: _ScanGroup,
        name_map: NameMap | None,
    ) -> DataFrame:
        """The columns as a query sees them, converted only where they must be."""
        is_plain = name_map is None and not self._locates_rows and not self.text_columns
        if is_plain and not any(needs_decoding(c, physical) for c in self.columns):
            same_columns = [f.name for f in fields] == rows.columns
            return rows if same_columns else rows.select(*(F.col(quoted(c.name)) for c in self.columns))
        fields = _unique(fields)
        in_path = {entry.column_id for entry in name_map or () if entry.is_partition}
        nested = [(f.name, c) for f, c in zip(fields, self.columns, strict=True) if c.children]
        if name_map is not None and nested:  # a cast goes by position: from the file's field names to the table's
            rows = rows.withColumns({n: F.col(quoted(n)).cast(read_field(c, physical).dataType) for n, c in nested})
        result: list[str | SparkColumn] = []
        texts: list[SparkColumn] = []
        for field, column in zip(fields, self.columns, strict=True):
            name = quoted(field.name)
            value = name if column.id in in_path else decode(name, column, physical)
            if column.children and needs_decoding(column, physical):
                # A field is nullable where all rows have its default, too.
                result.append(F.expr(value).cast(query_type(column)).alias(column.name))
            else:
                result.append(f"{value} as {quoted(column.name)}")
            if column in self.text_columns:
                text = F.expr(decode_as_text(name, column, physical)) if column.id not in in_path else F.col(name)
                texts.append(text.cast(query_type(as_text(column))).alias(kept_text_name(column)))
        is_located_by_path = group.only_file_id is None
        file_key = self.scan.file_keys.sql() if is_located_by_path else string_literal(self.scan.file_key(files[0]))
        if self.with_virtual_columns:
            rows, row_id, snapshot_id = self._virtual_columns(rows, files, file_key)
            result += [f"{row_id} as {ROW_ID}", f"{snapshot_id} as {SNAPSHOT_ID}"]
        if self.with_row_positions:
            own_row_id = f"{INTERNAL_ROW_ID.name} as {OWN_ROW_ID}"
            result += [f"{file_key} as {FILE}", f"_metadata.row_index as {POSITION}", own_row_id]
        return _select(rows, [*result, *texts])

    def _virtual_columns(self, rows: DataFrame, files: Sequence[DataFile], file_key: str) -> tuple[DataFrame, str, str]:
        """The rows joined with their files' metadata, and the SQL for the row id and the snapshot id.

        Both are the values stored with the row if it has them. Otherwise the row id is the file's first one plus
        the row's position, and the snapshot is the file's.
        """
        origins = small_dataframe(
            self.spark,
            [(self.scan.file_key(f), f.row_id_start, f.begin_snapshot) for f in files],
            _lake_file=pa.string(),
            _lake_row_id=pa.int64(),
            _lake_snapshot=pa.int64(),
        )
        rows = rows.selectExpr("*", "_metadata.row_index as _lake_position", f"{file_key} as _lake_key")
        rows = rows.join(F.broadcast(origins), F.expr("_lake_key = _lake_file"), "left")
        row_id = f"coalesce({INTERNAL_ROW_ID.name}, _lake_row_id + _lake_position)"
        return rows, row_id, f"coalesce({INTERNAL_SNAPSHOT_ID.name}, _lake_snapshot)"

    # -- inlined rows

    def _inlined_rows(self, inlined: InlinedRows) -> DataFrame:
        if not self._locates_rows and not self.text_columns and all(map(has_plain_type, self.columns)):
            rows_alone = inlined.rows.select(range(len(self.columns)))
            return arrow_dataframe(self.spark, rows_alone.rename_columns([c.name for c in self.columns]))
        names = [f"c{i}" for i in range(len(self.columns))] + ["row_id", "begin_snapshot"]
        table = inlined.rows.rename_columns(names)
        rows = arrow_dataframe(self.spark, table)
        if any(field.type == "int128" for column in self.columns for field in column.walk()):
            # Spark computes all columns of local rows while it plans. Past a barrier it computes those that are read.
            rows = union_barrier(rows)
        result = [_inlined_value(f"c{i}", c).alias(c.name) for i, c in enumerate(self.columns)]
        if self.with_virtual_columns:
            result += [F.col("row_id").alias(ROW_ID), F.col("begin_snapshot").alias(SNAPSHOT_ID)]
        if self.with_row_positions:
            row_id = F.col("row_id")
            own = F.when(row_id < FIRST_STAGED_ROW_ID, row_id)
            result += [F.lit(None).cast("string").alias(FILE), row_id.alias(POSITION), own.alias(OWN_ROW_ID)]
        for i, column in enumerate(self.columns):
            if column in self.text_columns:
                text = F.col(f"c{i}").cast(query_type(as_text(column)))
                result.append(text.alias(kept_text_name(column)))
        return rows.select(*result)


def _select(rows: DataFrame, columns: Sequence[str | SparkColumn]) -> DataFrame:
    """The columns, each an expression or its SQL. SQL needs fewer calls of the JVM."""
    texts = [column for column in columns if isinstance(column, str)]
    if len(texts) == len(columns):
        return rows.selectExpr(*texts)
    return rows.select(*(F.expr(column) if isinstance(column, str) else column for column in columns))


def _inlined_value(name: str, column: Column) -> SparkColumn:
    """The value of an inlined column as a query sees it."""

    def decode_leaf(sql: str, leaf: Column) -> str:
        if leaf.type == "timestamp_ns":
            return timestamp_ns_of_text(sql)
        return int128_of_text(sql, leaf) if leaf.type == "int128" else sql

    value = F.expr(convert_leaves(name, column, decode_leaf)) if is_kept_as_text(column) else F.col(name)
    return value.cast(query_type(column))


@dataclass(frozen=True)
class _ScanGroup:
    """How files must be read. Files with equal values are read together."""

    mapping: int | NameMap | None
    """The name map of the files, or its id; None if columns are found by field id."""
    converted_types: tuple[tuple[int, str], ...]
    """The physical types of columns that must be converted, by column id."""
    has_later_rows: bool
    """Whether the files may have rows of snapshots after the one that is read."""
    has_deletes: bool
    only_file_id: int | None
    """The id of the group's only file, set where the table has the same file twice and its rows are located."""
    names_may_differ: bool
    """Whether the transaction that wrote the files may have changed the names of columns afterwards."""


def _unique(fields: Sequence[s.StructField]) -> list[s.StructField]:
    """The fields with unique names. Spark takes `a` and `A` for the same name, and a file may have both."""
    seen: set[str] = set()
    result = []
    for index, field in enumerate(fields):
        name = field.name
        if name.lower() in seen:
            name = f"_lake_{index}"
        seen.add(name.lower())
        result.append(field if name == field.name else s.StructField(name, field.dataType, True, field.metadata))
    return result
