"""Rows of the options that a commit sets and unsets."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa

from .. import tables as t
from ..options import OptionKey
from .rows import SnapshotRows


def with_catalog_ids(rows: SnapshotRows, options: Mapping[OptionKey, str | None]) -> dict[OptionKey, str | None]:
    """Staged options with real ids of schemas and tables in place of provisional ones."""
    return {
        (scope, scope_id if scope_id is None else rows.catalog_id(scope_id), name): value
        for (scope, scope_id, name), value in options.items()
    }


def write_options(rows: SnapshotRows, options: Mapping[OptionKey, str | None]) -> None:
    """Replaces staged options in the catalog. Options have no history."""
    settings = t.ducklake_metadata
    for (scope, scope_id, name), value in with_catalog_ids(rows, options).items():
        rows.update(
            sa.delete(settings).where(
                settings.c.key == name,
                settings.c.scope.is_(None) if scope is None else settings.c.scope == scope,
                settings.c.scope_id.is_(None) if scope_id is None else settings.c.scope_id == scope_id,
            )
        )
        if value is not None:
            rows.add(settings, key=name, value=value, scope=scope, scope_id=scope_id)
