"""What dbt docs shows of relations, from the catalog database alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import agate
import sqlalchemy as sa
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from .lake import tables as t
from .lake.facts import TableFacts, table_facts
from .lake.snapshot import LakeState, Table, View
from .spark.commands.show import key_text, sort_text
from .spark.read.lakes import Lake
from .spark.sql.types import query_type
from .spark.sql.views import spark_sql, view_columns

_COLUMNS = (
    "table_database",
    "table_schema",
    "table_name",
    "table_type",
    "table_comment",
    "table_owner",
    "column_name",
    "column_index",
    "column_type",
    "column_comment",
)
_NUMBERS = ("snapshot", "row_count", "bytes", "data_files", "delete_files")
_AT_ONCE = 500

Wanted = Callable[[str, str], bool]
"""Whether a relation is wanted, by its schema and name."""


@dataclass(frozen=True)
class _Commit:
    snapshot: int
    time: Any
    author: str | None
    message: str | None
    extra_info: str | None

    @property
    def inputs(self) -> str | None:
        """What the snapshot was built from, each with the snapshot that was read."""
        try:
            inputs = json.loads(self.extra_info or "{}")["inputs"]
            return ", ".join(f"{i['relation']} at {i['snapshot']}" for i in inputs) or None
        except (ValueError, KeyError, TypeError):  # written by somebody else, who says it otherwise
            return None


@dataclass(frozen=True)
class Statistic:
    id: str
    label: str
    description: str
    value: Any

    def cells(self) -> Iterator[tuple[str, Any]]:
        prefix = f"stats:{self.id}"
        yield f"{prefix}:label", self.label
        yield f"{prefix}:value", self.value
        yield f"{prefix}:description", self.description
        yield f"{prefix}:include", self.value is not None


@dataclass(frozen=True)
class Entry:
    """A relation in dbt's catalog."""

    database: str
    schema: str
    name: str
    type: str
    comment: str | None
    owner: str | None
    columns: tuple[tuple[str, str, str | None], ...]
    statistics: tuple[Statistic, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row for each column, as dbt's catalog query gives them."""
        statistics = dict(cell for s in self.statistics for cell in s.cells())
        for index, (name, type_, comment) in enumerate(self.columns, start=1):
            yield {
                "table_database": self.database,
                "table_schema": self.schema,
                "table_name": self.name,
                "table_type": self.type,
                "table_comment": self.comment,
                "table_owner": self.owner,
                "column_name": name,
                "column_index": index,
                "column_type": type_,
                "column_comment": comment,
                **statistics,
            }

    def table(self) -> CatalogTable:
        shown = [s for s in self.statistics if s.value is not None]
        statistics = {s.id: StatsItem(s.id, s.label, s.value, True, s.description) for s in shown}
        what = "Indicates whether there are statistics for this table"  # dbt's own words
        has = StatsItem("has_stats", "Has Stats?", bool(shown), False, what)
        return CatalogTable(
            metadata=TableMetadata(self.type, self.schema, self.name, self.database, self.comment, self.owner),
            columns={
                name: ColumnMetadata(type_, index, name, comment)
                for index, (name, type_, comment) in enumerate(self.columns, start=1)
            },
            stats={**statistics, "has_stats": has},
        )


def entries(lake: Lake, wanted: Wanted) -> list[Entry]:
    """What the catalog tells of the wanted relations, with one query for each kind of thing."""
    with lake.catalog.read() as connection:
        base = lake.catalog.latest(connection)
        state = lake.snapshots.state(connection, base)
        relations: list[Table | View] = [
            relation
            for relation in (*state.tables.values(), *state.views.values())
            if wanted(state.schema_of(relation).name, relation.name)
        ]
        tables = [r.id for r in relations if isinstance(r, Table)]
        facts = table_facts(connection, lake.catalog, base.id, tables if len(tables) < _AT_ONCE else None)
        begun = _begun(connection, base.id)
        changed = {r.id: facts[r.id].last_change if r.id in facts else begun.get(r.id) for r in relations}
        commits = _commits(connection, {s for s in changed.values() if s is not None})
    found = []
    for relation in relations:
        commit = commits.get(changed[relation.id] or 0)
        found.append(
            Entry(
                database=lake.name,
                schema=state.schema_of(relation).name,
                name=relation.name,
                type="table" if isinstance(relation, Table) else "view",
                comment=relation.comment,
                owner=commit.author if commit else None,
                columns=tuple(columns_of(relation, state)),
                statistics=tuple(_statistics(relation, facts.get(relation.id), commit)),
            )
        )
    return found


def columns_of(relation: Table | View, state: LakeState) -> Iterator[tuple[str, str, str | None]]:
    """Name, type in Spark's words, and comment of each column, as far as the catalog knows them."""
    if isinstance(relation, Table):
        for column in relation.columns:
            yield column.name, query_type(column).simpleString(), column.comment
        return
    noted = view_columns(relation)
    if noted is not None:
        for view_column in noted:
            yield view_column.name, view_column.type, view_column.comment
        return
    import sqlglot

    aliases = relation.column_aliases
    query = sqlglot.parse_one(spark_sql(relation, state.qualified(relation)), read="spark")
    names = query.named_selects if isinstance(query, sqlglot.exp.Query) else []
    for name in (*aliases, *names[len(aliases) :]):
        yield name, "unknown", None


def _statistics(relation: Table | View, facts: TableFacts | None, commit: _Commit | None) -> Iterable[Statistic]:
    if commit is not None:
        yield Statistic("snapshot", "Snapshot", "The last snapshot that changed the relation", commit.snapshot)
        yield Statistic("changed_at", "Changed at", "When that was", commit.time.isoformat(" ", "seconds"))
        yield Statistic("changed_by", "Changed by", "The author of that snapshot", commit.author)
        yield Statistic("message", "Message", "What its author says of it", commit.message)
        yield Statistic("built_from", "Built from", "What it was made from, and at which snapshots", commit.inputs)
    if facts is not None and isinstance(relation, Table):
        stored = facts.rows + facts.deleted_rows
        share = f"{100 * facts.deleted_rows / stored:.1f} %" if facts.deleted_rows else None
        yield Statistic("row_count", "Rows", "How many rows the table has", facts.rows)
        yield Statistic("bytes", "Bytes", "The size of its data and delete files", facts.bytes)
        yield Statistic("data_files", "Data files", "How many files hold its rows", facts.data_files)
        yield Statistic(
            "delete_files", "Delete files", "How many files say what is deleted", facts.delete_files or None
        )
        yield Statistic("deleted_rows", "Deleted rows", "The share of its files' rows that are deleted", share)
        names = {c.id: c.name for c in relation.columns}
        if relation.partition:
            keys = ", ".join(key_text(str(f.transform), names[f.column_id]) for f in relation.partition.fields)
            yield Statistic("partitioned_by", "Partitioned by", "What its files are parted by", keys)
        if relation.sort:
            order = ", ".join(map(sort_text, relation.sort.keys))
            yield Statistic("sorted_by", "Sorted by", "The order of rows in its files", order)


def _begun(connection: sa.Connection, at: int) -> Mapping[int, int]:
    query = sa.select(t.view.c.view_id, t.view.c.begin_snapshot).where(t.alive(t.view, at))
    return {row.view_id: row.begin_snapshot for row in connection.execute(query)}


def _commits(connection: sa.Connection, snapshots: set[int]) -> dict[int, _Commit]:
    found: dict[int, _Commit] = {}
    ids = sorted(snapshots)
    changes = t.snapshot_changes
    for start in range(0, len(ids), _AT_ONCE):
        query = (
            sa.select(
                t.snapshot.c.snapshot_id,
                t.snapshot.c.snapshot_time,
                changes.c.author,
                changes.c.commit_message,
                changes.c.commit_extra_info,
            )
            .join(changes, changes.c.snapshot_id == t.snapshot.c.snapshot_id)
            .where(t.snapshot.c.snapshot_id.in_(ids[start : start + _AT_ONCE]))
        )
        found.update({row.snapshot_id: _Commit(*row) for row in connection.execute(query)})
    return found


def as_agate(found: Iterable[Entry]) -> agate.Table:
    per_entry = [list(entry.rows()) for entry in found]
    firsts = [name for rows in per_entry for row in rows[:1] for name in row]
    names = list(dict.fromkeys([*_COLUMNS, *firsts]))
    numbers = {"column_index", *(f"stats:{s}:value" for s in _NUMBERS)}
    kinds: list[agate.DataType] = [
        agate.Number() if n in numbers else agate.Boolean() if n.endswith(":include") else agate.Text(cast_nulls=False)
        for n in names
    ]
    # The cells are made of these types here; agate would look at each, which for 1,000 tables takes most of a second.
    cells = []
    for row in (row for rows in per_entry for row in rows):
        row |= {name: Decimal(row[name]) for name in numbers & row.keys() if row[name] is not None}
        cells.append(agate.Row([row.get(name) for name in names], names))
    return agate.Table(cells, names, kinds, _is_fork=True)
