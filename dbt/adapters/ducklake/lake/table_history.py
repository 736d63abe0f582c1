"""The history of a table: the snapshots that changed it, and how."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .commit.rows import id_batches
from .snapshot_changes import table_operations

_MAX_FILTERED_IDS = 20
"""For more table ids than this, the database does not search the texts of changes for each of them."""


@dataclass(frozen=True)
class RowCounts:
    """The rows that a snapshot changed."""

    inserted: int
    updated: int
    deleted: int


@dataclass(frozen=True)
class TableChange:
    """One snapshot that changed a table."""

    snapshot_id: int
    time: datetime.datetime
    author: str | None
    operations: tuple[str, ...]
    message: str | None
    rows: RowCounts | None
    """None if the commit does not say how many, or changed rows of several tables."""
    extra_info: str | None


def table_history(connection: sa.Connection, table_id: int, at: int) -> list[TableChange]:
    """The snapshots up to `at` that changed a table, the newest first. Expired snapshots are not known any more.

    The table is the same one under whatever names it had. A table that it replaced, by CREATE OR REPLACE, is its past.
    """
    begins = _begins(connection, table_id)
    if not begins:
        return []
    operations: dict[int, tuple[str, ...]] = defaultdict(tuple)
    row_changes: dict[int, int] = {}
    first = min(snapshot for snapshots in begins.values() for snapshot in snapshots)
    for row in _changes(connection, begins.keys(), first, at):
        snapshot_id, by_table = row.snapshot_id, table_operations(row.changes_made)
        found = [operation for i in begins.keys() & by_table.keys() for operation in by_table[i]]
        if found:
            operations[snapshot_id] = tuple(dict.fromkeys(found))
        row_changes[snapshot_id] = sum(1 for names in by_table.values() if {"insert", "delete"} & set(names))
    first_begins = {min(snapshots) for snapshots in begins.values()}
    for snapshot_id in sorted(s for snapshots in begins.values() for s in snapshots if s <= at):
        name = "rename"
        if snapshot_id in first_begins:
            name = "create" if snapshot_id == min(first_begins) else "create or replace"
        operations[snapshot_id] = (name, *(o for o in operations[snapshot_id] if o != "drop"))
    history = [
        _table_change(row, operations[row.snapshot_id], row_changes.get(row.snapshot_id, 0), begins.keys())
        for batch in id_batches(operations)
        for row in connection.execute(_snapshots(batch))
    ]
    return sorted(history, key=lambda change: change.snapshot_id, reverse=True)


def _begins(connection: sa.Connection, table_id: int) -> dict[int, list[int]]:
    """The snapshots in which a table, and those that it replaced, got a name, by table id."""
    table = t.table.c
    own = connection.execute(sa.select(t.table).where(table.table_id == table_id).order_by(table.begin_snapshot)).all()
    if not own:
        return {}
    first = own[0]
    namesakes = sa.select(table.table_id, table.begin_snapshot, table.end_snapshot).where(
        sa.func.lower(table.table_name) == first.table_name.lower(), table.schema_id == first.schema_id
    )
    ended = {row.end_snapshot: row for row in connection.execute(namesakes) if row.table_id != table_id}
    ids, begin = {table_id}, first.begin_snapshot
    while (row := ended.get(begin)) is not None and row.table_id not in ids and row.begin_snapshot < begin:
        ids.add(row.table_id)
        begin = row.begin_snapshot
    begins: dict[int, list[int]] = defaultdict(list)
    for batch in id_batches(ids):
        query = sa.select(table.table_id, table.begin_snapshot).where(table.table_id.in_(batch))
        for row in connection.execute(query):
            begins[row.table_id].append(row.begin_snapshot)
    return begins


def _changes(connection: sa.Connection, table_ids: Any, first: int, at: int) -> Sequence[sa.Row[Any]]:
    changes = t.snapshot_changes.c
    query = sa.select(changes.snapshot_id, changes.changes_made).where(
        changes.snapshot_id >= first, changes.snapshot_id <= at
    )
    if len(table_ids) <= _MAX_FILTERED_IDS:  # finds `:12` in `:123` as well, which parsing tells apart
        query = query.where(sa.or_(*(changes.changes_made.contains(f":{i}") for i in table_ids)))
    return connection.execute(query).all()


def _snapshots(ids: Sequence[int]) -> sa.Select[Any]:
    changes = t.snapshot_changes.c
    return (
        sa.select(
            t.snapshot.c.snapshot_id,
            t.snapshot.c.snapshot_time,
            changes.author,
            changes.commit_message,
            changes.commit_extra_info,
        )
        .outerjoin(t.snapshot_changes, changes.snapshot_id == t.snapshot.c.snapshot_id)
        .where(t.snapshot.c.snapshot_id.in_(ids))
    )


def _table_change(
    row: Any, operations: tuple[str, ...], changed_tables: int, table_ids: Collection[int]
) -> TableChange:
    counts = _row_counts(row.commit_extra_info, changed_tables, table_ids)
    if counts is not None and (counts.inserted or counts.updated or counts.deleted):
        # An update is an insert and a delete, unless the commit tells.
        named = (("insert", counts.inserted), ("update", counts.updated), ("delete", counts.deleted))
        others = tuple(o for o in operations if o not in ("insert", "delete"))
        operations = (*others, *(name for name, count in named if count))
    return TableChange(
        row.snapshot_id, row.snapshot_time, row.author, operations, row.commit_message, counts, row.commit_extra_info
    )


def _row_counts(extra_info: str | None, changed_tables: int, table_ids: Collection[int]) -> RowCounts | None:
    """The counts in a commit's extra info, which this project's dbt nodes write; None in that of others."""
    try:
        info = json.loads(extra_info or "null")
    except ValueError:
        return None
    if isinstance(info, Mapping) and isinstance(nodes := info.get("nodes"), list):  # a run of several nodes
        changed_by_node = [(node, _changed_ids(node)) for node in nodes]
        own = [(node, changed) for node, changed in changed_by_node if not changed.isdisjoint(table_ids)]
        if len(own) != 1:
            return None
        info, changed_tables = own[0][0], len(own[0][1])
    counts = info.get("rows") if isinstance(info, Mapping) and changed_tables == 1 else None
    if not isinstance(counts, Mapping):
        return None
    numbers = [counts.get(name) for name in ("inserted", "updated", "deleted")]
    if any(not isinstance(number, int) for number in numbers):
        return None
    return RowCounts(*numbers)  # type: ignore[arg-type]


def _changed_ids(node: Any) -> set[int]:
    """The relations that a node of a run changed, by id. Empty for what other writers call a node."""
    changed = node.get("changed") if isinstance(node, Mapping) else None
    return {i for i in changed if isinstance(i, int)} if isinstance(changed, list) else set()
