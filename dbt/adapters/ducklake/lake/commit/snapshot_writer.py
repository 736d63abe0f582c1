"""Writing one snapshot into an open transaction of the catalog database."""

from __future__ import annotations

import datetime

import sqlalchemy as sa

from .. import tables as t
from ..catalog import Catalog, SnapshotInfo
from ..snapshot import LakeState
from .data import DataRows
from .definitions import DefinitionRows
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
) -> SnapshotInfo:
    """Writes what is staged as the snapshot after `latest`; options alone make none."""
    rows = SnapshotRows(connection, catalog, latest)
    makes_snapshot = staged.makes_snapshot(base_state)
    if makes_snapshot:
        if staged.state != base_state:
            rows.schema_version += 1
        definitions = DefinitionRows(rows, base_state, staged)
        definitions.write()
        DataRows(rows, base.id, staged).write()
        definitions.write_schema_versions()
    write_options(rows, staged.options)
    if not makes_snapshot:
        rows.flush()
        return latest
    # The clock of another writer may be ahead of ours.
    now = max(datetime.datetime.now(datetime.timezone.utc), latest.time + datetime.timedelta(microseconds=1))
    snapshot = SnapshotInfo(rows.snapshot_id, now, rows.schema_version, rows.next_catalog_id, rows.next_file_id)
    # The snapshot's row goes first: two writers of the same snapshot id meet here, before any other row is inserted.
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
    rows.add(
        t.snapshot_changes,
        snapshot_id=snapshot.id,
        # A change that has no entry, such as the comment of a schema, is NULL: the reference cannot read ''.
        changes_made=",".join(rows.changes) or None,
        author=info.author,
        commit_message=info.message,
        commit_extra_info=info.extra_info,
    )
    rows.flush()
    return snapshot
