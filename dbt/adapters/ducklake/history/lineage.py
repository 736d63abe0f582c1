"""Which version of what was built from which: the lineage of a lake's snapshots, from the catalog database alone."""

from __future__ import annotations

import datetime
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ..lake import tables as t
from ..lake.conflicts import parse_changes
from ..spark.read.lakes import Lake
from ..spark.sql.tokens import quote_name

FORMAT = 1
MOST = 10_000
"""So many snapshots of each lake are told of, the newest."""
_OF_ROWS = frozenset(("inserted", "deleted", "altered"))
"""The changes that make a new version; what is done to files alone makes none."""
_MARK = "/*LINEAGE*/null"


@dataclass(frozen=True)
class Read:
    """A relation that a version was built from, as it was at a snapshot."""

    relation: str
    snapshot: int


@dataclass(frozen=True)
class Version:
    """A snapshot, with the relations that are other ones since then."""

    id: int
    lake: str
    time: datetime.datetime
    author: str | None
    message: str | None
    changed: tuple[str, ...]
    inputs: tuple[Read, ...]
    """What it was built from, besides the version before."""
    said: Mapping[str, Any]
    """What the snapshot says of itself, as far as it is in our words."""

    def as_json(self) -> dict[str, Any]:
        rows = self.said.get("rows")
        return {
            "id": self.id,
            "lake": self.lake,
            "time": self.time.isoformat(),
            "author": self.author,
            "message": self.message,
            "node_id": self.said.get("node_id"),
            "invocation_id": self.said.get("invocation_id"),
            "rows": rows if isinstance(rows, Mapping) else None,
            "changed": list(self.changed),
            "inputs": [{"relation": read.relation, "snapshot": read.snapshot} for read in self.inputs],
        }


@dataclass(frozen=True)
class Stale:
    """A relation whose current version was built from an older version of an input than there is."""

    relation: str
    version: int
    input: str
    read: int
    now: int


@dataclass(frozen=True)
class Lineage:
    versions: Sequence[Version]
    """In their order, one lake after the other."""
    there: Mapping[str, str]
    """The relations that there are, and what each is: table or view."""
    snapshots: Mapping[str, int]
    """The newest snapshot of each lake."""

    @cached_property
    def of_relation(self) -> Mapping[str, Sequence[Version]]:
        """The versions of each relation, the newest last."""
        found: dict[str, list[Version]] = defaultdict(list)
        for version in self.versions:
            for name in version.changed:
                found[name].append(version)
        return found

    def newer(self, read: Read) -> int | None:
        """The newest version of an input, where it is newer than the one that was read."""
        versions = self.of_relation.get(read.relation, ())
        return versions[-1].id if versions and versions[-1].id > read.snapshot else None

    def stale(self) -> Iterator[Stale]:
        for name in sorted(self.there):
            # A view is read when it is asked, so it is never behind.
            versions = self.of_relation.get(name, ()) if self.there[name] == "table" else ()
            for read in versions[-1].inputs if versions else ():
                now = self.newer(read)
                if now is not None:
                    yield Stale(name, versions[-1].id, read.relation, read.snapshot, now)


def lineage_of(lakes: Iterable[Lake]) -> Lineage:
    """The lineage of some lakes, with a few queries for each."""
    catalogs = {lake.name.lower(): _Snapshots.of(lake) for lake in lakes}
    names = {name: found.names for name, found in catalogs.items()}
    return Lineage(
        [_version(row, found, names) for found in catalogs.values() for row in found.rows],
        {name: kind for found in catalogs.values() for name, kind in found.there.items()},
        {found.lake: found.newest for found in catalogs.values()},
    )


@dataclass(frozen=True)
class _Snapshots:
    """What the catalog of one lake tells."""

    lake: str
    newest: int
    rows: Sequence[Any]
    names: Mapping[int, str]
    """What each table and view is called now, or was called last."""
    begun: Mapping[int, Sequence[int]]
    """The tables and views that each snapshot made."""
    there: Mapping[str, str]

    @classmethod
    def of(cls, lake: Lake) -> _Snapshots:
        with lake.catalog.read() as connection:
            base = lake.catalog.latest(connection)
            state = lake.snapshots.state(connection, base)
            schemas = _last(connection, t.schema.c.schema_id, t.schema.c.schema_name)
            names: dict[int, str] = {}
            begun: dict[int, list[int]] = defaultdict(list)
            for kind, key, name in (
                (t.table, t.table.c.table_id, t.table.c.table_name),
                (t.view, t.view.c.view_id, t.view.c.view_name),
            ):
                columns = (key.label("id"), kind.c.begin_snapshot, kind.c.schema_id, name.label("name"))
                for row in connection.execute(sa.select(*columns).order_by(kind.c.begin_snapshot)):
                    begun[row.begin_snapshot].append(row.id)
                    names[row.id] = f"{lake.name}.{schemas.get(row.schema_id, '?')}.{row.name}"
            rows = connection.execute(
                sa.select(t.snapshot.c.snapshot_id, t.snapshot.c.snapshot_time, t.snapshot_changes)
                .outerjoin(t.snapshot_changes, t.snapshot_changes.c.snapshot_id == t.snapshot.c.snapshot_id)
                .order_by(t.snapshot.c.snapshot_id.desc())
                .limit(MOST)
            ).all()
        tables = {f"{lake.name}.{state.qualified(found)}": "table" for found in state.tables.values()}
        views = {f"{lake.name}.{state.qualified(found)}": "view" for found in state.views.values()}
        return cls(lake.name, base.id, rows[::-1], names, begun, {**tables, **views})


def _last(connection: sa.Connection, key: sa.Column[Any], name: sa.Column[Any]) -> dict[int, str]:
    """The last name of each thing in a versioned table."""
    query = sa.select(key, name).order_by(key.table.c.begin_snapshot)
    return {row[0]: row[1] for row in connection.execute(query)}


def _version(row: Any, found: _Snapshots, names: Mapping[str, Mapping[int, str]]) -> Version:
    changes = parse_changes(row.changes_made or "")
    ids = {i for kind, i in changes.tables if kind in _OF_ROWS} | set(found.begun.get(row.snapshot_id, ()))
    said = said_by(row.commit_extra_info)
    changed = {found.names[i] for i in ids if i in found.names}
    return Version(
        row.snapshot_id,
        found.lake,
        row.snapshot_time,
        row.author,
        row.commit_message,
        tuple(sorted(changed)),
        tuple(read for read in _reads(said.get("inputs"), names) if read.relation not in changed),
        said,
    )


def said_by(text: str | None) -> Mapping[str, Any]:
    """The extra information of a commit; nothing of one by somebody who writes it otherwise."""
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, Mapping) else {}


def _reads(inputs: Any, names: Mapping[str, Mapping[int, str]]) -> Iterator[Read]:
    """The inputs that a commit names; one that was renamed since by its name of now."""
    for given in inputs if isinstance(inputs, list) else ():
        if not isinstance(given, Mapping) or not isinstance(given.get("snapshot"), int):
            continue
        relation = str(given.get("relation"))
        lake = relation.partition(".")[0].lower()
        yield Read(names.get(lake, {}).get(given.get("table_id", -1), relation), given["snapshot"])


# -- with what dbt knows


@dataclass(frozen=True)
class Node:
    """A node of the project that is a relation."""

    id: str
    kind: str
    relation: str
    macro: str

    @classmethod
    def of(cls, config: Any) -> Node:
        relation = f"{config.database}.{config.schema}.{config.identifier}"
        kind = str(getattr(config.resource_type, "value", config.resource_type))
        if kind == "source":
            macro = f"source({config.source_name!r}, {config.name!r})"
        else:
            version = getattr(config, "version", None)
            macro = f"ref({config.name!r}, v={version!r})" if version is not None else f"ref({config.name!r})"
        return cls(config.unique_id, kind, relation, macro)


def as_json(
    lineage: Lineage, nodes: Iterable[Node], rows: Mapping[str, int], project: str, target: str
) -> dict[str, Any]:
    """The content of snapshot_lineage.json."""
    by_relation = {node.relation.lower(): node for node in nodes}
    reads = (read.relation for version in lineage.versions for read in version.inputs)
    named = dict.fromkeys([*lineage.of_relation, *reads])
    shown = [name for name in lineage.there if name in named or name.lower() in by_relation]
    gone = [name for name in named if name not in lineage.there]
    relations = []
    for name in [*sorted(shown), *sorted(gone)]:
        node = by_relation.get(name.lower())
        relations.append(
            {
                "name": name,
                "type": lineage.there.get(name, "table"),
                "node_id": node and node.id,
                "resource_type": node and node.kind,
                "sql_name": quote_name(tuple(name.split(".", 2))),
                "macro": node and node.macro,
                "rows": rows.get(name.lower()),
                "gone": name not in lineage.there,
            }
        )
    return {
        "format": FORMAT,
        "generated_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "project": project,
        "target": target,
        "lakes": [{"name": name, "snapshot": newest} for name, newest in lineage.snapshots.items()],
        "relations": relations,
        "snapshots": [version.as_json() for version in lineage.versions],
    }


def write(content: Mapping[str, Any], folder: Path) -> None:
    """Writes the lineage as JSON and as a page that needs nothing else."""
    text = json.dumps(content, ensure_ascii=False)
    (folder / "snapshot_lineage.json").write_text(text, encoding="utf-8")
    # Within a script no character of the data may begin a tag.
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    page = (Path(__file__).parent / "lineage.html").read_text(encoding="utf-8")
    (folder / "snapshot_lineage.html").write_text(page.replace(_MARK, text), encoding="utf-8")


# -- in a terminal


def history(lineage: Lineage, relation: str, most: int = 20) -> str:
    """The versions of a relation and what each was built from, as a table."""
    name = next((n for n in (*lineage.there, *lineage.of_relation) if n.lower() == relation.lower()), None)
    if name is None:
        return f"There is no {relation} in the lineage of {', '.join(lineage.snapshots) or 'any lake'}."
    versions = lineage.of_relation.get(name, ())
    if not versions:
        return f"{name} has no version among the newest {MOST} snapshots."
    lines = []
    for version in reversed(versions[-most:]):
        state = "current" if version is versions[-1] else "superseded"
        built = [f"{read.relation}@{read.snapshot}{_since(lineage, read)}" for read in version.inputs]
        when = version.time.isoformat(" ", "seconds")
        lines.append((str(version.id), when, version.author or "", version.message or "", state, ", ".join(built)))
    left = f"\n... and {len(versions) - most} older ones" if len(versions) > most else ""
    return f"{name}\n{_table(('snapshot', 'time', 'author', 'message', 'state', 'built from'), lines)}{left}"


def _since(lineage: Lineage, read: Read) -> str:
    newer = lineage.newer(read)
    return f" (now {newer})" if newer is not None else ""


def stale_table(lineage: Lineage) -> str:
    """The relations whose inputs moved on, as a table."""
    found = list(lineage.stale())
    if not found:
        return "Nothing is stale: everything was built from the newest version of what it reads."
    lines = [(s.relation, str(s.version), s.input, str(s.read), str(s.now)) for s in found]
    return _table(("relation", "built at", "input", "read at", "now at"), lines)


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    widths = [max(len(line[i]) for line in (head, *lines)) for i in range(len(head))]
    rows = (head, ["-" * width for width in widths], *lines)
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows)
