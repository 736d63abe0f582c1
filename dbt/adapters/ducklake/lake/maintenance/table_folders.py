"""The folders of tables, as every row of the catalog gives them."""

from __future__ import annotations

from collections import defaultdict

import sqlalchemy as sa

from .. import tables as t
from ..paths import resolve


def table_folders(connection: sa.Connection, data_path: str) -> dict[int, list[str]]:
    """The folders of each table, the last one at the end.

    A table has a row for each name and schema that it had, and a schema may have several rows too. Files are relative
    to the folder as a snapshot has it, so all of them count.
    """
    schemas: dict[int, list[str]] = defaultdict(list)
    for row in connection.execute(sa.select(t.schema).order_by(t.schema.c.begin_snapshot)):
        folder = resolve(data_path, row.path or "", row.path is None or row.path_is_relative)
        if folder not in schemas[row.schema_id]:
            schemas[row.schema_id].append(folder)
    folders: dict[int, list[str]] = defaultdict(list)
    for row in connection.execute(sa.select(t.table).order_by(t.table.c.begin_snapshot)):
        is_relative = row.path is None or row.path_is_relative
        for parent in schemas[row.schema_id] if is_relative else [""]:
            folder = resolve(parent, row.path or "", is_relative)
            if folder in folders[row.table_id]:
                folders[row.table_id].remove(folder)
            folders[row.table_id].append(folder)
    return {table_id: found for table_id, found in folders.items() if found}
