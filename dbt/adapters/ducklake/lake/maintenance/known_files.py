"""The files that the catalog of a lake names, at any snapshot."""

from __future__ import annotations

import re
from collections.abc import Iterator

import sqlalchemy as sa

from .. import tables as t
from ..paths import resolve
from .data_folder import DataFolder
from .table_folders import table_folders

UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_NAME_FROM_UUID = re.compile(rf"(?:^|/)(ducklake-{UUID}(?:[^/]*$|/.*$))", re.IGNORECASE)
_WRITE_FOLDER = re.compile(rf"(?:^|/)(ducklake-{UUID})/", re.IGNORECASE)


class KnownFiles:
    """A set of files. It has a file if it has any path of it.

    Case does not tell files apart, since some file systems do not, and a file that is kept for nothing harms nobody.
    """

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._paths: set[str] = set()
        self._names: set[str] = set()
        self._write_folders: set[str] = set()

    def add_all_of(self, connection: sa.Connection, data_path: str, with_scheduled: bool = True) -> None:
        """Adds the data files and delete files of all snapshots of a lake, and the files scheduled for deletion."""
        for path in _files_of_snapshots(connection, data_path):
            self.add(path)
        for path in _scheduled_files(connection, data_path) if with_scheduled else ():
            self.add(path)

    def add_new_of(self, connection: sa.Connection, data_path: str, first_id: int) -> None:
        """Adds the data files and delete files of a lake from an id on."""
        for path in _files_of_snapshots(connection, data_path, first_id):
            self.add(path)

    def add(self, path: str) -> None:
        self._paths.add(self._folder.identity(path).casefold())
        if match := _NAME_FROM_UUID.search(path):
            self._names.add(match[1].casefold())
        if match := _WRITE_FOLDER.search(path):
            self._write_folders.add(match[1].casefold())

    def __contains__(self, path: str) -> bool:
        return self._folder.identity(path).casefold() in self._paths

    def has_file_in_write_folder_of(self, path: str) -> bool:
        """Whether one of the files is in the same folder `ducklake-<uuid>/`."""
        match = _WRITE_FOLDER.search(path)
        return match is not None and match[1].casefold() in self._write_folders

    def has_name_of(self, path: str) -> bool:
        """Whether one of the files has the same name from its `ducklake-<uuid>` on, in whatever folder.

        Such a name is given once. So this finds a file where the catalog's path and the store's are spelled in ways
        that nobody foresaw, or where its folder is not known any more.
        """
        match = _NAME_FROM_UUID.search(path)
        return match is not None and match[1].casefold() in self._names


def next_file_id(connection: sa.Connection) -> int:
    """The id from which on files get their ids."""
    return int(connection.scalar(sa.select(sa.func.max(t.snapshot.c.next_file_id))) or 0)


def _files_of_snapshots(connection: sa.Connection, data_path: str, first_id: int | None = None) -> Iterator[str]:
    """The paths of all data files and delete files that snapshots have or had. With `first_id`, only since that id."""
    folders = table_folders(connection, data_path)
    for table, file_id in ((t.data_file, t.data_file.c.data_file_id), (t.delete_file, t.delete_file.c.delete_file_id)):
        query = sa.select(table.c.table_id, table.c.path, table.c.path_is_relative).where(table.c.path.is_not(None))
        if first_id is not None:
            query = query.where(file_id >= first_id)
        for row in connection.execute(query):
            if not row.path_is_relative:
                yield row.path
            else:
                # A table without a folder leaves the name of the file, which is known all the same.
                for folder in folders.get(row.table_id, (data_path,)):
                    yield resolve(folder, row.path, True)


def _scheduled_files(connection: sa.Connection, data_path: str) -> Iterator[str]:
    """The paths of all files that are scheduled for deletion."""
    scheduled = t.files_scheduled_for_deletion.c
    query = sa.select(scheduled.path, scheduled.path_is_relative).where(scheduled.path.is_not(None))
    for row in connection.execute(query):
        yield resolve(data_path, row.path, row.path_is_relative)
