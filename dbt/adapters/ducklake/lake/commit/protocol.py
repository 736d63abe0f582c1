"""The commit protocol: optimistic concurrency.

An attempt is one short transaction of the catalog database. It checks what others committed since the base snapshot,
and then inserts the next snapshot. If another writer inserts the same snapshot id first, the attempt is retried. If
what others committed conflicts with the staged changes, the commit fails with a ConflictError.

If the connection breaks before COMMIT is sent, nothing has changed, and the attempt is retried on another connection.
If COMMIT itself raises an error, the commit may have taken place all the same: `lost_answer` finds out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from .. import deletes, inlined
from .. import tables as t
from ..catalog import Catalog, Commit, NewSnapshots, SnapshotInfo
from ..conflicts import check_conflicts, table_conflict_error
from ..errors import BusyError, CommitUnknownError, ConflictError, LakeError
from ..files import table_files
from ..inlined_inserts import may_match_rows
from ..predicates import ReadPredicate
from ..snapshot import Table
from ..snapshot_changes import only_compacts
from .difference import intended_changes, is_provisional
from .lost_answer import message_of, took_place
from .snapshot_writer import write_snapshot

if TYPE_CHECKING:
    from ..transaction import Transaction


_MAX_REWRITES = 2
"""How often delete files are rewritten for the next snapshot while another writer may commit it."""


@dataclass(frozen=True)
class Committed:
    """The outcome of a commit."""

    snapshot: SnapshotInfo
    """The new snapshot; the base snapshot if nothing changed."""
    changed: bool
    attempts: int = 1


def commit(transaction: Transaction) -> Committed:
    """Commits everything staged as one snapshot. Retries while other writers commit first, or connections break.

    A retry writes no data file again. It rewrites delete files only if they name another snapshot.
    """
    if transaction.parent is not None:
        raise LakeError("a nested transaction is merged into its parent, not committed")
    if not transaction.is_changed:
        return Committed(transaction.base, False)
    catalog, retry = transaction.catalog, transaction.catalog.retry
    catalog.check_writable()
    _check_message(transaction)
    _move_inlined_deletes(transaction)
    attempt, rewrites, lost_connection, options_may_be_set = 0, 0, False, False
    while True:
        connected, written = False, None
        try:
            with catalog.write(in_line=True) as connection:
                connected = True
                if lost_connection:
                    catalog.database.limit_lock_wait(connection)
                catalog.database.wait_in_line(connection)
                new = catalog.new_snapshots(connection, transaction.base)
                latest = new.latest
                if latest.id != transaction.base.id:
                    _check_conflicts(transaction, connection, new)
                if rewrites == _MAX_REWRITES and not _delete_files_match(transaction, latest.id + 1):
                    # Others wait for the files, since they were first each time before.
                    _rewrite_delete_files(transaction, latest.id + 1)
                if _delete_files_match(transaction, latest.id + 1):
                    written = write_snapshot(
                        connection,
                        catalog,
                        latest,
                        transaction.base,
                        transaction.base_state,
                        transaction.staged,
                        transaction.commit_info,
                    )
            if written is not None:
                return Committed(written.snapshot, True, attempt + 1)
            # Outside of the database transaction, because files take time.
            _rewrite_delete_files(transaction, latest.id + 1)
            rewrites += 1
        except Exception as error:
            if not isinstance(error, sa.exc.DBAPIError) and written is None:
                raise
            other_writer_was_first = isinstance(error, sa.exc.DBAPIError) and catalog.database.is_write_conflict(error)
            if written is not None and not other_writer_was_first:
                if written.changes is None:
                    options_may_be_set = True  # Setting them again changes nothing, so the attempt is simply retried.
                elif took_place(catalog, written, error):
                    return Committed(written.snapshot, True, attempt + 1)
            if other_writer_was_first and attempt == retry.max_count:
                raise BusyError(
                    f"other writers were first {attempt + 1} times in a row, and nothing was changed;"
                    " raise retry.max_count, or have fewer writers at once"
                ) from error
            if not other_writer_was_first:
                if attempt == retry.max_count or not catalog.database.can_reconnect(error, connected):
                    raise _failed(catalog, error, options_may_be_set) from error
                lost_connection = True
            retry.wait(attempt)
            attempt += 1


def _failed(catalog: Catalog, error: Exception, options_may_be_set: bool) -> LakeError:
    failed = f"the commit failed in {catalog.database.location}: {message_of(error)}"
    if not options_may_be_set:
        return LakeError(f"{failed}; nothing was changed")
    statement = catalog.sql_text(sa.select(t.ducklake_metadata))
    return CommitUnknownError(
        f"{failed}; whether the options are set is not known: set them again, or look with {statement}", statement
    )


def _check_message(transaction: Transaction) -> None:
    """Raises if the lake requires a commit message and there is none."""
    if (
        transaction.staged.makes_snapshot(transaction.origin)
        and not transaction.commit_info.message
        and transaction.options.flag("require_commit_message")
    ):
        raise LakeError(
            "the lake asks for a commit message with every snapshot (option require_commit_message),"
            " and none was given: set one with lake.transaction(message=...) or commit_message in the model"
        )


def _move_inlined_deletes(transaction: Transaction) -> None:
    """Writes delete files for inlined deletes of data files that end: time travel and the change feed need them."""
    data_changes = dict(transaction.staged.data_changes)
    for table_id, changes in data_changes.items():
        ended = changes.ended_file_ids | {s.id for c in changes.compactions if not c.is_merge for s in c.sources}
        if is_provisional(table_id) or not (changes.truncated or ended):
            continue
        file_ids = None if changes.truncated else ended
        with transaction.catalog.read() as connection:
            delete_files = deletes.inlined_deletes_as_files(
                connection,
                transaction.catalog,
                transaction.store,
                table_id,
                _table_folder(transaction, table_id),
                file_ids,
            )
        data_changes[table_id] = replace(changes, moved_inlined_deletes=delete_files)
    if data_changes != transaction.staged.data_changes:
        transaction.stage(data_changes=data_changes)


def _check_conflicts(transaction: Transaction, connection: sa.Connection, new: NewSnapshots) -> None:
    """Raises a ConflictError if a snapshot after the base conflicts with the staged changes."""
    base, base_state, staged = transaction.base, transaction.base_state, transaction.staged
    if not new.is_complete:
        # What they changed is not known any more, nor which of the base's files others have changed.
        raise ConflictError(
            f"snapshots since {base.id}, which the transaction began at, were expired in the meantime, so that what"
            " others changed can not be told; run it again, and keep snapshots longer than transactions take"
        )
    commits = new.commits
    check_conflicts(intended_changes(staged, base_state), commits)
    for table_id, changes in staged.data_changes.items():
        if is_provisional(table_id):
            continue
        file_ids = changes.ended_file_ids | changes.compacted_file_ids
        if deletes.files_changed_since(
            connection, transaction.catalog, table_id, file_ids, changes.position_deletes, base.id
        ) or deletes.were_delete_files_replaced(connection, table_id, changes.flushed_deletes):
            verb = "flushes" if changes.flushed_deletes else "compacts" if changes.compactions else "deletes from"
            intended = f"{verb} {base_state.qualified_name(base_state.tables[table_id])}"
            raise table_conflict_error(table_id, intended, commits, "changed rows of the same files")
        row_ids = changes.ended_inlined_row_ids
        if row_ids and not inlined.are_current(connection, transaction.catalog, table_id, row_ids, base.id):
            intended = f"deletes inlined rows of {base_state.qualified_name(base_state.tables[table_id])}"
            raise table_conflict_error(table_id, intended, commits, "deleted or flushed the same rows")
    for table_id, read in staged.reads.items():
        if read is None:
            continue  # check_conflicts accepts no change of this table at all.
        if _has_matching_new_rows(transaction, connection, base_state.tables[table_id], new.latest, read, commits):
            intended = f"rewrites rows of {base_state.qualified_name(base_state.tables[table_id])}"
            raise table_conflict_error(table_id, intended, commits, "inserted rows that it should have read")


def _has_matching_new_rows(
    transaction: Transaction,
    connection: sa.Connection,
    table: Table,
    latest: SnapshotInfo,
    read: ReadPredicate,
    commits: Sequence[Commit],
) -> bool:
    """Whether the table may have rows that are newer than the base and satisfy the predicate."""
    base_id = transaction.base.id
    compacting = {c.snapshot_id for c in commits if only_compacts(c.changes_made)}
    files = table_files(connection, transaction.catalog, table, "", latest.id, read.predicate, read.time_zone)
    new = (f for f in files if (f.begin_snapshot or 0) > base_id or (f.partial_max or 0) > base_id)
    if any(f.begin_snapshot not in compacting or f.partial_max is not None for f in new):
        return True
    rows = inlined.read_new_inlined_rows(connection, transaction.catalog, table, base_id)
    return rows is not None and may_match_rows(rows, read, table.columns)


def _delete_files_match(transaction: Transaction, snapshot_id: int) -> bool:
    """Whether no staged delete file names another snapshot than this one for its new positions."""
    delete_files = (
        position_deletes.delete_file
        for changes in transaction.staged.data_changes.values()
        for position_deletes in changes.position_deletes.values()
    )
    return all(file is None or file.last_snapshot in (None, snapshot_id) for file in delete_files)


def _rewrite_delete_files(transaction: Transaction, snapshot_id: int) -> None:
    """Rewrites the staged delete files that name another snapshot than this one for their new positions."""
    data_changes = dict(transaction.staged.data_changes)
    for table_id, changes in data_changes.items():
        if changes.position_deletes:
            position_deletes = deletes.position_deletes_for_snapshot(
                transaction.store, _table_folder(transaction, table_id), changes.position_deletes, snapshot_id
            )
            data_changes[table_id] = replace(changes, position_deletes=position_deletes)
    transaction.stage(data_changes=data_changes)


def _table_folder(transaction: Transaction, table_id: int) -> str:
    table = transaction.state.tables[table_id]
    return transaction.state.table_folder(transaction.catalog.data_path, table)
