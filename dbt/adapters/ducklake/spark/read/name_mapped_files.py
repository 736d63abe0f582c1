"""Data files without field ids: a name mapping says which of their columns is which.

Such files were added to the table as they are. Some have columns only in their path, as `name=value` folders of Hive.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.files import NameMap, NameMapEntry
from ...lake.partition_values import HIVE_NULL
from ...lake.types import Column
from ..sql.quoting import string_literal
from ..sql.types import EXISTS_DEFAULT, has_scan_default, initial_default_literal, query_type, read_type
from .file_keys import url_decoded_sql


def mapped_field(column: Column, name_map: NameMap, physical: Mapping[int, str]) -> s.StructField:
    """The field by which Spark finds a column in a file, given the physical types of the file's columns.

    A column that the file lacks is a field that no file has. It reads as NULL or as the column's default.
    """
    entry = next((e for e in name_map if e.column_id == column.id), None)
    if entry is None or entry.is_partition:
        metadata: dict[str, Any] = {}
        if has_scan_default(column) and entry is None:
            metadata[EXISTS_DEFAULT] = initial_default_literal(column)
        kind = query_type(column) if column.children else read_type(column, physical)
        return s.StructField(_missing_name(column), kind, True, metadata)
    return s.StructField(entry.source_name, _mapped_type(column, entry, physical), True)


def _mapped_type(column: Column, entry: NameMapEntry, physical: Mapping[int, str]) -> s.DataType:
    """The type of a column with the field names of the file."""
    entries = {e.column_id: e for e in entry.children}

    def child(c: Column) -> s.DataType:
        return _mapped_type(c, entries[c.id], physical) if c.id in entries else query_type(c)

    if column.type == "list":
        return s.ArrayType(child(column.children[0]), True)
    if column.type == "map":
        return s.MapType(child(column.children[0]), child(column.children[1]), True)
    if column.type == "struct":
        names = [entries[c.id].source_name if c.id in entries else _missing_name(c) for c in column.children]
        fields = zip(names, column.children, strict=True)
        return s.StructType([s.StructField(name, child(c), True) for name, c in fields])
    return read_type(column, physical)


def with_partition_values(rows: DataFrame, columns: Sequence[Column], name_map: NameMap) -> DataFrame:
    """Fills the columns whose values are only in the file's path. `lake.path_values` says which texts are NULL."""
    sources = {e.column_id: e.source_name for e in name_map if e.is_partition}
    for column in columns:
        if column.id in sources:
            # The path is URL-encoded by Spark, and the folder's value once more by its writer.
            pattern = f"/{_literal_pattern(sources[column.id])}=([^/=]*)/"
            folder = f"regexp_extract({url_decoded_sql('_metadata.file_path')}, {string_literal(pattern)}, 1)"
            is_null = f"{folder} = '{HIVE_NULL}' or upper({folder}) = 'NULL'"
            if column.type != "varchar":
                is_null += f" or {folder} = ''"
            value = F.expr(f"if({is_null}, null, {url_decoded_sql(folder)})")
            rows = rows.withColumn(_missing_name(column), value.cast(query_type(column)))
    return rows


def _missing_name(column: Column) -> str:
    return f"_lake_missing_{column.id}"


def _literal_pattern(text: str) -> str:
    """A Java regular expression that matches exactly this text."""
    return "".join("\\" + c if c in r"\.[]{}()*+-?^$|" else c for c in text)
