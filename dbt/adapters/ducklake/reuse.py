"""`reuse: true`: a node is not computed while its code, its settings and what it reads are what they were.

A node's snapshot says by which fingerprint and from which versions of its inputs it was built. The next run compares
that with the catalog, and needs no Spark for it. What cannot be compared is computed.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from dbt_common.exceptions import CompilationError

from .history.consumed_changes import PROGRESS_KEY
from .history.extra_info import REUSE_KEY, node_infos, parse_extra_info
from .lake import tables as t
from .lake.catalog import Catalog
from .lake.commit.rows import id_batches
from .lake.snapshot import LakeState, Macro, Table, View
from .lake.snapshot_changes import parse_changes
from .lake.table_summary import table_summaries
from .node_info import NodeInfo
from .spark.results import Input
from .spark.session import LakeSession
from .spark.sql.repeatability import called_functions, normalized, unrepeatable_function

DETERMINISTIC = "deterministic"
"""The value of `reuse` by which the author says that a node makes the same of the same inputs."""

_MATERIALIZATIONS = frozenset(("table", "view", "incremental", "snapshot", "seed", "function"))
_IRRELEVANT_SETTINGS = frozenset(
    [
        "access",
        "commit_author",
        "commit_extra_info",
        "commit_message",
        "docs",
        "enabled",
        "freshness",
        "full_refresh",
        "grants",
        "group",
        "maintenance",
        "meta",
        "reuse",
        "tags",
    ]
)
_INTERNAL_PACKAGES = frozenset(("dbt", "dbt_spark", "dbt_ducklake"))
_TEXT = r"'(?:[^'\\]|\\.)*'"
_RANGE = re.compile(
    rf"(ducklake_new_changes \( {_TEXT}) , \w+ , \w+ , consumer => {_TEXT} , asked_at => \d+ \)", re.IGNORECASE
)
_MAX_TABLES = 2_000
"""Of a lake with more tables, only those that nodes read are looked at."""
_MAX_NOTES_SIZE = 50_000_000
_TEMPORARY = ("__dbt_tmp", "_dbt_", "_lake_")
"""What is in the names of temporary views: of dbt, of the adapter, of the engine."""


def check_reuse(value: Any) -> None:
    if value not in (None, True, False, DETERMINISTIC):
        raise CompilationError(f"reuse takes true, false or {DETERMINISTIC}, and it is {value!r}")


def is_configured(config: Any) -> bool:
    """Whether dbt_project.yml sets `reuse` for some node, so that Spark is not started before one needs it."""

    def has_reuse(settings: Any) -> bool:
        if not isinstance(settings, Mapping):
            return False
        return any(settings.get(key) for key in ("reuse", "+reuse")) or any(map(has_reuse, settings.values()))

    kinds = ("models", "seeds", "snapshots", "functions", "data_tests")
    return any(has_reuse(getattr(config, kind, None)) for kind in kinds)


@dataclass(frozen=True)
class Reuse:
    """The outcome for one node: the snapshot that it is reused from, or why it is computed."""

    fingerprint: str
    source: str = ""
    """The fingerprint with the node's code as it is written, by which `ducklake_plan` compares."""
    snapshot: int | None = None
    reason: str | None = None
    trusted: bool = False
    """Whether the author says that the node is deterministic."""
    fetches_rows: bool = False
    """Whether the node's code has rows in it that it fetched while it was compiled."""
    code: str | None = None


def note(reuse: Reuse, info: NodeInfo, session: LakeSession, inputs: Sequence[Input]) -> NodeInfo:
    """The info of a node's snapshot with what the next run compares."""
    functions, outside = session.dependencies()
    found: dict[str, Any] = {"fingerprint": reuse.fingerprint, "source": reuse.source}
    reason = None if reuse.trusted else unrepeatable(reuse, session, outside)
    if reason is not None:
        found["computed_since"] = reason
    if functions:
        found["functions"] = {name: digest(macro.impls) for name, macro in functions.items()}
    if info.extra_info.get("materialized") == "view":
        found["definitions"] = dict(_definitions(session, inputs))
    return NodeInfo(info.id, info.author, info.message, {**info.extra_info, REUSE_KEY: found})


def unrepeatable(reuse: Reuse, session: LakeSession, outside: frozenset[str]) -> str | None:
    """Why a node may make something else of the same inputs."""
    if reuse.fetches_rows:
        return "its code has rows in it that it fetched (run_query)"
    if reuse.code is not None:
        if (function := unrepeatable_function(reuse.code)) is not None:
            return f"it calls {function}"
        if session.spark_started:
            for name in called_functions(reuse.code):
                is_known = name.startswith("ducklake_") or session.is_known_function(name)
                if not is_known and name.upper() not in _ctes(reuse.code):
                    return f"it calls {name}, which is no function of Spark's"
    read = sorted(name for name in outside if not any(mark in name for mark in _TEMPORARY))
    return f"it reads {read[0]}, which is in no lake" if read else None


def _ctes(code: str) -> frozenset[str]:
    """The words of a query that begin a CTE with a list of columns: `with a (x) as (...)`."""
    words = normalized(code).upper().split()
    return frozenset(
        word for word, before in zip(words[1:], words, strict=False) if before in ("WITH", ",", "RECURSIVE")
    )


def _definitions(session: LakeSession, inputs: Sequence[Input]) -> Iterator[tuple[str, str]]:
    for found in inputs:
        lake, schema, name = found.name.split(".", 2)
        relation = session.state(lake).find_relation(schema, name)
        if relation is not None:
            yield found.name, _definition(relation)


def _definition(relation: Table | View) -> str:
    if isinstance(relation, View):
        return digest((relation.dialect, relation.sql, relation.column_aliases))
    return digest(relation.columns)


def digest(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class ReuseOfRun:
    """Decides for the nodes of one dbt command. Threads share it."""

    def __init__(self, config: Any, session: Callable[[], LakeSession], manifest: Callable[[], Any]) -> None:
        self._config = config
        self._session = session
        self._manifest = manifest
        self._lock = threading.Lock()
        self.last_changes = LastChanges()
        self._noted: dict[str, list[sa.Row[Any]]] = {}
        """The snapshots by lake that changed nothing and say what a node had read, the newest first."""

    def decide(self, node: Any, code: str | None, fetches_rows: bool) -> Reuse | None:
        """The outcome for a node; None if `reuse` is not set for it."""
        setting = node.config.get("reuse")
        materialized = str(node.config.get("materialized"))
        if not setting or materialized not in _MATERIALIZATIONS:
            return None
        reuse = Reuse(
            self.fingerprint(node, code),
            self.fingerprint(node, getattr(node, "raw_code", None)),
            trusted=setting == DETERMINISTIC,
            fetches_rows=fetches_rows,
            code=code if getattr(node, "language", "sql") == "sql" else None,
        )
        if materialized == "incremental" and node.config.get("incremental_strategy") == "microbatch":
            reason = "it is built in batches, of which dbt knows which to build"
        elif getattr(node, "language", "sql") == "python" and not reuse.trusted:
            reason = f"it is a Python model and does not say reuse: {DETERMINISTIC}"
        elif fetches_rows and not reuse.trusted:
            reason = "its code has rows in it that it fetched (run_query)"
        elif node.config.get("full_refresh") or getattr(self._flags, "full_refresh", False):
            reason = "--full-refresh"
        else:
            found = self._compare(node, "fingerprint", reuse.fingerprint)
            if isinstance(found, int):
                return replace(reuse, snapshot=found)
            reason = found
        return replace(reuse, reason=reason)

    def decide_test(self, test: Any, code: str, fetches_rows: bool) -> Reuse | None:
        """What is to be compared for a data test; None if `reuse` is not set for it, or it is to run anyway."""
        setting = test.config.get("reuse")
        if not setting or fetches_rows:
            return None
        return Reuse(self.fingerprint(test, code), trusted=setting == DETERMINISTIC, code=code)

    # -- fingerprints

    @property
    def _flags(self) -> Any:
        return getattr(self._config, "args", None)

    def fingerprint(self, node: Any, code: str | None) -> str:
        config = node.config.to_dict(omit_none=True) if hasattr(node.config, "to_dict") else dict(node.config)
        persists_docs = config.get("persist_docs") or {}
        parts = {
            "code": _seed_digest(node)
            if str(node.resource_type) == "seed"
            else _without_ranges(normalized(code or "")),
            "config": {key: value for key, value in config.items() if key not in _IRRELEVANT_SETTINGS},
            "columns": {
                name: [
                    getattr(column, "data_type", None),
                    str(getattr(column, "constraints", None)),
                    column.description if persists_docs.get("columns") else None,
                ]
                for name, column in (getattr(node, "columns", None) or {}).items()
            },
            "description": node.description if persists_docs.get("relation") else None,
            "macros": self._macros_of(node),
            "rows": [str(getattr(self._flags, flag, None) or "") for flag in ("empty", "sample")],
            "spark": (self._config.credentials.spark or {}).get("config"),
            "versions": [version("dbt-core"), version("dbt-ducklake")],
        }
        return digest(json.dumps(parts, sort_keys=True, default=str))

    @cached_property
    def _macros(self) -> tuple[Mapping[str, Any], str]:
        """The project's macros by id, and a digest of those that take the place of dbt's or the adapter's."""
        macros = getattr(self._manifest(), "macros", {})
        internal = {m.name for m in macros.values() if m.package_name in _INTERNAL_PACKAGES}
        own = {key: m for key, m in macros.items() if m.package_name not in _INTERNAL_PACKAGES}
        overrides = sorted(
            m.macro_sql
            for m in own.values()
            if m.name in internal or m.name.startswith(("materialization_", "ducklake__"))
        )
        return own, digest("".join(overrides))

    def _macros_of(self, node: Any) -> list[str]:
        with self._lock:
            own, overrides = self._macros
        todo, seen = list(getattr(getattr(node, "depends_on", None), "macros", ())), set()
        while todo:
            macro_id = todo.pop()
            if macro_id in own and macro_id not in seen:
                seen.add(macro_id)
                todo += own[macro_id].depends_on.macros
        return [overrides, *(digest(own[i].macro_sql) for i in sorted(seen))]

    # -- comparison with the catalog

    def plan(self) -> list[tuple[str, str]]:
        """Each node that `reuse` is set for, the parents first, with why it would be computed, or empty.

        The code is compared as it is written, since only a build compiles it.
        """
        manifest = self._manifest()
        nodes = {**manifest.nodes, **getattr(manifest, "functions", {})}
        built = {
            i: node
            for i, node in nodes.items()
            if str(node.resource_type) in ("model", "seed", "snapshot", "function") and node.config.enabled
        }
        reasons: dict[str, str] = {}
        for node_id in _parents_first(built):
            node = built[node_id]
            changed = next((i for i in _parents(node) if reasons.get(i)), None)
            materialized = str(node.config.get("materialized"))
            if materialized == "ephemeral":
                reasons[node_id] = reasons[changed] if changed else ""
            elif not node.config.get("reuse") or materialized not in _MATERIALIZATIONS:
                reasons[node_id] = "reuse is not set"
            else:
                found = self._compare(node, "source", self.fingerprint(node, getattr(node, "raw_code", None)))
                stands_on = f"it stands on {built[changed].name}" if changed else ""
                reasons[node_id] = found if isinstance(found, str) else stands_on
        return [
            (built[i].name, why) for i, why in reasons.items() if built[i].config.get("materialized") != "ephemeral"
        ]

    def _compare(self, node: Any, kind: str, fingerprint: str) -> int | str:
        """The snapshot of which a node's relation is still what building it would make, or why it is not."""
        session = self._session()
        state = session.state(node.database)
        relation = _find(state, node, str(node.config.get("materialized")))
        if relation is None or relation.id < 0:
            return "it was never built"
        catalog = session.lake(node.database).catalog
        if session.is_staged(relation, node.database):
            return "it was changed in this run"
        last = self.last_changes.of(session, node.database, [relation])[relation.id]
        record = self._record(catalog, node, last)
        if record is None:
            return f"snapshot {last}, which changed it last, is not of a build with reuse"
        snapshot, info = record
        made = info[REUSE_KEY]
        if "computed_since" in made and node.config.get("reuse") != DETERMINISTIC:
            return str(made["computed_since"])
        if made.get(kind) != fingerprint:
            return "its code or settings changed"
        for name, was in (made.get("functions") or {}).items():
            lake, schema, function = name.split(".", 2)
            macro = session.state(lake).find_macro(schema, function)
            if macro is None or digest(macro.impls) != was:
                return f"the function {name} changed"
        return self._moved_input(session, info, relation.id) or snapshot

    def _moved_input(self, session: LakeSession, info: Mapping[str, Any], own_id: int) -> str | None:
        definitions = info[REUSE_KEY].get("definitions")
        by_lake: dict[str, list[tuple[Mapping[str, Any], Table | View]]] = {}
        for read in info.get("inputs", ()):
            lake, schema, name = str(read["relation"]).split(".", 2)
            if read["table_id"] == own_id:
                continue
            if lake.lower() not in {found.name.lower() for found in session.lakes}:
                return f"the lake {lake} is not attached"
            relation = session.state(lake).find_relation(schema, name)
            if relation is None or relation.id != read["table_id"]:
                return f"{read['relation']} is another one than it was"
            if definitions is None or session.is_staged(relation, lake):
                by_lake.setdefault(lake, []).append((read, relation))
            elif definitions.get(read["relation"]) != _definition(relation):
                return f"the definition of {read['relation']} changed"
        for lake, reads in by_lake.items():
            last = self.last_changes.of(session, lake, [relation for _, relation in reads])
            for read, relation in reads:
                if session.is_staged(relation, lake):
                    return f"{read['relation']} changes in this run"
                until = (read.get("changes") or {}).get("until") or read["snapshot"]
                if last[relation.id] > until:
                    return f"{read['relation']} moved from {until} to {last[relation.id]}"
        return None

    def _record(self, catalog: Catalog, node: Any, last_change: int) -> tuple[int, Mapping[str, Any]] | None:
        """The newest snapshot in which the node recorded what it was built from, unless others changed it since."""
        changes = t.snapshot_changes
        columns = sa.select(changes.c.snapshot_id, changes.c.commit_extra_info)
        with self._lock, catalog.read() as connection:
            location = catalog.database.location
            if location not in self._noted:
                self._noted[location] = _newest_notes(connection)
            rows = [row for row in self._noted[location] if row.snapshot_id > last_change]
            rows += connection.execute(columns.where(changes.c.snapshot_id == last_change))
        for row in rows:
            if json.dumps(node.unique_id) in (row.commit_extra_info or ""):
                for info in node_infos(parse_extra_info(row.commit_extra_info)):
                    if info.get("node_id") == node.unique_id and isinstance(info.get(REUSE_KEY), Mapping):
                        return row.snapshot_id, info
        return None


def _newest_notes(connection: sa.Connection) -> list[sa.Row[Any]]:
    """The snapshots that say of a node that it changed nothing, the newest first, up to a size that memory holds."""
    changes = t.snapshot_changes
    size = sa.func.length(changes.c.commit_extra_info)
    noted = sa.select(changes.c.snapshot_id, size.label("size")).where(
        changes.c.commit_extra_info.contains(PROGRESS_KEY, autoescape=True)
    )
    ids, total = [], 0
    for row in connection.execute(noted.order_by(changes.c.snapshot_id.desc())):
        total += row.size
        if total > _MAX_NOTES_SIZE:
            break
        ids.append(row.snapshot_id)
    query = sa.select(changes.c.snapshot_id, changes.c.commit_extra_info)
    found = [r for batch in id_batches(ids) for r in connection.execute(query.where(changes.c.snapshot_id.in_(batch)))]
    return sorted(found, key=lambda row: row.snapshot_id, reverse=True)


class LastChanges:
    """The last snapshot that changed each relation or function of a lake. Threads share it.

    All tables are asked for at once, and later only those that were changed since.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, dict[int, int]]] = {}

    def of(self, session: LakeSession, lake: str, relations: Sequence[Table | View | Macro]) -> dict[int, int]:
        """By id, up to the snapshot that the thread reads."""
        catalog, at = session.lake(lake).catalog, session.base_snapshot(lake).id
        with self._lock, catalog.read() as connection:
            before, found = self._known.get(lake.lower(), (at, {}))
            if before > at:
                return _last_changes(connection, catalog, at, session.state(lake), {r.id for r in relations})
            for commit in catalog.commits_after(connection, before) if before < at else ():
                for _, table_id in parse_changes(commit.changes_made or "").relation_changes:
                    found.pop(table_id, None)
            missing = {r.id for r in relations} - found.keys()
            if missing:
                everything = {*session.state(lake).tables} if len(session.state(lake).tables) < _MAX_TABLES else set()
                wanted = missing | (everything - found.keys())
                found = {**found, **_last_changes(connection, catalog, at, session.state(lake), wanted)}
            self._known[lake.lower()] = at, found
            return {r.id: found.get(r.id, at) for r in relations}


def _last_changes(
    connection: sa.Connection, catalog: Catalog, at: int, state: LakeState, ids: Collection[int]
) -> dict[int, int]:
    found: dict[int, int] = {}
    if tables := [i for i in ids if i in state.tables]:
        summaries = table_summaries(connection, catalog, at, tables)
        found |= {table_id: summary.last_change_snapshot or at for table_id, summary in summaries.items()}
    for table, key, others in ((t.view, t.view.c.view_id, state.views), (t.macro, t.macro.c.macro_id, state.macros)):
        if wanted := [i for i in ids if i in others]:
            query = sa.select(key, table.c.begin_snapshot).where(key.in_(wanted), t.alive(table, at))
            found |= {row[0]: row[1] for row in connection.execute(query)}
    return found


def _parents(node: Any) -> Sequence[str]:
    return tuple(getattr(getattr(node, "depends_on", None), "nodes", ()))


def _parents_first(nodes: Mapping[str, Any]) -> list[str]:
    """The nodes in an order in which each follows its parents."""
    order: dict[str, None] = {}
    todo = [*nodes]
    while todo:
        waiting = [i for i in _parents(nodes[todo[-1]]) if i in nodes and i not in order]
        if waiting:
            todo += waiting
        else:
            order[todo.pop()] = None
    return list(order)


def _find(state: LakeState, node: Any, materialized: str) -> Table | View | Macro | None:
    name = node.alias if getattr(node, "alias", None) else node.name
    if materialized == "function":
        return state.find_macro(node.schema, name)
    relation = state.find_relation(node.schema, name)
    is_view = materialized == "view"
    return relation if isinstance(relation, View) == is_view else None


def _without_ranges(code: str) -> str:
    """Code without the range of changes that `ducklake_new_changes` has in it, which the node's inputs tell."""
    return _RANGE.sub(r"\1 )", code)


def _seed_digest(seed: Any) -> str:
    """The checksum of a seed's file: dbt's own, unless the file is so large that dbt takes its path instead."""
    checksum = seed.checksum
    if checksum.name != "path":
        return str(checksum.checksum)
    file = Path(seed.root_path or ".") / seed.original_file_path
    content_digest = hashlib.sha256()
    with file.open("rb") as content:
        while block := content.read(1 << 20):
            content_digest.update(block)
    return content_digest.hexdigest()
