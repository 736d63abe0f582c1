"""The commit protocol: optimistic concurrency. Conflicts are errors, lost races are retried."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import sqlalchemy as sa

from .. import conflicts, deletes, inlined
from ..catalog import SnapshotInfo
from ..databases.base import first_line
from ..errors import BusyError, LakeError, ReadOnlyError
from ..files import table_files
from ..predicates import Read
from ..snapshot import Table
from .difference import intent
from .snapshot_writer import write_snapshot

if TYPE_CHECKING:
    from ..transaction import Transaction


@dataclass(frozen=True)
class Committed:
    """The outcome of a commit."""

    snapshot: SnapshotInfo
    """The new snapshot, or the one that the transaction began on if it changed nothing."""
    changed: bool
    attempts: int = 1


def commit(transaction: Transaction) -> Committed:
    """Writes everything staged as one snapshot; retries where another writer committed first.

    An attempt is one short transaction of the catalog database. It writes no data file again.
    """
    if transaction.parent is not None:
        raise LakeError("a nested transaction is folded into its parent, not committed")
    if not transaction.is_changed:
        return Committed(transaction.base, False)
    if transaction.catalog.read_only:
        with transaction.catalog.write():
            raise ReadOnlyError("unreachable")
    _require_message(transaction)
    _move_inlined_deletes(transaction)
    catalog, retry = transaction.catalog, transaction.catalog.retry
    attempt = 0
    while True:
        try:
            with catalog.write() as connection:
                latest = catalog.latest(connection)
                if latest.id != transaction.base.id:
                    _check_conflicts(transaction, connection, latest)
                if _delete_files_name(transaction, latest.id + 1):
                    snapshot = write_snapshot(
                        connection,
                        catalog,
                        latest,
                        transaction.base,
                        transaction.base_state,
                        transaction.staged,
                        transaction.commit_info,
                    )
                    return Committed(snapshot, True, attempt + 1)
            _rewrite_delete_files(transaction, latest.id + 1)
        except sa.exc.DBAPIError as error:
            if not catalog.database.is_race(error):
                raise LakeError(
                    f"the commit failed in {catalog.database.location}: {first_line(error)}; nothing was changed"
                ) from error
            if attempt == retry.max_count:
                raise BusyError(
                    f"other writers were first {attempt + 1} times in a row, and nothing was changed;"
                    " raise retry.max_count, or have fewer writers at once"
                ) from error
            retry.wait(attempt)
            attempt += 1


def _require_message(transaction: Transaction) -> None:
    if (
        transaction.staged.makes_snapshot(transaction.base_state)
        and not transaction.commit_info.message
        and transaction.options.flag("require_commit_message")
    ):
        raise LakeError(
            "the lake asks for a commit message with every snapshot (option require_commit_message),"
            " and none was given: set one with lake.transaction(message=...) or commit_message in the model"
        )


def _move_inlined_deletes(transaction: Transaction) -> None:
    """Writes the inlined deletes of data files that end into delete files, where time travel still finds them."""
    data = dict(transaction.staged.data)
    for table_id, staged in data.items():
        if table_id < 0 or not (staged.truncated or staged.ended):
            continue
        folder = transaction.state.folder(transaction.catalog.data_path, transaction.state.tables[table_id])
        file_ids = None if staged.truncated else staged.ended
        with transaction.catalog.read() as connection:
            moved = deletes.settled(connection, transaction.catalog, transaction.store, table_id, folder, file_ids)
        data[table_id] = replace(staged, settled=moved)
    if data != transaction.staged.data:
        transaction.stage(data=data)


def _check_conflicts(transaction: Transaction, connection: sa.Connection, latest: SnapshotInfo) -> None:
    """Raises where a snapshot committed since the base conflicts with what is staged."""
    base, base_state, staged = transaction.base, transaction.base_state, transaction.staged
    commits = transaction.catalog.commits_after(connection, base.id)
    conflicts.check(intent(staged, base_state), commits)
    for table_id, data in staged.data.items():
        if table_id >= 0 and deletes.touched(
            connection, transaction.catalog, table_id, data.ended, data.masks, base.id
        ):
            intended = f"deletes from {base_state.qualified(base_state.tables[table_id])}"
            raise conflicts.collision_in(table_id, intended, commits, "changed rows of the same files")
    for table_id, read in staged.rewritten.items():
        if read is None:
            continue  # conflicts.check has refused any change of this table
        if _has_new_rows(transaction, connection, base_state.tables[table_id], latest, read):
            intended = f"rewrites rows of {base_state.qualified(base_state.tables[table_id])}"
            raise conflicts.collision_in(table_id, intended, commits, "inserted rows that it should have read")


def _has_new_rows(
    transaction: Transaction, connection: sa.Connection, table: Table, latest: SnapshotInfo, read: Read
) -> bool:
    """Whether the table may have got rows since the base that the transaction would have read."""
    base = transaction.base.id
    files = table_files(connection, transaction.catalog, table, "", latest.id, read.predicate, read.time_zone)
    if any((f.begin_snapshot or 0) > base or (f.partial_max or 0) > base for f in files):
        return True
    return inlined.any_since(connection, table.id, base)


def _delete_files_name(transaction: Transaction, snapshot: int) -> bool:
    """Whether this is the snapshot that staged delete files name for their new positions."""
    masks = (mask for data in transaction.staged.data.values() for mask in data.masks.values())
    return all(mask.file is None or mask.file.last in (None, snapshot) for mask in masks)


def _rewrite_delete_files(transaction: Transaction, snapshot: int) -> None:
    """Writes staged delete files again that name another snapshot than the next one."""
    data = dict(transaction.staged.data)
    for table_id, staged in data.items():
        if staged.masks:
            folder = transaction.state.folder(transaction.catalog.data_path, transaction.state.tables[table_id])
            masks = deletes.moved_masks(transaction.store, folder, staged.masks, snapshot)
            data[table_id] = replace(staged, masks=masks)
    transaction.stage(data=data)
