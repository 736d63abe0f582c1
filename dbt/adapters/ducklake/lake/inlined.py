"""Inlined rows: rows stored in the catalog database instead of in data files.

A table has one catalog table of inlined rows for each schema version. The reference stores values that the
database has no type for as text (see `duckdb_text.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import sqlalchemy as sa

from . import tables as t
from .arrow_types import arrow_type
from .catalog import Catalog
from .commit.rows import id_batches
from .duckdb_text import decode, decoder, has_variant
from .errors import UnsupportedError
from .snapshot import Table
from .snapshot_loader import build_columns
from .types import Column

_MAX_NAME_BYTES = 63  # the limit of PostgreSQL


@dataclass(frozen=True)
class InlinedRows:
    """Inlined rows of a table: the table's columns in order, then the row ids and the snapshots.

    A column of the table may have any name, so the last two are found by position. Values of `int128`, `uint128` and
    `timestamp_ns` are text.
    """

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def row_ids(self) -> pa.ChunkedArray:
        return self.rows.column(-2)

    def since(self, snapshot_id: int) -> InlinedRows:
        """The rows of later snapshots than this one."""
        return InlinedRows(self.rows.filter(pc.greater(self.rows.column(-1), snapshot_id)))

    def without(self, row_ids: Collection[int]) -> InlinedRows:
        removed = pc.is_in(self.row_ids, pa.array(sorted(row_ids), pa.int64()))
        return InlinedRows(self.rows.filter(pc.invert(removed)))


def united(one: InlinedRows | None, other: InlinedRows | None) -> InlinedRows | None:
    """The rows of both."""
    if one is None or other is None:
        return one or other
    return InlinedRows(pa.concat_tables([one.rows, other.rows]))


def can_inline(catalog: Catalog, columns: Sequence[Column]) -> bool:
    """Whether the catalog can hold rows of these columns."""
    database, reserved = catalog.database, catalog.format.inlined_system_columns
    types = {field.type for column in columns for field in column.walk()}
    return (
        database.supports_inlining
        and all(c.name.lower() not in reserved and len(c.name.encode()) <= _MAX_NAME_BYTES for c in columns)
        and "geometry" not in types
        and ("variant" not in types or database.supports_inlined_variants)
    )


def create_table(connection: sa.Connection, catalog: Catalog, name: str, columns: Sequence[Column]) -> None:
    """Creates a catalog table for inlined rows with these columns, unless it exists."""
    quote = catalog.database.quote
    definitions = [f"{column} BIGINT" for column in catalog.format.inlined_system_columns]
    database = catalog.database
    definitions += [f"{quote(c.name)} {database.inlined_type(c)}" for c in columns]
    # DDL takes no parameters. The names are quoted and the types come from `Database`.
    statement = f"CREATE TABLE IF NOT EXISTS {quote(name)} ({', '.join(definitions)})"
    connection.execute(sa.DDL(statement.replace("%", "%%")))  # type: ignore[no-untyped-call]


def create_delete_table(connection: sa.Connection, catalog: Catalog, table_id: int) -> sa.TableClause:
    """Creates the catalog table of a table's inlined deletes unless it exists, and returns it."""
    source = t.inlined_delete(table_id)
    columns = ", ".join(f"{column.name} BIGINT" for column in source.columns)
    statement = f"CREATE TABLE IF NOT EXISTS {catalog.database.quote(source.name)} ({columns})"
    connection.execute(sa.DDL(statement))  # type: ignore[no-untyped-call]
    return source


def drop_table(connection: sa.Connection, name: str) -> None:
    """Drops a catalog table of inlined rows or deletes."""
    connection.execute(sa.schema.DropTable(sa.Table(sa.quoted_name(name, quote=True), sa.MetaData())))


def table_names(connection: sa.Connection, table_id: int) -> dict[int, str]:
    """The catalog tables that hold a table's inlined rows, by the schema version of those rows."""
    registry = t.inlined_data_tables
    query = sa.select(registry.c.schema_version, registry.c.table_name).where(registry.c.table_id == table_id)
    return {r.schema_version: r.table_name for r in connection.execute(query.order_by(registry.c.schema_version))}


def newest_table(connection: sa.Connection, table: Table) -> str | None:
    """The catalog table for new inlined rows of a table; None if there is none for its current columns."""
    registry, versions = t.inlined_data_tables.c, t.schema_versions.c
    last_change = sa.select(sa.func.max(versions.schema_version)).where(versions.table_id == table.id).scalar_subquery()
    newest = (
        sa.select(registry.table_name, registry.schema_version, last_change.label("last_change"))
        .where(registry.table_id == table.id)
        .order_by(registry.schema_version.desc())
        .limit(1)
    )
    found = connection.execute(newest).first()
    if found is None:
        return None
    is_current = found.schema_version >= (found.last_change or 0) or (
        stored_shape(_columns_at(connection, table.id, found.schema_version)) == stored_shape(table.columns)
    )
    return str(found.table_name) if is_current else None


def stored_shape(columns: Iterable[Column]) -> list[tuple[int, str, str]]:
    """What inlined rows depend on: ids, names and types, but neither defaults nor NOT NULL."""
    return [(field.id, field.name, field.type) for column in columns for field in column.walk()]


def has_rows(connection: sa.Connection, catalog: Catalog, table_id: int) -> bool:
    """Whether the catalog stores rows of a table for any snapshot."""
    for name in table_names(connection, table_id).values():
        rows = t.inlined_data(name, (), catalog.format.inlined_system_columns)
        if connection.execute(sa.select(rows.c.row_id).limit(1)).first() is not None:
            return True
    return False


def read_inlined_rows(connection: sa.Connection, catalog: Catalog, table: Table, at: int) -> InlinedRows | None:
    """A table's inlined rows at snapshot `at`, with the columns of `table`; None if there are none."""
    return _read(connection, catalog, table, lambda rows: t.alive(rows, at))


def read_new_inlined_rows(connection: sa.Connection, catalog: Catalog, table: Table, base: int) -> InlinedRows | None:
    """A table's current inlined rows that were inserted after the snapshot `base`."""
    return _read(
        connection,
        catalog,
        table,
        lambda rows: sa.and_(rows.c.begin_snapshot > base, rows.c.end_snapshot.is_(None)),
    )


def are_current(
    connection: sa.Connection, catalog: Catalog, table_id: int, row_ids: Collection[int], base: int
) -> bool:
    """Whether the catalog still holds all of these rows as they were at the snapshot `base`."""
    count = 0
    for name in table_names(connection, table_id).values():
        rows = t.inlined_data(name, (), catalog.format.inlined_system_columns)
        same = sa.and_(rows.c.end_snapshot.is_(None), rows.c.begin_snapshot <= base)
        current = sa.select(sa.func.count()).select_from(rows).where(same)
        for batch in id_batches(row_ids):
            count += connection.scalar(current.where(rows.c.row_id.in_(batch))) or 0
    return count == len(row_ids)


def read_inserted_inlined_rows(
    connection: sa.Connection, catalog: Catalog, table: Table, start: int, end: int
) -> InlinedRows | None:
    """The inlined rows that snapshots `start` to `end` inserted, deleted later or not."""
    return _read(connection, catalog, table, lambda rows: rows.c.begin_snapshot.between(start, end))


def read_deleted_inlined_rows(
    connection: sa.Connection, catalog: Catalog, table: Table, start: int, end: int, existing_at: int | None = None
) -> InlinedRows | None:
    """The inlined rows that snapshots `start` to `end` deleted. Their `begin_snapshot` is the deleting snapshot.

    With `existing_at`, only rows that existed at that snapshot.
    """

    def condition(rows: sa.TableClause) -> sa.ColumnElement[bool]:
        existed = sa.true() if existing_at is None else rows.c.begin_snapshot <= existing_at
        return sa.and_(rows.c.end_snapshot.between(start, end), existed)

    return _read(connection, catalog, table, condition, snapshot_column="end_snapshot")


@dataclass(frozen=True)
class StoredRows:
    """All inlined rows of one schema version up to a snapshot, also deleted ones."""

    name: str
    """The catalog table that holds them."""
    columns: tuple[Column, ...]
    """The columns of the table in the schema version."""
    rows: InlinedRows
    ends: Mapping[tuple[int, int], int]
    """The snapshot up to then that deleted a row, by its row id and the snapshot that inserted it."""


def read_stored_rows(connection: sa.Connection, catalog: Catalog, table: Table, up_to: int) -> Iterator[StoredRows]:
    """The inlined rows of a table that snapshots up to `up_to` inserted, one schema version at a time."""
    for schema_version, name in table_names(connection, table.id).items():
        stored = _columns_at(connection, table.id, schema_version)
        source, query = _select(connection, catalog, name, stored, "begin_snapshot")
        before = source.c.begin_snapshot <= up_to
        rows = connection.execute(query.where(before).order_by(source.c.row_id, source.c.begin_snapshot)).all()
        if not rows:
            continue
        ended = sa.select(source.c.row_id, source.c.begin_snapshot, source.c.end_snapshot).where(
            before, source.c.end_snapshot <= up_to
        )
        then = replace(table, columns=stored)
        arrow = _as_arrow(rows, stored, then, catalog.database.inlined_structs_are_sql)
        ends = {(r.row_id, r.begin_snapshot): r.end_snapshot for r in connection.execute(ended)}
        yield StoredRows(name, stored, InlinedRows(arrow), ends)


def rows_ended_since(
    connection: sa.Connection, catalog: Catalog, name: str, base: int
) -> Iterator[tuple[int, int, int]]:
    """The rows that a catalog table of inlined rows had at `base` and that later snapshots deleted.

    Each as its row id, the snapshot that inserted it, and the one that deleted it.
    """
    rows = t.inlined_data(name, (), catalog.format.inlined_system_columns)
    query = sa.select(rows.c.row_id, rows.c.begin_snapshot, rows.c.end_snapshot)
    for row in connection.execute(query.where(rows.c.begin_snapshot <= base, rows.c.end_snapshot > base)):
        yield row.row_id, row.begin_snapshot, row.end_snapshot


def drop_empty_tables(connection: sa.Connection, catalog: Catalog, table_id: int) -> None:
    """Drops the catalog tables of earlier schema versions that hold no inlined row any more, as the reference does."""
    names = table_names(connection, table_id)
    for schema_version, name in names.items():
        rows = t.inlined_data(name, (), catalog.format.inlined_system_columns)
        is_newest = schema_version == max(names)
        if is_newest or connection.execute(sa.select(rows.c.row_id).limit(1)).first() is not None:
            continue
        registry = t.inlined_data_tables
        connection.execute(sa.delete(registry).where(registry.c.table_name == name))
        drop_table(connection, name)


def _read(
    connection: sa.Connection,
    catalog: Catalog,
    table: Table,
    condition: Callable[[sa.TableClause], sa.ColumnElement[bool]],
    snapshot_column: str = "begin_snapshot",
) -> InlinedRows | None:
    parts = []
    for schema_version, name in table_names(connection, table.id).items():
        stored = _columns_at(connection, table.id, schema_version)
        source, query = _select(connection, catalog, name, stored, snapshot_column)
        rows = connection.execute(query.where(condition(source)).order_by(source.c.row_id)).all()
        if rows:
            parts.append(_as_arrow(rows, stored, table, catalog.database.inlined_structs_are_sql))
    return InlinedRows(pa.concat_tables(parts)) if parts else None


def _select(
    connection: sa.Connection, catalog: Catalog, name: str, stored: Sequence[Column], snapshot_column: str
) -> tuple[sa.TableClause, sa.Select[Any]]:
    """A catalog table of inlined rows, and a query for its row ids, one of its snapshots, and the stored columns."""
    names = catalog.database.inlined_names(connection, name, [c.name for c in stored])
    source = t.inlined_data(name, names, catalog.format.inlined_system_columns)
    types = ["variant" if has_variant(column) else column.type for column in stored]
    values = [catalog.database.decodable(source.c[f"c{i}"], type_).label(f"c{i}") for i, type_ in enumerate(types)]
    return source, sa.select(source.c.row_id, source.c[snapshot_column].label("snapshot_id"), *values)


def _columns_at(connection: sa.Connection, table_id: int, schema_version: int) -> tuple[Column, ...]:
    """The columns of a table in a schema version."""
    versions, snapshots = t.schema_versions, t.snapshot
    begin_snapshot = connection.scalar(
        sa.select(versions.c.begin_snapshot).where(
            versions.c.table_id == table_id, versions.c.schema_version == schema_version
        )
    )
    if begin_snapshot is None:
        begin_snapshot = connection.scalar(
            sa.select(sa.func.min(snapshots.c.snapshot_id)).where(snapshots.c.schema_version == schema_version)
        )
    if begin_snapshot is None:
        begin_snapshot = connection.scalar(
            sa.select(sa.func.max(versions.c.begin_snapshot)).where(
                versions.c.table_id == table_id, versions.c.schema_version <= schema_version
            )
        )
    rows = connection.execute(
        sa.select(t.column)
        .where(t.column.c.table_id == table_id, t.alive(t.column, begin_snapshot or 0))
        .order_by(t.column.c.column_order)
    )
    return build_columns(rows)


def _as_arrow(rows: Sequence[Any], stored: Sequence[Column], table: Table, structs_are_sql: bool) -> pa.Table:
    """Rows of `row_id`, snapshot and the stored columns, as an Arrow table with the columns of `table`."""
    stored_by_id = {column.id: (index, column) for index, column in enumerate(stored, start=2)}
    arrays, names = [], []
    for column in table.columns:
        try:
            if column.id in stored_by_id:
                index, old = stored_by_id[column.id]
                decoded = map(decoder(old, structs_are_sql), (row[index] for row in rows))
                values = [_reshape(value, old, column) for value in decoded] if old.children else list(decoded)
            else:
                values = [decode(column.initial_default, column)] * len(rows)
            arrays.append(pa.array(values, type=arrow_type(column, exact=True)))
        except (ArithmeticError, ValueError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise UnsupportedError(
                f"column {column.name} of table {table.name} holds an inlined value that Spark has no"
                f" {column.type_text()} for ({error}); flush the inlined rows with ducklake_flush_inlined_data"
                " in DuckDB"
            ) from error
        names.append(column.name)
    arrays += [pa.array([r[0] for r in rows], pa.int64()), pa.array([r[1] for r in rows], pa.int64())]
    return pa.Table.from_arrays(arrays, names=[*names, "row_id", "begin_snapshot"])


def _reshape(value: Any, old: Column, new: Column) -> Any:
    """Converts a nested value from one version of a column to a later one; struct fields are matched by id.

    A field that the earlier version lacks has its default.
    """
    if value is None or not old.children:
        return value
    if old.type == "list":
        return [_reshape(item, old.children[0], new.children[0]) for item in value]
    if old.type == "map":
        return [
            (_reshape(k, old.children[0], new.children[0]), _reshape(v, old.children[1], new.children[1]))
            for k, v in value
        ]
    by_id = {child.id: child for child in old.children}
    return {
        child.name: _reshape(value.get(by_id[child.id].name), by_id[child.id], child)
        if child.id in by_id
        else decode(child.initial_default, child)
        for child in new.children
    }
