"""The change feed: which files, deletes and inlined rows tell what changed in a table from one snapshot to another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .files import DATA_FILE, DELETE_FILE, DataFile, DeleteFile, NameMap, data_file_of, delete_file_of, name_maps
from .inlined import InlinedRows, read_begun, read_ended
from .snapshot import Table


@dataclass(frozen=True)
class Deleted:
    """A data file of which rows went, and all that was ever deleted of it: a row goes but once."""

    file: DataFile
    delete_files: tuple[DeleteFile, ...]
    positions: tuple[tuple[int, int], ...]
    """Positions that the catalog keeps, each with the snapshot that deleted it."""
    ended: int | None
    """The snapshot in which all rows that were left went, if it is one of those that are looked at."""


@dataclass(frozen=True)
class Feed:
    """What must be read to know what came into a table and what went, from one snapshot to another, both included."""

    table: Table
    """As of the end."""
    start: int
    end: int
    inserted: tuple[DataFile, ...] = ()
    """Whole files; of those that hold several snapshots, the rows of others are left out."""
    inserted_rows: InlinedRows | None = None
    deleted: tuple[Deleted, ...] = ()
    deleted_rows: InlinedRows | None = None
    born: int | None = None
    """Only those rows are meant that went and were there at this snapshot."""
    name_maps: Mapping[int, NameMap] | None = None


def read_feed(connection: sa.Connection, catalog: Catalog, table: Table, folder: str, start: int, end: int) -> Feed:
    """The feed of a table as it is at the end, with one query for each kind of thing."""
    if start > end:
        return Feed(table, start, end)
    data = t.data_file
    mine = sa.and_(data.c.table_id == table.id, data.c.begin_snapshot <= end)
    began = sa.or_(data.c.begin_snapshot >= start, data.c.partial_max >= start)
    inserted = connection.execute(sa.select(*DATA_FILE).where(mine, began).order_by(data.c.data_file_id)).all()
    deleted = _deleted(connection, catalog, table.id, folder, start, end)
    files = tuple(data_file_of(row, folder) for row in inserted)
    mapped = any(f.mapping_id is not None for f in (*files, *(d.file for d in deleted)))
    return Feed(
        table,
        start,
        end,
        files,
        read_begun(connection, catalog, table, start, end),
        deleted,
        read_ended(connection, catalog, table, start, end),
        name_maps=name_maps(connection, table.id) if mapped else {},
    )


def read_lost(connection: sa.Connection, catalog: Catalog, table: Table, folder: str, since: int, end: int) -> Feed:
    """What must be read to know which rows a table had at a snapshot, and has lost since then."""
    deleted = _deleted(connection, catalog, table.id, folder, since + 1, end)
    there = tuple(d for d in deleted if (d.file.begin_snapshot or 0) <= since)
    rows = read_ended(connection, catalog, table, since + 1, end, born=since)
    mapped = any(d.file.mapping_id is not None for d in there)
    maps = name_maps(connection, table.id) if mapped else {}
    return Feed(table, since + 1, end, deleted=there, deleted_rows=rows, born=since, name_maps=maps)


def _deleted(
    connection: sa.Connection, catalog: Catalog, table_id: int, folder: str, start: int, end: int
) -> tuple[Deleted, ...]:
    data, deleted, inlined = t.data_file, t.delete_file, t.inlined_delete(table_id)
    mine = sa.and_(data.c.table_id == table_id, data.c.begin_snapshot <= end)
    masked = sa.select(deleted.c.data_file_id).where(
        deleted.c.table_id == table_id,
        deleted.c.begin_snapshot <= end,
        sa.or_(deleted.c.begin_snapshot >= start, deleted.c.partial_max >= start),
    )
    touched = sa.or_(data.c.end_snapshot.between(start, end), data.c.data_file_id.in_(masked))
    positions: dict[int, list[tuple[int, int]]] = defaultdict(list)
    if catalog.database.supports_inlining and catalog.has_table(connection, inlined.name):
        kept = sa.select(inlined.c.file_id).where(inlined.c.begin_snapshot.between(start, end))
        touched = sa.or_(touched, data.c.data_file_id.in_(kept))
        for row in connection.execute(sa.select(inlined).where(inlined.c.begin_snapshot <= end)):
            positions[row.file_id].append((row.row_id, row.begin_snapshot))
    files = connection.execute(sa.select(*DATA_FILE, data.c.end_snapshot).where(mine, touched)).all()
    if not files:
        return ()
    delete_files: dict[int, list[DeleteFile]] = defaultdict(list)
    wanted = {row.data_file_id for row in files}
    query = sa.select(deleted.c.data_file_id, *DELETE_FILE).where(
        deleted.c.table_id == table_id, deleted.c.begin_snapshot <= end
    )
    for row in connection.execute(query):
        if row.data_file_id in wanted:
            delete_files[row.data_file_id].append(delete_file_of(row, folder))
    return tuple(
        Deleted(
            data_file_of(row, folder),
            tuple(delete_files[row.data_file_id]),
            tuple(positions[row.data_file_id]),
            row.end_snapshot if row.end_snapshot is not None and start <= row.end_snapshot <= end else None,
        )
        for row in sorted(files, key=lambda row: int(row.data_file_id))
    )


def missing_snapshots(connection: sa.Connection, start: int, end: int) -> int:
    """How many of the snapshots from one to another were expired."""
    ids = t.snapshot.c.snapshot_id
    there = connection.scalar(sa.select(sa.func.count()).select_from(t.snapshot).where(ids.between(start, end)))
    return max(end - start + 1, 0) - int(there or 0)
