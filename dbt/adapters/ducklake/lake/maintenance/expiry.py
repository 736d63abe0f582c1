"""Expiry: takes snapshots out of the catalog, with every row that only they need.

Files that no remaining snapshot needs are scheduled for deletion; `cleanup` deletes them. A row of the catalog belongs
to the snapshots from its begin to before its end, and stays while one of them does. The rows that go are those that go
in the reference: what a living table was in the past stays.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from .. import inlined
from .. import tables as t
from ..catalog import Catalog
from ..commit.rows import SnapshotRows, id_batches
from ..errors import LakeError
from ..paths import resolve
from .table_folders import table_folders
from .write_attempts import write_with_retries

_OF_DATA_FILES = (t.file_column_stats, t.file_variant_stats, t.file_partition_value)
_OF_TABLES = (
    t.table,
    t.table_stats,
    t.table_column_stats,
    t.partition_info,
    t.partition_column,
    t.column,
    t.column_tag,
    t.sort_info,
    t.sort_expression,
    t.schema_versions,
    t.inlined_data_tables,
    t.column_mapping,
)
_IDS_PER_DELETE = 50_000

_OTHERS = (t.schema, t.view, t.tag, t.macro)


class _TooManyTables(Exception):
    """One transaction would drop more tables of the catalog database than its server can lock."""


def expire_snapshots(
    catalog: Catalog,
    *,
    versions: Collection[int] | None = None,
    older_than: datetime.datetime | None = None,
    dry_run: bool = False,
) -> list[sa.Row[Any]]:
    """Expires snapshots by their ids or by their age. Returns their rows, those of `ducklake_snapshots()`.

    The newest snapshot never expires. All is one transaction, except where so many tables are gone that the server
    cannot drop them at once: then the older half of the snapshots expires first.
    """
    if (versions is None) == (older_than is None):
        raise LakeError("snapshots expire either by their versions or by older_than; give one of them")
    with catalog.read() as connection:
        found = _expirable(connection, catalog, versions, older_than)
    if dry_run or not found:
        return found
    catalog.check_writable()
    return _expire(catalog, [row.snapshot_id for row in found])


def _expirable(
    connection: sa.Connection, catalog: Catalog, versions: Collection[int] | None, older_than: datetime.datetime | None
) -> list[sa.Row[Any]]:
    snapshot, sort_key = t.snapshot.c, catalog.database.timestamp_sort_key
    if older_than is not None:
        return _snapshots(connection, sort_key(snapshot.snapshot_time) < sort_key(sa.literal(older_than, t.Instant())))
    return _snapshots_of(connection, versions or ())


def _snapshots_of(connection: sa.Connection, ids: Collection[int]) -> list[sa.Row[Any]]:
    return [row for batch in id_batches(ids) for row in _snapshots(connection, t.snapshot.c.snapshot_id.in_(batch))]


def _snapshots(connection: sa.Connection, condition: sa.ColumnElement[bool]) -> list[sa.Row[Any]]:
    """The snapshots that fulfil a condition, except the newest of the lake."""
    newest = sa.select(sa.func.max(t.snapshot.c.snapshot_id)).scalar_subquery()
    query = sa.select(t.snapshot, t.snapshot_changes).outerjoin(
        t.snapshot_changes, t.snapshot.c.snapshot_id == t.snapshot_changes.c.snapshot_id
    )
    query = query.where(condition, t.snapshot.c.snapshot_id < newest).order_by(t.snapshot.c.snapshot_id)
    return list(connection.execute(query))


def _expire(catalog: Catalog, ids: Sequence[int]) -> list[sa.Row[Any]]:
    # An attempt whose COMMIT has no answer may have expired them: the next one does not find them any more.
    expired: dict[int, sa.Row[Any]] = {}

    def attempt(connection: sa.Connection) -> None:
        found = _snapshots_of(connection, ids)
        _delete_snapshots(connection, catalog, [row.snapshot_id for row in found], may_split=len(ids) > 1)
        expired.update((row.snapshot_id, row) for row in found)

    try:
        write_with_retries(catalog, "expiring snapshots", attempt, _exclude_other_expiries)
    except _TooManyTables:
        middle = len(ids) // 2
        return _expire(catalog, ids[:middle]) + _expire(catalog, ids[middle:])
    return [expired[i] for i in sorted(expired)]


def _exclude_other_expiries(connection: sa.Connection) -> None:
    """Makes another expiry wait for this one, or start again after it. No writer changes this row."""
    setting = t.ducklake_metadata
    is_version = sa.and_(setting.c.key == "version", setting.c.scope.is_(None))
    connection.execute(sa.update(setting).where(is_version).values(value=setting.c.value))


def _delete_snapshots(connection: sa.Connection, catalog: Catalog, ids: Sequence[int], may_split: bool) -> None:
    if not ids:
        return
    for batch in id_batches(ids):
        connection.execute(sa.delete(t.snapshot).where(t.snapshot.c.snapshot_id.in_(batch)))
        connection.execute(sa.delete(t.snapshot_changes).where(t.snapshot_changes.c.snapshot_id.in_(batch)))
    gone_tables = _gone_tables(connection)
    inlined_tables = _inlined_tables(connection, catalog, gone_tables)
    limit = catalog.database.max_dropped_tables
    if may_split and limit is not None and len(inlined_tables) > limit:
        raise _TooManyTables
    _schedule_files(connection, catalog, gone_tables)
    _delete_tables(connection, gone_tables)
    for name in inlined_tables:
        inlined.drop_table(connection, name)
    _delete_other_objects(connection, catalog)


def _is_held(versioned: sa.FromClause) -> sa.ColumnElement[bool]:
    """Whether a row that has ended is visible at a snapshot of the lake."""
    snapshot = t.snapshot.alias()
    seen = sa.exists().where(
        snapshot.c.snapshot_id >= versioned.c.begin_snapshot, snapshot.c.snapshot_id < versioned.c.end_snapshot
    )
    return seen.correlate(versioned)


def _is_dead(versioned: sa.Table) -> sa.ColumnElement[bool]:
    """Whether a row has ended and is visible at no snapshot of the lake."""
    return sa.and_(versioned.c.end_snapshot.is_not(None), ~_is_held(versioned))


def _gone_tables(connection: sa.Connection) -> list[int]:
    """The tables that no snapshot has. A table has a row for each name that it had: one living row keeps it."""
    living = t.table.alias()
    living_ids = sa.select(living.c.table_id).where(
        living.c.table_id.is_not(None), sa.or_(living.c.end_snapshot.is_(None), _is_held(living))
    )
    query = sa.select(t.table.c.table_id).distinct().where(t.table.c.table_id.not_in(living_ids))
    return sorted(connection.scalars(query))


def _inlined_tables(connection: sa.Connection, catalog: Catalog, gone_tables: Collection[int]) -> list[str]:
    """The catalog tables with inlined rows and deletes of tables that are gone."""
    if not gone_tables or not catalog.database.supports_inlining:
        return []
    registry = t.inlined_data_tables.c
    names = {t.inlined_delete(table_id).name for table_id in gone_tables}
    for batch in id_batches(gone_tables):
        names.update(connection.scalars(sa.select(registry.table_name).where(registry.table_id.in_(batch))))
    return sorted(names.intersection(catalog.database.table_names(connection)))


def _schedule_files(connection: sa.Connection, catalog: Catalog, gone_tables: Collection[int]) -> None:
    """Schedules for deletion the data files and delete files that no snapshot needs, and removes their rows."""
    data, deletes = t.data_file, t.delete_file
    paths: dict[sa.Table, dict[int, str]] = {data: {}, deletes: {}}
    folders = table_folders(connection, catalog.data_path)
    for data_condition, delete_condition in (
        (_is_dead(data), _is_dead(deletes)),
        *((data.c.table_id.in_(batch), deletes.c.table_id.in_(batch)) for batch in id_batches(gone_tables)),
    ):
        of_dead_data_files = deletes.c.data_file_id.in_(sa.select(data.c.data_file_id).where(data_condition))
        for table, id_column, condition in (
            (data, data.c.data_file_id, data_condition),
            (deletes, deletes.c.delete_file_id, sa.or_(delete_condition, of_dead_data_files)),
        ):
            query = sa.select(id_column.label("id"), table.c.table_id, table.c.path, table.c.path_is_relative)
            paths[table].update(_full_paths(connection.execute(query.where(condition)), folders, catalog.data_path))
    rows = SnapshotRows(connection, catalog, catalog.latest_snapshot(connection))
    for table in (data, deletes):
        rows.schedule_for_deletion(sorted(paths[table].items()))
    rows.flush()
    for described in (*_OF_DATA_FILES, data):
        _delete_by_id(connection, described, described.c.data_file_id, paths[data])
    _delete_by_id(connection, deletes, deletes.c.delete_file_id, paths[deletes])


def _delete_by_id(
    connection: sa.Connection, table: sa.Table, column: sa.ColumnElement[int], ids: Collection[int]
) -> None:
    """Deletes the rows with an id.

    Most of these tables have no index, so that each statement reads all of them. A list of literal numbers may be
    longer than one of parameters, and no database plans it badly, unlike a subquery.
    """
    in_order = sorted(ids)
    for start in range(0, len(in_order), _IDS_PER_DELETE):
        batch = in_order[start : start + _IDS_PER_DELETE]
        numbers: sa.BindParameter[int] = sa.bindparam("ids", batch, expanding=True, literal_execute=True)
        connection.execute(sa.delete(table).where(column.in_(numbers)))


def _full_paths(
    rows: Iterable[sa.Row[Any]], folders: Mapping[int, Sequence[str]], data_path: str
) -> Iterator[tuple[int, str]]:
    """The ids and complete paths of files. A path is relative to the table's folder as it was last."""
    for row in rows:
        folder = folders[row.table_id][-1] if row.table_id in folders else data_path
        yield row.id, resolve(folder, row.path, row.path_is_relative)


def _delete_tables(connection: sa.Connection, gone_tables: Collection[int]) -> None:
    for batch in id_batches(gone_tables):
        mappings = sa.select(t.column_mapping.c.mapping_id).where(t.column_mapping.c.table_id.in_(batch))
        connection.execute(sa.delete(t.name_mapping).where(t.name_mapping.c.mapping_id.in_(mappings)))
        for table in _OF_TABLES:
            connection.execute(sa.delete(table).where(table.c.table_id.in_(batch)))


def _delete_other_objects(connection: sa.Connection, catalog: Catalog) -> None:
    """Removes schemas, views, macros and tags that no snapshot has."""
    macro = t.macro
    ended_macros: set[int] = set(connection.scalars(sa.select(macro.c.macro_id).where(_is_dead(macro))))
    view_column_tag = catalog.format.view_column_tag
    for table in (*_OTHERS, *((view_column_tag,) if view_column_tag is not None else ())):
        connection.execute(sa.delete(table).where(_is_dead(table)))
    for batch in id_batches(ended_macros):
        living = sa.select(macro.c.macro_id).where(macro.c.macro_id.in_(batch))
        for table in (t.macro_impl, t.macro_parameters):
            connection.execute(sa.delete(table).where(table.c.macro_id.in_(batch), table.c.macro_id.not_in(living)))
