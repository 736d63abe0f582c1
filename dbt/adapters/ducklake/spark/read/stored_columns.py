"""How data files store the columns of their table: by which names, and in which types.

Mostly both follow from the table. Some columns depend on the file, and only its footer tells:

* Spark stores some types in another way than DuckDB does (`WRITER_DEPENDENT_TYPES`).
* A file may hold an integer in the type that its column was promoted from, and lack a field that was added later.
* Files that were added to the table as they are may hold narrower and other types. Old ones have neither field ids nor
  a name map.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ...lake.files import DataFile, NameMap
from ...lake.parquet_footer import physical_types, positional_name_map
from ...lake.paths import has_data_file_name
from ...lake.snapshot import Table
from ...lake.snapshot_loader import ColumnHistory
from ...lake.types import Column
from ..sql.kept_text import type_of_text
from ..sql.types import (
    MISSING,
    WRITER_DEPENDENT_TYPES,
    columns_with_query_default,
    depends_on_added_file,
    is_encoded,
    is_missing,
)
from .parquet import FILE_POOL, FileReader


@dataclass(frozen=True)
class FileColumns:
    """How one file stores the columns of its table."""

    name_map: NameMap | None
    """None if columns are found by field id."""
    converted_types: tuple[tuple[int, str], ...]
    """The physical types of the columns that a query must convert, by column id; MISSING where it fills in a default.
    """


@dataclass(frozen=True)
class StoredColumns:
    """The columns of one table in its files. Most files are not opened."""

    table: Table
    file_reader: FileReader
    name_maps: Mapping[int, NameMap]

    def in_files(self, files: Sequence[DataFile]) -> dict[int, FileColumns]:
        """How some of the files store the columns, by file id. The others have their field ids or their name map, and
        no columns to convert.
        """
        opened = [f for f in files if _may_lack_field_ids(f) or self._columns_to_examine(f)]
        if any(map(_may_lack_field_ids, opened)):
            _ = self._history  # read once, not by each thread
        return dict(zip((f.id for f in opened), FILE_POOL.map(self._in_file, opened), strict=True))

    def _in_file(self, file: DataFile) -> FileColumns:
        footer = self.file_reader.read_footer(file)
        name_map = self.name_maps.get(file.mapping_id) if file.mapping_id is not None else None
        if _may_lack_field_ids(file):
            name_map = positional_name_map(footer, self._history.columns_at(file.begin_snapshot or 0))
        columns = self._columns_of_added_files if name_map and file.may_be_added else self._columns_to_examine(file)
        found = physical_types(footer, self.table.columns, name_map)
        in_path = {entry.column_id for entry in name_map or () if entry.is_partition}
        types = {column.id: found.get(column.id, MISSING) for column in columns if column.id not in in_path}
        converted = tuple(
            (c.id, types[c.id]) for c in columns if c.id in types and (is_encoded(c, types) or is_missing(c, types))
        )
        return FileColumns(name_map, converted)

    def _columns_to_examine(self, file: DataFile) -> list[Column]:
        is_added = file.mapping_id is not None and file.may_be_added
        return self._columns_of_added_files if is_added else self._columns_of_all_files

    @cached_property
    def _columns_of_all_files(self) -> list[Column]:
        """The columns and nested fields of which each file may hold another type, or lack the default."""
        columns = [field for column in self.table.columns for field in column.walk()]
        found = {c.id: c for c in columns_with_query_default(self.table.columns)}
        for column in columns:
            # Spark reads every other promoted type as it reads the column's.
            is_promoted = column.type == "uint64" and self.table.id >= 0 and self._history.had_another_type(column)
            if is_promoted or type_of_text(column.type) in WRITER_DEPENDENT_TYPES:
                found[column.id] = column
        return list(found.values())

    @cached_property
    def _columns_of_added_files(self) -> list[Column]:
        columns = [field for column in self.table.columns for field in column.walk()]
        added = {c.id: c for c in columns if depends_on_added_file(c)}
        return list({**added, **{c.id: c for c in self._columns_of_all_files}}.values())

    @cached_property
    def _history(self) -> ColumnHistory:
        return self.file_reader.column_history(self.table.id)


def _may_lack_field_ids(file: DataFile) -> bool:
    return file.mapping_id is None and not has_data_file_name(file.path)
