"""The files, position deletes and inlined rows from which a table's change feed is computed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .files import (
    DATA_FILE_COLUMNS,
    DELETE_FILE_COLUMNS,
    DataFile,
    DeleteFile,
    NameMap,
    data_file_from_row,
    delete_file_from_row,
    name_maps,
)
from .inlined import InlinedRows, read_deleted_inlined_rows, read_inserted_inlined_rows
from .snapshot import Table
from .snapshot_changes import rewriting_snapshots


@dataclass(frozen=True)
class DataFileDeletes:
    """A data file that lost rows, and all its position deletes. A row is deleted only once."""

    data_file: DataFile
    delete_files: tuple[DeleteFile, ...]
    inlined_deletes: tuple[tuple[int, int], ...]
    """Positions that the catalog stores, each with the snapshot that deleted it."""
    end_snapshot: int | None
    """The snapshot in which the data file ended, and all remaining rows with it; None if not in the feed's range."""


@dataclass(frozen=True)
class ChangeFeed:
    """What to read to find the rows inserted into and deleted from a table in snapshots `start` to `end`, inclusive."""

    table: Table
    """The table as of `end`."""
    start: int
    end: int
    inserted_files: tuple[DataFile, ...] = ()
    """Whole files. A file of several snapshots may hold rows from outside the range, which readers must filter out."""
    inserted_inlined_rows: InlinedRows | None = None
    file_deletes: tuple[DataFileDeletes, ...] = ()
    deleted_inlined_rows: InlinedRows | None = None
    existing_at: int | None = None
    """Restricts the deleted rows to those that existed at this snapshot."""
    name_maps: Mapping[int, NameMap] | None = None
    rewrites: frozenset[int] = frozenset()
    """Snapshots of the range that wrote rows into other files and changed none, and that tell nothing."""


def read_change_feed(
    connection: sa.Connection,
    catalog: Catalog,
    table: Table,
    folder: str,
    start: int,
    end: int,
    without_rewrites: bool = False,
) -> ChangeFeed:
    """The change feed of a table. `table` and its folder are those as of `end`.

    As in the reference, snapshots that rewrote data files tell the rows in them as updated, to what they were. They
    tell nothing with `without_rewrites`.
    """
    if start > end:
        return ChangeFeed(table, start, end)
    data = t.data_file
    query = sa.select(*DATA_FILE_COLUMNS).where(
        data.c.table_id == table.id,
        data.c.begin_snapshot <= end,
        sa.or_(data.c.begin_snapshot >= start, data.c.partial_max >= start),
    )
    rewrites = _rewrites(connection, start, end) if without_rewrites else frozenset()
    inserted = tuple(
        data_file_from_row(row, folder)
        for row in connection.execute(query.order_by(data.c.data_file_id)).all()
        if row.begin_snapshot not in rewrites or row.partial_max is not None
    )
    file_deletes = _file_deletes(connection, catalog, table.id, folder, start, end, rewrites)
    return ChangeFeed(
        table,
        start,
        end,
        inserted,
        read_inserted_inlined_rows(connection, catalog, table, start, end),
        file_deletes,
        read_deleted_inlined_rows(connection, catalog, table, start, end),
        name_maps=_name_maps(connection, table, [*inserted, *(d.data_file for d in file_deletes)]),
        rewrites=rewrites,
    )


def read_deletes_since(
    connection: sa.Connection, catalog: Catalog, table: Table, folder: str, since: int, end: int
) -> ChangeFeed:
    """The change feed of the rows that existed at snapshot `since` and were deleted up to `end`."""
    found = _file_deletes(connection, catalog, table.id, folder, since + 1, end)
    file_deletes = tuple(d for d in found if (d.data_file.begin_snapshot or 0) <= since)
    return ChangeFeed(
        table,
        since + 1,
        end,
        file_deletes=file_deletes,
        deleted_inlined_rows=read_deleted_inlined_rows(connection, catalog, table, since + 1, end, existing_at=since),
        existing_at=since,
        name_maps=_name_maps(connection, table, [d.data_file for d in file_deletes]),
    )


def _name_maps(connection: sa.Connection, table: Table, files: Sequence[DataFile]) -> dict[int, NameMap]:
    return name_maps(connection, table.id) if any(f.mapping_id is not None for f in files) else {}


def _file_deletes(
    connection: sa.Connection,
    catalog: Catalog,
    table_id: int,
    folder: str,
    start: int,
    end: int,
    without: frozenset[int] = frozenset(),
) -> tuple[DataFileDeletes, ...]:
    """The data files that lost rows in the range, except by ending in one of the snapshots `without`."""
    data, deleted, inlined = t.data_file, t.delete_file, t.inlined_delete(table_id)
    # A flush of inlined deletes begins its delete file at their first snapshot, and the reference does not always
    # record the last one. Whatever was written since `start` may name snapshots of the range.
    ids_before = sa.select(sa.func.max(t.snapshot.c.next_file_id)).where(t.snapshot.c.snapshot_id < start)
    first_new_id = connection.scalar(ids_before) or 0
    with_delete_files = sa.select(deleted.c.data_file_id).where(
        deleted.c.table_id == table_id,
        deleted.c.begin_snapshot <= end,
        sa.or_(
            deleted.c.begin_snapshot >= start,
            deleted.c.partial_max >= start,
            deleted.c.delete_file_id >= first_new_id,
        ),
    )
    ends_in_range: sa.ColumnElement[bool] = data.c.end_snapshot.between(start, end)
    if without:
        ends_in_range = sa.and_(ends_in_range, data.c.end_snapshot.not_in(rewriting_snapshots()))
    has_deletes = sa.or_(ends_in_range, data.c.data_file_id.in_(with_delete_files))
    inlined_deletes: dict[int, list[tuple[int, int]]] = defaultdict(list)
    if catalog.database.supports_inlining and catalog.has_table(connection, inlined.name):
        with_inlined_deletes = sa.select(inlined.c.file_id).where(inlined.c.begin_snapshot.between(start, end))
        has_deletes = sa.or_(has_deletes, data.c.data_file_id.in_(with_inlined_deletes))
        for row in connection.execute(sa.select(inlined).where(inlined.c.begin_snapshot <= end)):
            inlined_deletes[row.file_id].append((row.row_id, row.begin_snapshot))
    data_files = connection.execute(
        sa.select(*DATA_FILE_COLUMNS, data.c.end_snapshot)
        .where(data.c.table_id == table_id, data.c.begin_snapshot <= end, has_deletes)
        .order_by(data.c.data_file_id)
    ).all()
    if not data_files:
        return ()
    data_file_ids = {row.data_file_id for row in data_files}
    delete_files: dict[int, list[DeleteFile]] = defaultdict(list)
    query = sa.select(deleted.c.data_file_id, *DELETE_FILE_COLUMNS).where(
        deleted.c.table_id == table_id, deleted.c.begin_snapshot <= end
    )
    for row in connection.execute(query):
        if row.data_file_id in data_file_ids:
            delete_files[row.data_file_id].append(delete_file_from_row(row, folder))
    return tuple(
        DataFileDeletes(
            data_file_from_row(row, folder),
            tuple(delete_files[row.data_file_id]),
            tuple(inlined_deletes[row.data_file_id]),
            row.end_snapshot if start <= (row.end_snapshot or -1) <= end and row.end_snapshot not in without else None,
        )
        for row in data_files
    )


def _rewrites(connection: sa.Connection, start: int, end: int) -> frozenset[int]:
    found = rewriting_snapshots().where(t.snapshot_changes.c.snapshot_id.between(start, end))
    return frozenset(connection.scalars(found))


def count_expired_snapshots(connection: sa.Connection, start: int, end: int) -> int:
    """How many of the snapshots from `start` to `end` are expired."""
    ids = t.snapshot.c.snapshot_id
    existing = connection.scalar(sa.select(sa.func.count()).select_from(t.snapshot).where(ids.between(start, end)))
    return max(end - start + 1, 0) - int(existing or 0)
