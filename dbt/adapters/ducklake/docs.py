"""Relations in dbt's catalog.json: columns, comments and statistics, read from the catalog database alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

import agate
import sqlalchemy as sa
from dbt_common.contracts.metadata import CatalogTable, ColumnMetadata, StatsItem, TableMetadata

from .history.extra_info import changed_by, node_infos, parse_extra_info
from .lake import tables as t
from .lake.snapshot import LakeState, Table, View
from .lake.table_summary import TableSummary, table_summaries
from .spark.commands.show import partition_key_text, sort_key_text
from .spark.read.lakes import Lake
from .spark.sql.types import query_type
from .spark.sql.views import readable_columns

_CATALOG_COLUMNS = (
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
_NUMERIC_STATISTICS = ("snapshot", "row_count", "bytes", "data_files", "delete_files")
_MAX_IDS_PER_QUERY = 500

RelationFilter = Callable[[str, str], bool]
"""Whether to include a relation, by its schema and name."""


@dataclass(frozen=True)
class _Commit:
    snapshot: int
    time: Any
    author: str | None
    message: str | None
    extra_info: str | None

    @cached_property
    def _nodes(self) -> Sequence[Mapping[str, Any]]:
        return node_infos(parse_extra_info(self.extra_info))

    def _node_of(self, relation_id: int) -> Mapping[str, Any]:
        """What the snapshot says of the node that made a relation: in a run that is one snapshot, one of many."""
        if len(self._nodes) == 1 and changed_by(self._nodes[0]) is None:
            return self._nodes[0]
        return next((node for node in self._nodes if relation_id in (changed_by(node) or ())), {})

    def message_for(self, relation_id: int) -> str | None:
        node = self._node_of(relation_id)
        return self.message if changed_by(node) is None else node.get("message")

    def inputs_of(self, relation_id: int) -> str | None:
        """The relations that a relation was built from, each with the snapshot that was read."""
        try:
            inputs = self._node_of(relation_id)["inputs"]
            return ", ".join(f"{i['relation']} at {i['snapshot']}" for i in inputs) or None
        except (KeyError, TypeError):  # extra info of another writer
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
class CatalogColumn:
    name: str
    type: str
    comment: str | None


@dataclass(frozen=True)
class CatalogRelation:
    """A relation in dbt's catalog."""

    database: str
    schema: str
    name: str
    type: str
    comment: str | None
    owner: str | None
    columns: tuple[CatalogColumn, ...]
    statistics: tuple[Statistic, ...]

    def rows(self) -> Iterator[dict[str, Any]]:
        """One row per column, as the catalog queries of other adapters return them."""
        statistics = dict(cell for s in self.statistics for cell in s.cells())
        for index, column in enumerate(self.columns, start=1):
            yield {
                "table_database": self.database,
                "table_schema": self.schema,
                "table_name": self.name,
                "table_type": self.type,
                "table_comment": self.comment,
                "table_owner": self.owner,
                "column_name": column.name,
                "column_index": index,
                "column_type": column.type,
                "column_comment": column.comment,
                **statistics,
            }

    def as_catalog_table(self) -> CatalogTable:
        stats = {
            s.id: StatsItem(s.id, s.label, s.value, True, s.description) for s in self.statistics if s.value is not None
        }
        description = "Indicates whether there are statistics for this table"  # dbt's own text
        has_stats = StatsItem("has_stats", "Has Stats?", bool(stats), False, description)
        return CatalogTable(
            metadata=TableMetadata(self.type, self.schema, self.name, self.database, self.comment, self.owner),
            columns={
                column.name: ColumnMetadata(column.type, index, column.name, column.comment)
                for index, column in enumerate(self.columns, start=1)
            },
            stats={**stats, "has_stats": has_stats},
        )


def catalog_relations(lake: Lake, included: RelationFilter) -> list[CatalogRelation]:
    """The included relations of a lake. The number of queries does not depend on how many they are."""
    with lake.catalog.read() as connection:
        base = lake.catalog.latest_snapshot(connection)
        state = lake.snapshots.state(connection, base)
        everything: tuple[Table | View, ...] = (*state.tables.values(), *state.views.values())
        relations = [r for r in everything if included(state.schema_of(r).name, r.name)]
        table_ids = [r.id for r in relations if isinstance(r, Table)]
        few_tables = len(table_ids) < _MAX_IDS_PER_QUERY
        summaries = table_summaries(connection, lake.catalog, base.id, table_ids if few_tables else None)
        view_begins = _view_begin_snapshots(connection, base.id)
        changed_at = {
            r.id: summaries[r.id].last_change_snapshot if r.id in summaries else view_begins.get(r.id)
            for r in relations
        }
        commits = _commits(connection, {s for s in changed_at.values() if s is not None})
    found = []
    for relation in relations:
        commit = commits.get(changed_at[relation.id] or 0)
        found.append(
            CatalogRelation(
                database=lake.name,
                schema=state.schema_of(relation).name,
                name=relation.name,
                type="table" if isinstance(relation, Table) else "view",
                comment=relation.comment,
                owner=commit.author if commit else None,
                columns=tuple(catalog_columns(relation, state)),
                statistics=tuple(_statistics(relation, summaries.get(relation.id), commit)),
            )
        )
    return found


def catalog_columns(relation: Table | View, state: LakeState) -> Iterator[CatalogColumn]:
    """The columns with Spark's types, which are unknown for some views of another writer."""
    if isinstance(relation, Table):
        for column in relation.columns:
            yield CatalogColumn(column.name, query_type(column).simpleString(), column.comment)
        return
    for view_column in readable_columns(relation, state, "lake"):
        yield CatalogColumn(view_column.name, view_column.type, view_column.comment)


def _statistics(relation: Table | View, summary: TableSummary | None, commit: _Commit | None) -> Iterable[Statistic]:
    if commit is not None:
        yield Statistic("snapshot", "Snapshot", "The last snapshot that changed the relation", commit.snapshot)
        yield Statistic(
            "changed_at", "Changed at", "When that snapshot was committed", commit.time.isoformat(" ", "seconds")
        )
        yield Statistic("changed_by", "Changed by", "The author of that snapshot", commit.author)
        yield Statistic("message", "Message", "The commit message of that snapshot", commit.message_for(relation.id))
        yield Statistic(
            "built_from",
            "Built from",
            "The inputs of that snapshot, and the snapshot at which each was read",
            commit.inputs_of(relation.id),
        )
    if summary is not None and isinstance(relation, Table):
        stored_rows = summary.row_count + summary.deleted_row_count
        share = f"{100 * summary.deleted_row_count / stored_rows:.1f} %" if summary.deleted_row_count else None
        yield Statistic("row_count", "Rows", "How many rows the table has", summary.row_count)
        yield Statistic("bytes", "Bytes", "The size of its data and delete files", summary.size_bytes)
        yield Statistic("data_files", "Data files", "How many files hold its rows", summary.data_file_count)
        yield Statistic(
            "delete_files", "Delete files", "How many delete files the table has", summary.delete_file_count or None
        )
        yield Statistic("deleted_rows", "Deleted rows", "The share of its files' rows that are deleted", share)
        names = {c.id: c.name for c in relation.columns}
        if relation.partition:
            keys = ", ".join(
                partition_key_text(str(f.transform), names[f.column_id]) for f in relation.partition.fields
            )
            yield Statistic("partitioned_by", "Partitioned by", "The partition keys of new files", keys)
        if relation.sort:
            order = ", ".join(map(sort_key_text, relation.sort.keys))
            yield Statistic("sorted_by", "Sorted by", "The sort order of new files", order)


def _view_begin_snapshots(connection: sa.Connection, at: int) -> Mapping[int, int]:
    query = sa.select(t.view.c.view_id, t.view.c.begin_snapshot).where(t.alive(t.view, at))
    return {row.view_id: row.begin_snapshot for row in connection.execute(query)}


def _commits(connection: sa.Connection, snapshots: set[int]) -> dict[int, _Commit]:
    found: dict[int, _Commit] = {}
    ids = sorted(snapshots)
    changes = t.snapshot_changes
    for start in range(0, len(ids), _MAX_IDS_PER_QUERY):
        query = (
            sa.select(
                t.snapshot.c.snapshot_id,
                t.snapshot.c.snapshot_time,
                changes.c.author,
                changes.c.commit_message,
                changes.c.commit_extra_info,
            )
            .join(changes, changes.c.snapshot_id == t.snapshot.c.snapshot_id)
            .where(t.snapshot.c.snapshot_id.in_(ids[start : start + _MAX_IDS_PER_QUERY]))
        )
        for row in connection.execute(query):
            found[row.snapshot_id] = _Commit(
                row.snapshot_id, row.snapshot_time, row.author, row.commit_message, row.commit_extra_info
            )
    return found


def as_agate(relations: Iterable[CatalogRelation]) -> agate.Table:
    rows_by_relation = [list(relation.rows()) for relation in relations]
    names_used = [name for rows in rows_by_relation for row in rows[:1] for name in row]
    names = list(dict.fromkeys([*_CATALOG_COLUMNS, *names_used]))
    numeric = {"column_index", *(f"stats:{s}:value" for s in _NUMERIC_STATISTICS)}
    types: list[agate.DataType] = [
        agate.Number() if n in numeric else agate.Boolean() if n.endswith(":include") else agate.Text(cast_nulls=False)
        for n in names
    ]
    # The cells get their final types here and `_is_fork` skips agate's own casts: 1,000 tables would take a second.
    cells = []
    for row in (row for rows in rows_by_relation for row in rows):
        row |= {name: Decimal(row[name]) for name in numeric & row.keys() if row[name] is not None}
        cells.append(agate.Row([row.get(name) for name in names], names))
    return agate.Table(cells, names, types, _is_fork=True)
