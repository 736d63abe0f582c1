"""The folder of one write, and the folders above it: none of them stays if the write fails."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow.fs as pafs

from ...lake.paths import new_uuid7
from .data_files import remove_folder
from .target import WriteTarget

_LAST_TASKS_SECONDS = 0.15
"""Tasks of a job that failed or was cancelled go on for a moment, and one may still open a file."""
_CHECKS = 3


@contextmanager
def new_write_folder(target: WriteTarget) -> Iterator[str]:
    """A folder of one write alone, so that concurrent writes do not meet. An error removes it and all that is in it."""
    folder = f"{target.folder}ducklake-{new_uuid7()}/"
    with removing_empty_folders(target):
        try:
            yield folder
        except BaseException:
            remove_folder(target, folder)
            for _ in range(_CHECKS):
                time.sleep(_LAST_TASKS_SECONDS / _CHECKS)
                remove_folder(target, folder)
            raise


@contextmanager
def removing_empty_folders(target: WriteTarget) -> Iterator[None]:
    """Removes the folders of the table and its schema if the block fails, made them, and left nothing in them.

    Only on a local disk: an object store has no folders. After a block that succeeds they stay, also empty: another
    writer may be about to write into them.
    """
    missing = _missing_folders(target)
    try:
        yield
    except BaseException:
        for path in missing:
            with suppress(OSError):  # it has files, or it was never made
                os.rmdir(path)
        raise


def _missing_folders(target: WriteTarget) -> list[str]:
    """The folders of the table and its schema that do not exist yet, the deepest first."""
    if not isinstance(target.filesystem, pafs.LocalFileSystem):
        return []
    table_folder = target.native_path(target.folder).rstrip("/")
    return [path for path in (table_folder, os.path.dirname(table_folder)) if not os.path.exists(path)]
