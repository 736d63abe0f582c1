"""Position deletes: delete files, and inlined deletes in the catalog.

A data file has at most one current delete file. Its first delete file has the columns `file_path` and `pos`.
A later delete replaces it with a delete file of all positions, each with the snapshot that deleted it. The
reference does the same, and its change feed understands nothing else.

If the data file holds rows of several snapshots, even its first delete file must name snapshots. Otherwise the
reference's change feed takes the snapshot that inserted a row for the snapshot that deleted it.

A delete file is a Parquet file, or a deletion vector in a Puffin file. `read_delete_file` reads both. A bare vector
names no snapshot, and DuckLake 1.0 knows no other. So a delete file that must name snapshots is a Parquet file there,
even if the table's other ones are vectors. (DuckDB 1.5 writes a bare vector of all positions instead, and an earlier
version of the table then shows the rows that were deleted before.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from . import deletion_vectors
from . import tables as t
from .catalog import Catalog
from .encryption import FileKey, Footer
from .errors import LakeError
from .file_store import FileStore
from .paths import new_delete_file_name, relative_to, resolve

PARQUET, PUFFIN = "parquet", "puffin"
"""The formats of delete files, as the catalog names them."""

SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"

_PATH = pa.field("file_path", pa.string(), False, {"PARQUET:field_id": "2147483646"})
_POSITION = pa.field("pos", pa.int64(), False, {"PARQUET:field_id": "2147483645"})
_SNAPSHOT = pa.field(SNAPSHOT_COLUMN, pa.int64(), False, {"PARQUET:field_id": "2147483539"})


@dataclass(frozen=True)
class NewDeleteFile:
    """A delete file that is written but not committed.

    It holds all deleted positions of its data file, apart from inlined deletes.
    """

    path: str
    path_is_relative: bool
    delete_count: int
    file_size_bytes: int
    footer_size: int
    first_snapshot: int | None = None
    """The lowest snapshot that a position names; None if no position names a snapshot because all are new."""
    last_snapshot: int | None = None
    """The snapshot that the new positions name, which must become the snapshot of the commit."""
    format: str = PARQUET
    row_group_count: int | None = None
    """None for a deletion vector."""
    encryption_key: FileKey | None = None
    """A deletion vector has one too in an encrypted lake, as the reference demands, but is never encrypted."""


@dataclass(frozen=True)
class PositionDeletes:
    """The positions of one data file that a transaction deletes."""

    delete_file: NewDeleteFile | None = None
    """Replaces the data file's current delete file."""
    inlined_positions: tuple[int, ...] = ()
    """Further positions, to be stored in the catalog."""
    replaced_delete_file_id: int | None = None
    """The delete file that `delete_file` replaces; None if the data file had none."""

    def merged_with(self, later: PositionDeletes) -> PositionDeletes:
        """These deletes followed by later ones of the same data file."""
        return PositionDeletes(
            later.delete_file or self.delete_file,
            self.inlined_positions + later.inlined_positions,
            self.replaced_delete_file_id if self.delete_file else later.replaced_delete_file_id,
        )


def delete_file_schema(with_snapshots: bool) -> pa.Schema:
    return pa.schema([_PATH, _POSITION, _SNAPSHOT] if with_snapshots else [_PATH, _POSITION])


def read_delete_file(
    store: FileStore, path: str, begin_snapshot: int | None, format: str = PARQUET, key: FileKey | None = None
) -> pa.Table:
    """The positions in a delete file and the snapshots that deleted them.

    Positions of a file without snapshots were deleted by `begin_snapshot`. It is None if the file is only staged:
    all its positions are new then, and the result has no snapshots.
    """
    rows, _ = _read(store, path, format, key)
    if SNAPSHOT_COLUMN in rows.column_names or begin_snapshot is None:
        return rows
    return rows.append_column(SNAPSHOT_COLUMN, _repeated(begin_snapshot, rows.num_rows))


def _read(store: FileStore, path: str, format: str, key: FileKey | None) -> tuple[pa.Table, str | None]:
    """The positions in a delete file, with their snapshots if it names any, and the data file if it names one."""
    if format == PUFFIN:
        return _read_vectors(store, path)
    if format != PARQUET:
        raise LakeError(f"the delete file {path} is of the format {format!r}; known are {PARQUET} and {PUFFIN}")
    rows = store.read_table(path, key)
    data_file = rows.column("file_path")[0].as_py() if rows.num_rows else None
    return rows.select([name for name in ("pos", SNAPSHOT_COLUMN) if name in rows.column_names]), data_file


def _read_vectors(store: FileStore, path: str) -> tuple[pa.Table, str | None]:
    with store.filesystem.open_input_stream(store.native_path(path), compression=None) as source:
        content = source.read()
    try:
        file = deletion_vectors.decode_file(content)
    except deletion_vectors.CorruptVectorError as error:
        raise LakeError(
            f"the deletion vector {path} is damaged: {error}; restore the file from a backup, or read the table as of"
            " a snapshot before it"
        ) from None
    parts = []
    for snapshot, positions in file.deletes():
        part = pa.table([positions], ["pos"])
        if snapshot is not None:
            part = part.append_column(SNAPSHOT_COLUMN, _repeated(snapshot, len(positions)))
        parts.append(part)
    rows = pa.concat_tables(parts)
    return (rows if len(parts) == 1 else rows.sort_by("pos")), file.data_file


def _repeated(snapshot: int, count: int) -> pa.Array:
    return pa.repeat(pa.scalar(snapshot, pa.int64()), count)


def write_delete_file(
    store: FileStore,
    folder: str,
    data_file: str,
    positions: pa.Array,
    before: pa.Table | None = None,
    snapshot: int | None = None,
    format: str = PARQUET,
) -> NewDeleteFile:
    """Writes a delete file for a data file into the table's folder.

    `before` has the positions that were deleted earlier. `snapshot` is the expected snapshot of the commit; if it is
    given, the file names it for the new positions.
    """
    rows = pa.table([positions], ["pos"])
    if snapshot is not None:
        rows = rows.append_column(SNAPSHOT_COLUMN, _repeated(snapshot, len(positions)))
    if before is not None:
        rows = pa.concat_tables([before.cast(rows.schema), rows])
    return _write(store, folder, data_file, rows.sort_by("pos"), snapshot, format)


def write_delete_file_with_snapshots(
    store: FileStore, folder: str, data_file: str, positions: Iterable[tuple[int, int]]
) -> NewDeleteFile:
    """Writes a delete file for a data file: positions, and the snapshot that deleted each of them."""
    rows = pa.table(list(zip(*positions, strict=True)), ["pos", SNAPSHOT_COLUMN])
    return _write(store, folder, data_file, rows.sort_by("pos"), pc.max(rows.column(SNAPSHOT_COLUMN)).as_py())


def _write(
    store: FileStore,
    folder: str,
    data_file: str,
    rows: pa.Table,
    last_snapshot: int | None,
    format: str = PARQUET,
) -> NewDeleteFile:
    if format == PUFFIN:
        return _write_vectors(store, folder, data_file, rows, last_snapshot)
    path = folder + new_delete_file_name()
    with_snapshots = SNAPSHOT_COLUMN in rows.column_names
    rows = rows.add_column(0, "file_path", pa.repeat(data_file, rows.num_rows))
    key = store.new_key()
    footer = store.write_table(rows.cast(delete_file_schema(with_snapshots)), path, key, compression="zstd")
    return describe_delete_file(footer, path, folder, last_snapshot, key)


def _write_vectors(
    store: FileStore, folder: str, data_file: str, rows: pa.Table, last_snapshot: int | None
) -> NewDeleteFile:
    """Writes a bare vector, or a container if the rows name snapshots."""
    path, footer_size, first_snapshot = folder + new_delete_file_name(PUFFIN), 0, None
    if SNAPSHOT_COLUMN in rows.column_names:
        snapshots = pc.unique(rows.column(SNAPSHOT_COLUMN)).to_pylist()
        first_snapshot = min(snapshots)
        deletes = [(s, rows.filter(pc.field(SNAPSHOT_COLUMN) == s).column("pos").combine_chunks()) for s in snapshots]
        container = deletion_vectors.encode_container(deletes, data_file)
        content, footer_size = container.content, container.footer_size
    else:
        content = deletion_vectors.encode(rows.column("pos").combine_chunks())
    with store.filesystem.open_output_stream(store.native_path(path), compression=None) as sink:
        sink.write(content)
    relative, is_relative = relative_to(path, folder)
    return NewDeleteFile(
        relative,
        is_relative,
        rows.num_rows,
        len(content),
        footer_size,
        first_snapshot,
        last_snapshot,
        PUFFIN,
        encryption_key=store.new_key(),
    )


def describe_delete_file(
    footer: Footer, path: str, folder: str, last_snapshot: int | None, key: FileKey | None
) -> NewDeleteFile:
    """The catalog's description of a Parquet delete file that was just written, taken from its footer."""
    metadata, first_snapshot = footer.metadata, None
    if last_snapshot is not None:
        index = metadata.schema.to_arrow_schema().names.index(SNAPSHOT_COLUMN)
        statistics = [metadata.row_group(i).column(index).statistics for i in range(metadata.num_row_groups)]
        first_snapshot = min(int(group.min) for group in statistics)
    relative, is_relative = relative_to(path, folder)
    return NewDeleteFile(
        relative,
        is_relative,
        metadata.num_rows,
        footer.file_size,
        footer.size,
        first_snapshot,
        last_snapshot,
        row_group_count=metadata.num_row_groups,
        encryption_key=key,
    )


def delete_file_for_snapshot(store: FileStore, folder: str, file: NewDeleteFile, snapshot: int) -> NewDeleteFile:
    """The delete file for a commit that becomes `snapshot`, rewritten if its new positions name another snapshot."""
    if file.last_snapshot is None or file.last_snapshot == snapshot:
        return file
    path = resolve(folder, file.path, file.path_is_relative)
    rows, data_file = _read(store, path, file.format, file.encryption_key)
    assert data_file is not None, path
    named = rows.column(SNAPSHOT_COLUMN)
    snapshots = pc.if_else(pc.equal(named, file.last_snapshot), pa.scalar(snapshot, pa.int64()), named)
    rows = rows.set_column(rows.column_names.index(SNAPSHOT_COLUMN), SNAPSHOT_COLUMN, snapshots)
    rewritten = _write(store, folder, data_file, rows, snapshot, file.format)
    store.filesystem.delete_file(store.native_path(path))
    return rewritten


def position_deletes_for_snapshot(
    store: FileStore, folder: str, position_deletes: Mapping[int, PositionDeletes], snapshot: int
) -> Mapping[int, PositionDeletes]:
    """Staged deletes by data file id, with their delete files for a commit that becomes `snapshot`."""
    return {
        file_id: deletes
        if deletes.delete_file is None
        else replace(deletes, delete_file=delete_file_for_snapshot(store, folder, deletes.delete_file, snapshot))
        for file_id, deletes in position_deletes.items()
    }


def inlined_deletes_as_files(
    connection: sa.Connection,
    catalog: Catalog,
    store: FileStore,
    table_id: int,
    folder: str,
    file_ids: Collection[int] | None,
    up_to: int | None = None,
) -> dict[int, NewDeleteFile]:
    """Writes delete files for those of the data files that have inlined deletes; None means all files of the table.

    With `up_to` they have only the deletes of snapshots up to this one. A data file that ends needs them: the
    reference's change feed reports every row of it as deleted then, except those that a delete file names.
    """
    inlined = t.inlined_delete(table_id)
    if not catalog.database.supports_inlining or not catalog.has_table(connection, inlined.name):
        return {}
    inlined_rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    query = sa.select(inlined) if up_to is None else sa.select(inlined).where(inlined.c.begin_snapshot <= up_to)
    for r in connection.execute(query):
        inlined_rows[r.file_id].append((r.row_id, r.begin_snapshot))
    data, with_inlined_deletes = t.data_file, sa.select(inlined.c.file_id)
    current_files = sa.select(data.c.data_file_id, data.c.path, data.c.path_is_relative).where(
        data.c.table_id == table_id, data.c.end_snapshot.is_(None), data.c.data_file_id.in_(with_inlined_deletes)
    )
    paths = {
        r.data_file_id: resolve(folder, r.path, bool(r.path_is_relative))
        for r in connection.execute(current_files)
        if r.data_file_id in inlined_rows and (file_ids is None or r.data_file_id in file_ids)
    }
    deleted = t.delete_file
    current_deletes = sa.select(deleted).where(
        deleted.c.table_id == table_id,
        deleted.c.end_snapshot.is_(None),
        deleted.c.data_file_id.in_(with_inlined_deletes),
    )
    delete_files = {r.data_file_id: r for r in connection.execute(current_deletes)}
    result = {}
    for file_id, path in paths.items():
        rows = pa.table(list(zip(*inlined_rows[file_id], strict=True)), ["pos", SNAPSHOT_COLUMN])
        if (current := delete_files.get(file_id)) is not None:
            delete_path = resolve(folder, current.path, bool(current.path_is_relative))
            key = FileKey.from_catalog(current.encryption_key)
            before = read_delete_file(store, delete_path, current.begin_snapshot, current.format or PARQUET, key)
            rows = pa.concat_tables([before.cast(rows.schema), rows])
        last_snapshot = pc.max(rows.column(SNAPSHOT_COLUMN)).as_py()
        result[file_id] = _write(store, folder, path, rows.sort_by("pos"), last_snapshot)
    return result


def were_delete_files_replaced(
    connection: sa.Connection, table_id: int, position_deletes: Mapping[int, PositionDeletes]
) -> bool:
    """Whether one of the data files has ended, or has another delete file than the one to be replaced."""
    if not position_deletes:
        return False
    data = t.data_file
    alive = sa.and_(data.c.table_id == table_id, data.c.end_snapshot.is_(None))
    current_files: set[int] = set(connection.scalars(sa.select(data.c.data_file_id).where(alive)))
    current_deletes = current_delete_files(connection, table_id)
    return any(
        file_id not in current_files or current_deletes.get(file_id) != deletes.replaced_delete_file_id
        for file_id, deletes in position_deletes.items()
    )


def current_delete_files(connection: sa.Connection, table_id: int) -> dict[int, int]:
    """The id of the current delete file of each data file of a table that has one."""
    deleted = t.delete_file
    query = sa.select(deleted.c.data_file_id, deleted.c.delete_file_id)
    found = connection.execute(query.where(deleted.c.table_id == table_id, deleted.c.end_snapshot.is_(None)))
    return {row.data_file_id: row.delete_file_id for row in found}


def files_changed_since(
    connection: sa.Connection,
    catalog: Catalog,
    table_id: int,
    ended_file_ids: Collection[int],
    position_deletes: Mapping[int, PositionDeletes],
    base: int,
) -> set[int]:
    """The data files that a transaction ends or deletes from, and that others ended or deleted from since `base`."""
    file_ids = {*ended_file_ids, *position_deletes}
    if not file_ids:
        return set()
    data, deleted, inlined = t.data_file, t.delete_file, t.inlined_delete(table_id)
    current_files = sa.select(data.c.data_file_id).where(data.c.table_id == table_id, data.c.end_snapshot.is_(None))
    changed = file_ids - set(connection.scalars(current_files))
    with_new_delete_files = sa.select(deleted.c.data_file_id).where(
        deleted.c.table_id == table_id,
        sa.or_(deleted.c.begin_snapshot > base, deleted.c.end_snapshot > base, deleted.c.partial_max > base),
    )
    changed |= file_ids & set(connection.scalars(with_new_delete_files))
    delete_file_ids = current_delete_files(connection, table_id)
    # A flush of inlined deletes adds a delete file whose snapshots are all older than `base`.
    changed |= {
        file_id
        for file_id, deletes in position_deletes.items()
        if deletes.delete_file is not None and delete_file_ids.get(file_id) != deletes.replaced_delete_file_id
    }
    if catalog.database.supports_inlining and catalog.has_table(connection, inlined.name):
        with_new_inlined_deletes = sa.select(inlined.c.file_id).where(inlined.c.begin_snapshot > base)
        changed |= file_ids & set(connection.scalars(with_new_inlined_deletes))
    return changed
