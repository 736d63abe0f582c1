"""`ducklake_migrate`: brings a lake to a later format version."""

from __future__ import annotations

import pyarrow as pa

from .context import MaintenanceContext


def migrate(context: MaintenanceContext, version: str | None = None, *, dry_run: bool = False) -> pa.Table:
    """Brings the lake to a format version, by default the latest one. Returns a row for each change of the catalog."""
    migration = context.lake.migrate(version, dry_run=dry_run)
    return pa.table(
        {
            "from_version": pa.repeat(migration.from_version, len(migration.changes)),
            "to_version": pa.repeat(migration.to_version, len(migration.changes)),
            "change": pa.array(migration.changes, pa.string()),
        }
    )
