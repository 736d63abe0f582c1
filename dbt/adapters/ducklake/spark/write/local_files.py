"""A few rows from the driver into a data file, without Spark."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from ...lake.files import NewDataFile
from ...lake.inlined import arrow_type
from ...lake.paths import new_file_name
from ...lake.snapshot import Table
from ...lake.types import Column, decimal_parts
from .data_files import check_not_null, data_file
from .target import WriteTarget

MOST_ROWS = 100_000
"""With more rows than these the driver asks Spark to write them."""

_SIMPLE = frozenset(
    ("boolean", "int8", "int16", "int32", "int64", "float32", "float64", "varchar", "date", "timestamp", "timestamptz")
)
_CODECS = {"snappy", "zstd", "gzip", "brotli", "uncompressed"}


def is_simple(column: Column) -> bool:
    """Whether a column's values are the same in Arrow, in a file and in Spark."""
    return not column.children and (column.type in _SIMPLE or decimal_parts(column.type) is not None)


def can_write(rows: pa.Table, target: WriteTarget) -> bool:
    table = target.table
    return (
        rows.num_rows <= MOST_ROWS
        and table.partition is None
        and (table.sort is None or not target.flag("sort_on_insert"))
        and all(map(is_simple, table.columns))
        and (target.option("parquet_compression") or "snappy") in _CODECS
    )


def write_local(rows: pa.Table, target: WriteTarget) -> list[NewDataFile]:
    """Writes rows that have the table's columns, and values of their types, as one file."""
    if rows.num_rows == 0:
        return []
    folder = target.native(target.folder)
    target.filesystem.create_dir(folder, recursive=True)
    path = target.folder + new_file_name()
    codec = target.option("parquet_compression") or "snappy"
    level = target.option("parquet_compression_level")
    pq.write_table(
        rows.select([c.name for c in target.table.columns]).cast(_schema(target.table)),
        target.native(path),
        filesystem=target.filesystem,
        compression="none" if codec == "uncompressed" else codec,
        compression_level=int(level) if level and codec in ("zstd", "gzip", "brotli") else None,
        row_group_size=int(target.option("parquet_row_group_size") or 122_880),
        store_schema=False,
    )
    size = target.filesystem.get_file_info(target.native(path)).size
    file = data_file(target, path, size, None)
    files: Sequence[NewDataFile] = [file] if file else []
    try:
        check_not_null(files, target.table)
    except BaseException:
        target.filesystem.delete_file(target.native(path))
        raise
    return list(files)


def _schema(table: Table) -> pa.Schema:
    return pa.schema(
        pa.field(c.name, arrow_type(c), metadata={b"PARQUET:field_id": str(c.id).encode()}) for c in table.columns
    )
