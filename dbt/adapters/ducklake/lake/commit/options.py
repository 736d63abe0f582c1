"""Options that a commit sets and unsets."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from .. import tables as t
from ..options import Key
from .rows import SnapshotRows


def resolved_options(rows: SnapshotRows, options: Mapping[Key, str | None]) -> dict[Key, str | None]:
    """Staged options with the ids that the catalog knows."""
    return {
        (scope, scope_id if scope_id is None else rows.catalog_id(scope_id), name): value
        for (scope, scope_id, name), value in options.items()
    }


def write_options(rows: SnapshotRows, options: Mapping[Key, str | None]) -> None:
    """Writes staged options, which have no history."""
    settings = t.ducklake_metadata
    for (scope, scope_id, name), value in resolved_options(rows, options).items():
        rows.connection.execute(
            sa.delete(settings).where(
                settings.c.key == name,
                settings.c.scope.is_(None) if scope is None else settings.c.scope == scope,
                settings.c.scope_id.is_(None) if scope_id is None else settings.c.scope_id == scope_id,
            )
        )
        if value is not None:
            rows.add(settings, key=name, value=value, scope=scope, scope_id=scope_id)
