"""Writes a few rows of the driver as a data file, without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import types as s

from ...lake.arrow_types import has_plain_type, with_field_ids
from ...lake.files import NewDataFile
from ...lake.paths import new_data_file_name
from .data_files import check_not_null, describe_data_file
from .target import WriteTarget
from .write_folder import removing_empty_folders

MAX_ROWS = 100_000
"""Spark writes more rows than these."""

_CODECS = {"snappy", "zstd", "gzip", "brotli", "uncompressed"}


def can_write_locally(rows: pa.Table, target: WriteTarget) -> bool:
    """Whether the driver can write the rows itself: few rows of plain types, neither partitioned nor sorted."""
    table = target.table
    return (
        rows.num_rows <= MAX_ROWS
        and rows.nbytes <= int(target.option("target_file_size") or 0)
        and table.partition is None
        and (table.sort is None or not target.flag("sort_on_insert"))
        and all(map(has_plain_type, table.columns))
        and (target.option("parquet_compression") or "snappy") in _CODECS
    )


def write_local_file(
    rows: pa.Table, target: WriteTarget, internal: Mapping[s.StructField, pa.ChunkedArray] = MappingProxyType({})
) -> list[NewDataFile]:
    """Writes rows as one data file. They have the table's columns, with values of their types.

    `internal` has the values of internal columns, which the file gets, too.
    """
    if rows.num_rows == 0:
        return []
    with removing_empty_folders(target):
        return _write_file(rows, target, internal)


def _write_file(
    rows: pa.Table, target: WriteTarget, internal: Mapping[s.StructField, pa.ChunkedArray]
) -> list[NewDataFile]:
    rows = with_field_ids(rows, target.table.columns)
    for field, values in internal.items():
        field_id = str(field.metadata["parquet.field.id"]).encode()
        rows = rows.append_column(pa.field(field.name, pa.int64(), metadata={b"PARQUET:field_id": field_id}), values)
    path = target.folder + new_data_file_name()
    codec = target.option("parquet_compression") or "snappy"
    level = target.option("parquet_compression_level")
    key = target.store.new_key()
    footer = target.store.write_table(
        rows,
        path,
        key,
        compression="none" if codec == "uncompressed" else codec,
        compression_level=int(level) if level and codec in ("zstd", "gzip", "brotli") else None,
        row_group_size=int(target.option("parquet_row_group_size") or 122_880),
        store_schema=False,
    )
    file = describe_data_file(target, path, footer, None, key)
    files: Sequence[NewDataFile] = [file] if file else []
    try:
        check_not_null(files, target.table)
    except BaseException:
        target.filesystem.delete_file(target.native_path(path))
        raise
    return list(files)
