"""Which concurrent changes a commit may pass, and which it must not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from .catalog import Commit
from .errors import ConflictError
from .snapshot import parse_quoted_list

TABLE_CHANGES = {
    "inserted_into_table": "inserted",
    "inlined_insert": "inserted",
    "deleted_from_table": "deleted",
    "inlined_delete": "deleted",
    "altered_table": "altered",
    "altered_view": "altered",
    "dropped_table": "dropped",
    "dropped_view": "dropped",
    "compacted_table": "compacted",
    "merge_adjacent": "compacted",
    "rewrite_delete": "compacted",
    "inline_flush": "flushed",
    "flushed_inlined": "flushed",
}

WORDS = {
    "inserted": "inserted into it",
    "deleted": "deleted from it",
    "altered": "altered it",
    "dropped": "dropped it",
    "compacted": "compacted it",
    "flushed": "flushed its inlined rows",
}


@dataclass(frozen=True)
class Changes:
    """What one snapshot changed, as sets of ids and names: names without regard to case."""

    created_schemas: frozenset[str] = frozenset()
    dropped_schemas: frozenset[int] = frozenset()
    created: frozenset[tuple[str, str]] = frozenset()
    """Schema and name of tables and views that were created, or renamed to that name."""
    tables: frozenset[tuple[str, int]] = frozenset()
    """A kind of change ("inserted", "deleted", ...) and the id of the table or view it was done to."""
    created_macros: frozenset[tuple[str, str, str]] = frozenset()
    """Kind, schema and name of each."""
    dropped_macros: frozenset[tuple[str, int]] = frozenset()


def parse_changes(text: str) -> Changes:
    """The changes that `changes_made` lists; kinds that are not known here change no table."""
    created_schemas: set[str] = set()
    dropped_schemas: set[int] = set()
    created: set[tuple[str, str]] = set()
    tables: set[tuple[str, int]] = set()
    created_macros: set[tuple[str, str, str]] = set()
    dropped_macros: set[tuple[str, int]] = set()
    for entry in _entries(text):
        kind, _, value = entry.partition(":")
        if kind == "created_schema":
            created_schemas.add(parse_quoted_list(value)[0].lower())
        elif kind == "dropped_schema":
            dropped_schemas.add(int(value))
        elif kind in ("created_table", "created_view"):
            schema, name = parse_quoted_list(value, ".")
            created.add((schema.lower(), name.lower()))
        elif kind in TABLE_CHANGES:
            tables.add((TABLE_CHANGES[kind], int(value)))
        elif kind in ("created_scalar_macro", "created_table_macro"):
            schema, name = parse_quoted_list(value, ".")
            created_macros.add((kind.split("_")[1], schema.lower(), name.lower()))
        elif kind in ("dropped_scalar_macro", "dropped_table_macro"):
            dropped_macros.add((kind.split("_")[1], int(value)))
    return Changes(
        frozenset(created_schemas),
        frozenset(dropped_schemas),
        frozenset(created),
        frozenset(tables),
        frozenset(created_macros),
        frozenset(dropped_macros),
    )


def _entries(text: str) -> Iterator[str]:
    start, in_quotes = 0, False
    for position, character in enumerate(text):
        if character == '"':
            in_quotes = not in_quotes
        elif character == "," and not in_quotes:
            yield text[start:position]
            start = position + 1
    if start < len(text):
        yield text[start:]


@dataclass(frozen=True)
class Intent:
    """What a transaction is about to commit, in the terms in which others may be in its way."""

    created_schemas: frozenset[str] = frozenset()
    dropped_schemas: dict[int, str] = field(default_factory=dict)
    created: dict[tuple[str, str], int] = field(default_factory=dict)
    """Schema and name of each new table or view, and the id of the schema."""
    created_macros: dict[tuple[str, str, str], int] = field(default_factory=dict)
    """Kind, schema and name of each new macro, and the id of the schema."""
    dropped_macros: dict[tuple[str, int], str] = field(default_factory=dict)
    """Kind and id of each macro that goes, and its name."""
    tables: frozenset[tuple[str, int]] = frozenset()
    rewritten: frozenset[int] = frozenset()
    """Tables of which any row may have been read to decide what to write."""
    names: dict[int, str] = field(default_factory=dict)
    """The qualified name of each table and view, for errors."""


BLOCKS = {
    "inserted": {"dropped", "altered"},
    "truncated": {"dropped", "altered", "deleted", "compacted", "flushed"},
    "deleted": {"dropped", "altered"},  # and what others did to the same files
    "inlined": {"dropped", "altered", "deleted", "flushed"},
    "altered": {"dropped", "altered"},
    "dropped": {"dropped"},
    "compacted": {"dropped", "deleted", "compacted"},
    "flushed": {"dropped", "deleted", "flushed"},
}
REWRITE_BLOCKS = frozenset({"inserted", "deleted", "dropped", "altered", "compacted", "flushed"})


def check(mine: Intent, others: list[Commit]) -> None:
    """Raises where one of the snapshots committed meanwhile must not be passed."""
    for commit in others:
        theirs = parse_changes(commit.changes_made)
        for what, done in _collisions(mine, theirs):
            raise collision(what, commit, done)


def collision(what: str, commit: Commit, done: str) -> ConflictError:
    return ConflictError(
        f"this transaction {what}, but snapshot {commit.snapshot_id}{_by(commit)} meanwhile {done};"
        " nothing was changed: run it again on the new state"
    )


def collision_in(table_id: int, what: str, others: list[Commit], done: str) -> ConflictError:
    """A collision with one of those that changed a table; which of several it was is not known."""
    guilty = [c for c in others if any(changed == table_id for _, changed in parse_changes(c.changes_made).tables)]
    return collision(what, (guilty or others)[-1], done if len(guilty) == 1 else f"or one before it {done}")


def _collisions(mine: Intent, theirs: Changes) -> Iterator[tuple[str, str]]:
    for name in mine.created_schemas & theirs.created_schemas:
        yield f"creates schema {name}", "created it"
    for schema_id, name in mine.dropped_schemas.items():
        if schema_id in theirs.dropped_schemas:
            yield f"drops schema {name}", "dropped it"
        if any(schema == name.lower() for schema, _ in theirs.created):
            yield f"drops schema {name}", "created a table or view in it"
        if any(schema == name.lower() for _, schema, _ in theirs.created_macros):
            yield f"drops schema {name}", "created a macro in it"
    for (schema, name), schema_id in mine.created.items():
        if (schema, name) in theirs.created:
            yield f"creates {schema}.{name}", "created it"
        if schema_id in theirs.dropped_schemas:
            yield f"creates {schema}.{name}", "dropped the schema"
    for (kind, schema, name), schema_id in mine.created_macros.items():
        if (kind, schema, name) in theirs.created_macros:
            yield f"creates macro {schema}.{name}", "created it"
        if schema_id in theirs.dropped_schemas:
            yield f"creates macro {schema}.{name}", "dropped the schema"
    for macro, name in mine.dropped_macros.items():
        if macro in theirs.dropped_macros:
            yield f"drops or replaces macro {name}", "did so"
    theirs_by_table: dict[int, set[str]] = {}
    for kind, table_id in theirs.tables:
        theirs_by_table.setdefault(table_id, set()).add(kind)
    for kind, table_id in sorted(mine.tables):
        for other in sorted(BLOCKS[kind] & theirs_by_table.get(table_id, set())):
            yield _DOES[kind] + mine.names.get(table_id, f"table {table_id}"), WORDS[other]
    for table_id in sorted(mine.rewritten):
        for other in sorted(REWRITE_BLOCKS & theirs_by_table.get(table_id, set())):
            yield f"rewrites rows of {mine.names.get(table_id, table_id)}", WORDS[other]


_DOES = {
    "inserted": "inserts into ",
    "truncated": "deletes from ",
    "deleted": "deletes from ",
    "inlined": "deletes inlined rows of ",
    "altered": "alters ",
    "dropped": "drops ",
    "compacted": "compacts ",
    "flushed": "flushes the inlined rows of ",
}


def _by(commit: Commit) -> str:
    author = f" by {commit.author}" if commit.author else ""
    message = f" ({commit.message})" if commit.message else ""
    return author + message
