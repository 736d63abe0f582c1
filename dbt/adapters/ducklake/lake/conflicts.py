"""Which changes of concurrent snapshots conflict with a commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .catalog import Commit
from .errors import ConflictError
from .snapshot_changes import SnapshotChanges, parse_changes

_CONFLICTING_CHANGES = {
    "inserted": {"dropped", "altered"},
    "truncated": {"dropped", "altered", "deleted", "compacted", "flushed"},
    # Deletes by other snapshots conflict only if they are of the same data files: see `commit.protocol`.
    "deleted": {"dropped", "altered"},
    # Likewise of the same rows, which others may also flush.
    "inlined": {"dropped", "altered"},
    "altered": {"dropped", "altered"},
    "dropped": {"dropped"},
    # Others may delete rows and compact files. It conflicts only if they are the same: see `commit.protocol`.
    "merged": {"dropped"},
    "rewritten": {"dropped", "altered"},
    "flushed": {"dropped", "flushed"},
}
"""For each kind of change to a table, the kinds of concurrent changes to the same table that conflict with it."""

_CHANGES_CONFLICTING_WITH_READ = frozenset({"inserted", "deleted", "dropped", "altered"})

_INTENDED_CHANGE_TEXTS = {
    "inserted": "inserts into",
    "truncated": "deletes from",
    "deleted": "deletes from",
    "inlined": "deletes inlined rows of",
    "altered": "alters",
    "dropped": "drops",
    "merged": "merges files of",
    "rewritten": "rewrites files of",
    "flushed": "flushes the inlined rows of",
}
_CONCURRENT_CHANGE_TEXTS = {
    "inserted": "inserted into it",
    "deleted": "deleted from it",
    "altered": "altered it",
    "dropped": "dropped it",
    "compacted": "compacted it",
    "flushed": "flushed its inlined rows",
}


@dataclass(frozen=True)
class IntendedChanges:
    """What a transaction is about to commit, in a form that can be compared with what others committed."""

    created_schemas: frozenset[str] = frozenset()
    dropped_schemas: dict[int, str] = field(default_factory=dict)
    created_relations: dict[tuple[str, str], int] = field(default_factory=dict)
    """The schema id of each new table or view, by schema name and name."""
    created_macros: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """The schema id of each new macro, by kind, schema name and name."""
    dropped_macros: dict[tuple[str, int], str] = field(default_factory=dict)
    """The name of each dropped macro, by kind and id."""
    relation_changes: frozenset[tuple[str, int]] = frozenset()
    """The kind of each change ("inserted", "truncated", ...) and the id of the changed table or view."""
    fully_read_tables: frozenset[int] = frozenset()
    """Tables of which the transaction may have read any row to decide what to write."""
    relation_names: dict[int, str] = field(default_factory=dict)
    """The qualified name of each table and view by id, for error messages."""


def check_conflicts(intended: IntendedChanges, commits: Sequence[Commit]) -> None:
    """Raises a ConflictError if one of the concurrent commits conflicts with the intended changes."""
    for commit in commits:
        for intended_text, concurrent_text in _conflicts(intended, parse_changes(commit.changes_made)):
            raise _conflict_error(intended_text, commit, concurrent_text)


def table_conflict_error(
    table_id: int, intended_text: str, commits: Sequence[Commit], concurrent_text: str
) -> ConflictError:
    """The error for a conflict with one of the commits that changed a table, if it is not known with which."""
    on_table = [
        commit
        for commit in commits
        if any(changed_id == table_id for _, changed_id in parse_changes(commit.changes_made).relation_changes)
    ]
    if len(on_table) != 1:
        concurrent_text = f"or one before it {concurrent_text}"
    return _conflict_error(intended_text, (on_table or commits)[-1], concurrent_text)


def _conflict_error(intended_text: str, commit: Commit, concurrent_text: str) -> ConflictError:
    author = f" by {commit.author}" if commit.author else ""
    message = f" ({commit.message})" if commit.message else ""
    return ConflictError(
        f"this transaction {intended_text}, but snapshot {commit.snapshot_id}{author}{message} meanwhile"
        f" {concurrent_text}; nothing was changed: run it again on the new state"
    )


def _conflicts(intended: IntendedChanges, concurrent: SnapshotChanges) -> Iterator[tuple[str, str]]:
    """Each conflict as two texts: what the transaction does, and what the other snapshot did."""
    for name in intended.created_schemas & concurrent.created_schemas:
        yield f"creates schema {name}", "created it"
    for schema_id, name in intended.dropped_schemas.items():
        if schema_id in concurrent.dropped_schemas:
            yield f"drops schema {name}", "dropped it"
        if any(schema == name.lower() for schema, _ in concurrent.created_relations):
            yield f"drops schema {name}", "created a table or view in it"
        if any(schema == name.lower() for _, schema, _ in concurrent.created_macros):
            yield f"drops schema {name}", "created a macro in it"
    for (schema, name), schema_id in intended.created_relations.items():
        if (schema, name) in concurrent.created_relations:
            yield f"creates {schema}.{name}", "created it"
        if schema_id in concurrent.dropped_schemas:
            yield f"creates {schema}.{name}", "dropped the schema"
    for (kind, schema, name), schema_id in intended.created_macros.items():
        if (kind, schema, name) in concurrent.created_macros:
            yield f"creates macro {schema}.{name}", "created it"
        if schema_id in concurrent.dropped_schemas:
            yield f"creates macro {schema}.{name}", "dropped the schema"
    for macro, name in intended.dropped_macros.items():
        if macro in concurrent.dropped_macros:
            yield f"drops or replaces macro {name}", "did so"
    concurrent_kinds: dict[int, set[str]] = {}
    for kind, relation_id in concurrent.relation_changes:
        concurrent_kinds.setdefault(relation_id, set()).add(kind)
    for kind, relation_id in sorted(intended.relation_changes):
        relation = intended.relation_names.get(relation_id, f"table {relation_id}")
        for conflicting in sorted(_CONFLICTING_CHANGES[kind] & concurrent_kinds.get(relation_id, set())):
            yield f"{_INTENDED_CHANGE_TEXTS[kind]} {relation}", _CONCURRENT_CHANGE_TEXTS[conflicting]
    for table_id in sorted(intended.fully_read_tables):
        for conflicting in sorted(_CHANGES_CONFLICTING_WITH_READ & concurrent_kinds.get(table_id, set())):
            table = intended.relation_names.get(table_id, table_id)
            yield f"rewrites rows of {table}", _CONCURRENT_CHANGE_TEXTS[conflicting]
