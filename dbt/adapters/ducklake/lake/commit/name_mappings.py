"""Rows of name mappings, which files without field ids need."""

from __future__ import annotations

from collections.abc import Iterable

from .. import tables as t
from ..files import NameMap, NewDataFile, name_maps
from .rows import SnapshotRows


def add_name_mappings(rows: SnapshotRows, table_id: int, files: Iterable[NewDataFile]) -> dict[NameMap, int]:
    """The mapping id of each name map of the files. Reuses the mappings that the table already has."""
    needed = {file.name_map for file in files if file.name_map}
    if not needed:
        return {}
    existing = {name_map: mapping_id for mapping_id, name_map in name_maps(rows.connection, table_id).items()}
    mapping_ids: dict[NameMap, int] = {}
    for name_map in needed:
        if name_map in existing:
            mapping_ids[name_map] = existing[name_map]
            continue
        mapping_id = mapping_ids[name_map] = rows.new_file_id()
        rows.add(t.column_mapping, mapping_id=mapping_id, table_id=table_id, type="map_by_name")
        _add_entries(rows, mapping_id, name_map, parent_id=None, next_id=0)
    return mapping_ids


def _add_entries(rows: SnapshotRows, mapping_id: int, entries: NameMap, parent_id: int | None, next_id: int) -> int:
    """Adds entries and those below them, numbered from `next_id`. Returns the next free number."""
    for entry in entries:
        entry_id, next_id = next_id, next_id + 1
        rows.add(
            t.name_mapping,
            mapping_id=mapping_id,
            column_id=entry_id,
            source_name=entry.source_name,
            target_field_id=entry.column_id,
            parent_column=parent_id,
            is_partition=entry.is_partition,
        )
        next_id = _add_entries(rows, mapping_id, entry.children, entry_id, next_id)
    return next_id
