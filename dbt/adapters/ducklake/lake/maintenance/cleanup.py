"""Clean-up: deletes the files that are scheduled for deletion."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import sqlalchemy as sa

from .. import tables as t
from ..catalog import Catalog
from ..errors import LakeError
from ..file_store import FileStore
from ..paths import resolve
from .data_folder import DataFolder, failure_text
from .known_files import KnownFiles, next_file_id
from .write_attempts import write_with_retries

FILES_PER_BATCH = 1000
"""After so many deleted files their rows are removed. An interruption leaves at most so many rows of deleted files."""


@dataclass(frozen=True)
class DeletedFiles:
    """The files that were deleted, or would be."""

    paths: Sequence[str] = ()
    sizes: Sequence[int | None] = ()
    """Only of a dry run. None for a file that does not exist."""
    notes: Sequence[str] = ()
    """What else the user should know."""


@dataclass(frozen=True)
class _Scheduled:
    file_id: int
    stored_path: str
    path: str


@dataclass
class _Plan:
    """What to do with the scheduled files."""

    to_delete: list[_Scheduled] = field(default_factory=list)
    outside: list[_Scheduled] = field(default_factory=list)
    in_use: list[_Scheduled] = field(default_factory=list)

    def notes(self, dry_run: bool) -> list[str]:
        notes = []
        if self.in_use:
            notes.append(
                f"{len(self.in_use)} scheduled files are left alone, because the lake still needs them:"
                f" {self.in_use[0].path}{_and_more(self.in_use)}"
            )
        if self.outside:
            verb = "would be" if dry_run else "are"
            notes.append(
                f"{len(self.outside)} files outside of the data path {verb} forgotten and not deleted:"
                f" {self.outside[0].path}{_and_more(self.outside)}"
            )
        return notes


def _and_more(files: Sequence[_Scheduled]) -> str:
    return " and others" if len(files) > 1 else ""


def cleanup_old_files(
    catalog: Catalog,
    store: FileStore,
    *,
    older_than: datetime.datetime | None = None,
    folders: Sequence[str] | None = None,
    dry_run: bool = False,
) -> DeletedFiles:
    """Deletes the files that are scheduled for deletion since before a moment, or all of them.

    With `folders`, only files in these folders of the lake, and below them.

    A file that the catalog still names as a data file or delete file, at any snapshot, is left alone with its row. Of a
    file outside of the data path only the row goes.

    Files are deleted before their rows, batch by batch: whatever interrupts it, the next call finishes it. If a file
    cannot be deleted, its row stays, the others are deleted, and an error says so at the end.
    """
    if not dry_run:
        catalog.check_maintainable()
    folder = DataFolder(catalog.data_path, store, catalog.database)
    with catalog.read() as connection:
        scheduled = [
            file for file in _scheduled(connection, catalog, older_than) if folder.is_below(file.path, folders)
        ]
        if not scheduled:
            return DeletedFiles()
        needed, first_new_id = KnownFiles(folder), next_file_id(connection)
        needed.add_all_of(connection, catalog.data_path, with_scheduled=False)
    plan = _plan(scheduled, needed, folder)
    if dry_run:
        paths = [file.path for file in plan.to_delete]
        return DeletedFiles(paths, folder.sizes(paths), plan.notes(dry_run))
    _remove_rows(catalog, plan.outside)
    deleted: list[str] = []
    failures: dict[str, str] = {}
    for batch in _batches(plan.to_delete):
        with catalog.read() as connection:  # a file may have been added again since
            needed.add_new_of(connection, catalog.data_path, first_new_id)
        plan.in_use += [file for file in batch if file.path in needed]
        batch = [file for file in batch if file.path not in needed]
        failed = folder.delete([file.path for file in batch])
        done = [file for file in batch if file.path not in failed]
        _remove_rows(catalog, done)
        failures.update(failed)
        deleted += [file.path for file in done]
    if failures:
        raise LakeError(
            failure_text(
                failures, len(plan.to_delete), "the others are deleted, and the next clean-up tries these again"
            )
        )
    return DeletedFiles(deleted, notes=plan.notes(dry_run))


def _scheduled(connection: sa.Connection, catalog: Catalog, older_than: datetime.datetime | None) -> list[_Scheduled]:
    table, sort_key = t.files_scheduled_for_deletion, catalog.database.timestamp_sort_key
    query = sa.select(table).where(table.c.path.is_not(None)).order_by(table.c.data_file_id)
    if older_than is not None:
        query = query.where(sort_key(table.c.schedule_start) < sort_key(sa.literal(older_than, t.Instant())))
    return [
        _Scheduled(row.data_file_id, row.path, resolve(catalog.data_path, row.path, row.path_is_relative))
        for row in connection.execute(query)
    ]


def _plan(scheduled: Sequence[_Scheduled], needed: KnownFiles, folder: DataFolder) -> _Plan:
    plan = _Plan()
    for file in scheduled:
        if file.path in needed or folder.is_catalog(file.path):
            plan.in_use.append(file)
        elif folder.holds(file.path):
            plan.to_delete.append(file)
        else:
            plan.outside.append(file)
    return plan


def _batches(files: Sequence[_Scheduled]) -> Iterator[Sequence[_Scheduled]]:
    for start in range(0, len(files), FILES_PER_BATCH):
        yield files[start : start + FILES_PER_BATCH]


def _remove_rows(catalog: Catalog, files: Sequence[_Scheduled]) -> None:
    table = t.files_scheduled_for_deletion
    for batch in _batches(files):
        # Two lists, because databases compare a list of pairs one by one. A row of the same id and another file stays.
        done = sa.and_(
            table.c.data_file_id.in_([file.file_id for file in batch]),
            table.c.path.in_([file.stored_path for file in batch]),
        )
        write_with_retries(
            catalog,
            "removing deleted files from the catalog",
            lambda connection, done=done: connection.execute(sa.delete(table).where(done)),  # type: ignore[misc]
        )
