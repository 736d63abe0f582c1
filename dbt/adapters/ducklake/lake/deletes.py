"""What is deleted of data files: delete files, and positions that the catalog keeps itself.

A data file has one living delete file at most. The first one has `file_path` and `pos`. When more is
deleted of the same file, its delete file gives way to one with all positions, each with the snapshot
that deleted it: that is how the reference does it, and its change feed understands nothing else. Of a
data file that holds the rows of several snapshots the first one names snapshots too, or that feed takes
the row's own snapshot for the one that deleted it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs
import pyarrow.parquet as pq
import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .paths import new_delete_file_name, relative_to, resolve

SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"

_PATH = pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483646"})
_POSITION = pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483645"})
_SNAPSHOT = pa.field(SNAPSHOT_COLUMN, pa.int64(), False, {"PARQUET:field_id": "2147483539"})


@dataclass(frozen=True)
class NewDeleteFile:
    """A delete file that no snapshot knows yet: all that is deleted of one data file by files."""

    path: str
    path_is_relative: bool
    delete_count: int
    file_size_bytes: int
    footer_size: int
    first: int | None = None
    """The first of the snapshots that its positions name; None where all are new and name none."""
    last: int | None = None
    """The snapshot that its new positions name, which is to be the one of the commit."""


@dataclass(frozen=True)
class Mask:
    """What is staged as deleted of one data file."""

    file: NewDeleteFile | None = None
    """Takes the place of the delete file that the data file has."""
    positions: tuple[int, ...] = ()
    """More positions, which the catalog keeps."""
    replaces: int | None = None
    """The id of the delete file that the data file had."""

    def and_(self, later: Mask) -> Mask:
        replaces = self.replaces if self.file else later.replaces
        return Mask(later.file or self.file, self.positions + later.positions, replaces)


@dataclass(frozen=True)
class FileStore:
    """Where a lake's files are."""

    filesystem: pafs.FileSystem
    native: Callable[[str], str]
    """What makes a path of the lake one of the file system."""


def positions_schema(with_snapshots: bool) -> pa.Schema:
    return pa.schema([_PATH, _POSITION, _SNAPSHOT] if with_snapshots else [_PATH, _POSITION])


def read_positions(store: FileStore, path: str, begun: int | None) -> pa.Table:
    """What a delete file says is deleted, with the snapshots that deleted it: `begun` where it names none.

    Without a `begun` the file is only staged. If it then names no snapshots, all that it says is new.
    """
    found = pq.read_table(store.native(path), filesystem=store.filesystem, partitioning=None)
    if SNAPSHOT_COLUMN in found.column_names:
        return found.select(["pos", SNAPSHOT_COLUMN])
    if begun is None:
        return found.select(["pos"])
    snapshots = pa.repeat(pa.scalar(begun, pa.int64()), found.num_rows)
    return pa.table([found.column("pos"), snapshots], ["pos", SNAPSHOT_COLUMN])


def write_delete_file(
    store: FileStore,
    folder: str,
    data_file: str,
    positions: pa.Array,
    before: pa.Table | None = None,
    snapshot: int | None = None,
) -> NewDeleteFile:
    """Writes the delete file of a data file into a table's folder.

    `before` is what was deleted of the data file already. With a `snapshot`, that of the commit to come, the
    file names it for the new positions.
    """
    rows = pa.table([positions], ["pos"])
    if snapshot is not None:
        rows = rows.append_column(SNAPSHOT_COLUMN, pa.repeat(pa.scalar(snapshot, pa.int64()), len(positions)))
    if before is not None:
        rows = pa.concat_tables([before.cast(rows.schema), rows])
    return _write(store, folder, data_file, rows.sort_by("pos"), snapshot)


def _write(store: FileStore, folder: str, data_file: str, rows: pa.Table, snapshot: int | None) -> NewDeleteFile:
    path = folder + new_delete_file_name()
    named = rows.add_column(0, "file_path", pa.repeat(data_file, rows.num_rows))
    with_snapshots = SNAPSHOT_COLUMN in rows.column_names
    native = store.native(path)
    with store.filesystem.open_output_stream(native) as sink:
        pq.write_table(named.cast(positions_schema(with_snapshots)), sink, compression="zstd")
    return known_delete_file(store, path, folder, snapshot)


def known_delete_file(store: FileStore, path: str, folder: str, snapshot: int | None) -> NewDeleteFile:
    """What the catalog keeps of a delete file that was written, from its footer."""
    native = store.native(path)
    size = store.filesystem.get_file_info(native).size
    footer = pq.read_metadata(native, filesystem=store.filesystem)
    first = None
    if snapshot is not None:
        index = footer.schema.to_arrow_schema().names.index(SNAPSHOT_COLUMN)
        groups = [footer.row_group(i).column(index).statistics for i in range(footer.num_row_groups)]
        first = min(int(group.min) for group in groups)
    relative, is_relative = relative_to(path, folder)
    return NewDeleteFile(relative, is_relative, footer.num_rows, size, footer.serialized_size, first, snapshot)


def for_snapshot(store: FileStore, folder: str, file: NewDeleteFile, snapshot: int) -> NewDeleteFile:
    """The delete file for a commit that is to be another snapshot than was thought when it was written."""
    if file.last is None or file.last == snapshot:
        return file
    native = store.native(folder + file.path if file.path_is_relative else file.path)
    rows = pq.read_table(native, filesystem=store.filesystem, partitioning=None)
    then = rows.column(SNAPSHOT_COLUMN)
    moved = pc.if_else(pc.equal(then, file.last), pa.scalar(snapshot, pa.int64()), then)
    place = rows.column_names.index(SNAPSHOT_COLUMN)
    data_file = rows.column("file_path")[0].as_py()
    rows = rows.set_column(place, SNAPSHOT_COLUMN, moved).drop_columns(["file_path"])
    new = _write(store, folder, data_file, rows, snapshot)
    store.filesystem.delete_file(native)
    return new


def moved_masks(store: FileStore, folder: str, masks: Mapping[int, Mask], snapshot: int) -> Mapping[int, Mask]:
    """The masks for a commit that is to be this snapshot."""
    return {
        file_id: mask if mask.file is None else replace(mask, file=for_snapshot(store, folder, mask.file, snapshot))
        for file_id, mask in masks.items()
    }


def settled(
    connection: sa.Connection,
    catalog: Catalog,
    store: FileStore,
    table_id: int,
    folder: str,
    ended: Collection[int] | None,
) -> dict[int, NewDeleteFile]:
    """Delete files for data files that end, or for all, of which the catalog keeps deleted positions.

    The reference's change feed takes all rows of a file that ends for deleted then, but for those that
    a delete file names.
    """
    inlined, deleted = t.inlined_delete(table_id), t.delete_file
    if not catalog.database.supports_inlining or not catalog.has_table(connection, inlined.name):
        return {}
    data = t.data_file
    alive = sa.select(data.c.data_file_id, data.c.path, data.c.path_is_relative).where(
        data.c.table_id == table_id, data.c.end_snapshot.is_(None)
    )
    kept: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for r in connection.execute(sa.select(inlined)):
        kept[r.file_id].append((r.row_id, r.begin_snapshot))
    files = {
        r.data_file_id: resolve(folder, r.path, bool(r.path_is_relative))
        for r in connection.execute(alive.where(data.c.data_file_id.in_(kept)))
        if ended is None or r.data_file_id in ended
    }
    there = sa.and_(deleted.c.data_file_id.in_(files), deleted.c.end_snapshot.is_(None))
    before = {r.data_file_id: r for r in connection.execute(sa.select(deleted).where(there))}
    result = {}
    for file_id, path in files.items():
        rows = pa.table(list(zip(*kept[file_id], strict=True)), ["pos", SNAPSHOT_COLUMN])
        if (old := before.get(file_id)) is not None:
            known = read_positions(store, resolve(folder, old.path, bool(old.path_is_relative)), old.begin_snapshot)
            rows = pa.concat_tables([known.cast(rows.schema), rows])
        last = pc.max(rows.column(SNAPSHOT_COLUMN)).as_py()
        result[file_id] = _write(store, folder, path, rows.sort_by("pos"), last)
    return result


def touched(
    connection: sa.Connection,
    catalog: Catalog,
    table_id: int,
    ended: Collection[int],
    masks: Mapping[int, Mask],
    base: int,
) -> set[int]:
    """Those of a table's data files of which something was deleted since a snapshot, or that are gone."""
    wanted = {*ended, *masks}
    if not wanted:
        return set()
    data, deleted, inlined = t.data_file, t.delete_file, t.inlined_delete(table_id)
    alive = sa.select(data.c.data_file_id).where(data.c.table_id == table_id, data.c.end_snapshot.is_(None))
    gone = wanted - set(connection.scalars(alive))
    changed = sa.select(deleted.c.data_file_id).where(
        deleted.c.table_id == table_id,
        sa.or_(deleted.c.begin_snapshot > base, deleted.c.end_snapshot > base, deleted.c.partial_max > base),
    )
    gone |= wanted & set(connection.scalars(changed))
    now = {
        r.data_file_id: r.delete_file_id
        for r in connection.execute(
            sa.select(deleted.c.data_file_id, deleted.c.delete_file_id).where(
                deleted.c.table_id == table_id, deleted.c.end_snapshot.is_(None)
            )
        )
    }
    # A flush puts positions that the catalog kept into a file of earlier snapshots.
    gone |= {i for i, mask in masks.items() if mask.file is not None and now.get(i) != mask.replaces}
    if catalog.database.supports_inlining and catalog.has_table(connection, inlined.name):
        late = sa.select(inlined.c.file_id).where(inlined.c.begin_snapshot > base)
        gone |= wanted & set(connection.scalars(late))
    return gone
