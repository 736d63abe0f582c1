"""From written Parquet files to data files of the catalog: one read of each footer, and checks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from ...lake.errors import ConstraintError, LakeError
from ...lake.files import NameMap, NameMapEntry, NewDataFile
from ...lake.partitions import (
    hive_folder,
)
from ...lake.paths import as_folder, new_file_name, relative_to
from ...lake.snapshot import Table
from ...lake.stats import file_stats
from ...lake.types import Column
from .layout import partition_values_of_path
from .target import WriteTarget

TRUNCATE_AT = 2000
"""Bytes of a string that statistics keep: more, and the writer leaves them out altogether."""


def written_files(target: WriteTarget, folder: str) -> list[tuple[str, int]]:
    """The path and size of every Parquet file below a folder."""
    native = target.native(folder)
    found = target.filesystem.get_file_info(pafs.FileSelector(native, recursive=True, allow_not_found=True))
    base = as_folder(native)
    checksums = [f.path for f in found if f.base_name.endswith(".crc")]
    for path in checksums:  # Hadoop's checksums of local files: nobody would ever clean them up
        target.filesystem.delete_file(path)
    return sorted(
        (folder + info.path[len(base) :], info.size)
        for info in found
        if info.type == pafs.FileType.File and info.base_name.endswith(".parquet")
    )


def data_file(target: WriteTarget, path: str, size: int, name_map: NameMap | None) -> NewDataFile | None:
    """What the catalog keeps of a file; None of one without rows, which is removed."""
    native = target.native(path)
    metadata = pq.read_metadata(native, filesystem=target.filesystem)
    if metadata.num_rows == 0:
        target.filesystem.delete_file(native)
        return None
    _check_ids(metadata, target.table)
    spec = target.table.partition
    values = partition_values_of_path(path, spec) if spec else ()
    relative, is_relative = relative_to(path, target.folder)
    return NewDataFile(
        path=relative,
        path_is_relative=is_relative,
        record_count=metadata.num_rows,
        file_size_bytes=size,
        footer_size=metadata.serialized_size,
        stats=file_stats(metadata, target.table.columns, truncated_at=TRUNCATE_AT),
        partition_id=spec.id if spec else None,
        partition_values=values,
        name_map=name_map,
        partition=spec,
    )


def _check_ids(metadata: pq.FileMetaData, table: Table) -> None:
    """Raises where a file lacks the field id of a column: readers would take it for missing."""
    fields = {f.name: (f.metadata or {}).get(b"PARQUET:field_id") for f in metadata.schema.to_arrow_schema()}
    for column in table.columns:
        if fields.get(column.name) != str(column.id).encode():
            raise LakeError(
                f"Spark wrote column {column.name} of table {table.name} without its field id; nothing was changed."
                " This is a bug: please report it with the query"
            )


def check_not_null(files: Sequence[NewDataFile], table: Table) -> None:
    """Raises where a file holds a NULL that its column does not take."""
    for column in table.columns:
        if column.nulls_allowed or column.children:  # a nested column is checked row by row
            continue
        for file in files:
            stats = file.stats.get(column.id)
            if stats is None or stats.null_count != 0:
                count = stats.null_count if stats else file.record_count
                raise ConstraintError(
                    f"column {column.name} of table {table.name} is NOT NULL, and {count} of the new rows have no"
                    " value for it; nothing was written to the table"
                )


def moved_to_partition(file: NewDataFile, target: WriteTarget) -> NewDataFile:
    """The file under its lasting name: in folders that tell its partition, or in the table's own."""
    spec = target.table.partition
    assert spec is not None
    where = ""
    if target.flag("hive_file_pattern"):
        used: set[str] = set()
        for field, value in zip(spec.fields, file.partition_values, strict=True):
            column = next(c for c in target.table.columns if c.id == field.column_id)
            key = field.transform.hive_key(column.name, used)
            used.add(key)
            where += hive_folder(key, value) + "/"
    new = where + new_file_name()
    target.filesystem.create_dir(target.native(target.folder + where), recursive=True)
    target.filesystem.move(target.native(target.folder + file.path), target.native(target.folder + new))
    return replace(file, path=new)


def remove_folder(target: WriteTarget, folder: str) -> None:
    """Removes the folder of one write, from which everything of use is gone."""
    native = target.native(folder)
    if target.filesystem.get_file_info(native).type == pafs.FileType.Directory:
        target.filesystem.delete_dir(native)


def name_map_of(columns: Sequence[Column]) -> NameMap | None:
    """The names by which the reference finds what Spark gives no field ids: parts of lists and maps."""
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
