"""Conflicts: which concurrent changes exclude each other, and how changes_made is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from dbt.adapters.ducklake.lake.catalog import Commit
from dbt.adapters.ducklake.lake.conflicts import IntendedChanges, check_conflicts
from dbt.adapters.ducklake.lake.errors import ConflictError
from dbt.adapters.ducklake.lake.quoted_names import quote_name
from dbt.adapters.ducklake.lake.snapshot_changes import SnapshotChanges, parse_changes

from ...lakes import Lake, attached
from .catalogs import ODD_NAMES, NewLake, every_reference_catalog
from .staged_changes import (
    CHANGES,
    Change,
    alter,
    alter_view,
    comment,
    create_macro,
    create_schema,
    create_table,
    create_view,
    delete,
    drop,
    drop_macro,
    drop_schema,
    drop_view,
    insert,
    insert_elsewhere,
    merge,
    rename,
    replace,
    replace_macro,
)

# The changes that conflict with what another transaction did. All other pairs commit.
CONFLICTS: dict[Change, set[Change]] = {
    insert: {replace, alter, drop, comment},
    delete: {delete, replace, alter, drop, comment},
    merge: {insert, delete, merge, replace, alter, drop, comment},
    replace: {insert, delete, merge, replace, alter, drop, comment},
    alter: {replace, alter, drop, comment},
    rename: {replace, alter, rename, drop, comment},
    drop: {drop},
    comment: {replace, alter, drop, comment},
    create_table: {create_table, create_view, drop_schema},
    create_view: {create_table, create_view, drop_schema},
    create_schema: {create_schema},
    drop_schema: {
        *(create_table, create_view, drop_schema, drop_view),
        *(create_macro, drop_macro, replace_macro),
    },
    alter_view: {alter_view, drop_view, drop_schema},
    drop_view: {drop_view, drop_schema},
    insert_elsewhere: {drop_schema},
    create_macro: {create_macro, drop_schema},
    drop_macro: {drop_macro, replace_macro, drop_schema},
    replace_macro: {drop_macro, replace_macro, drop_schema},
}
NAMES: dict[Change, list[str]] = {
    rename: ["main.t", "main.renamed"],
    create_table: ["s.new"],
    create_view: ["s.new"],
    create_schema: ["schema fresh"],
    drop_schema: ["schema s", "s.v", "macro m"],
    alter_view: ["s.v"],
    drop_view: ["s.v"],
    insert_elsewhere: ["s.other"],
    create_macro: ["macro s.new"],
    drop_macro: ["macro m"],
    replace_macro: ["macro m", "macro s.m"],
}


@pytest.mark.parametrize("theirs", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("mine", CHANGES, ids=lambda change: change.__name__)
def test_a_commit_succeeds_after_another_or_names_the_conflict(
    mine: Change, theirs: Change, new_copy: Callable[[], Lake]
) -> None:
    lake = new_copy()
    transaction = lake.begin("me", "mine")
    mine(transaction)
    with lake.transaction(author="Ada", message="theirs first") as other:
        theirs(other)
    if theirs not in CONFLICTS[mine]:
        assert transaction.commit().snapshot.id == lake.latest == 4
        return
    with pytest.raises(
        ConflictError, match=r"snapshot 3 by Ada \(theirs first\) meanwhile .*; nothing was changed"
    ) as raised:
        transaction.commit()
    assert lake.latest == 3
    assert any(name in str(raised.value) for name in NAMES.get(mine, ["main.t"]))


def _on(kind: str) -> IntendedChanges:
    return IntendedChanges(relation_changes=frozenset({(kind, 7)}), relation_names={7: "main.t"})


@pytest.mark.parametrize(
    ("mine", "changes", "conflicts"),
    [
        ("truncated", "merge_adjacent:7", True),
        ("truncated", "rewrite_delete:7", True),
        ("truncated", "compacted_table:7", True),
        ("truncated", "inline_flush:7", True),
        ("truncated", "inlined_delete:7", True),
        ("truncated", "inlined_insert:7", False),
        ("deleted", "rewrite_delete:7,inlined_delete:7", False),  # the files themselves are checked for these
        ("inlined", "inline_flush:7", False),  # the rows themselves are checked for these
        ("inlined", "inlined_delete:7", False),
        ("inlined", "inlined_insert:7", False),
        ("truncated", "deleted_from_table:70", False),
        ("inserted", "merge_adjacent:7,inline_flush:7", False),
        ("merged", "deleted_from_table:7,inlined_delete:7", False),  # as for these
        ("merged", "merge_adjacent:7", False),
        ("merged", "altered_table:7", False),
        ("merged", "dropped_table:7", True),
        ("rewritten", "deleted_from_table:7,inlined_delete:7", False),
        ("rewritten", "altered_table:7", True),
        ("rewritten", "dropped_table:7", True),
        ("flushed", "inlined_delete:7", False),
        ("flushed", "inline_flush:7", True),
        ("flushed", "inlined_insert:7", False),
        ("altered", "altered_view:7", True),
        ("dropped", "dropped_view:7", True),
    ],
)
def test_changes_of_the_reference_conflict_or_not(mine: str, changes: str, conflicts: bool) -> None:
    others = [Commit(3, changes, None, None, None)]
    if conflicts:
        with pytest.raises(ConflictError, match="main.t, but snapshot 3 meanwhile"):
            check_conflicts(_on(mine), others)
    else:
        check_conflicts(_on(mine), others)


@pytest.mark.parametrize("name", ODD_NAMES)
def test_any_name_comes_back_from_changes_made(name: str) -> None:
    text = f"created_schema:{quote_name(name)},created_table:{quote_name(name)}.{quote_name(name)},dropped_table:5"
    changes = parse_changes(text)
    assert changes.created_schemas == {name.lower()}
    assert changes.created_relations == {(name.lower(), name.lower())}
    assert changes.relation_changes == {("dropped", 5)}


def test_macros_and_kinds_of_a_later_version_are_no_changes_of_tables() -> None:
    changes = parse_changes('created_scalar_macro:"Main"."m",dropped_table_macro:3,something_new:"a,b":4')
    assert changes == SnapshotChanges(
        created_macros=frozenset({("scalar", "main", "m")}), dropped_macros=frozenset({("table", 3)})
    )


@every_reference_catalog
def test_the_reference_writes_changes_made_in_the_same_form(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with attached(address) as connection:
        for number, name in enumerate(ODD_NAMES):
            connection.execute(f"CREATE TABLE {quote_name(name)} (a INT)")
            connection.execute(f"ALTER TABLE {quote_name(name)} ADD COLUMN b INT")
            connection.execute(
                f"DROP TABLE {quote_name(name)}" if number % 2 else f"INSERT INTO {quote_name(name)} VALUES (1, 2)"
            )
    changes = [parse_changes(text) for text in Lake(address).changes]
    assert [name for c in changes for _, name in c.created_relations] == [name.lower() for name in ODD_NAMES]
    assert Counter(kind for c in changes for kind, _ in c.relation_changes) == {
        "altered": 10,
        "dropped": 5,
        "inserted": 5,
    }
