"""Orphan files: files in the data path that no catalog names, left behind by writes that never committed."""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence

import sqlalchemy as sa

from .. import tables as t
from ..catalog import Catalog
from ..errors import LakeError
from ..file_store import FileStore
from .cleanup import FILES_PER_BATCH, DeletedFiles
from .data_folder import DataFolder, failure_text
from .known_files import UUID, KnownFiles, next_file_id

_WRITTEN_FILE = re.compile(rf"(^|/)ducklake-{UUID}(-delete)?\.(parquet|puffin)$")
_IN_WRITE_FOLDER = re.compile(
    rf"(^|/)ducklake-{UUID}/(.*/)?([^/]+\.(parquet|puffin)|\._SUCCESS\.crc|_SUCCESS|\.[^/]+\.crc)$"
)
"""Files in the folder that Spark writes into, with its temporary folders, and what Hadoop puts beside them."""


def delete_orphaned_files(
    catalog: Catalog,
    store: FileStore,
    *,
    older_than: datetime.datetime | None = None,
    folders: Sequence[str] | None = None,
    dry_run: bool = False,
    other_lakes: Sequence[Catalog] = (),
) -> DeletedFiles:
    """Deletes files in the data path that no catalog names and that were last modified before a moment, or at any time.

    With `folders`, only files in these folders of the lake, and below them.

    Only files with a name that writers of DuckLake give. Those of other lakes stay if the lakes are in other schemas of
    the same database, or given here.
    """
    if not dry_run:
        catalog.check_maintainable()
    folder = DataFolder(catalog.data_path, store, catalog.database)
    # The catalog is read after the listing. So it names each file that a transaction committed before.
    candidates = {
        path: info
        for path, info in folder.listing(folders)
        if _is_written_by_ducklake(path.removeprefix(folder.path)) and _is_older(info.mtime, older_than)
    }
    if not candidates:
        return DeletedFiles()
    known = KnownFiles(folder)
    with catalog.read() as connection:
        first_new_id = next_file_id(connection)
        known.add_all_of(connection, catalog.data_path)
        other_schemas = catalog.database.other_lakes(connection)
    for schema in other_schemas:
        with catalog.read(schema) as connection:
            other_path = _data_path(connection)
            if other_path is not None and folder.overlaps(other_path):
                known.add_all_of(connection, other_path)
    for other in other_lakes:
        if folder.overlaps(other.data_path):
            with other.read() as connection:
                known.add_all_of(connection, other.data_path)

    def is_orphan(path: str) -> bool:
        if path in known or known.has_name_of(path) or not folder.holds(path) or folder.is_catalog(path):
            return False
        return _is_data(path) or not known.has_file_in_write_folder_of(path)

    orphans = [path for path in sorted(candidates) if is_orphan(path)]
    if dry_run:
        return DeletedFiles(orphans, [candidates[path].size for path in orphans])
    deleted: list[str] = []
    failures: dict[str, str] = {}
    for start in range(0, len(orphans), FILES_PER_BATCH):
        with catalog.read() as connection:  # a file may have been committed since
            known.add_new_of(connection, catalog.data_path, first_new_id)
        batch = [path for path in orphans[start : start + FILES_PER_BATCH] if is_orphan(path)]
        failed = folder.delete(batch)
        failures.update(failed)
        deleted += [path for path in batch if path not in failed]
    folder.remove_empty_folders(deleted)
    if failures:
        raise LakeError(failure_text(failures, len(orphans), "the others are deleted; run it again to try these again"))
    return DeletedFiles(deleted)


def _is_written_by_ducklake(path: str) -> bool:
    return _WRITTEN_FILE.search(path) is not None or _IN_WRITE_FOLDER.search(path) is not None


def _is_data(path: str) -> bool:
    return path.endswith((".parquet", ".puffin"))


def _is_older(modified: datetime.datetime | None, moment: datetime.datetime | None) -> bool:
    return moment is None or (modified is not None and modified < moment)


def _data_path(connection: sa.Connection) -> str | None:
    setting = t.ducklake_metadata.c
    query = sa.select(setting.value).where(setting.key == "data_path", setting.scope.is_(None))
    return connection.scalar(query)
