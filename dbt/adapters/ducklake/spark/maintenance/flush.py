"""`ducklake_flush_inlined_data`: inlined rows and inlined deletes become data files and delete files.

The files stand for the rows at every snapshot: each row names the one that inserted it, and a delete file those that
deleted rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import sqlalchemy as sa

from ...lake.commit.staged import Flush
from ...lake.deletes import (
    PositionDeletes,
    current_delete_files,
    inlined_deletes_as_files,
    write_delete_file_with_snapshots,
)
from ...lake.errors import CommitUnknownError, ConflictError, LakeError
from ...lake.files import NewDataFile
from ...lake.inlined import StoredRows, read_stored_rows
from ...lake.paths import resolve
from ...lake.snapshot import Table
from ...lake.table_summary import tables_with_inlined_data
from ...lake.transaction import Transaction
from ..read.scan import INTERNAL_ROW_ID, INTERNAL_SNAPSHOT_ID, TableScan
from ..sql.kept_text import table_as_text
from ..write.local_files import can_write_locally, write_local_file
from ..write.target import WriteTarget
from ..write.writer import write_moved_rows
from .context import MaintenanceContext
from .moved_rows import MAX_ROUNDS, ROW_ID, SNAPSHOT_ID, discard_files, read_rows

_SCHEMA = pa.schema([("schema_name", pa.string()), ("table_name", pa.string()), ("rows_flushed", pa.int64())])
_DRY_RUN_SCHEMA = _SCHEMA.append(pa.field("bytes", pa.int64()))


def flush_inlined_data(
    context: MaintenanceContext,
    table_name: str | None = None,
    *,
    schema: str | None = None,
    schema_name: str | None = None,
    dry_run: bool = False,
) -> pa.Table:
    """Writes the inlined rows and inlined deletes of tables into files. The result has a row for each table with rows.

    `schema` and `schema_name` are the same; the reference has the latter.
    """
    if not dry_run:
        context.lake.catalog.check_writable()
    transaction = context.lake.begin()

    def candidates(connection: sa.Connection, at: int) -> set[int]:
        return tables_with_inlined_data(connection, context.lake.catalog, at)

    rows = []
    for table in context.tables(transaction, table_name, schema or schema_name, candidates):
        in_schema = transaction.state.schema_of(table).name
        if dry_run:
            stored = _stored_rows(context, transaction, table)
            count, size = sum(len(s.rows) for s in stored), sum(s.rows.rows.nbytes for s in stored)
        else:
            count, size = _flush_table(context, table.id, f"ducklake_flush_inlined_data: {in_schema}.{table.name}"), 0
        if count:
            rows.append({"schema_name": in_schema, "table_name": table.name, "rows_flushed": count, "bytes": size})
    return pa.Table.from_pylist(rows, schema=_DRY_RUN_SCHEMA if dry_run else _SCHEMA)


def _flush_table(context: MaintenanceContext, table_id: int, message: str) -> int:
    """Flushes one table, again if somebody deletes its rows meanwhile. Returns the number of inlined rows."""
    for attempt in range(MAX_ROUNDS):
        transaction = context.begin(message)
        table = transaction.state.tables.get(table_id)
        if table is None:
            return 0
        flushes: list[Flush] = []
        deletes: Mapping[int, PositionDeletes] = {}
        try:
            stored = _stored_rows(context, transaction, table)
            for part in stored:
                flushes.append(_write(context, transaction, table, part))
            deletes = _write_delete_files(context, transaction, table)
            if not flushes and not deletes:
                return 0
            transaction.flush(table, flushes, deletes)
            transaction.commit()
            return sum(len(part.rows) for part in stored)
        except CommitUnknownError:
            raise  # the snapshot may have the files
        except Exception as error:
            files = [file for flush in flushes for file in flush.files]
            delete_files = [found.delete_file for found in deletes.values() if found.delete_file is not None]
            discard_files(context, transaction, table, files, delete_files)
            if not isinstance(error, ConflictError) or attempt + 1 == MAX_ROUNDS:
                raise
    raise AssertionError("the last round returns or raises")


def _write_delete_files(
    context: MaintenanceContext, transaction: Transaction, table: Table
) -> Mapping[int, PositionDeletes]:
    """Delete files for the data files that have inlined deletes, by data file id."""
    lake = context.lake
    folder = transaction.state.table_folder(lake.catalog.data_path, table)
    with lake.catalog.read() as connection:
        replaced = current_delete_files(connection, table.id)
        delete_files = inlined_deletes_as_files(
            connection, lake.catalog, lake.file_store, table.id, folder, None, up_to=transaction.base.id
        )
    return {i: PositionDeletes(file, replaced_delete_file_id=replaced.get(i)) for i, file in delete_files.items()}


def _stored_rows(context: MaintenanceContext, transaction: Transaction, table: Table) -> list[StoredRows]:
    if not context.lake.catalog.database.supports_inlining:
        return []
    with context.lake.catalog.read() as connection:
        return list(read_stored_rows(connection, context.lake.catalog, table, transaction.base.id))


def _write(context: MaintenanceContext, transaction: Transaction, table: Table, stored: StoredRows) -> Flush:
    """Writes the rows of one schema version, with a delete file for each file that has deleted rows."""
    then = replace(table, columns=stored.columns)
    ids = {column.id for column in stored.columns}
    if then.partition is not None and not all(field.column_id in ids for field in then.partition.fields):
        then = replace(then, partition=None)
    target = context.write_target(transaction, then)
    if can_write_locally(stored.rows.rows, target):
        rows = stored.rows.rows
        internal = {INTERNAL_ROW_ID: rows.column(-2), INTERNAL_SNAPSHOT_ID: rows.column(-1)}
        files = write_local_file(rows.rename_columns(_unique_names(then, rows)), target, internal)
    else:
        scan = TableScan(table_as_text(then), transaction.base.id, (), {}, stored.rows)
        values = () if then.partition is None else None
        files = write_moved_rows(read_rows(context, then, scan), target, ROW_ID, SNAPSHOT_ID, values)
    if sum(file.record_count for file in files) != len(stored.rows):
        raise LakeError(f"table {table.name} has {len(stored.rows)} inlined rows, and the files written have others")
    places: dict[tuple[int, int], tuple[int, int]] = {}
    with_deletes = []
    for index, file in enumerate(files):
        rows_of_file = _rows_of_file(target, file)
        places |= {row: (index, position) for position, row in enumerate(rows_of_file)}
        with_deletes.append(_with_deletes(target, file, stored, rows_of_file))
    return Flush(stored.name, tuple(with_deletes), places)


def _unique_names(table: Table, rows: pa.Table) -> list[str]:
    """The names of the table's columns, and names for the last two columns that no column of the table has."""
    return [*(c.name for c in table.columns), *(f"_lake_{i}" for i in range(rows.num_columns - len(table.columns)))]


def _rows_of_file(target: WriteTarget, file: NewDataFile) -> list[tuple[int, int]]:
    """The row id of each row in a file, and the snapshot that inserted it."""
    rows = target.store.read_table(resolve(target.folder, file.path, file.path_is_relative), file.encryption_key)
    names = (INTERNAL_ROW_ID.name, INTERNAL_SNAPSHOT_ID.name)
    return list(zip(*(rows.column(name).to_pylist() for name in names), strict=True))


def _with_deletes(
    target: WriteTarget, file: NewDataFile, stored: StoredRows, rows: Sequence[tuple[int, int]]
) -> NewDataFile:
    """The file with the delete file for its deleted rows, if it has any."""
    deleted = [(position, stored.ends[row]) for position, row in enumerate(rows) if row in stored.ends]
    if not deleted:
        return file
    path = resolve(target.folder, file.path, file.path_is_relative)
    delete_file = write_delete_file_with_snapshots(target.store, target.folder, path, deleted)
    return replace(file, position_deletes=PositionDeletes(delete_file))
