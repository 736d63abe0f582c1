"""What statistics prove about NULLs."""

from __future__ import annotations

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .commit.staged import DataChanges
from .snapshot import Table
from .table_summary import inlined_row_counts


def has_no_nulls(
    connection: sa.Connection, catalog: Catalog, at: int, table: Table, column_id: int, changes: DataChanges
) -> bool:
    """Whether no data file of a table has a NULL in a column, at a snapshot and with what is staged on it.

    False if that is not known: for inlined rows, and for files without statistics of the column.
    """
    for added in changes.added_files:
        found = added.stats.get(column_id)
        if added.record_count and (found is None or found.null_count != 0):
            return False
    if table.id < 0 or changes.truncated:
        return True
    if inlined_row_counts(connection, catalog, at, [table.id]).get(table.id):
        return False
    file, stats = t.data_file, t.file_column_stats
    of_column = sa.and_(stats.c.data_file_id == file.c.data_file_id, stats.c.column_id == column_id)
    may_have_nulls = (
        sa.select(file.c.data_file_id)
        .select_from(file.outerjoin(stats, of_column))
        .where(file.c.table_id == table.id, t.alive(file, at), file.c.record_count > 0)
        .where(sa.or_(stats.c.null_count.is_(None), stats.c.null_count != 0))
        .limit(1)
    )
    return connection.execute(may_have_nulls).first() is None
