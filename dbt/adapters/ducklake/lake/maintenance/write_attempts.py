"""Write transactions of maintenance: run again while other writers are first, or connections break."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa

from ..catalog import Catalog
from ..databases.base import driver_message
from ..errors import BusyError, LakeError

T = TypeVar("T")


def write_with_retries(
    catalog: Catalog,
    purpose: str,
    work: Callable[[sa.Connection], T],
    wait_for_others: Callable[[sa.Connection], None] = lambda connection: None,
    in_line: bool = False,
) -> T:
    """Runs work in a write transaction, and runs it again on the new state after a write conflict.

    `wait_for_others` comes first. On MySQL a transaction reads what was committed before its first query, so no query
    may precede the wait.

    With `in_line` the work waits in line with commits, and they wait for it. That is for work that changes what commits
    change. It begins by changing a row that other programs change as well, since these do not wait.

    The work may run twice even though its first transaction was committed, if the answer to COMMIT is lost. So it must
    be one that finds nothing left to do then.
    """
    retry, database, attempt = catalog.retry, catalog.database, 0
    while True:
        connected = False
        try:
            with catalog.write(in_line) as connection:
                connected = True
                if in_line:
                    database.wait_in_line(connection)
                wait_for_others(connection)
                catalog.check_format(connection)
                return work(connection)
        except sa.exc.DBAPIError as error:
            is_conflict = database.is_write_conflict(error)
            if is_conflict and attempt == retry.max_count:
                raise BusyError(
                    f"{purpose} failed: other writers were first {attempt + 1} times in a row; run it again, or raise"
                    " retry.max_count"
                ) from error
            if attempt == retry.max_count or not (is_conflict or database.can_reconnect(error, connected)):
                raise LakeError(
                    f"{purpose} failed in {database.location}: {driver_message(error)}; it can be run again at any time"
                ) from error
            retry.wait(attempt)
            attempt += 1
