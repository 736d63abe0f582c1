"""The rows of one snapshot, collected and then written."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import sqlalchemy as sa

from ..catalog import Catalog, SnapshotInfo

MAX_IDS = 10_000
"""How many values one statement lists: databases take 32,766 (SQLite) or 65,535 (PostgreSQL)."""


class SnapshotRows:
    """The rows that a commit inserts, the ids that it assigns, and the changes that it records."""

    def __init__(self, connection: sa.Connection, catalog: Catalog, latest: SnapshotInfo) -> None:
        self.connection = connection
        self.catalog = catalog
        self.snapshot_id = latest.id + 1
        self.schema_version = latest.schema_version
        self.next_catalog_id = latest.next_catalog_id
        self.next_file_id = latest.next_file_id
        self.changes: list[str] = []
        """The entries of `changes_made`."""
        self._catalog_ids: dict[int, int] = {}
        """The id of each schema, table, view, macro, partition and sort specification staged with an id below zero."""
        self._pending: dict[sa.Table, list[dict[str, Any]]] = defaultdict(list)

    def catalog_id(self, provisional: int) -> int:
        """The id in the catalog of something that may still have a provisional one, below zero."""
        if provisional >= 0:
            return provisional
        if provisional not in self._catalog_ids:
            self._catalog_ids[provisional] = self.next_catalog_id
            self.next_catalog_id += 1
        return self._catalog_ids[provisional]

    def file_id(self) -> int:
        """A new id for a data file, a delete file or a name mapping."""
        self.next_file_id += 1
        return self.next_file_id - 1

    def add(self, table: sa.Table, **row: Any) -> None:
        """Inserts a row when all rows are flushed."""
        self._pending[table].append(row)

    def end(self, table: sa.Table, *where: sa.ColumnElement[bool]) -> None:
        """Ends the rows that are current and match."""
        self.connection.execute(
            sa.update(table).where(table.c.end_snapshot.is_(None), *where).values(end_snapshot=self.snapshot_id)
        )

    def flush(self) -> None:
        """Inserts the collected rows, one statement a table."""
        for table, rows in self._pending.items():
            names = [c.name for c in table.columns if any(c.name in row for row in rows)]
            complete = [{name: row.get(name) for name in names} for row in rows]
            self.catalog.database.insert(self.connection, table, complete)
