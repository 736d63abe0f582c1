"""Files that an operation wrote and does not commit."""

from __future__ import annotations

from collections.abc import Iterable

from ...lake.deletes import NewDeleteFile
from ...lake.files import NewDataFile
from ...lake.paths import resolve
from ...lake.snapshot import Table
from ...lake.transaction import Transaction
from .context import MaintenanceContext


def discard_files(
    context: MaintenanceContext,
    transaction: Transaction,
    table: Table,
    files: Iterable[NewDataFile],
    delete_files: Iterable[NewDeleteFile] = (),
) -> None:
    """Deletes data files of a table, and their delete files, that no snapshot will ever have."""
    folder = transaction.state.table_folder(context.lake.catalog.data_path, table)
    unused: list[NewDataFile | NewDeleteFile] = list(delete_files)
    for file in files:
        unused.append(file)
        if file.position_deletes is not None and file.position_deletes.delete_file is not None:
            unused.append(file.position_deletes.delete_file)
    for found in unused:
        path = resolve(folder, found.path, found.path_is_relative)
        context.lake.filesystem.delete_file(context.lake.native_path(path))
