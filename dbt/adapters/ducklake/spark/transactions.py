"""The transactions of each thread: one per lake, nested, committed together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..lake.commit.folding import changed_relations
from ..lake.commit.protocol import Committed
from ..lake.commit.staged import CommitInfo
from ..lake.errors import CommitUnknownError, LakeError
from ..lake.snapshot import Macro
from ..lake.transaction import Transaction
from .inputs import ReadKey
from .read.context import QueryContext, ResolvedRelation
from .read.lakes import Lake
from .shared_transaction import Fold, SharedTransaction, remove_files

T = TypeVar("T")


@dataclass
class TransactionFrame:
    """Transactions that end together, one per lake, with what was read and run in them.

    BEGIN, a `transaction()` block and a statement that changes a lake on its own each open a frame. The frame of
    a block inside a transaction is nested, and is merged into the one around it.
    """

    transactions: dict[str, Transaction]
    reads: dict[ReadKey, ResolvedRelation] = field(default_factory=dict)
    statements: list[Callable[[], object]] = field(default_factory=list)
    """What ran in the frame, for a replay."""
    replayable: bool = True
    """False once rows went to somebody who may have acted on them, or a statement ran that cannot run twice."""
    functions: dict[str, Macro] = field(default_factory=dict)
    """The functions of lakes that queries called, by their dotted names."""
    outside: set[str] = field(default_factory=set)
    """What queries read besides relations and functions of lakes."""
    label: Any = None
    """What a shared transaction is told of the frame when it is folded into it."""

    def record_read(self, relation: ResolvedRelation) -> None:
        key = relation.lake.name, relation.relation.id, relation.snapshot.id, relation.change_range
        self.reads[key] = relation

    def nested(self) -> TransactionFrame:
        return TransactionFrame({lake: t.nested() for lake, t in self.transactions.items()})

    def merge_into(self, outer: TransactionFrame) -> None:
        """Hands everything to the frame around this one."""
        for lake, transaction in self.transactions.items():
            if transaction.parent is None:
                outer.transactions[lake] = transaction
            else:
                transaction.merge_into_parent()
        outer.reads.update(self.reads)
        outer.functions.update(self.functions)
        outer.outside |= self.outside
        outer.statements += self.statements
        outer.replayable &= self.replayable


class _ThreadState(threading.local):
    """What each thread has for itself."""

    def __init__(self) -> None:
        self.frames: list[TransactionFrame] = []
        """The open frames, the innermost one last."""
        self.current_lake: str | None = None
        self.current_schema: str | None = None
        self.commit_message: str | None = None
        """The message of a transaction that is given none of its own."""
        self.last_commit: Committed | None = None
        """The outcome of the last commit; None if nothing was changed."""
        self.committed_snapshots: dict[str, int] = {}
        """The last snapshot that the thread committed to each lake."""
        self.failed_commit: TransactionFrame | None = None
        """The frame whose commit failed, until the next commit succeeds."""


class ThreadTransactions:
    """The open transactions of each thread, and where it resolves unqualified names.

    Threads share the object and see nothing of each other. Outside of a transaction, a statement reads the newest
    snapshot and commits what it changes. While there is a shared transaction, the frames of all threads are nested in
    it instead.
    """

    def __init__(self, lakes: Mapping[str, Lake], default_lake: str, default_schema: str, author: str | None) -> None:
        self.default_lake = default_lake
        self.default_schema = default_schema
        self.author = author
        self._lakes = lakes
        self._thread = _ThreadState()
        self.shared: SharedTransaction | None = None

    # -- frames

    @property
    def in_transaction(self) -> bool:
        return bool(self._thread.frames)

    def running(self, operation: str) -> TransactionFrame:
        """The innermost open frame. Raises an error that names the operation if no transaction has begun."""
        if not self._thread.frames:
            raise LakeError(f"{operation} without a transaction: BEGIN one first")
        return self._thread.frames[-1]

    def begin(self) -> TransactionFrame:
        """Opens a frame, nested in the innermost open one if there is one."""
        if self._thread.frames:
            frame = self._thread.frames[-1].nested()
        elif self.shared is not None:
            frame = TransactionFrame(self.shared.nested_on_all())
        else:
            frame = TransactionFrame({self.default_lake: self._new_transaction(self.default_lake)})
        self._thread.frames.append(frame)
        return frame

    def discard(self, frame: TransactionFrame) -> None:
        """Closes a frame and drops what it staged."""
        self._close(frame)
        if self.shared is not None:
            self.shared.drop(frame.transactions)

    def _close(self, frame: TransactionFrame) -> None:
        self._thread.frames = [f for f in self._thread.frames if f is not frame]

    def discard_all(self) -> None:
        self._thread.frames.clear()

    def complete(self, frame: TransactionFrame) -> int | None:
        """Closes a frame: merges it into the one around it, or commits it and returns the snapshot of the commit."""
        self._close(frame)
        if self._thread.frames:
            frame.merge_into(self._thread.frames[-1])
            return None
        if self.shared is not None:
            self._thread.last_commit, self._thread.failed_commit = None, frame
            self.shared.fold(frame.transactions, frame.label, {(lake.lower(), i) for lake, i, _, _ in frame.reads})
            self._thread.failed_commit = None
            return None
        changed = [lake for lake, t in frame.transactions.items() if t.is_changed]
        if len(changed) > 1:
            raise LakeError(
                "a transaction can change one lake, since two catalog databases do not commit together;"
                " change the other lake in a transaction of its own"
            )
        self._thread.last_commit, self._thread.failed_commit = None, frame
        for lake in changed:
            try:
                self._thread.last_commit = frame.transactions[lake].commit()
            except CommitUnknownError:
                self._thread.failed_commit = None  # A replay could commit a second time.
                raise
            self._thread.committed_snapshots[lake] = self._thread.last_commit.snapshot.id
        self._thread.failed_commit = None
        return self.last_snapshot

    @contextmanager
    def new_frame(self) -> Iterator[TransactionFrame]:
        """A frame that is completed at the end of the block, and discarded if an error leaves the block."""
        frame = self.begin()
        try:
            yield frame
        except BaseException:
            self.discard(frame)
            raise
        self.complete(frame)

    @contextmanager
    def running_or_new_frame(self) -> Iterator[TransactionFrame]:
        """The innermost open frame, or a new one where no transaction has begun."""
        if self._thread.frames:
            yield self._thread.frames[-1]
        else:
            with self.new_frame() as frame:
                yield frame

    @property
    def last_snapshot(self) -> int | None:
        """The snapshot of the thread's last commit; None if that changed nothing."""
        return self._thread.last_commit.snapshot.id if self._thread.last_commit else None

    # -- the shared transaction

    def share(self) -> SharedTransaction:
        """Begins a transaction on every lake, in which those of all threads are nested from now on."""
        if self.shared is not None or self._thread.frames:
            raise LakeError("a transaction has begun already; complete it before a shared one begins")
        self.shared = SharedTransaction(lambda lake: self._begin_on(lake, None), self._lakes)
        return self.shared

    def publish(self, info: CommitInfo, kept: Sequence[Fold]) -> Committed:
        """Ends the shared transaction: commits these of its changes, and removes the files of others.

        If the commit fails, nothing is changed, and the files of all are deleted.
        """
        shared, self.shared = self.shared, None
        if shared is None:
            raise LakeError("there is no shared transaction to publish: begin one first")
        lake = shared.lake or self.default_lake
        try:
            shared.keep(kept)
            shared.set_commit_info(lake, info)
            committed = shared.transaction(lake).commit()
        except CommitUnknownError:
            raise  # the snapshot may have the files
        except Exception:
            remove_files(self._lakes, shared, is_published=False)
            raise
        remove_files(self._lakes, shared, is_published=True)
        return committed

    def discard_shared(self) -> None:
        """Ends the shared transaction, if there is one: its changes are dropped, and their files deleted."""
        shared, self.shared = self.shared, None
        if shared is not None:
            remove_files(self._lakes, shared, is_published=False)

    # -- transactions of a frame

    def transaction_on(self, lake: str, frame: TransactionFrame) -> Transaction:
        """The frame's transaction on a lake; it begins when it is first asked for."""
        lake = lake.lower()
        if lake not in frame.transactions:
            frame.transactions[lake] = self._new_transaction(lake)
        return frame.transactions[lake]

    def _new_transaction(self, lake: str) -> Transaction:
        if self.shared is not None:
            return self.shared.nested(lake)
        return self._begin_on(lake, self._thread.commit_message)

    def _begin_on(self, lake: str, message: str | None) -> Transaction:
        transaction = self._lakes[lake].begin()
        transaction.commit_info = CommitInfo(self.author, message)
        return transaction

    @contextmanager
    def commit_message(self, message: str | None) -> Iterator[None]:
        """Sets the message of the transactions that the thread begins in the block."""
        before, self._thread.commit_message = self._thread.commit_message, message
        try:
            yield
        finally:
            self._thread.commit_message = before

    # -- names

    @property
    def current_lake(self) -> str:
        return self._thread.current_lake or self.default_lake

    def use(self, lake: str, schema: str) -> None:
        """Sets where the thread resolves unqualified names."""
        self._thread.current_lake, self._thread.current_schema = lake, schema

    def query_context(
        self, frame: TransactionFrame | None = None, nested: Mapping[str, Transaction] | None = None
    ) -> QueryContext:
        """Names and reads in a frame: by default the innermost open one, or the newest snapshot if none is open.

        `nested` has the transactions of one statement, which take the place of the frame's on their lakes.
        """
        if frame is None:
            frame = self._thread.frames[-1] if self._thread.frames else TransactionFrame({})
        own = nested or {}
        return QueryContext(
            self._lakes,
            lambda lake: own[lake.lower()] if lake.lower() in own else self.transaction_on(lake, frame),
            self.current_lake,
            self._thread.current_schema or self.default_schema,
            frame.record_read,
            self._thread.committed_snapshots,
            frame.functions.__setitem__,
            frame.outside.add,
        )

    # -- replay

    def run(self, statement: Callable[[], T]) -> T:
        """Runs a statement. An open transaction records it for a replay."""
        result = statement()
        if self._thread.frames:
            self._thread.frames[-1].statements.append(statement)
        return result

    def prevent_replay(self) -> None:
        if self._thread.frames:
            self._thread.frames[-1].replayable = False

    def replay(self) -> bool:
        """Reruns the statements of the frame whose commit failed, in a new frame on the newest snapshot.

        Returns False and runs nothing if the frame is not replayable, or if definitions changed since it began.
        """
        failed = self._thread.failed_commit
        if failed is None or not failed.replayable or self._thread.frames:
            return False
        frame = self.begin()
        frame.label = failed.label
        try:
            for lake, before in failed.transactions.items():
                if self._definitions_differ(before, self.transaction_on(lake, frame), failed):
                    self.discard(frame)
                    return False
            for statement in failed.statements:
                self.run(statement)
        except BaseException:
            self.discard(frame)
            raise
        return True

    def _definitions_differ(self, before: Transaction, now: Transaction, frame: TransactionFrame) -> bool:
        """Whether the statements of a frame may mean something else in a newer transaction."""
        if self.shared is None:
            return now.base.schema_version != before.base.schema_version
        # Nodes that ran beside this one change definitions all the time; those that it has to do with are the same.
        used = {relation.relation.id for relation in frame.reads.values() if relation.lake.catalog is before.catalog}
        used |= changed_relations(before.origin, before.staged)
        old, new = before.origin.state, now.origin.state
        return any(old.tables.get(i) != new.tables.get(i) or old.views.get(i) != new.views.get(i) for i in used)
