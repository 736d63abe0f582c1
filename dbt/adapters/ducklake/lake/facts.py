"""What the catalog tells of tables as a whole: how much is in them, and when they last changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog

_AT_ONCE = 100
"""How many tables one query asks where each has a table of its own in the catalog."""


@dataclass(frozen=True)
class TableFacts:
    """A table at one snapshot, without a look at its rows.

    A file that holds the changes of several snapshots does not tell how many are of which: seen from
    one of the earlier of them, its rows count as if all were there.
    """

    rows: int = 0
    bytes: int = 0
    data_files: int = 0
    delete_files: int = 0
    deleted_rows: int = 0
    """How many rows of the data files are deleted."""
    last_write: int | None = None
    """The last snapshot that changed rows; None if none ever did."""
    last_change: int | None = None
    """The last snapshot that changed rows or the definition."""


def table_facts(
    connection: sa.Connection, catalog: Catalog, at: int, table_ids: Sequence[int] | None = None
) -> dict[int, TableFacts]:
    """The facts of the tables, or of all that there are, with one query for each kind of thing."""

    def chosen(column: sa.ColumnElement[int]) -> sa.ColumnElement[bool]:
        return sa.true() if table_ids is None else column.in_(table_ids)

    written: dict[int, list[int]] = defaultdict(list)
    changed: dict[int, list[int]] = defaultdict(list)
    totals: dict[str, dict[int, Any]] = {}
    deletes_of = t.delete_file.join(t.data_file, t.data_file.c.data_file_id == t.delete_file.c.data_file_id)
    for source, joined, count in (
        (t.data_file, t.data_file, t.data_file.c.record_count),
        (t.delete_file, deletes_of, t.delete_file.c.delete_count),
    ):
        # A delete file may outlive its data file.
        alive = sa.and_(t.alive(source, at), t.alive(t.data_file, at))
        query = (
            sa.select(
                source.c.table_id,
                _sum(sa.case((alive, 1), else_=0)).label("files"),
                _sum(sa.case((alive, count), else_=0)).label("rows"),
                _sum(sa.case((alive, source.c.file_size_bytes), else_=0)).label("bytes"),
                *_moments(source, at),
                _up_to(source.c.partial_max, source.c.begin_snapshot, at).label("partial"),
            )
            .select_from(joined)
            .where(chosen(source.c.table_id))
            .group_by(source.c.table_id)
        )
        totals[source.name] = {}
        for row in connection.execute(query):
            totals[source.name][row.table_id] = row
            written[row.table_id] += _known(row) + ([row.partial] if row.partial is not None else [])
    inlined: dict[int, int] = defaultdict(int)
    registry = t.inlined_data_tables
    query = sa.select(registry.c.table_id, registry.c.table_name).where(chosen(registry.c.table_id))
    names = [(row.table_id, row.table_name) for row in connection.execute(query)]
    for row in _each(connection, names, at):
        inlined[row.table_id] += int(row.rows or 0)
        written[row.table_id] += _known(row)
    deleted: dict[int, int] = defaultdict(int)
    for row in _inlined_deletes(connection, catalog, at, table_ids):
        deleted[row.table_id] += int(row.rows or 0)
        written[row.table_id] += _known(row)
    versions = t.schema_versions
    query = (
        sa.select(versions.c.table_id, sa.func.max(versions.c.begin_snapshot).label("begun"))
        .where(versions.c.begin_snapshot <= at, versions.c.table_id.is_not(None), chosen(versions.c.table_id))
        .group_by(versions.c.table_id)
    )
    for row in connection.execute(query):
        changed[row.table_id].append(row.begun)
    query = sa.select(t.table.c.table_id, t.table.c.begin_snapshot).where(
        t.alive(t.table, at), chosen(t.table.c.table_id)
    )
    facts = {}
    for row in connection.execute(query):
        table_id: int = row.table_id
        data = totals[t.data_file.name].get(table_id)
        deletes = totals[t.delete_file.name].get(table_id)
        gone = deleted[table_id] + (int(deletes.rows) if deletes else 0)
        facts[table_id] = TableFacts(
            rows=(int(data.rows) if data else 0) - gone + inlined[table_id],
            bytes=(int(data.bytes) if data else 0) + (int(deletes.bytes) if deletes else 0),
            data_files=int(data.files) if data else 0,
            delete_files=int(deletes.files) if deletes else 0,
            deleted_rows=gone,
            last_write=max(written[table_id], default=None),
            last_change=max([*written[table_id], *changed[table_id], row.begin_snapshot]),
        )
    return facts


def _sum(value: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(sa.func.sum(value), 0)


def _moments(source: sa.Table | sa.TableClause, at: int) -> tuple[sa.ColumnElement[Any], ...]:
    """The last snapshots, up to one, in which rows of a versioned table began and ended."""
    begun, ended = source.c.begin_snapshot, source.c.end_snapshot
    return (
        sa.func.max(sa.case((begun <= at, begun))).label("begun"),
        sa.func.max(sa.case((ended <= at, ended))).label("ended"),
    )


def _up_to(last: sa.ColumnElement[Any], begun: sa.ColumnElement[Any], at: int) -> sa.ColumnElement[Any]:
    """The last of the snapshots whose changes one file holds, as far as it had come by then."""
    return sa.func.max(sa.case((sa.and_(begun <= at, last <= at), last), (sa.and_(begun <= at, last > at), at)))


def _known(row: Any) -> list[int]:
    return [moment for moment in (row.begun, row.ended) if moment is not None]


_ID, _SOURCE = "_lake_id", "_lake_source"


def _each(connection: sa.Connection, names: Iterable[tuple[int, str]], at: int) -> Iterator[Any]:
    """How many rows each table of inlined rows holds, and when they changed."""
    source = t.inlined_data(_SOURCE, ())
    query = sa.select(
        sa.literal_column(_ID).label("table_id"),
        _sum(sa.case((t.alive(source, at), 1), else_=0)).label("rows"),
        *_moments(source, at),
    ).select_from(source)
    return _of_all(connection, query, names)


def _inlined_deletes(
    connection: sa.Connection, catalog: Catalog, at: int, table_ids: Sequence[int] | None
) -> Iterator[Any]:
    """How many rows of living data files are deleted in the catalog itself."""
    there = _inlined_delete_tables(connection, catalog)
    source = t.inlined_delete(0, _SOURCE)
    begun = source.c.begin_snapshot
    counts = sa.case((sa.and_(begun <= at, t.alive(t.data_file, at)), 1), else_=0)
    query = sa.select(
        sa.literal_column(_ID).label("table_id"),
        _sum(counts).label("rows"),
        sa.func.max(sa.case((begun <= at, begun))).label("begun"),
        sa.null().label("ended"),
    ).select_from(source.join(t.data_file, t.data_file.c.data_file_id == source.c.file_id))
    return _of_all(
        connection, query, [(i, name) for i, name in there.items() if table_ids is None or i in set(table_ids)]
    )


def _of_all(connection: sa.Connection, query: sa.Select[Any], names: Iterable[tuple[int, str]]) -> Iterator[Any]:
    """The rows of a query for many tables alike, whose ids and names are put into its words.

    Having SQLAlchemy build the query for each of 1,000 tables costs a second.
    """
    words = str(query.compile(connection, compile_kwargs={"literal_binds": True}))
    quote = connection.dialect.identifier_preparer.quote
    rest = iter(names)
    while some := list(islice(rest, _AT_ONCE)):
        each = [words.replace(_SOURCE, quote(name)).replace(_ID, str(table_id)) for table_id, name in some]
        yield from connection.exec_driver_sql(" UNION ALL ".join(each))


def _inlined_delete_tables(connection: sa.Connection, catalog: Catalog) -> Mapping[int, str]:
    if not catalog.database.supports_inlining:
        return {}
    prefix = t.inlined_delete(0).name.removesuffix("0")
    found = catalog.database.table_names(connection)
    names = {name.removeprefix(prefix): name for name in found if name.startswith(prefix)}
    return {int(i): name for i, name in names.items() if i.isdigit()}
