"""Nested transactions that run side by side: what they fold into their parent is there once, or they conflict."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.commit.folding import (
    changed_relations,
    fold,
    only_adds_rows,
    only_difference,
    staged_files,
)
from dbt.adapters.ducklake.lake.commit.staged import CommitInfo, Staged
from dbt.adapters.ducklake.lake.errors import ConflictError
from dbt.adapters.ducklake.lake.files import table_files
from dbt.adapters.ducklake.lake.transaction import ChangeCounts, Transaction

from ...lakes import Lake, columns
from ...workers import paper_file
from .catalogs import NewLake
from .staged_changes import (
    CHANGES,
    Change,
    alter,
    alter_view,
    comment,
    create_table,
    delete,
    drop,
    drop_schema,
    drop_view,
    insert,
    insert_elsewhere,
    merge,
    rename,
    replace,
)
from .test_conflicts import CONFLICTS

# What conflicts here although two commits would not: who folds later has not seen the other's change, and the run that
# both are part of can do it again.
MORE_CONFLICTS: dict[Change, set[Change]] = {
    insert: {rename},
    delete: {insert, merge, rename},
    merge: {rename},
    replace: {rename},
    alter: {insert, delete, merge, rename},
    rename: {insert, delete, merge},
    comment: {insert, delete, merge, rename},
    drop: {insert, delete, merge, replace, alter, rename, comment},
    drop_view: {alter_view},
    drop_schema: {alter_view, insert_elsewhere},
}


def _contents(tx: Transaction) -> dict[str, list[str]]:
    """What a transaction would leave: the files of each table, by its name, and the columns."""
    found = {}
    for table in tx.state.tables.values():
        changes = tx.data_changes(table)
        found[tx.state.qualified_name(table)] = [c.name for c in table.columns] + sorted(
            file.path for file in changes.added_files
        )
    for view in tx.state.views.values():
        found[tx.state.qualified_name(view)] = [view.sql, str(view.tags)]
    for schema in tx.state.schemas.values():
        found[schema.name] = sorted(m.name + m.impls[0].sql for m in tx.state.macros_in(schema))
    return found


@pytest.fixture(scope="module")
def lake(new_copy: Callable[[], Lake]) -> Lake:
    return new_copy()


@pytest.mark.parametrize("theirs", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("mine", CHANGES, ids=lambda change: change.__name__)
def test_two_changes_side_by_side_fold_into_what_one_after_the_other_makes(
    mine: Change, theirs: Change, lake: Lake
) -> None:
    parent = lake.begin("me", "both")
    first, second = parent.nested(), parent.nested()
    theirs(first)
    mine(second)
    first.merge_into_parent()
    before = parent.staged
    # What a fold keeps of it conflicts alike, and gives the same.
    kept = only_difference(second.origin, second.staged)
    if theirs in CONFLICTS[mine] | MORE_CONFLICTS.get(mine, set()):
        with pytest.raises(ConflictError, match="another one that runs beside it"):
            second.merge_into_parent()
        assert parent.staged is before
        with pytest.raises(ConflictError):
            fold(*kept, before)
        return
    second.merge_into_parent()
    assert fold(*kept, before) == parent.staged
    sequence = lake.begin("me", "both")
    theirs(sequence)
    mine(sequence)
    assert _contents(parent) == _contents(sequence)
    assert parent.staged.reads.keys() == sequence.staged.reads.keys()


def test_rows_that_several_add_are_all_there(lake: Lake) -> None:
    parent = lake.begin("me", "both")
    nested = [parent.nested() for _ in range(3)]
    for number, tx in enumerate(nested):
        tx.append(tx.state.table("main", "t"), [paper_file(f"{number}.parquet", 2)])
        tx.merge_into_parent()
    table = parent.state.table("main", "t")
    assert [f.path for f in parent.data_changes(table).added_files] == ["0.parquet", "1.parquet", "2.parquet"]
    assert [tx.change_counts().rows_added for tx in nested] == [2, 2, 2]
    assert all(only_adds_rows(tx.origin, tx.staged, table.id) for tx in nested)
    later = parent.nested()
    assert not later.is_changed
    delete(later)
    assert later.change_counts().rows_removed == 3 + 6
    later.merge_into_parent()
    assert not parent.data_changes(table).added_files


def test_updated_rows_that_go_later_count_as_removed_alone(lake: Lake) -> None:
    parent = lake.begin("me", "both")
    table = parent.state.table("main", "t")
    with lake.catalog.read() as connection:
        parent.end_files(table, table_files(connection, lake.catalog, table, "", lake.latest))
    parent.append(table, [paper_file("new_versions.parquet", 3)])
    parent.record_updates(table, 3)
    assert parent.change_counts() == ChangeCounts(files_added=1, rows_updated=3)
    later = parent.nested()
    delete(later)
    later.append(later.state.table("s", "other"), [paper_file("other.parquet", 5)])
    assert later.change_counts() == ChangeCounts(rows_added=5, rows_removed=3, files_added=1)


def test_who_read_a_table_to_write_conflicts_with_who_changed_it(lake: Lake) -> None:
    parent = lake.begin("me", "both")
    reader, writer = parent.nested(), parent.nested()
    table = reader.state.table("main", "t")
    reader.record_read(table)
    insert_elsewhere(reader)
    insert(writer)
    writer.merge_into_parent()
    with pytest.raises(ConflictError, match=r"main\.t"):
        reader.merge_into_parent()


def test_options_fold_and_the_later_one_wins(lake: Lake) -> None:
    parent = lake.begin("me", "both")
    first, second = parent.nested(), parent.nested()
    first.set_option("target_file_size", "1MB")
    first.set_option("parquet_row_group_size", 100)
    second.set_option("parquet_row_group_size", 200)
    first.merge_into_parent()
    second.merge_into_parent()
    assert parent.options.values[None, None, "parquet_row_group_size"] == "200"
    assert (None, None, "target_file_size") in parent.options.values


def test_the_files_and_relations_of_one_are_told_apart_from_those_of_others(lake: Lake) -> None:
    parent = lake.begin("me", "both")
    insert(parent)
    nested = parent.nested()
    create_table(nested)
    new = nested.state.table("s", "new")
    nested.append(new, [paper_file("mine.parquet", 1)])
    assert changed_relations(nested.origin, nested.staged) == {new.id}
    folder = nested.state.table_folder(nested.catalog.data_path, new)
    assert staged_files(nested.origin, nested.staged, nested.catalog.data_path) == {f"{folder}mine.parquet"}
    assert not nested.staged.makes_snapshot(nested.staged)
    assert nested.staged.makes_snapshot(Staged(nested.base_state))


def test_extra_info_may_name_the_snapshot_and_the_ids_that_the_commit_assigns(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    tx = lake.begin("me", "both")
    table = tx.create_table(tx.state.schema("main"), "t", columns(id="int64"))
    tx.commit_info = CommitInfo("me", "m", lambda snapshot, catalog_id: f"{snapshot}: {catalog_id(table.id)}")
    committed = tx.commit()
    (row,) = lake.rows(t.snapshot_changes, t.snapshot_changes.c.snapshot_id == committed.snapshot.id)
    assert row["commit_extra_info"] == f"{committed.snapshot.id}: {lake.table().id}"
