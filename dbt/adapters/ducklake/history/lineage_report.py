"""The lineage as snapshot_lineage.json, as snapshot_lineage.html, and as tables for a terminal."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..spark.sql.quoting import quoted_name
from ..text_table import text_table
from .lineage import MAX_SNAPSHOTS, InputVersion, Lineage, Version
from .lineage_page import lineage_page

JSON_FORMAT = 1


@dataclass(frozen=True)
class DbtNode:
    """A node of the project that is a relation in the lake."""

    id: str
    resource_type: str
    relation: str
    macro: str
    """The call that gives the relation in a model."""

    @classmethod
    def from_config(cls, config: Any) -> DbtNode:
        relation = f"{config.database}.{config.schema}.{config.identifier}"
        resource_type = str(getattr(config.resource_type, "value", config.resource_type))
        if resource_type == "source":
            macro = f"source({config.source_name!r}, {config.name!r})"
        else:
            version = getattr(config, "version", None)
            macro = f"ref({config.name!r}, v={version!r})" if version is not None else f"ref({config.name!r})"
        return cls(config.unique_id, resource_type, relation, macro)


def lineage_json(
    lineage: Lineage,
    nodes: Iterable[DbtNode],
    row_counts: Mapping[str, int],
    health: Mapping[str, Mapping[str, Any]],
    project: str,
    target: str,
) -> dict[str, Any]:
    """The content of snapshot_lineage.json: the lineage, joined with the nodes of the dbt project.

    `row_counts` and `health` are by the names of relations in lower case.
    """
    nodes_by_relation = {node.relation.lower(): node for node in nodes}
    input_names = (read.relation for version in lineage.versions for read in version.inputs)
    named = dict.fromkeys([*lineage.versions_by_relation, *input_names])
    existing = [name for name in lineage.relation_types if name in named or name.lower() in nodes_by_relation]
    gone = [name for name in named if name not in lineage.relation_types]
    relations = []
    for name in [*sorted(existing), *sorted(gone)]:
        node = nodes_by_relation.get(name.lower())
        relations.append(
            {
                "name": name,
                "type": lineage.relation_types.get(name, "table"),
                "node_id": node and node.id,
                "resource_type": node and node.resource_type,
                "sql_name": quoted_name(tuple(name.split(".", 2))),
                "macro": node and node.macro,
                "rows": row_counts.get(name.lower()),
                "health": health.get(name.lower()),
                "gone": name not in lineage.relation_types,
            }
        )
    return {
        "format": JSON_FORMAT,
        "generated_at": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "project": project,
        "target": target,
        "lakes": [{"name": name, "snapshot": newest} for name, newest in lineage.newest_snapshots.items()],
        "relations": relations,
        "snapshots": [_version_json(version) for version in lineage.versions],
    }


def _version_json(version: Version) -> dict[str, Any]:
    rows = version.extra_info.get("rows")
    return {
        "id": version.id,
        "lake": version.lake,
        "time": version.time.isoformat(),
        "author": version.author,
        "message": version.message,
        "node_id": version.extra_info.get("node_id"),
        "invocation_id": version.extra_info.get("invocation_id"),
        "rows": rows if isinstance(rows, Mapping) else None,
        "changed": list(version.changed),
        "inputs": [{"relation": read.relation, "snapshot": read.snapshot} for read in version.inputs],
    }


def write_lineage(content: Mapping[str, Any], folder: Path) -> Path:
    """Writes the lineage as JSON, and as a page that has the JSON in it. Returns the path of the page."""
    text = json.dumps(content, ensure_ascii=False)
    (folder / "snapshot_lineage.json").write_text(text, encoding="utf-8")
    page = folder / "snapshot_lineage.html"
    page.write_text(lineage_page(text), encoding="utf-8")
    return page


def version_history(lineage: Lineage, relation: str, limit: int = 20) -> str:
    """The newest versions of a relation, with the versions that each was built from, as a table of text."""
    names = (*lineage.relation_types, *lineage.versions_by_relation)
    name = next((n for n in names if n.lower() == relation.lower()), None)
    if name is None:
        return f"There is no {relation} in the lineage of {', '.join(lineage.newest_snapshots) or 'any lake'}."
    versions = lineage.versions_by_relation.get(name, ())
    if not versions:
        return f"{name} has no version among the newest {MAX_SNAPSHOTS} snapshots."
    rows = []
    for version in reversed(versions[-limit:]):
        state = "current" if version is versions[-1] else "superseded"
        inputs = ", ".join(_input_text(lineage, read) for read in version.inputs)
        time = version.time.isoformat(" ", "seconds")
        rows.append((str(version.id), time, version.author or "", version.message or "", state, inputs))
    omitted = f"\n... and {len(versions) - limit} older ones" if len(versions) > limit else ""
    return f"{name}\n{text_table(('snapshot', 'time', 'author', 'message', 'state', 'built from'), rows)}{omitted}"


def _input_text(lineage: Lineage, read: InputVersion) -> str:
    newer = lineage.newer_version(read)
    return f"{read.relation}@{read.snapshot}" + (f" (now {newer})" if newer is not None else "")


def stale_relations(lineage: Lineage) -> str:
    """The relations that were built from older versions of their inputs, as a table of text."""
    rows = [
        (s.relation, str(s.version), s.input, str(s.read_version), str(s.newest_version))
        for s in lineage.stale_inputs()
    ]
    if not rows:
        return "Nothing is stale: everything was built from the newest version of what it reads."
    return text_table(("relation", "built at", "input", "read at", "now at"), rows)
