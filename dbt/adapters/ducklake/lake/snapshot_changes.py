"""What a snapshot changed: `ducklake_snapshot_changes.changes_made`, parsed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from . import tables as t
from .quoted_names import parse_quoted_names

_TABLE_CHANGE_KINDS = {
    "inserted_into_table": "inserted",
    "inlined_insert": "inserted",
    "deleted_from_table": "deleted",
    "inlined_delete": "deleted",
    "altered_table": "altered",
    "altered_view": "altered",
    "dropped_table": "dropped",
    "dropped_view": "dropped",
    "compacted_table": "compacted",
    "merge_adjacent": "compacted",
    "rewrite_delete": "compacted",
    "inline_flush": "flushed",
    "flushed_inlined": "flushed",
}


@dataclass(frozen=True)
class SnapshotChanges:
    """The changes of one snapshot, as sets of ids and of names in lower case."""

    created_schemas: frozenset[str] = frozenset()
    dropped_schemas: frozenset[int] = frozenset()
    created_relations: frozenset[tuple[str, str]] = frozenset()
    """Schema and name of each table or view that was created or renamed. A rename lists the new name."""
    relation_changes: frozenset[tuple[str, int]] = frozenset()
    """The kind of each change ("inserted", "deleted", ...) and the id of the changed table or view."""
    created_macros: frozenset[tuple[str, str, str]] = frozenset()
    """Kind, schema and name of each created macro."""
    dropped_macros: frozenset[tuple[str, int]] = frozenset()
    """Kind and id of each dropped macro."""


_COMPACTIONS = ("merge_adjacent:", "rewrite_delete:", "compacted_table:")


def rewriting_snapshots() -> sa.Select[tuple[int]]:
    """A query for the snapshots that rewrote data files and changed no row.

    A merge of files leaves the snapshots of rows as they were. A rewrite gives files and rows its own snapshot. No
    snapshot does both that and something else.
    """
    changes = t.snapshot_changes.c
    return sa.select(changes.snapshot_id).where(
        sa.or_(changes.changes_made.startswith("rewrite_delete:"), changes.changes_made.startswith("compacted_table:"))
    )


_OPERATIONS = {
    "altered_table": "alter",
    "inserted_into_table": "insert",
    "inlined_insert": "insert",
    "deleted_from_table": "delete",
    "inlined_delete": "delete",
    "merge_adjacent": "merge files",
    "rewrite_delete": "rewrite",
    "compacted_table": "compact",
    "inline_flush": "flush",
    "flushed_inlined": "flush",
    "dropped_table": "drop",
}
"""What users call the changes of a table, in the order in which a snapshot's changes are told."""


def table_operations(changes_made: str | None) -> dict[int, tuple[str, ...]]:
    """What a snapshot did to each table, by table id, such as `("insert", "delete")`. Creations are not in it."""
    kinds: dict[int, set[str]] = {}
    for entry in _entries(changes_made or ""):
        kind, _, value = entry.partition(":")
        if kind in _OPERATIONS and value.isdigit():
            kinds.setdefault(int(value), set()).add(_OPERATIONS[kind])
    order = tuple(dict.fromkeys(_OPERATIONS.values()))
    return {table_id: tuple(sorted(found, key=order.index)) for table_id, found in kinds.items()}


def only_compacts(changes_made: str | None) -> bool:
    """Whether a snapshot only stores rows in other files, so that no row of any table changed."""
    return bool(changes_made) and all(entry.startswith(_COMPACTIONS) for entry in _entries(changes_made or ""))


def parse_changes(changes_made: str) -> SnapshotChanges:
    """The changes that `changes_made` lists. Entries of an unknown kind are ignored."""
    created_schemas: set[str] = set()
    dropped_schemas: set[int] = set()
    created_relations: set[tuple[str, str]] = set()
    relation_changes: set[tuple[str, int]] = set()
    created_macros: set[tuple[str, str, str]] = set()
    dropped_macros: set[tuple[str, int]] = set()
    for entry in _entries(changes_made):
        kind, _, value = entry.partition(":")
        if kind == "created_schema":
            created_schemas.add(parse_quoted_names(value)[0].lower())
        elif kind == "dropped_schema":
            dropped_schemas.add(int(value))
        elif kind in ("created_table", "created_view"):
            schema, name = parse_quoted_names(value, ".")
            created_relations.add((schema.lower(), name.lower()))
        elif kind in _TABLE_CHANGE_KINDS:
            relation_changes.add((_TABLE_CHANGE_KINDS[kind], int(value)))
        elif kind in ("created_scalar_macro", "created_table_macro"):
            schema, name = parse_quoted_names(value, ".")
            created_macros.add((kind.split("_")[1], schema.lower(), name.lower()))
        elif kind in ("dropped_scalar_macro", "dropped_table_macro"):
            dropped_macros.add((kind.split("_")[1], int(value)))
    return SnapshotChanges(
        frozenset(created_schemas),
        frozenset(dropped_schemas),
        frozenset(created_relations),
        frozenset(relation_changes),
        frozenset(created_macros),
        frozenset(dropped_macros),
    )


def _entries(changes_made: str) -> Iterator[str]:
    """The comma-separated entries. A comma inside a quoted name does not separate."""
    start, in_quotes = 0, False
    for position, character in enumerate(changes_made):
        if character == '"':
            in_quotes = not in_quotes
        elif character == "," and not in_quotes:
            yield changes_made[start:position]
            start = position + 1
    if start < len(changes_made):
        yield changes_made[start:]
