"""What macros may ask of a lake's past: tables as they were, what changed, the way back, lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import agate
from dbt.adapters.base import BaseRelation, available
from dbt.adapters.base.meta import AdapterMeta
from dbt.adapters.contracts.relation import RelationConfig
from dbt_common.exceptions import CompilationError

from ..relation import DucklakeRelation, feed_bound, time_travel
from ..spark.sql.statements import parse_name
from ..spark.sql.types import quoted, string_literal
from . import consumed_changes as consumption
from . import lineage

_SAMPLE = 20
"""So many rows of a diff are shown in a terminal."""


class History(metaclass=AdapterMeta):
    """The part of the adapter that is about the past; the rest of it is in `impl.py`."""

    # -- in models

    @available
    def at(self, relation: Any, version: Any = None, timestamp: Any = None) -> BaseRelation:
        """A relation as it was at a version or a moment."""
        return _relation(relation, "ducklake_at").at(version, timestamp)

    @available
    def lake_function(self, name: str, database: str | None = None, *arguments: str) -> str:
        """The call of a table function of a lake, the profile's own if none is named."""
        prefix = "" if database is None else f"{quoted(database)}."
        return f"{prefix}{name}({', '.join(arguments)})"

    @available
    def list_files(self, relation: Any, version: Any = None, timestamp: Any = None) -> str:
        name = _relation(relation, "ducklake_list_files").name_literal()
        if version is None and timestamp is None:
            return self.lake_function("ducklake_list_files", None, name)
        what, _, value = time_travel(version, timestamp).partition(" as of ")
        return self.lake_function("ducklake_list_files", None, name, f"{what} => {value}")

    @available
    def changes(self, function: str, relation: Any, start: Any, end: Any) -> str:
        """The call of a function of the change feed."""
        bounds = [feed_bound(function, which, value) for which, value in (("start", start), ("end", end))]
        return self.lake_function(function, None, _relation(relation, function).name_literal(), *bounds)

    @available
    def diff(self, relation: Any, start: Any, end: Any, key: Any = None) -> str:
        """The call that gives the rows which differ between two versions of a relation."""
        function = "ducklake_diff"
        bounds = [feed_bound(function, which, value) for which, value in (("from", start), ("to", end))]
        keys = [key] if isinstance(key, str) else list(key or ())
        words = [*bounds, f"key => [{', '.join(map(string_literal, keys))}]"] if keys else bounds
        return self.lake_function(function, None, _relation(relation, function).name_literal(), *words)

    @available.parse(lambda *a, **k: "")
    def diff_text(self, relation: Any, start: Any, end: Any, key: Any = None) -> str:
        """How many rows differ between two versions, and some of them, as text for a terminal."""
        with self.connections.exception_handler("ducklake_diff"), self._handle.running():
            rows = self.session.sql(f"select * from {self.diff(relation, start, end, key)}").cache()
            try:
                counts = {row["diff"]: row["count"] for row in rows.groupBy("diff").count().collect()}
                keys = [quoted(name) for name in rows.columns[:-2]]
                shown = rows.orderBy(*keys).limit(_SAMPLE)
                sample = shown.selectExpr(*keys, "to_json(before) as before", "to_json(after) as after").collect()
            finally:
                rows.unpersist()
        told = ", ".join(f"{counts.get(kind, 0)} {kind}" for kind in ("added", "removed", "changed"))
        lines = [", ".join(f"{name}: {value}" for name, value in row.asDict().items()) for row in sample]
        return "\n".join([f"{relation.render()} from {start} to {end}: {told}", *lines])

    @available.parse(lambda *a, **k: None)
    def named_relation(self, given: Any, nodes: Iterable[Mapping[str, Any]] = ()) -> BaseRelation:
        """The relation that a model's name or a name in the lake means, as a user of run-operation gives it."""
        if isinstance(given, BaseRelation):
            return given
        found = next((n for n in nodes if n["name"] == given and n["resource_type"] != "test"), None)
        if found is not None:
            parts = (found["database"], found["schema"], found.get("alias") or found.get("identifier"))
        else:
            parts = parse_name(given)
            parts = (self.session.database, self.session.default_schema)[: 3 - len(parts)] + parts
        return self.Relation.create(*parts)

    @available.parse(lambda *a, **k: "")
    def rollback_text(
        self, relations: Sequence[BaseRelation], schema: str | None, whole_lake: bool, version: Any, timestamp: Any
    ) -> str:
        """Takes relations, a schema or the lake back to a version; says what was done."""
        what, _, value = time_travel(version, timestamp).partition(" as of ")
        arguments = [f"{what} => {value}"]
        if relations:
            arguments.append(f"table_name => [{', '.join(r.name_literal() for r in relations)}]")
        if schema is not None:
            arguments.append(f"schema => {string_literal(schema)}")
        if whole_lake:
            arguments.append("whole_lake => true")
        database = relations[0].database if relations else None
        response, _ = self.execute(f"call {self.lake_function('ducklake_rollback', database, *arguments)}")
        return f"Done: {response}"

    @available.parse(lambda *a, **k: "(select 1)")
    def new_changes(self, relation: Any, this: BaseRelation, node_id: str, from_start: bool, if_expired: str) -> str:
        """The call that gives what changed in a relation since a node's table last consumed it."""
        source = _relation(relation, "ducklake_new_changes")
        if if_expired not in ("error", "full"):
            raise CompilationError(f"if_expired of ducklake_new_changes is 'error' or 'full', and it is {if_expired!r}")
        self.begin_node()
        with self.connections.exception_handler("ducklake_new_changes"):
            consumer = consumption.Consumer(
                node_id, this.database, self._find(this), source.database, self._find(source), source.render()
            )
            since, until = consumer.bounds(self.session, from_start, if_expired == "full")
        # Its words hold for the versions that were read, so nobody may do it again on others.
        self._handle.told = True
        words = ["null" if since is None else str(since), str(until)]
        asked = f"consumer => {this.name_literal()}", f"asked_at => {self.session.base(this.database).id}"
        return self.lake_function("ducklake_new_changes", None, source.name_literal(), *words, *asked)

    # -- lineage

    def _write_lineage(self, nodes: Iterable[RelationConfig], catalog: agate.Table) -> None:
        rows = {}
        if "stats:row_count:value" in catalog.column_names:
            for r in catalog.rows:
                if r["stats:row_count:value"] is not None:
                    name = f"{r['table_database']}.{r['table_schema']}.{r['table_name']}"
                    rows[name.lower()] = int(r["stats:row_count:value"])
        content = lineage.as_json(
            self._lineage(), map(lineage.Node.of, nodes), rows, self.config.project_name, self.config.target_name
        )
        lineage.write(content, Path(self.config.project_target_path))

    def _lineage(self) -> lineage.Lineage:
        with self.connections.exception_handler("lineage"):
            return lineage.lineage_of(self.session.lakes)

    @available.parse(lambda *a, **k: "")
    def lineage_text(self, relation: BaseRelation) -> str:
        """The versions of a relation, as a table for a terminal."""
        parts = (relation.database, relation.schema, relation.identifier)
        return lineage.history(self._lineage(), ".".join(str(part) for part in parts))

    @available.parse(lambda *a, **k: "")
    def stale_text(self) -> str:
        """The relations whose inputs moved on, as a table for a terminal."""
        return lineage.stale_table(self._lineage())


def _relation(given: Any, macro: str) -> DucklakeRelation:
    if not isinstance(given, DucklakeRelation):
        raise CompilationError(f"{macro} takes a relation, such as ref('orders') or this, and not {given!r}")
    return given
