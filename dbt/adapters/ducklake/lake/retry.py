"""Retries of optimistic concurrency: how often, and after how long a wait."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from random import uniform
from typing import TypeVar

from .errors import BusyError, ConflictError

logger = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(frozen=True)
class Retry:
    """Exponential backoff between attempts to commit. The settings and their defaults are the reference's."""

    max_count: int = 10
    wait_ms: float = 100
    backoff: float = 1.5

    def wait(self, attempt: int) -> None:
        """Sleeps after a failed attempt. The first attempt is number 0."""
        time.sleep(self.wait_ms / 1000 * self.backoff**attempt * uniform(0.5, 1.0))

    def on_conflict(self, work: Callable[[], T], prepare: Callable[[], bool] = lambda: True) -> T:
        """Runs work that ends in a commit, and runs it again on the new state after a conflict.

        `prepare` gets everything ready for the next attempt and returns whether there may be one. A BusyError is
        raised at once because the commit has retried already.

        Every conflict means that another writer has committed. So one of all concurrent writers always succeeds.
        """
        for attempt in range(self.max_count):
            try:
                return work()
            except BusyError:
                raise
            except ConflictError as error:
                self.wait(attempt)
                if not prepare():
                    raise
                logger.info("retry after a conflict: %s", error)
        return work()
