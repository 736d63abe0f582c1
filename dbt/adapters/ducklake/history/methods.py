"""Adapter methods for macros about the past: time travel, change feed, table diff, rollback, lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import agate
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.exceptions import CompilationError

from ..base import LakeAdapter
from ..relation import DucklakeRelation
from ..spark.session import LakeSession
from ..spark.sql.quoting import quoted, string_literal
from ..spark.sql.statements import parse_name
from ..time_travel import change_feed_bound, time_travel_argument
from .consumed_changes import ChangeConsumer
from .lineage import Lineage, read_lineage
from .lineage_report import DbtNode, lineage_json, stale_relations, version_history, write_lineage

logger = AdapterLogger("DuckLake")

_DIFF_SAMPLE_ROWS = 20
"""How many rows of a diff a terminal shows."""


class HistoryMethods(LakeAdapter):
    """The part of the adapter that is about the past. `DucklakeAdapter` adds the rest."""

    # -- relations and table functions, for FROM in a model

    @available
    def relation_at(self, relation: Any, version: Any = None, timestamp: Any = None) -> DucklakeRelation:
        """A relation as of a version or a timestamp."""
        return _require_relation(relation, "ducklake_at").at(version, timestamp)

    @available
    def table_function_call(self, name: str, database: str | None = None, *arguments: str) -> str:
        """The call of a table function of a lake. Without a database it is the profile's own lake."""
        prefix = "" if database is None else f"{quoted(database)}."
        return f"{prefix}{name}({', '.join(arguments)})"

    @available
    def list_files_call(self, relation: Any, version: Any = None, timestamp: Any = None) -> str:
        name = _require_relation(relation, "ducklake_list_files").name_literal()
        as_of = [] if version is None and timestamp is None else [time_travel_argument(version, timestamp)]
        return self._call("ducklake_list_files", name, *as_of)

    @available
    def change_feed_call(self, function: str, relation: Any, start: Any, end: Any) -> str:
        """The call of one of the functions of the change feed."""
        bounds = [change_feed_bound(function, name, bound) for name, bound in (("start", start), ("end", end))]
        return self._call(function, _require_relation(relation, function).name_literal(), *bounds)

    @available.parse(lambda *a, **k: "(select 1)")
    def new_changes_call(self, relation: Any, this: BaseRelation, node_id: str, full: bool, if_expired: str) -> str:
        """The call that reads the changes of a relation which the node's table has not consumed yet."""
        function = "ducklake_new_changes"
        source = _require_relation(relation, function)
        target = _require_relation(this, function)
        if if_expired not in ("error", "full"):
            raise CompilationError(f"if_expired of ducklake_new_changes is 'error' or 'full', and it is {if_expired!r}")
        self.begin_node_transaction()
        with self.connections.exception_handler(function):
            consumer = ChangeConsumer(
                node_id=node_id,
                lake=target.database,
                table=self.find_table_or_view(target),
                source_lake=source.database,
                source=self.find_table_or_view(source),
                source_name=source.render(),
            )
            pending = consumer.pending_range(self.session, full, if_expired == "full")
        self.handle.is_bound_to_snapshot = True
        bounds = ["null" if bound is None else str(bound) for bound in (pending.since, pending.until)]
        # By these two arguments the call conflicts with anybody else who writes the node's table.
        guard = f"consumer => {target.name_literal()}", f"asked_at => {self.session.base_snapshot(target.database).id}"
        return self._call(function, source.name_literal(), *bounds, *guard)

    @available
    def diff_call(self, relation: Any, start: Any, end: Any, key: Any = None) -> str:
        """The call that gives the rows which differ between two versions of a relation."""
        function = "ducklake_diff"
        arguments = [change_feed_bound(function, name, bound) for name, bound in (("from", start), ("to", end))]
        keys = [key] if isinstance(key, str) else list(key or ())
        if keys:
            arguments.append(f"key => [{', '.join(map(string_literal, keys))}]")
        return self._call(function, _require_relation(relation, function).name_literal(), *arguments)

    def _call(self, function: str, *arguments: str) -> str:
        call: str = self.table_function_call(function, None, *arguments)
        return call

    # -- operations of `dbt run-operation`

    @available.parse(lambda *a, **k: None)
    def resolve_relation(self, name: Any, nodes: Iterable[Mapping[str, Any]] = ()) -> BaseRelation:
        """The relation of a model's name or of a name in the lake, as users of run-operation write it."""
        if isinstance(name, BaseRelation):
            return name
        node = next((n for n in nodes if n["name"] == name and n["resource_type"] != "test"), None)
        if node is not None:
            return self.Relation.create(node["database"], node["schema"], node.get("alias") or node.get("identifier"))
        parts = parse_name(name)
        defaults = (self.session.database, self.session.default_schema)
        database, schema, identifier = (*defaults[: 3 - len(parts)], *parts)
        return self.Relation.create(database, schema, identifier)

    @available.parse(lambda *a, **k: "")
    def diff_report(self, relation: DucklakeRelation, start: Any, end: Any, key: Any = None) -> str:
        """How many rows differ between two versions, and a sample of them, as text."""
        with self.connections.exception_handler("ducklake_diff"), self.handle.cancellable():
            rows = self.session.sql(f"select * from {self.diff_call(relation, start, end, key)}").cache()
            try:
                counts = {row["diff"]: row["count"] for row in rows.groupBy("diff").count().collect()}
                keys = [quoted(name) for name in rows.columns[:-2]]
                first_rows = rows.orderBy(*keys).limit(_DIFF_SAMPLE_ROWS)
                sample = first_rows.selectExpr(*keys, "to_json(before) as before", "to_json(after) as after").collect()
            finally:
                rows.unpersist()
        summary = ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in ("added", "removed", "changed"))
        lines = [", ".join(f"{name}: {value}" for name, value in row.asDict().items()) for row in sample]
        return "\n".join([f"{relation.render()} from {start} to {end}: {summary}", *lines])

    @available.parse(lambda *a, **k: "")
    def roll_back(
        self, relations: Sequence[DucklakeRelation], schema: str | None, whole_lake: bool, version: Any, timestamp: Any
    ) -> str:
        """Restores relations, a schema or the lake to a version. Returns a line for the terminal."""
        arguments = [time_travel_argument(version, timestamp)]
        if relations:
            arguments.append(f"table_name => [{', '.join(r.name_literal() for r in relations)}]")
        if schema is not None:
            arguments.append(f"schema => {string_literal(schema)}")
        if whole_lake:
            arguments.append("whole_lake => true")
        database = relations[0].database if relations else None
        response, _ = self.execute(f"call {self.table_function_call('ducklake_rollback', database, *arguments)}")
        return f"Done: {response}"

    # -- lineage

    def write_lineage_files(self, nodes: Iterable[RelationConfig], catalog: agate.Table) -> None:
        """Writes the lineage into the target folder and logs the page's path. Row counts come from dbt's catalog."""
        row_counts = {}
        if "stats:row_count:value" in catalog.column_names:
            for row in catalog.rows:
                if row["stats:row_count:value"] is not None:
                    name = f"{row['table_database']}.{row['table_schema']}.{row['table_name']}"
                    row_counts[name.lower()] = int(row["stats:row_count:value"])
        config = self.config
        dbt_nodes = map(DbtNode.from_config, nodes)
        health = table_health(self.session)
        content = lineage_json(self._lineage(), dbt_nodes, row_counts, health, config.project_name, config.target_name)
        page, project = write_lineage(content, Path(config.project_target_path)), Path(config.project_root)
        path = page.relative_to(project) if page.is_relative_to(project) else page
        logger.info(f"Snapshot lineage written to {path}")

    @available.parse(lambda *a, **k: "")
    def lineage_report(self, relation: BaseRelation) -> str:
        """The versions of a relation, as a table of text."""
        parts = (relation.database, relation.schema, relation.identifier)
        return version_history(self._lineage(), ".".join(str(part) for part in parts))

    @available.parse(lambda *a, **k: "")
    def stale_report(self) -> str:
        """The relations that were built from older versions of their inputs, as a table of text."""
        return stale_relations(self._lineage())

    def _lineage(self) -> Lineage:
        with self.connections.exception_handler("lineage"):
            return read_lineage(self.session.lakes)


def table_health(session: LakeSession) -> dict[str, dict[str, Any]]:
    """What `ducklake_health` tells of each table of a session's lakes, by its name in lower case."""
    found = {}
    for lake in session.lakes:
        for row in session.call("ducklake_health", lake.name, orphans=False).to_pylist():
            if row["table_name"] is not None:
                name = f"{lake.name}.{row.pop('schema_name')}.{row.pop('table_name')}".lower()
                found[name] = {key: value for key, value in row.items() if value is not None}
    return found


def _require_relation(value: Any, macro: str) -> DucklakeRelation:
    if not isinstance(value, DucklakeRelation):
        raise CompilationError(f"{macro} takes a relation, such as ref('orders') or this, and not {value!r}")
    return value
