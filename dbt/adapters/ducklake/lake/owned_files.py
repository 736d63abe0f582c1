"""Who owns a file: the table of which it is a data file, or clean-up, which is to delete it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import sqlalchemy as sa

from . import tables as t
from .paths import as_folder, other_names, resolve
from .snapshot import LakeState

_MAX_PATHS_IN_STATEMENT = 5_000


def tables_of_files(
    connection: sa.Connection, state: LakeState, data_path: str, paths: Collection[str]
) -> dict[str, int]:
    """The ids of the tables of which files are current data files, by path. Files of no table are left out."""
    folders = {table.id: as_folder(state.table_folder(data_path, table)) for table in state.tables.values()}
    file = t.data_file
    found: dict[str, int] = {}
    for spellings in _batches(_spellings(paths, set(folders.values()))):
        query = sa.select(file.c.table_id, file.c.path, file.c.path_is_relative).where(
            file.c.end_snapshot.is_(None), file.c.path.in_(list(spellings))
        )
        for row in connection.execute(query):
            if row.table_id not in folders:
                continue
            full_path = resolve(folders[row.table_id], row.path, bool(row.path_is_relative))
            found.update({path: row.table_id for path in spellings.get(row.path, ()) if _names(full_path, path)})
    return found


def files_to_be_deleted(connection: sa.Connection, data_path: str, paths: Collection[str]) -> set[str]:
    """Those of the files that clean-up is to delete."""
    file = t.files_scheduled_for_deletion
    found: set[str] = set()
    for spellings in _batches(_spellings(paths, {as_folder(data_path)})):
        query = sa.select(file.c.path, file.c.path_is_relative).where(file.c.path.in_(list(spellings)))
        for row in connection.execute(query):
            full_path = resolve(data_path, row.path, bool(row.path_is_relative))
            found.update(path for path in spellings.get(row.path, ()) if _names(full_path, path))
    return found


def _names(full_path: str, path: str) -> bool:
    return full_path == path or full_path in other_names(path)


def _spellings(paths: Collection[str], folders: Collection[str]) -> dict[str, list[str]]:
    """The texts by which the catalog may have files: their paths, and what follows one of the folders."""
    spellings: dict[str, list[str]] = defaultdict(list)
    for path in paths:
        for name in (path, *other_names(path)):
            spellings[name].append(path)
        end = path.rfind("/")
        while end >= 0:
            if path[: end + 1] in folders:
                spellings[path[end + 1 :]].append(path)
            end = path.rfind("/", 0, end)
    return spellings


def _batches(spellings: Mapping[str, list[str]]) -> Iterator[Mapping[str, list[str]]]:
    names = sorted(spellings)
    for start in range(0, len(names), _MAX_PATHS_IN_STATEMENT):
        yield {name: spellings[name] for name in names[start : start + _MAX_PATHS_IN_STATEMENT]}
