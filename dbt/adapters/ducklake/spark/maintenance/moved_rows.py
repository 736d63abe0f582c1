"""Rows that an operation moves into other files: how it reads them, and files that it wrote and does not commit."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from pyspark.sql import DataFrame

from ...lake.deletes import NewDeleteFile
from ...lake.files import NewDataFile
from ...lake.paths import resolve
from ...lake.snapshot import Table
from ...lake.transaction import Transaction
from ..read.scan import TableScan, scan_dataframe
from .context import MaintenanceContext

logger = logging.getLogger(__name__)

MAX_ROUNDS = 10
"""So often an operation begins again if writers change the rows that it moves."""
ROW_ID, SNAPSHOT_ID = "_lake_row_id", "_lake_snapshot"


def read_rows(context: MaintenanceContext, table: Table, scan: TableScan) -> DataFrame:
    """The rows of a scan by the names of a table's columns, with `ROW_ID` and `SNAPSHOT_ID`."""
    rows = scan_dataframe(context.planner.spark, context.lake.file_reader, scan, with_virtual_columns=True)
    return rows.toDF(*(c.name for c in table.columns), ROW_ID, SNAPSHOT_ID)


def discard_files(
    context: MaintenanceContext,
    transaction: Transaction,
    table: Table,
    files: Iterable[NewDataFile],
    delete_files: Iterable[NewDeleteFile] = (),
) -> None:
    """Deletes data files of a table, and their delete files, that no snapshot will ever have.

    What cannot be deleted is left as an orphan.
    """
    folder = transaction.state.table_folder(context.lake.catalog.data_path, table)
    unused: list[NewDataFile | NewDeleteFile] = list(delete_files)
    for file in files:
        unused.append(file)
        if file.position_deletes is not None and file.position_deletes.delete_file is not None:
            unused.append(file.position_deletes.delete_file)
    for found in unused:
        path = resolve(folder, found.path, found.path_is_relative)
        try:
            context.lake.filesystem.delete_file(context.lake.native_path(path))
        except OSError as error:
            logger.warning("%s is not needed, and could not be deleted: %s", path, error)
