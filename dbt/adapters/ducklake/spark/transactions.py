"""The transactions of a thread: one a lake, nested, committed together."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from ..lake.commit.protocol import Committed
from ..lake.transaction import Transaction
from .read.context import Consumed, Found


@dataclass
class TransactionFrame:
    """The transactions that run together, one a lake, and what was read in them."""

    transactions: dict[str, Transaction]
    reads: dict[tuple[str, int, int, Consumed | None], Found] = field(default_factory=dict)
    steps: list[Callable[[], object]] = field(default_factory=list)
    """What was done in them, to be done again."""
    shown: bool = False
    """Whether rows went to somebody who may have acted on them."""

    def saw(self, found: Found) -> None:
        self.reads[found.lake.name, found.relation.id, found.at.id, found.consumed] = found

    def nested(self) -> TransactionFrame:
        return TransactionFrame({name: t.nested() for name, t in self.transactions.items()})


class ThreadState(threading.local):
    """What each thread has for itself: its transactions, and where it looks names up."""

    def __init__(self) -> None:
        self.open: list[TransactionFrame] = []
        self.lake: str | None = None
        self.schema: str | None = None
        self.message: str | None = None
        """What a transaction's message is, unless it is given one."""
        self.committed: Committed | None = None
        """What the thread's last commit did."""
        self.snapshots: dict[str, int] = {}
        """The last snapshot that the thread committed to each lake."""
        self.ended: TransactionFrame | None = None
        """The transactions that were to be committed last."""
