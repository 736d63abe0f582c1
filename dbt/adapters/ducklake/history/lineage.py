"""Snapshot lineage: which version of a relation was built from which versions of others, read from the catalog."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from ..lake import tables as t
from ..lake.snapshot_changes import parse_changes
from ..spark.read.lakes import Lake
from .extra_info import changed_by, node_infos, parse_extra_info

MAX_SNAPSHOTS = 10_000
"""How many snapshots of each lake the lineage covers: the newest ones."""

_VERSION_CHANGES = frozenset(("inserted", "deleted", "altered"))
"""The kinds of changes that make a new version of a table. Compaction, which only rewrites files, makes none."""


@dataclass(frozen=True)
class InputVersion:
    """A relation that a version was built from, as of the snapshot that was read."""

    relation: str
    snapshot: int


@dataclass(frozen=True)
class Version:
    """A snapshot, or what one node of a run did in it, as the new version of each relation that it changed."""

    id: int
    lake: str
    time: datetime.datetime
    author: str | None
    message: str | None
    changed: tuple[str, ...]
    inputs: tuple[InputVersion, ...]
    """The inputs, without the changed relations themselves: an incremental model also reads its previous version."""
    extra_info: Mapping[str, Any]
    """The extra info of a dbt node's commit."""


@dataclass(frozen=True)
class StaleInput:
    """An input of a relation's current version that has a newer version by now."""

    relation: str
    version: int
    input: str
    read_version: int
    newest_version: int


@dataclass(frozen=True)
class Lineage:
    versions: Sequence[Version]
    """Lake by lake, the oldest first."""
    relation_types: Mapping[str, str]
    """The relations that exist now: table or view, by name."""
    newest_snapshots: Mapping[str, int]
    """By lake."""

    @cached_property
    def versions_by_relation(self) -> Mapping[str, Sequence[Version]]:
        """The versions of each relation, the oldest first."""
        found: dict[str, list[Version]] = defaultdict(list)
        for version in self.versions:
            for name in version.changed:
                found[name].append(version)
        return found

    def newer_version(self, input_version: InputVersion) -> int | None:
        """The newest version of an input, if it is newer than the one that was read."""
        versions = self.versions_by_relation.get(input_version.relation, ())
        return versions[-1].id if versions and versions[-1].id > input_version.snapshot else None

    def stale_inputs(self) -> Iterator[StaleInput]:
        for name in sorted(self.relation_types):
            # A view computes its rows when it is queried, so it is never stale.
            versions = self.versions_by_relation.get(name, ()) if self.relation_types[name] == "table" else ()
            for read in versions[-1].inputs if versions else ():
                newest = self.newer_version(read)
                if newest is not None:
                    yield StaleInput(name, versions[-1].id, read.relation, read.snapshot, newest)


def read_lineage(lakes: Iterable[Lake]) -> Lineage:
    """The lineage of all lakes of a session, with a few queries for each."""
    snapshots = {lake.name.lower(): _LakeSnapshots.read(lake) for lake in lakes}
    names_by_lake = {lake: found.last_names for lake, found in snapshots.items()}
    return Lineage(
        [v for found in snapshots.values() for row in found.rows for v in _versions(row, found, names_by_lake)],
        {name: kind for found in snapshots.values() for name, kind in found.relation_types.items()},
        {found.lake: found.newest for found in snapshots.values()},
    )


@dataclass(frozen=True)
class _LakeSnapshots:
    """The snapshots and relations of one lake, as its catalog has them."""

    lake: str
    newest: int
    rows: Sequence[Any]
    """The snapshots, the oldest first."""
    last_names: Mapping[int, str]
    """The name of each table and view by its id: the current one, or the last one before it was dropped."""
    begun_ids: Mapping[int, Sequence[int]]
    """The tables and views whose definition begins with a snapshot: created, replaced or renamed by it."""
    relation_types: Mapping[str, str]

    @classmethod
    def read(cls, lake: Lake) -> _LakeSnapshots:
        with lake.catalog.read() as connection:
            base = lake.catalog.latest_snapshot(connection)
            state = lake.snapshots.state(connection, base)
            schemas = _last_schema_names(connection)
            names: dict[int, str] = {}
            begun: dict[int, list[int]] = defaultdict(list)
            for table, key, name in (
                (t.table, t.table.c.table_id, t.table.c.table_name),
                (t.view, t.view.c.view_id, t.view.c.view_name),
            ):
                columns = (key.label("id"), table.c.begin_snapshot, table.c.schema_id, name.label("name"))
                for row in connection.execute(sa.select(*columns).order_by(table.c.begin_snapshot)):
                    begun[row.begin_snapshot].append(row.id)
                    names[row.id] = f"{lake.name}.{schemas.get(row.schema_id, '?')}.{row.name}"
            rows = connection.execute(
                sa.select(t.snapshot.c.snapshot_id, t.snapshot.c.snapshot_time, t.snapshot_changes)
                .outerjoin(t.snapshot_changes, t.snapshot_changes.c.snapshot_id == t.snapshot.c.snapshot_id)
                .order_by(t.snapshot.c.snapshot_id.desc())
                .limit(MAX_SNAPSHOTS)
            ).all()
        tables = {f"{lake.name}.{state.qualified_name(found)}": "table" for found in state.tables.values()}
        views = {f"{lake.name}.{state.qualified_name(found)}": "view" for found in state.views.values()}
        return cls(lake.name, base.id, rows[::-1], names, begun, {**tables, **views})


def _last_schema_names(connection: sa.Connection) -> dict[int, str]:
    query = sa.select(t.schema.c.schema_id, t.schema.c.schema_name).order_by(t.schema.c.begin_snapshot)
    return {row.schema_id: row.schema_name for row in connection.execute(query)}


def _versions(row: Any, snapshots: _LakeSnapshots, names_by_lake: Mapping[str, Mapping[int, str]]) -> Iterator[Version]:
    """The versions that a snapshot made: one, or in a run that is one snapshot one for each node."""
    changes = parse_changes(row.changes_made or "")
    changed_ids = {i for kind, i in changes.relation_changes if kind in _VERSION_CHANGES}
    changed_ids.update(snapshots.begun_ids.get(row.snapshot_id, ()))
    extra_info = parse_extra_info(row.commit_extra_info)
    nodes = node_infos(extra_info)
    in_run = frozenset().union(*(changed_by(node) or () for node in nodes))
    is_run = any(changed_by(node) is not None for node in nodes)
    if is_run and (others := changed_ids - in_run):  # hooks changed these
        nodes = [*nodes, {"changed": sorted(others), "message": row.commit_message}]
    for node in nodes:
        ids = changed_ids & (changed_by(node) or frozenset()) if is_run else changed_ids
        changed = {snapshots.last_names[i] for i in ids if i in snapshots.last_names}
        inputs = _input_versions(node.get("inputs"), names_by_lake)
        yield Version(
            row.snapshot_id,
            snapshots.lake,
            row.snapshot_time,
            row.author,
            node.get("message") if is_run else row.commit_message,
            tuple(sorted(changed)),
            tuple(i for i in inputs if i.relation not in changed),
            node,
        )


def _input_versions(inputs: Any, names_by_lake: Mapping[str, Mapping[int, str]]) -> Iterator[InputVersion]:
    """The inputs in a commit's extra info. A relation that was renamed since has its current name."""
    for entry in inputs if isinstance(inputs, list) else ():
        if not isinstance(entry, Mapping) or not isinstance(entry.get("snapshot"), int):
            continue
        name = str(entry.get("relation"))
        lake = name.partition(".")[0].lower()
        yield InputVersion(names_by_lake.get(lake, {}).get(entry.get("table_id", -1), name), entry["snapshot"])
