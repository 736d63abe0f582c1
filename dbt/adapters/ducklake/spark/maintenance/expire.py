"""`ducklake_expire_snapshots`: takes old snapshots out of the lake."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import pyarrow as pa

from ...lake.durations import moment_before
from ...lake.errors import LakeError
from ...lake.maintenance import expiry
from ...lake.tables import UTC
from ..read.catalog_functions import snapshot_table
from .context import MaintenanceContext


def expire_snapshots(
    context: MaintenanceContext,
    *,
    versions: Sequence[int] | None = None,
    older_than: datetime.datetime | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Expires snapshots by their versions or their age, by default the option `expire_older_than`. Returns them.

    Without the option nothing expires by default. The newest snapshot never does.
    """
    catalog = context.lake.catalog
    if not dry_run:
        catalog.check_maintainable()
    if versions is not None and older_than is not None:
        raise LakeError("ducklake_expire_snapshots takes either versions or older_than, and both were given")
    if versions is None and older_than is None:
        with catalog.read() as connection:
            duration = catalog.options(connection).get("expire_older_than")
        if not duration:
            return snapshot_table(())
        older_than = moment_before(datetime.datetime.now(UTC), duration)
    return snapshot_table(expiry.expire_snapshots(catalog, versions=versions, older_than=older_than, dry_run=dry_run))
