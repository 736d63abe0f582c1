"""What a run that is one snapshot changes, table by table: known before it is published, and without it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dbt_common.invocation import get_invocation_id

from ..lake.snapshot import Table, View
from ..lake.table_summary import table_summaries
from ..lake.transaction import Transaction
from ..spark.session import LakeSession
from ..spark.shared_transaction import SharedTransaction
from ..spark.sql.quoting import quoted_name, string_literal
from ..text_table import text_table
from .outcome import node_of

PREVIEW_FILE = "ducklake_preview.json"


@dataclass(frozen=True)
class RelationPreview:
    """How a run changes a table or view."""

    relation: str
    node_id: str | None
    change: str
    """`created`, `changed` or `dropped`."""
    is_table: bool
    rows_before: int | None = None
    rows_after: int | None = None
    added: int | None = None
    """These three, by comparing rows, only if that is asked for."""
    removed: int | None = None
    changed: int | None = None
    not_published: str | None = None
    """Why the run leaves it out."""


def preview(
    session: LakeSession, shared: SharedTransaction, keys: Mapping[str, Sequence[str]], compares_rows: bool
) -> list[RelationPreview]:
    """What a shared transaction has changed so far. `keys` has the columns by which the rows of a node are compared."""
    if shared.lake is None:
        return []
    transaction = shared.transaction(shared.lake)
    node_ids: dict[int, str | None] = {}
    for fold in shared.folds:
        node_ids.update({i: node_of(fold) or node_ids.get(i) for i in fold.changed_relations})
    found = list(_previews(session.lake(shared.lake).name, transaction, node_ids))
    if compares_rows:
        found = [_with_row_counts(session, p, keys.get(p.node_id or "", ())) for p in found]
    return sorted(found, key=lambda p: p.relation)


def _previews(lake: str, transaction: Transaction, node_ids: Mapping[int, str | None]) -> Iterator[RelationPreview]:
    old_state, state = transaction.base_state, transaction.state
    old: Mapping[int, Table | View] = {**old_state.tables, **old_state.views}
    new: Mapping[int, Table | View] = {**state.tables, **state.views}
    with transaction.catalog.read() as connection:
        committed = [i for i in node_ids if i in old_state.tables]
        summaries = table_summaries(connection, transaction.catalog, transaction.base.id, committed)
    for relation_id, node_id in node_ids.items():
        before, after = old.get(relation_id), new.get(relation_id)
        if before is None and after is None:
            continue
        name = (
            state.qualified_name(after) if after is not None else old_state.qualified_name(before or old[relation_id])
        )
        change = "created" if before is None else "dropped" if after is None else "changed"
        is_table = isinstance(after or before, Table)
        count = summaries[relation_id].row_count if relation_id in summaries else 0
        changes = transaction.staged.changes_of(relation_id)
        left = 0 if changes.truncated else count - changes.deleted_row_count - changes.updated_row_count
        yield RelationPreview(
            f"{lake}.{name}",
            node_id,
            change,
            is_table,
            count if is_table and before is not None else None,
            left + changes.added_row_count if is_table and after is not None else None,
        )


def _with_row_counts(session: LakeSession, found: RelationPreview, key: Sequence[str]) -> RelationPreview:
    if not found.is_table or found.change == "dropped":
        return found
    lake, schema, name = found.relation.split(".", 2)
    table = session.state(lake).table(schema, name)
    has_key = key and {c.lower() for c in key} <= {c.name.lower() for c in table.columns}
    plain = all(f.type not in ("map", "variant") for c in table.columns for f in c.walk())
    columns = list(key) if has_key else [c.name for c in table.columns] if plain else []
    arguments = [string_literal(quoted_name((schema, name))), "null", "null"]
    if columns:
        arguments.append(f"key => [{', '.join(map(string_literal, columns))}]")
    call = f"{quoted_name((lake,))}.ducklake_diff({', '.join(arguments)})"
    counts = {
        row["diff"]: row["n"] for row in session.sql(f"select diff, count(*) as n from {call} group by diff").collect()
    }
    return replace(
        found, added=counts.get("added", 0), removed=counts.get("removed", 0), changed=counts.get("changed", 0)
    )


def write_preview(
    folder: Path, relations: Sequence[RelationPreview], snapshot: int | None, is_running: bool = False
) -> None:
    """Writes the preview for `ducklake_preview`, which may read it meanwhile in another process."""
    content = {
        "invocation_id": get_invocation_id(),
        "is_running": is_running,
        "snapshot": snapshot,
        "relations": [asdict(r) for r in relations],
    }
    temporary = folder / f"{PREVIEW_FILE}.{os.getpid()}"
    temporary.write_text(json.dumps(content, indent=2), encoding="utf-8")
    temporary.replace(folder / PREVIEW_FILE)


def preview_text(folder: Path) -> str:
    """The last preview that was written to a target folder, as a table for a terminal."""
    file = folder / PREVIEW_FILE
    if not file.exists():
        return f"There is no {file}: no command has run with publish: run, in this target folder"
    content = json.loads(file.read_text(encoding="utf-8"))
    relations = [RelationPreview(**r) for r in content["relations"]]
    if not relations:
        return "The last run changed nothing"
    return preview_table(relations, content["snapshot"], content["is_running"])


def preview_table(relations: Sequence[RelationPreview], snapshot: int | None, is_running: bool = False) -> str:
    names = ("rows_before", "rows_after", "added", "removed", "changed", "not_published")
    shown = [name for name in names if any(getattr(r, name) is not None for r in relations)]
    rows = [(r.relation, r.change, *(_text(getattr(r, name)) for name in shown)) for r in relations]
    refused = "Not published yet" if is_running else "Not published"
    head = refused if snapshot is None else f"Published as snapshot {snapshot}"
    return f"{head}:\n" + text_table(("relation", "change", *(name.replace("_", " ") for name in shown)), rows)


def _text(value: Any) -> str:
    return "" if value is None else str(value)
