"""The changes that a transaction has staged, as one immutable value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from ..deletes import NewDeleteFile, PositionDeletes
from ..files import DataFile, NewDataFile
from ..inlined_inserts import NewInlinedRows, is_staged, without_staged_rows
from ..options import OptionKey
from ..predicates import ReadPredicate
from ..snapshot import LakeState


class ExtraInfo(Protocol):
    """Makes the extra info of a commit that names its own snapshot, or ids that the commit assigns."""

    def __call__(self, snapshot_id: int, catalog_id: Callable[[int], int]) -> str: ...


@dataclass(frozen=True)
class CommitInfo:
    """The author and the message of a commit, as `ducklake_snapshot_changes` stores them."""

    author: str | None = None
    message: str | None = None
    extra_info: str | ExtraInfo | None = None
    """The text, or a function that makes it in the commit."""


@dataclass(frozen=True)
class Compaction:
    """Data files in the place of others, with the same rows under the same row ids.

    Merged files also stand for their sources at earlier snapshots: each row names its snapshot, and no row is deleted.
    The catalog forgets the sources. Rewritten files begin in the snapshot of the commit, in which their sources end.
    """

    sources: tuple[DataFile, ...]
    files: tuple[NewDataFile, ...]
    is_merge: bool


@dataclass(frozen=True)
class Flush:
    """Data files in the place of all rows that a catalog table of inlined rows had at the base snapshot."""

    source: str
    """The name of the catalog table."""
    files: tuple[NewDataFile, ...]
    places: Mapping[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    """The index of a row's file and its position there, by its row id and the snapshot that inserted it."""


@dataclass(frozen=True)
class DataChanges:
    """The staged changes to the rows of one table. Fields with ids are about committed files and rows."""

    added_files: tuple[NewDataFile, ...] = ()
    """Until the commit their ids are -1, -2, ... in this order."""
    inlined_inserts: tuple[NewInlinedRows, ...] = ()
    """Until the commit their rows have staged row ids, in this order."""
    ended_file_ids: frozenset[int] = frozenset()
    truncated: bool = False
    """Whether every data file and inlined row of the base snapshot ends."""
    position_deletes: Mapping[int, PositionDeletes] = field(default_factory=dict)
    """Position deletes by data file id."""
    ended_inlined_row_ids: frozenset[int] = frozenset()
    moved_inlined_deletes: Mapping[int, NewDeleteFile] = field(default_factory=dict)
    """Delete files that take over the inlined deletes of data files that end, by data file id."""
    updated_row_count: int = 0
    """How many committed rows get a new version. Neither count includes truncated rows."""
    deleted_row_count: int = 0
    """How many committed rows are deleted without a new version."""
    compactions: tuple[Compaction, ...] = ()
    flushes: tuple[Flush, ...] = ()
    flushed_deletes: Mapping[int, PositionDeletes] = field(default_factory=dict)
    """Delete files that take over the inlined deletes of data files that stay, by data file id."""

    @property
    def compacted_file_ids(self) -> frozenset[int]:
        return frozenset(source.id for compaction in self.compactions for source in compaction.sources)

    @property
    def added_row_count(self) -> int:
        """The added rows that are not deleted again, new versions of updated rows included."""
        return sum(file.live_rows for file in self.added_files) + sum(map(len, self.inlined_inserts))

    @property
    def adds_rows(self) -> bool:
        return bool(self.added_files or self.inlined_inserts)

    @property
    def added_paths(self) -> frozenset[str]:
        return frozenset(file.path for file in self.added_files)

    @property
    def has_file_deletes(self) -> bool:
        """Whether data files end or get a delete file."""
        return (
            self.truncated
            or bool(self.ended_file_ids)
            or any(deletes.delete_file for deletes in self.position_deletes.values())
        )

    @property
    def has_inlined_deletes(self) -> bool:
        """Whether deletes are stored in the catalog: of inlined rows, or of rows in data files."""
        return bool(self.ended_inlined_row_ids) or any(
            deletes.inlined_positions for deletes in self.position_deletes.values()
        )

    @property
    def changed_file_ids(self) -> frozenset[int]:
        """The data files that end or lose rows, except by truncation."""
        return self.ended_file_ids | self.position_deletes.keys()

    def with_added_files(self, files: Iterable[NewDataFile]) -> DataChanges:
        return replace(self, added_files=(*self.added_files, *files))

    def with_inlined_inserts(self, inserts: Iterable[NewInlinedRows]) -> DataChanges:
        return replace(self, inlined_inserts=(*self.inlined_inserts, *inserts))

    def without_files(self, files: Iterable[DataFile]) -> DataChanges:
        """These changes without whole data files, committed or added."""
        removed = {file.id: file for file in files}
        committed = [file for file_id, file in removed.items() if file_id >= 0]
        # Deleting a new version deletes the row: it counts as deleted now, no longer as updated.
        new_versions = sum(
            file.live_rows for file_id, file in self._added_with_ids() if file_id in removed and file.holds_updated_rows
        )
        return replace(
            self,
            added_files=tuple(file for file_id, file in self._added_with_ids() if file_id not in removed),
            ended_file_ids=self.ended_file_ids | {file.id for file in committed},
            position_deletes={i: deletes for i, deletes in self.position_deletes.items() if i not in removed},
            deleted_row_count=self.deleted_row_count + sum(file.live_rows for file in committed) + new_versions,
            updated_row_count=self.updated_row_count - new_versions,
        )

    def with_position_deletes(
        self, position_deletes: Mapping[int, PositionDeletes], row_counts: Mapping[int, int]
    ) -> DataChanges:
        """These changes with more position deletes. Both arguments are by the id of a committed or added file.

        A delete file must contain all deleted positions of its data file. Inlined positions are added to earlier ones.
        """
        added_files = tuple(
            replace(file, position_deletes=position_deletes.get(file_id, file.position_deletes))
            for file_id, file in self._added_with_ids()
        )
        merged = dict(self.position_deletes)
        for file_id, deletes in position_deletes.items():
            if file_id >= 0:
                merged[file_id] = merged.get(file_id, PositionDeletes()).merged_with(deletes)
        committed_rows = sum(count for file_id, count in row_counts.items() if file_id >= 0)
        new_versions = sum(
            row_counts.get(file_id, 0) for file_id, file in self._added_with_ids() if file.holds_updated_rows
        )
        return replace(
            self,
            added_files=added_files,
            position_deletes=merged,
            deleted_row_count=self.deleted_row_count + committed_rows + new_versions,
            updated_row_count=self.updated_row_count - new_versions,
        )

    def with_deleted_inlined_rows(self, row_ids: frozenset[int]) -> DataChanges:
        """These changes without inlined rows, committed or inserted by them."""
        staged = frozenset(filter(is_staged, row_ids))
        committed = row_ids - staged
        return replace(
            self,
            inlined_inserts=without_staged_rows(self.inlined_inserts, staged),
            ended_inlined_row_ids=self.ended_inlined_row_ids | committed,
            deleted_row_count=self.deleted_row_count + len(committed - self.ended_inlined_row_ids),
        )

    def with_updates(self, row_count: int) -> DataChanges:
        """These changes, in which so many of the deleted rows have a new version in an added file."""
        return replace(
            self,
            updated_row_count=self.updated_row_count + row_count,
            deleted_row_count=self.deleted_row_count - row_count,
        )

    def _added_with_ids(self) -> Iterator[tuple[int, NewDataFile]]:
        return ((-index, file) for index, file in enumerate(self.added_files, start=1))


@dataclass(frozen=True)
class Staged:
    """Everything that a transaction has staged."""

    state: LakeState
    """The lake as it will be after the commit."""
    data_changes: Mapping[int, DataChanges] = field(default_factory=dict)
    """Changes to rows by table id."""
    options: Mapping[OptionKey, str | None] = field(default_factory=dict)
    """Options that are set, or unset by None."""
    reads: Mapping[int, ReadPredicate | None] = field(default_factory=dict)
    """Tables by id whose rows the transaction read to decide what to write. None stands for any row."""

    is_snapshot_without_changes: bool = False
    """Whether there is to be a snapshot for its commit info alone."""

    def changes_of(self, table_id: int) -> DataChanges:
        """The changes to the rows of a table; empty ones if there are none."""
        return self.data_changes.get(table_id, DataChanges())

    def makes_snapshot(self, origin: Staged) -> bool:
        """Whether anything but options differs from `origin`. Options have no history, so they need no snapshot."""
        if self is origin:
            return False
        ids = self.data_changes.keys() | origin.data_changes.keys()
        return (
            self.is_snapshot_without_changes != origin.is_snapshot_without_changes
            or self.state != origin.state
            or any(self.changes_of(i) != origin.changes_of(i) for i in ids)
        )
