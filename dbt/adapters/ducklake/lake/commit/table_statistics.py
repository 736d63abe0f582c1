"""Statistics of a table as a whole, updated by the rows that a commit adds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from .. import tables as t
from ..stats import ColumnStats, TableColumnStats, widen_table_stats, widest_bounds
from .rows import SnapshotRows, id_batches

_STORED = (
    sa.select(t.table_stats, *(c for c in t.table_column_stats.columns if c.name != "table_id"))
    .select_from(
        t.table_stats.outerjoin(t.table_column_stats, t.table_stats.c.table_id == t.table_column_stats.c.table_id)
    )
    .where(t.table_stats.c.table_id.in_(sa.bindparam("table_ids", expanding=True)))
)
"""The rows of tables, a row for each column. Made once, because other writers wait while it is executed."""


_UPDATE = (
    sa.update(t.table_stats)
    .where(t.table_stats.c.table_id == sa.bindparam("of_table"))
    .values({name: sa.bindparam(name) for name in ("record_count", "next_row_id", "file_size_bytes")})
)
_DELETE_COLUMNS = sa.delete(t.table_column_stats).where(
    t.table_column_stats.c.table_id == sa.bindparam("of_table"),
    t.table_column_stats.c.column_id.in_(sa.bindparam("column_ids", expanding=True)),
)


def load_statistics(rows: SnapshotRows, tables: Mapping[int, Mapping[int, str]]) -> dict[int, TableStatistics]:
    """The statistics of tables as the catalog has them. The tables are given by id, with the types of their columns."""
    query = rows.catalog.database.newest_rows(_STORED)
    found: dict[int, sa.Row[Any]] = {}
    columns: dict[int, dict[int, TableColumnStats]] = defaultdict(dict)
    for table_ids in id_batches(tables):
        for r in rows.connection.execute(query, {"table_ids": table_ids}):
            found[r.table_id] = r
            if r.column_id is not None:
                columns[r.table_id][r.column_id] = TableColumnStats(
                    r.contains_null, r.contains_nan, r.min_value, r.max_value, r.extra_stats
                )
    widest = _widest_columns(rows, tables, columns)
    return {
        table_id: TableStatistics(
            rows, table_id, types, found.get(table_id), columns.get(table_id), widest.get(table_id)
        )
        for table_id, types in tables.items()
    }


def _widest_columns(
    rows: SnapshotRows, tables: Mapping[int, Mapping[int, str]], columns: Mapping[int, Mapping[int, TableColumnStats]]
) -> dict[int, dict[int, TableColumnStats]]:
    """The widest statistics for columns that have values, but no bounds.

    The reference drops bounds that it cannot compare, for example after a change of the type.
    """
    file_stats = t.file_column_stats
    without_bounds = {
        (table_id, column_id)
        for table_id, of_table in columns.items()
        for column_id, column in of_table.items()
        if column.min_value is None and column.max_value is None
    }
    widest: dict[int, dict[int, TableColumnStats]] = defaultdict(dict)
    for table_ids in id_batches({table_id for table_id, _ in without_bounds}):
        listed = set(table_ids)
        for column_ids in id_batches({column_id for table_id, column_id in without_bounds if table_id in listed}):
            query = (
                sa.select(file_stats.c.table_id, file_stats.c.column_id)
                .distinct()
                .where(
                    file_stats.c.table_id.in_(table_ids),
                    file_stats.c.column_id.in_(column_ids),
                    file_stats.c.value_count > 0,
                )
            )
            for r in rows.connection.execute(query):
                table_id, column_id = r.table_id, r.column_id
                if (table_id, column_id) in without_bounds:
                    type_ = tables[table_id].get(column_id)
                    low, high = widest_bounds(type_) if type_ is not None else (None, None)
                    column = columns[table_id][column_id]
                    widest[table_id][column_id] = replace(column, min_value=low, max_value=high, exact=False)
    return widest


class TableStatistics:
    """The rows of one table in `ducklake_table_stats` and `ducklake_table_column_stats`."""

    def __init__(
        self,
        rows: SnapshotRows,
        table_id: int,
        column_types: Mapping[int, str],
        row: sa.Row[Any] | None = None,
        stored: Mapping[int, TableColumnStats] | None = None,
        columns: Mapping[int, TableColumnStats] | None = None,
    ) -> None:
        self.rows = rows
        self.table_id = table_id
        self.column_types = column_types
        """The type of each current column and nested field, by id."""
        self.next_row_id: int = row.next_row_id if row else 0
        """The row id of the next row."""
        self._record_count: int = row.record_count if row else 0
        self._file_size_bytes: int = row.file_size_bytes if row else 0
        self.exists = row is not None
        self._stored = stored or {}
        """The columns as the catalog has them."""
        self._columns = {**self._stored, **(columns or {})}
        self._is_new = not self._columns and self.next_row_id == 0
        self._exact = all(column.exact for column in self._columns.values())

    def add(self, columns: Mapping[int, ColumnStats], record_count: int, file_size_bytes: int = 0) -> None:
        """Counts the rows of a new file, or rows that are inlined."""
        for column_id, stats in columns.items():
            # The column may have been dropped after the rows were staged.
            exists = column_id in self.column_types
            # A column that was added to an existing table has no statistics of the table. Earlier rows have its
            # default value, and bounds of these rows alone would exclude that.
            if exists and (self._is_new or column_id in self._columns):
                column = widen_table_stats(self._columns.get(column_id), stats, self.column_types[column_id])
                self._columns[column_id] = column
                self._exact = self._exact and column.exact
        self._record_count += record_count
        self._file_size_bytes += file_size_bytes
        self.next_row_id += record_count

    def columns_without_bounds(self, column_types: Mapping[int, str]) -> set[int]:
        """The columns of these whose values the table's statistics do not bound, although their type has bounds."""

        def has_bounds(column_id: int) -> bool:
            column, (low, high) = self._columns.get(column_id), widest_bounds(column_types[column_id])
            if low is None:
                return True
            known = column is not None and None not in (column.min_value, column.max_value)
            return known and column is not None and (column.min_value, column.max_value) != (low, high)

        return {i for i in column_types if not has_bounds(i)}

    def complete(self, columns: Mapping[int, TableColumnStats]) -> None:
        """Sets the statistics of columns that have no bounds.

        They are not exact, since the catalog does not tell whether the bounds of files are.
        """
        changed = {i: column for i, column in columns.items() if self._columns.get(i) != column}
        self._columns.update(changed)
        self._exact = self._exact and not changed

    def widen(self, files: Iterable[Mapping[int, ColumnStats]]) -> None:
        """Widens the statistics by those of files that are counted already."""
        before = dict(self._columns)
        for stats in files:
            for column_id, of_file in stats.items():
                if column_id in self._columns and column_id in self.column_types:
                    column = widen_table_stats(self._columns[column_id], of_file, self.column_types[column_id])
                    self._columns[column_id] = column
        self._exact = self._exact and self._columns == before

    @property
    def is_unchanged(self) -> bool:
        """Whether no column has other statistics than in the catalog, if only `complete` and `widen` were called."""
        return self._exact

    def write(self) -> None:
        if not self._exact:
            # The reference answers MIN and MAX from these bounds if this count equals the number of live rows.
            self._record_count += 1
        values = {
            "record_count": self._record_count,
            "next_row_id": self.next_row_id,
            "file_size_bytes": self._file_size_bytes,
        }
        if self.exists:
            self.rows.update(_UPDATE, of_table=self.table_id, **values)
        else:
            self.rows.add(t.table_stats, table_id=self.table_id, **values)
        self._write_columns()

    def _write_columns(self) -> None:
        stats = t.table_column_stats
        changed = {i: column for i, column in self._columns.items() if self._stored.get(i) != column}
        replaced = [i for i in changed if i in self._stored]
        if replaced:
            self.rows.update(_DELETE_COLUMNS, of_table=self.table_id, column_ids=replaced)
        for column_id, column in changed.items():
            self.rows.add(
                stats,
                table_id=self.table_id,
                column_id=column_id,
                contains_null=column.contains_null,
                contains_nan=column.contains_nan,
                min_value=column.min_value,
                max_value=column.max_value,
                extra_stats=column.extra_stats,
            )
