"""The rows of one snapshot, collected and then written."""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from .. import tables as t
from ..catalog import Catalog, SnapshotInfo
from ..paths import relative_to
from ..stats import ColumnStats

_MAX_IDS_IN_STATEMENT = 10_000
"""Databases accept 32,766 (SQLite) or 65,535 (PostgreSQL) parameters in one statement."""


def id_batches(ids: Collection[int]) -> Iterator[list[int]]:
    """The ids in ascending order, in batches that one statement can list."""
    in_order = sorted(ids)
    for start in range(0, len(in_order), _MAX_IDS_IN_STATEMENT):
        yield in_order[start : start + _MAX_IDS_IN_STATEMENT]


class SnapshotRows:
    """The rows that a commit inserts, the ids that it assigns, and the changes that it records.

    Ids below zero are provisional. They get real ids here, which differ if the commit is attempted again.
    """

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
        """Real ids by provisional id, for schemas, tables, views, macros, partition specs and sort orders."""
        self._pending: dict[sa.Table, list[dict[str, Any]]] = defaultdict(list)
        self._inserts: list[tuple[sa.Insert, Sequence[Mapping[str, Any]]]] = []
        self._updates: list[tuple[sa.Update | sa.Delete, Mapping[str, Any]]] = []

    def catalog_id(self, object_id: int) -> int:
        """The real id of an object; a new one for a provisional id that is seen the first time."""
        if object_id >= 0:
            return object_id
        if object_id not in self._catalog_ids:
            self._catalog_ids[object_id] = self.next_catalog_id
            self.next_catalog_id += 1
        return self._catalog_ids[object_id]

    def new_file_id(self) -> int:
        """A new id for a data file, a delete file or a name mapping."""
        self.next_file_id += 1
        return self.next_file_id - 1

    def add(self, table: sa.Table, **row: Any) -> None:
        """Adds a row, which `flush` inserts. Values for columns that the table does not have are left out."""
        self._pending[table].append(row)

    def insert(self, table: sa.TableClause, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows for a catalog table that is no fixed one, which `flush` inserts."""
        self._inserts.append((sa.insert(table), rows))

    def add_column_stats(self, table_id: int, data_file_id: int, stats: Mapping[int, ColumnStats]) -> None:
        """Adds the statistics of a data file's columns, which are by column id."""
        for column_id, of_column in stats.items():
            self.add(
                t.file_column_stats,
                data_file_id=data_file_id,
                table_id=table_id,
                column_id=column_id,
                column_size_bytes=of_column.column_size_bytes,
                value_count=of_column.value_count,
                null_count=of_column.null_count,
                min_value=of_column.min_value,
                max_value=of_column.max_value,
                contains_nan=of_column.contains_nan,
                extra_stats=of_column.extra_stats,
            )

    def schedule_for_deletion(self, files: Iterable[tuple[int, str]]) -> None:
        """Schedules the deletion of data files or delete files, given by their ids and whole paths."""
        now = datetime.datetime.now(datetime.timezone.utc)
        for file_id, path in files:
            relative_path, is_relative = relative_to(path, self.catalog.data_path)
            self.add(
                t.files_scheduled_for_deletion,
                data_file_id=file_id,
                path=relative_path,
                path_is_relative=is_relative,
                schedule_start=now,
            )

    def end(self, table: sa.Table, *where: sa.ColumnElement[bool]) -> None:
        """Ends the current rows that match, when `flush` is called."""
        self.update(
            sa.update(table).where(table.c.end_snapshot.is_(None), *where).values(end_snapshot=self.snapshot_id)
        )

    def update(self, statement: sa.Update | sa.Delete, **parameters: Any) -> None:
        """Adds a statement on rows that exist, which `flush` executes."""
        self._updates.append((statement, parameters))

    def file_path(self) -> tuple[sa.Column[str], str] | None:
        """The path of one of the files that the commit adds, and the column that holds it."""
        for column in (self.catalog.format.data_file.c.path, self.catalog.format.delete_file.c.path):
            if rows := self._pending.get(column.table):
                return column, rows[0][column.name]
        return None

    def flush(self) -> None:
        """Executes the collected statements, and inserts the collected rows with one statement for each table."""
        for statement, parameters in self._updates:
            self.connection.execute(statement, parameters)
        for insert, of_table in self._inserts:
            self.connection.execute(insert, of_table)
        for table, rows in self._pending.items():
            names = [c.name for c in table.columns if any(c.name in row for row in rows)]
            complete = [{name: row.get(name) for name in names} for row in rows]
            self.catalog.database.insert(self.connection, table, complete)
