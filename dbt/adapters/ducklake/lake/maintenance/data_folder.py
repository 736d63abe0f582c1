"""The folder with a lake's files: what is inside it, which paths name the same file, and how to delete files there."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from ..databases.base import Database
from ..file_store import FileStore
from ..paths import SPARK_SCHEMES, as_folder, resolve, scheme_of

T = TypeVar("T")
U = TypeVar("U")

_PARALLEL_REQUESTS = 16


class DataFolder:
    """The data path of a lake. Nothing outside of it is ever deleted, nor the catalog if it is a file in it."""

    def __init__(self, data_path: str, store: FileStore, database: Database) -> None:
        self.path = as_folder(data_path)
        self._store = store
        self._database = database
        self._is_local = isinstance(store.filesystem, pafs.LocalFileSystem)
        self._real_folders: dict[str, str] = {}
        self._root = self._native_folder(self.path)

    def identity(self, path: str) -> str:
        """One text for all paths that name the same file: absolute or relative, or through links to folders."""
        native = self._store.native_path(path)
        if not self._is_local:
            return posixpath.normpath(native)
        folder, name = os.path.split(native)
        if folder not in self._real_folders:
            self._real_folders[folder] = os.path.realpath(folder)
        return os.path.join(self._real_folders[folder], name)

    def holds(self, path: str) -> bool:
        """Whether a file is inside this folder, once links and `..` are followed."""
        if _place(path) != _place(self.path) or ".." in path.removeprefix(self.path).split("/"):
            return False
        return self.identity(path).startswith(self._root.rstrip("/") + "/")

    def is_below(self, path: str, folders: Sequence[str] | None) -> bool:
        """Whether a file is in one of some folders of the lake, or below it. With None, every file is."""
        if folders is None:
            return True
        native = (self._native_folder(folder).rstrip("/") + "/" for folder in folders)
        return self.identity(path).startswith(tuple(native))

    def overlaps(self, data_path: str) -> bool:
        """Whether another lake keeps files in this folder, or this lake in the other's."""
        if _place(data_path) != _place(self.path):
            return False
        own, other = (folder.rstrip("/") + "/" for folder in (self._root, self._native_folder(as_folder(data_path))))
        return own.startswith(other) or other.startswith(own)

    def is_catalog(self, path: str) -> bool:
        """Whether a file is the lake's own catalog, or belongs to it."""
        return self._is_local and self._database.is_own_file(self.identity(path))

    def listing(self, folders: Sequence[str] | None = None) -> list[tuple[str, pafs.FileInfo]]:
        """All files in this folder and below it, or in some folders of it, with their paths in the lake's spelling."""
        return [file for folder in ([self.path] if folders is None else folders) for file in self._files_below(folder)]

    def _files_below(self, folder: str) -> Iterator[tuple[str, pafs.FileInfo]]:
        root = self._store.native_path(folder).rstrip("/")
        # Folders of writes that end in this moment vanish while they are listed.
        selector = pafs.FileSelector(root, allow_not_found=True, recursive=True)
        for info in self._store.filesystem.get_file_info(selector):
            if info.type == pafs.FileType.File:
                yield resolve(folder, info.path[len(root) + 1 :], True), info

    def sizes(self, paths: Sequence[str]) -> list[int | None]:
        """The sizes of files; None for those that do not exist."""
        filesystem = self._store.filesystem

        def size(path: str) -> int | None:
            info = filesystem.get_file_info(self._store.native_path(path))
            return info.size if info.type == pafs.FileType.File else None

        return _in_parallel(size, paths)

    def delete(self, paths: Sequence[str]) -> dict[str, str]:
        """Deletes files. Returns the reasons why some could not be deleted. One that is gone already counts as deleted.

        The caller has checked that nobody needs them. That they are inside this folder is checked here again.
        """

        def delete(path: str) -> str | None:
            if not self.holds(path) or self.is_catalog(path):
                return "it is not one of the lake's files"
            with suppress(FileNotFoundError):
                try:
                    # The path that was checked: a link that changes meanwhile leads nowhere else.
                    self._store.filesystem.delete_file(
                        self.identity(path) if self._is_local else self._store.native_path(path)
                    )
                except FileNotFoundError:
                    raise
                except (OSError, ValueError) as error:  # ValueError is what Arrow makes of some answers of stores
                    return str(error) or type(error).__name__
            return None

        return {path: reason for path, reason in zip(paths, _in_parallel(delete, paths), strict=True) if reason}

    def remove_empty_folders(self, deleted: Iterable[str]) -> None:
        """Removes the folders of deleted files that are empty now, up to this one. Object stores have no folders."""
        if not self._is_local:
            return
        root = self._root.rstrip("/")
        for folder in sorted({os.path.dirname(self.identity(path)) for path in deleted}, key=len, reverse=True):
            while folder.startswith(root + "/"):
                try:
                    os.rmdir(folder)
                except FileNotFoundError:
                    pass  # another one of the deleted files was there too
                except OSError:
                    break  # it has other files
                folder = os.path.dirname(folder)

    def _native_folder(self, path: str) -> str:
        native = self._store.native_path(path)
        return os.path.realpath(native) if self._is_local else posixpath.normpath(native)


def _place(path: str) -> tuple[str, str]:
    """The scheme and the bucket, container or server of a path."""
    scheme = scheme_of(path)
    if scheme in (None, "file"):
        return "file", ""
    assert scheme is not None
    return SPARK_SCHEMES.get(scheme, scheme), urlsplit(path).netloc


def _in_parallel(work: Callable[[T], U], items: Sequence[T]) -> list[U]:
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(min(_PARALLEL_REQUESTS, len(items))) as pool:
        return list(pool.map(work, items))


def failure_text(failures: dict[str, str], total: int, next_step: str) -> str:
    """The text of an error about files that could not be deleted."""
    path, reason = next(iter(failures.items()))
    return f"{len(failures)} of {total} files could not be deleted, the first of them {path}: {reason}; {next_step}"
