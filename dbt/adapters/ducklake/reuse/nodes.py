"""`reuse` for models, seeds, snapshots and functions.

A node's snapshot says by which fingerprint and from which versions of its inputs it was built. The next run compares
that with the catalog, and needs no Spark for it. What cannot be compared is computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dbt.adapters.events.logging import AdapterLogger

from ..connection_handle import Handle, LakeResponse
from ..history.extra_info import REUSE_KEY
from ..history.node_commit import NodeCommit
from ..lake.snapshot import LakeState, Macro, Table, View
from ..node_info import NodeInfo
from ..project_graph import parents, parents_first
from ..spark.inputs import Input
from ..spark.session import LakeSession
from .dependencies import (
    changed_function,
    definition_digest,
    definition_digests,
    find_relation,
    function_digests,
    session_digest,
)
from .recipe import Recipe
from .records import BuildRecords
from .run import Run
from .settings import DETERMINISTIC

logger = AdapterLogger("DuckLake")

_MATERIALIZATIONS = frozenset(("table", "view", "incremental", "snapshot", "seed", "function"))


class ReusedNodes:
    """Decides for the nodes of one dbt command. Threads share it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._records = BuildRecords()

    def response(self, node: Any, code: str | None, handle: Handle) -> LakeResponse | None:
        """The response of a node that need not be computed.

        None if it is to be computed; then its snapshot gets what the next run compares, if `reuse` is set for it.
        """
        if not node.config.get("reuse") or str(node.config.get("materialized")) not in _MATERIALIZATIONS:
            return None
        recipe = self._run.recipes.of(node, code, handle.returned_rows)
        session = session_digest(self._run.session())
        found = self._why_computed(node, recipe) or self._compare(node, "fingerprint", recipe.fingerprint, session)
        if isinstance(found, int):
            return LakeResponse(_message=f"reused: as of snapshot {found}", snapshot_id=found)
        logger.debug(f"{node.unique_id} is computed: {found}")
        node_commit = handle.commit_context.node_info
        if isinstance(node_commit, NodeCommit):
            node_commit.annotate = lambda info, session, inputs: _annotated(info, recipe, session, inputs)
        return None

    def _why_computed(self, node: Any, recipe: Recipe) -> str | None:
        """Why a node is computed whatever the catalog says."""
        if node.config.get("materialized") == "incremental" and node.config.get("incremental_strategy") == "microbatch":
            return "it is built in batches, of which dbt knows which to build"
        if getattr(node, "language", "sql") == "python" and not recipe.is_trusted:
            return f"it is a Python model and does not say reuse: {DETERMINISTIC}"
        if recipe.fetches_rows and not recipe.is_trusted:
            return "its code has rows in it that it fetched (run_query)"
        if node.config.get("full_refresh") or getattr(getattr(self._run.config, "args", None), "full_refresh", False):
            return "--full-refresh"
        return None

    def plan(self) -> list[tuple[str, str]]:
        """Each node, the parents first, with why it would be computed; empty if it would be reused.

        The code is compared as it is written, since only a build compiles it.
        """
        manifest = self._run.manifest()
        nodes = {**manifest.nodes, **getattr(manifest, "functions", {})}
        built = {
            i: node
            for i, node in nodes.items()
            if str(node.resource_type) in ("model", "seed", "snapshot", "function") and node.config.enabled
        }
        reasons: dict[str, str] = {}
        for node_id in parents_first(built):
            node = built[node_id]
            changed = next((i for i in parents(node) if reasons.get(i)), None)
            materialized = str(node.config.get("materialized"))
            if materialized == "ephemeral":
                reasons[node_id] = reasons[changed] if changed else ""
            elif not node.config.get("reuse") or materialized not in _MATERIALIZATIONS:
                reasons[node_id] = "reuse is not set"
            else:
                found = self._compare(node, "source", self._run.recipes.source(node))
                stands_on = f"it stands on {built[changed].name}" if changed else ""
                reasons[node_id] = found if isinstance(found, str) else stands_on
        return [
            (built[i].name, why) for i, why in reasons.items() if built[i].config.get("materialized") != "ephemeral"
        ]

    # -- comparison with the catalog

    def _compare(self, node: Any, kind: str, fingerprint: str, session_settings: str | None = None) -> int | str:
        """The snapshot of which a node's relation is still what building it would make, or why it is not.

        Without `session_settings` those of Spark's session do not count: only a build runs the hooks that set them.
        """
        session = self._run.session()
        relation = _find(session.state(node.database), node)
        if relation is None or relation.id < 0:
            return "it was never built"
        if session.is_staged(relation, node.database):
            return "it was changed in this run"
        last = self._run.last_changes.of(session, node.database, [relation])[relation.id]
        others = self._run.last_changes.known(node.database)
        record = self._records.newest(session.lake(node.database).catalog, node.unique_id, last, others)
        if record is None:
            return f"snapshot {last}, which changed it last, is not of a build with reuse"
        snapshot, info = record
        made = info[REUSE_KEY]
        if "computed_since" in made and node.config.get("reuse") != DETERMINISTIC:
            return str(made["computed_since"])
        if made.get(kind) != fingerprint:
            return "its code or settings changed"
        if session_settings is not None and made.get("session", "") != session_settings:
            return "hooks set something else in Spark's session"
        if (function := changed_function(session, made.get("functions") or {})) is not None:
            return f"the function {function} changed"
        return self._moved_input(session, info, relation.id) or snapshot

    def _moved_input(self, session: LakeSession, info: Mapping[str, Any], own_id: int) -> str | None:
        """An input that is not what it was when the node was built. Of a view only definitions count."""
        definitions = info[REUSE_KEY].get("definitions")
        by_lake: dict[str, list[tuple[Mapping[str, Any], Table | View]]] = {}
        for read in info.get("inputs", ()):
            if read["table_id"] == own_id:
                continue
            lake, relation = find_relation(session, str(read["relation"]))
            if relation is None or relation.id != read["table_id"]:
                return f"{read['relation']} is another one than it was"
            if definitions is None or session.is_staged(relation, lake):
                by_lake.setdefault(lake, []).append((read, relation))
            elif definitions.get(read["relation"]) != definition_digest(relation):
                return f"the definition of {read['relation']} changed"
        for lake, reads in by_lake.items():
            last = self._run.last_changes.of(session, lake, [relation for _, relation in reads])
            for read, relation in reads:
                if session.is_staged(relation, lake):
                    return f"{read['relation']} changes in this run"
                until = (read.get("changes") or {}).get("until") or read["snapshot"]
                if last[relation.id] > until:
                    return f"{read['relation']} moved from {until} to {last[relation.id]}"
        return None


def _annotated(info: NodeInfo, recipe: Recipe, session: LakeSession, inputs: Sequence[Input]) -> NodeInfo:
    """The info of a node's snapshot with what the next run compares."""
    functions, outside = session.dependencies()
    found: dict[str, Any] = {"fingerprint": recipe.fingerprint, "source": recipe.source}
    if (reason := recipe.unrepeatable(session, outside)) is not None:
        found["computed_since"] = reason
    if functions:
        found["functions"] = function_digests(functions)
    if settings := session_digest(session):
        found["session"] = settings
    if info.extra_info.get("materialized") == "view":
        found["definitions"] = definition_digests(session, inputs)
    return NodeInfo(info.id, info.author, info.message, {**info.extra_info, REUSE_KEY: found})


def _find(state: LakeState, node: Any) -> Table | View | Macro | None:
    """What a node has built, if it is of the node's kind."""
    materialized = node.config.get("materialized")
    name = getattr(node, "alias", None) or node.name
    if materialized == "function":
        return state.find_macro(node.schema, name)
    relation = state.find_relation(node.schema, name)
    return relation if isinstance(relation, View) == (materialized == "view") else None
