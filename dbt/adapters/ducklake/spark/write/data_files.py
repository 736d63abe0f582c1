"""Written Parquet files as data files of the catalog: statistics from one read of each footer, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.fs as pafs
import pyarrow.parquet as pq

from ...lake.encryption import FileKey, Footer
from ...lake.errors import ConstraintError, LakeError
from ...lake.files import NameMap, NameMapEntry, NewDataFile
from ...lake.parquet_footer import file_stats, value_range
from ...lake.partition_values import hive_folder
from ...lake.paths import new_data_file_name, relative_to
from ...lake.snapshot import Table
from ...lake.types import Column
from ..read.scan import INTERNAL_SNAPSHOT_ID
from .target import WriteTarget

MAX_STATISTICS_LENGTH = 2000
"""Parquet statistics keep so many bytes of a string. With more, the writer leaves out long bounds altogether."""


def describe_data_file(
    target: WriteTarget,
    path: str,
    footer: Footer,
    name_map: NameMap | None,
    key: FileKey | None,
    partition_values: tuple[str | None, ...] = (),
) -> NewDataFile | None:
    """A Parquet file as the catalog describes it; None for a file without rows, which is removed."""
    metadata = footer.metadata
    if metadata.num_rows == 0:
        target.filesystem.delete_file(target.native_path(path))
        return None
    _check_field_ids(metadata, target.table)
    spec = target.table.partition
    snapshots = value_range(metadata, INTERNAL_SNAPSHOT_ID.name) or (None, None)
    relative, is_relative = relative_to(path, target.folder)
    return NewDataFile(
        path=relative,
        path_is_relative=is_relative,
        record_count=metadata.num_rows,
        file_size_bytes=footer.file_size,
        footer_size=footer.size,
        stats=file_stats(metadata, target.table.columns, truncated_at=MAX_STATISTICS_LENGTH),
        partition_id=spec.id if spec else None,
        partition_values=partition_values,
        name_map=name_map,
        partition_spec=spec,
        row_group_count=metadata.num_row_groups,
        encryption_key=key,
        written_columns=target.table.columns,
        begin_snapshot=snapshots[0],
        partial_max=snapshots[1],
    )


def _check_field_ids(metadata: pq.FileMetaData, table: Table) -> None:
    """Raises if a file lacks the field id of a column: readers would take the column for missing."""
    fields = {f.name: (f.metadata or {}).get(b"PARQUET:field_id") for f in metadata.schema.to_arrow_schema()}
    for column in table.columns:
        if fields.get(column.name) != str(column.id).encode():
            raise LakeError(
                f"Spark wrote column {column.name} of table {table.name} without its field id; nothing was changed."
                " This is a bug: please report it with the query"
            )


def check_not_null(files: Sequence[NewDataFile], table: Table) -> None:
    """Raises if a file has a NULL in a column that is NOT NULL."""
    for column in table.columns:
        if column.nulls_allowed or column.children:  # the writer checks nested columns row by row
            continue
        for file in files:
            stats = file.stats.get(column.id)
            if stats is None or stats.null_count != 0:
                raise _not_null_error(column, table, stats.null_count if stats else file.record_count)


def check_rows_not_null(rows: pa.Table, table: Table) -> None:
    """Raises if the rows have a NULL in a column that is NOT NULL."""
    for column in table.columns:
        count = rows.column(column.name).null_count
        if count and not column.nulls_allowed:
            raise _not_null_error(column, table, count)


def _not_null_error(column: Column, table: Table, count: int | None) -> ConstraintError:
    return ConstraintError(
        f"column {column.name} of table {table.name} is NOT NULL, and {count} of the new rows have no value for it;"
        " nothing was written to the table"
    )


def move_to_partition_folder(file: NewDataFile, target: WriteTarget) -> NewDataFile:
    """Moves a file to where it stays: below Hive folders of its partition values, or in the table's folder."""
    spec = target.table.partition
    assert spec is not None
    partition_folder = ""
    if target.names_folders_by_values:
        used: set[str] = set()
        for field, value in zip(spec.fields, file.partition_values, strict=True):
            column = next(c for c in target.table.columns if c.id == field.column_id)
            key = field.transform.hive_key(column.name, used)
            used.add(key)
            partition_folder += hive_folder(key, value) + "/"
    new = partition_folder + new_data_file_name()
    target.filesystem.create_dir(target.native_path(target.folder + partition_folder), recursive=True)
    target.filesystem.move(target.native_path(target.folder + file.path), target.native_path(target.folder + new))
    return replace(file, path=new)


def remove_folder(target: WriteTarget, folder: str) -> None:
    """Removes the folder of one write, which holds nothing of use any more."""
    native = target.native_path(folder)
    if target.filesystem.get_file_info(native).type == pafs.FileType.Directory:
        target.filesystem.delete_dir(native)


def name_map_of(columns: Sequence[Column]) -> NameMap | None:
    """The name mapping of files with lists or maps; None for others.

    Spark gives no field ids to list elements, map keys and map values, so the reference finds them by name.
    """
    if not any(c.type in ("list", "map") for top in columns for c in top.walk()):
        return None

    def entry(column: Column, in_list: bool = False) -> NameMapEntry:
        return NameMapEntry(
            "list" if in_list else column.name,
            column.id,
            False,
            tuple(entry(c, column.type == "list") for c in column.children),
        )

    return tuple(entry(c) for c in columns)
