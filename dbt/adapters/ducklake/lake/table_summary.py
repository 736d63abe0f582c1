"""Summaries of tables: rows, files, size and the last snapshots that changed them, without reading any data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .snapshot_changes import rewriting_snapshots

_TABLES_PER_QUERY = 100
"""How many catalog tables of inlined rows or deletes one UNION ALL covers."""


@dataclass(frozen=True)
class TableSummary:
    """Totals of a table at one snapshot.

    A file that holds changes of several snapshots does not say how many belong to each. Seen from one of the
    earlier snapshots, all its rows count.
    """

    row_count: int = 0
    size_bytes: int = 0
    """The size of the data files and delete files."""
    data_file_count: int = 0
    delete_file_count: int = 0
    deleted_row_count: int = 0
    """How many rows of the data files are deleted."""
    inlined_row_count: int = 0
    """How many of the rows the catalog stores."""
    last_write_snapshot: int | None = None
    """The last snapshot that changed rows; None if none ever did."""
    last_change_snapshot: int | None = None
    """The last snapshot that changed rows or the definition."""


def table_summaries(
    connection: sa.Connection, catalog: Catalog, at: int, table_ids: Sequence[int] | None = None
) -> dict[int, TableSummary]:
    """Summaries of the given tables, or of all tables, at snapshot `at`."""

    def selected(column: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        return sa.true() if table_ids is None else column.in_(table_ids)

    write_snapshots: dict[int, list[int]] = defaultdict(list)
    file_totals: dict[str, dict[int, Any]] = {}
    delete_files = t.delete_file.join(t.data_file, t.data_file.c.data_file_id == t.delete_file.c.data_file_id)
    for source, joined, count in (
        (t.data_file, t.data_file, t.data_file.c.record_count),
        (t.delete_file, delete_files, t.delete_file.c.delete_count),
    ):
        # A delete file may outlive its data file.
        current = sa.and_(t.alive(source, at), t.alive(t.data_file, at))
        query = (
            sa.select(
                source.c.table_id,
                _sum(sa.case((current, 1), else_=0)).label("files"),
                _sum(sa.case((current, count), else_=0)).label("rows"),
                _sum(sa.case((current, source.c.file_size_bytes), else_=0)).label("bytes"),
                *_last_begin_and_end(source, at, rewriting_snapshots()),
                _last_partial(source, at).label("last_partial"),
            )
            .select_from(joined)
            .where(selected(source.c.table_id))
            .group_by(source.c.table_id)
        )
        file_totals[source.name] = {row.table_id: row for row in connection.execute(query)}
        for table_id, row in file_totals[source.name].items():
            write_snapshots[table_id] += _not_null(row.last_begin, row.last_end, row.last_partial)
    inlined_rows: dict[int, int] = defaultdict(int)
    for row in _inlined_row_totals(connection, catalog, at, table_ids):
        inlined_rows[row.table_id] += int(row.rows or 0)
        write_snapshots[row.table_id] += _not_null(row.last_begin, row.last_end)
    inlined_deletes: dict[int, int] = defaultdict(int)
    for row in _inlined_delete_totals(connection, catalog, at, table_ids):
        inlined_deletes[row.table_id] += int(row.rows or 0)
        write_snapshots[row.table_id] += _not_null(row.last_begin)
    versions = t.schema_versions
    query = (
        sa.select(versions.c.table_id, sa.func.max(versions.c.begin_snapshot).label("last_begin"))
        .where(versions.c.begin_snapshot <= at, versions.c.table_id.is_not(None), selected(versions.c.table_id))
        .group_by(versions.c.table_id)
    )
    definition_snapshots = {row.table_id: row.last_begin for row in connection.execute(query)}
    query = sa.select(t.table.c.table_id, t.table.c.begin_snapshot).where(
        t.alive(t.table, at), selected(t.table.c.table_id)
    )
    summaries = {}
    for row in connection.execute(query):
        table_id = row.table_id
        data = file_totals[t.data_file.name].get(table_id)
        deletes = file_totals[t.delete_file.name].get(table_id)
        deleted_row_count = inlined_deletes[table_id] + (int(deletes.rows) if deletes else 0)
        definition_snapshot = definition_snapshots.get(table_id, row.begin_snapshot)
        summaries[table_id] = TableSummary(
            row_count=(int(data.rows) if data else 0) - deleted_row_count + inlined_rows[table_id],
            size_bytes=(int(data.bytes) if data else 0) + (int(deletes.bytes) if deletes else 0),
            data_file_count=int(data.files) if data else 0,
            delete_file_count=int(deletes.files) if deletes else 0,
            deleted_row_count=deleted_row_count,
            inlined_row_count=inlined_rows[table_id],
            last_write_snapshot=max(write_snapshots[table_id], default=None),
            last_change_snapshot=max([*write_snapshots[table_id], definition_snapshot, row.begin_snapshot]),
        )
    return summaries


def inlined_row_counts(
    connection: sa.Connection, catalog: Catalog, at: int, table_ids: Sequence[int]
) -> dict[int, int]:
    """The number of inlined rows of tables, by table id."""
    counts: dict[int, int] = defaultdict(int)
    for row in _inlined_row_totals(connection, catalog, at, table_ids):
        counts[row.table_id] += int(row.rows or 0)
    return counts


def inlined_delete_counts(
    connection: sa.Connection, catalog: Catalog, at: int, table_ids: Sequence[int]
) -> Iterator[tuple[int, int, int]]:
    """The id of a table, the id of one of its data files, and the number of inlined deletes of that file."""
    source = t.inlined_delete(0, _SOURCE)
    query = (
        sa.select(sa.literal_column(_ID).label("table_id"), source.c.file_id, sa.func.count().label("rows"))
        .select_from(source.join(t.data_file, t.data_file.c.data_file_id == source.c.file_id))
        .where(source.c.begin_snapshot <= at, t.alive(t.data_file, at))
        .group_by(source.c.file_id)
    )
    for row in _for_each_table(connection, query, _inlined_delete_tables(connection, catalog, table_ids)):
        yield row.table_id, row.file_id, int(row.rows)


def tables_with_inlined_data(connection: sa.Connection, catalog: Catalog, at: int) -> set[int]:
    """The tables of which the catalog stores rows or deletes of snapshots up to `at`, also of ended rows and files."""
    totals = [
        *_inlined_row_totals(connection, catalog, at, None),
        *_inlined_delete_totals(connection, catalog, at, None),
    ]
    return {row.table_id for row in totals if row.last_begin is not None}


def _sum(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(sa.func.sum(value), 0)


def _last_begin_and_end(
    source: sa.Table | sa.TableClause, at: int, without: sa.Select[tuple[int]] | None = None
) -> tuple[sa.ColumnElement[Any], ...]:
    """The last snapshots up to `at` in which rows of a versioned catalog table began and ended, without some."""

    def last(snapshot: sa.ColumnElement[int]) -> sa.ColumnElement[Any]:
        counts = snapshot <= at if without is None else sa.and_(snapshot <= at, snapshot.not_in(without))
        return sa.func.max(sa.case((counts, snapshot)))

    return last(source.c.begin_snapshot).label("last_begin"), last(source.c.end_snapshot).label("last_end")


def _last_partial(source: sa.Table, at: int) -> sa.ColumnElement[Any]:
    """The last snapshot up to `at` whose changes a file of several snapshots holds."""
    begin, last = source.c.begin_snapshot, source.c.partial_max
    changes_rows = sa.and_(begin <= at, last <= at, last.not_in(rewriting_snapshots()))
    return sa.func.max(sa.case((changes_rows, last), (sa.and_(begin <= at, last > at), at)))


def _not_null(*snapshots: int | None) -> list[int]:
    return [snapshot for snapshot in snapshots if snapshot is not None]


# The table id and the table name in a query that runs for many catalog tables.
_ID, _SOURCE = "_lake_id", "_lake_source"


def _inlined_row_totals(
    connection: sa.Connection, catalog: Catalog, at: int, table_ids: Sequence[int] | None
) -> Iterator[Any]:
    """The number of inlined rows and their last snapshots, for each catalog table of inlined rows."""
    registry = t.inlined_data_tables
    names = sa.select(registry.c.table_id, registry.c.table_name)
    if table_ids is not None:
        names = names.where(registry.c.table_id.in_(table_ids))
    source = t.inlined_data(_SOURCE, (), catalog.format.inlined_system_columns)
    query = sa.select(
        sa.literal_column(_ID).label("table_id"),
        _sum(sa.case((t.alive(source, at), 1), else_=0)).label("rows"),
        *_last_begin_and_end(source, at),
    ).select_from(source)
    return _for_each_table(connection, query, [(row.table_id, row.table_name) for row in connection.execute(names)])


def _inlined_delete_totals(
    connection: sa.Connection, catalog: Catalog, at: int, table_ids: Sequence[int] | None
) -> Iterator[Any]:
    """The number of inlined deletes of current data files and their last snapshot, for each table that has any."""
    source = t.inlined_delete(0, _SOURCE)
    begin = source.c.begin_snapshot
    current = sa.case((sa.and_(begin <= at, t.alive(t.data_file, at)), 1), else_=0)
    query = sa.select(
        sa.literal_column(_ID).label("table_id"),
        _sum(current).label("rows"),
        sa.func.max(sa.case((begin <= at, begin))).label("last_begin"),
    ).select_from(source.join(t.data_file, t.data_file.c.data_file_id == source.c.file_id))
    return _for_each_table(connection, query, _inlined_delete_tables(connection, catalog, table_ids))


def _for_each_table(
    connection: sa.Connection, query: sa.Select[Any], names: Iterable[tuple[int, str]]
) -> Iterator[Any]:
    """Runs a query for many catalog tables, with the table id and the table name put into its SQL text.

    Building the query with SQLAlchemy for each of 1,000 tables would take a second.
    """
    sql = str(query.compile(connection, compile_kwargs={"literal_binds": True}))
    quote = connection.dialect.identifier_preparer.quote_identifier
    remaining = iter(names)
    while batch := list(islice(remaining, _TABLES_PER_QUERY)):
        queries = [sql.replace(quote(_SOURCE), quote(name)).replace(_ID, str(table_id)) for table_id, name in batch]
        yield from connection.exec_driver_sql(" UNION ALL ".join(queries))


def _inlined_delete_tables(
    connection: sa.Connection, catalog: Catalog, table_ids: Sequence[int] | None
) -> list[tuple[int, str]]:
    """The ids of the given tables, or of all, that have a catalog table of inlined deletes, each with its name."""
    if not catalog.database.supports_inlining:
        return []
    prefix = t.inlined_delete(0).name.removesuffix("0")
    all_names = catalog.database.table_names(connection)
    names = {name.removeprefix(prefix): name for name in all_names if name.startswith(prefix)}
    found = {int(table_id): name for table_id, name in names.items() if table_id.isdigit()}
    wanted = found.keys() if table_ids is None else found.keys() & set(table_ids)
    return [(table_id, found[table_id]) for table_id in sorted(wanted)]
