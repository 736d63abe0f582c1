"""What statistics prove about NULLs."""

from __future__ import annotations

import sqlalchemy as sa

from . import tables as t
from .catalog import Catalog
from .commit.staged import DataChanges
from .inlined import read_inlined_rows
from .snapshot import Table


def has_no_nulls(
    connection: sa.Connection, catalog: Catalog, at: int, table: Table, column_id: int, changes: DataChanges
) -> bool:
    """Whether no row of a table has a NULL in a column, at a snapshot and with what is staged on it.

    False if that is not known, for files without statistics of the column.
    """
    added = [file.stats for file in changes.added_files if file.record_count]
    added += [insert.stats for insert in changes.inlined_inserts]
    if any((found := of.get(column_id)) is None or found.null_count != 0 for of in added):
        return False
    if table.id < 0 or changes.truncated:
        return True
    inlined = read_inlined_rows(connection, catalog, table, at)
    if inlined is not None and inlined.rows.column([c.id for c in table.columns].index(column_id)).null_count:
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
