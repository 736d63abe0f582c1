"""Write the rows of one snapshot in an open transaction of the catalog database."""

from __future__ import annotations

import datetime
from random import randint

import sqlalchemy as sa

from .. import tables as t
from ..catalog import Catalog, Commit, SnapshotInfo
from ..snapshot import LakeState
from .data import DataRows
from .definitions import DefinitionRows
from .lost_answer import WrittenCommit
from .options import write_options
from .rows import SnapshotRows
from .staged import CommitInfo, Staged


def write_snapshot(
    connection: sa.Connection,
    catalog: Catalog,
    latest: SnapshotInfo,
    base: SnapshotInfo,
    base_state: LakeState,
    staged: Staged,
    info: CommitInfo,
) -> WrittenCommit:
    """Writes the staged changes as the snapshot after `latest`. Writes no snapshot if only options change."""
    rows = SnapshotRows(connection, catalog, latest)
    if not staged.makes_snapshot(Staged(base_state)):
        write_options(rows, staged.options)
        rows.flush()
        return WrittenCommit(latest, None)
    if staged.state != base_state:
        rows.schema_version += 1
    definitions = DefinitionRows(rows, base_state, staged)
    definitions.write()
    definitions.write_schema_versions()
    DataRows(rows, base.id, staged, definitions.inlined_tables).write()
    write_options(rows, staged.options)
    # Snapshots are in order of time, although the clock of another writer may be ahead of this one. Chance keeps two
    # writers from taking the same time then, by which their commits are told apart.
    earliest = latest.time + datetime.timedelta(microseconds=randint(1, 1000))
    now = max(datetime.datetime.now(datetime.timezone.utc), earliest)
    snapshot = SnapshotInfo(rows.snapshot_id, now, rows.schema_version, rows.next_catalog_id, rows.next_file_id)
    extra_info = info.extra_info(snapshot.id, rows.catalog_id) if callable(info.extra_info) else info.extra_info
    changes = Commit(snapshot.id, ",".join(rows.changes), info.author, info.message, extra_info)
    rows.add(
        t.snapshot_changes,
        snapshot_id=snapshot.id,
        # Some changes have no entry, such as the comment of a schema. The reference reads NULL but not ''.
        changes_made=changes.changes_made or None,
        author=changes.author,
        commit_message=changes.message,
        commit_extra_info=changes.extra_info,
    )
    with catalog.database.batch(connection):
        # The row of the snapshot comes first, as in transactions of the reference. If another writer was first, this
        # attempt fails here, on the duplicate snapshot id, and neither waits for rows that the other one holds.
        catalog.database.insert(
            connection,
            t.snapshot,
            [
                {
                    "snapshot_id": snapshot.id,
                    "snapshot_time": snapshot.time,
                    "schema_version": snapshot.schema_version,
                    "next_catalog_id": snapshot.next_catalog_id,
                    "next_file_id": snapshot.next_file_id,
                }
            ],
        )
        rows.flush()
    return WrittenCommit(snapshot, changes, rows.file_path())
