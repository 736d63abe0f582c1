"""One transaction for several threads, in which theirs are nested: what they fold into it becomes one snapshot."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from ..lake.commit.folding import changed_relations, fold, only_adds_rows, only_difference, staged_files
from ..lake.commit.staged import CommitInfo, Staged
from ..lake.errors import ConflictError, LakeError
from ..lake.maintenance.data_folder import DataFolder, failure_text
from ..lake.transaction import Transaction
from .read.lakes import Lake

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Fold:
    """The changes of one nested transaction."""

    label: Any
    """What its author calls it; None for a statement of its own."""
    lake: str
    origin: Staged
    staged: Staged
    reads: frozenset[int]
    """The relations of the lake that it read, by id."""
    message: str | None = None
    """The commit message that a statement in it set."""

    @cached_property
    def changed_relations(self) -> set[int]:
        return changed_relations(self.origin, self.staged)

    def stands_on(self, other: Fold) -> bool:
        """Whether it read what another one changed, or changed the same, so that it is nothing without the other."""
        theirs = other.changed_relations
        own = self.changed_relations & theirs
        return bool(self.reads & theirs) or not all(only_adds_rows(self.origin, self.staged, i) for i in own)


class SharedTransaction:
    """Transactions on every lake, which begin together and are committed together. Threads share them."""

    def __init__(self, begin: Callable[[str], Transaction], lakes: Iterable[str]) -> None:
        self._begin = begin
        self._transactions = {lake: begin(lake) for lake in lakes}
        self._lock = threading.Lock()
        self._folds: list[Fold] = []
        self._dropped: list[tuple[str, Staged, Staged]] = []
        """What was staged and not folded, by lake: its files are to be removed."""

    def nested(self, lake: str) -> Transaction:
        """A transaction that starts with everything that was folded so far."""
        with self._lock:
            if lake not in self._transactions:  # it was attached since
                self._transactions[lake] = self._begin(lake)
            return self._transactions[lake].nested()

    def nested_on_all(self) -> dict[str, Transaction]:
        with self._lock:
            return {lake: transaction.nested() for lake, transaction in self._transactions.items()}

    def fold(self, transactions: Mapping[str, Transaction], label: Any, reads: Collection[tuple[str, int]]) -> None:
        """Takes over the changes of nested transactions, all or, with a ConflictError, none."""
        changed = [lake for lake, transaction in transactions.items() if transaction.is_changed]
        with self._lock:
            others = {f.lake for f in self._folds}
            if len({*changed, *others}) > 1:
                raise LakeError(
                    f"a run that is published as one snapshot can change one lake, and it changes"
                    f" {' and '.join(sorted({*changed, *others}))}: two catalog databases do not commit together. Build"
                    " what is in the other lake in a run of its own, or publish each node (publish: node)"
                )
            for lake in changed:
                nested, shared = transactions[lake], self._transactions[lake]
                info = shared.commit_info
                try:
                    nested.merge_into_parent()
                except ConflictError:
                    self._dropped.append((lake, *only_difference(nested.origin, nested.staged)))
                    raise
                if label is not None:
                    shared.commit_info = info
                message = nested.commit_info.message if nested.commit_info != info else None
                ids = frozenset(i for name, i in reads if name == lake)
                self._folds.append(Fold(label, lake, *only_difference(nested.origin, nested.staged), ids, message))

    def drop(self, transactions: Mapping[str, Transaction]) -> None:
        """Notes that nested transactions are not folded, so that their files are removed."""
        with self._lock:
            for lake, transaction in transactions.items():
                if transaction.staged is not transaction.origin:
                    self._dropped.append((lake, *only_difference(transaction.origin, transaction.staged)))

    @property
    def folds(self) -> tuple[Fold, ...]:
        """The changes so far, in the order in which they were folded."""
        with self._lock:
            return tuple(self._folds)

    def staged_files(self, lake: str, data_path: str) -> set[str]:
        """The files of a lake that were written in the transaction, by their whole paths."""
        with self._lock:
            folded = [(f.origin, f.staged) for f in self._folds if f.lake == lake]
            dropped = [(origin, staged) for name, origin, staged in self._dropped if name == lake]
        return set().union(*(staged_files(origin, staged, data_path) for origin, staged in (*folded, *dropped)))

    @property
    def lake(self) -> str | None:
        """The lake that is changed, if one is."""
        return next((f.lake for f in self.folds), None)

    def transaction(self, lake: str) -> Transaction:
        """The transaction on a lake that had been attached when this one began, or that was used since."""
        return self._transactions[lake]

    def keep(self, folds: Iterable[Fold]) -> None:
        """Drops every change that is not among these."""
        for lake, transaction in self._transactions.items():
            staged = transaction.origin
            for kept in folds:
                if kept.lake == lake:
                    staged = fold(kept.origin, kept.staged, staged)
            transaction.staged = staged

    def set_commit_info(self, lake: str, info: CommitInfo) -> None:
        """Sets the commit info, except for a message that somebody set in a statement."""
        transaction = self._transactions[lake]
        message = transaction.commit_info.message or info.message
        author = info.author or transaction.commit_info.author
        transaction.commit_info = replace(info, author=author, message=message)


def remove_files(lakes: Mapping[str, Lake], shared: SharedTransaction, is_published: bool) -> None:
    """Deletes the files of a shared transaction that no snapshot has. What cannot be deleted is left as an orphan."""
    for name, lake in lakes.items():
        data_path = lake.catalog.data_path
        paths = shared.staged_files(name, data_path)
        if is_published:
            transaction = shared.transaction(name)
            paths -= staged_files(transaction.origin, transaction.staged, data_path)
        if not paths:
            continue
        folder = DataFolder(data_path, lake.file_store, lake.catalog.database)
        if failures := folder.delete(sorted(paths)):
            logger.warning(failure_text(failures, len(paths), "ducklake_delete_orphaned_files deletes them later"))
        folder.remove_empty_folders(paths - failures.keys())
