"""A commit whose answer is lost: find out whether it took place.

If the connection breaks during COMMIT, the client cannot know whether the database has committed. Neither answer may
be guessed: a commit that is taken for failed is repeated and doubles its rows, and one that is taken for done may lose
them.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import sqlalchemy as sa

from .. import tables as t
from ..catalog import Catalog, Commit, SnapshotInfo
from ..databases.base import driver_message
from ..errors import CommitUnknownError

_PATIENCE_SECONDS = 60
"""How long to look. A database that fails over or restarts is back by then, mostly."""

_MIN_RETRIES = 3


@dataclass(frozen=True)
class WrittenCommit:
    """The rows by which a commit is recognized when the answer to COMMIT is lost.

    The snapshot id alone says nothing: after a rollback another writer takes the same id. That writer may have the same
    author, message and changes, if it runs the same job. But

    * a commit that adds rows or delete files has a path with a UUID, which no other commit has. So an append is always
      recognized.
    * any other commit is compared in every column of its two rows. The time in it has microseconds, and chance in it
      where it is not that of the clock (see `snapshot_writer`).
    """

    snapshot: SnapshotInfo
    changes: Commit | None
    """The row of `ducklake_snapshot_changes`; None if only options change, which makes no snapshot."""
    file_path: tuple[sa.Column[str], str] | None = None
    """The path of a file that this commit adds, and the column that holds it."""

    def find(self, connection: sa.Connection, catalog: Catalog) -> bool | None:
        """Whether the catalog has this commit; None if it has no commit of its id, or none any more."""
        snapshot_id = self.snapshot.id
        row = connection.execute(sa.select(t.snapshot).where(t.snapshot.c.snapshot_id == snapshot_id)).first()
        if row is None:
            return self._has_file(connection) or None
        changes = next(iter(catalog.commits_after(connection, snapshot_id - 1)), None)
        if SnapshotInfo.from_row(row) != self.snapshot or changes != self.changes:
            return False
        # A later commit may have removed the row, for example when it merged the file with others.
        is_latest = catalog.latest_snapshot(connection).id == snapshot_id
        return not is_latest or self.file_path is None or self._has_file(connection)

    def statement(self, catalog: Catalog) -> str:
        """The SQL statement for the catalog database that returns a row if this commit took place."""
        columns = (sa.column(c.name, c.type) for c in t.snapshot.columns)
        snapshots = sa.table(t.snapshot.name, *columns, schema=catalog.metadata_schema)
        return catalog.sql_text(
            sa.select(snapshots.c.snapshot_id).where(
                snapshots.c.snapshot_id == self.snapshot.id, snapshots.c.snapshot_time == self.snapshot.time
            )
        )

    def _has_file(self, connection: sa.Connection) -> bool:
        if self.file_path is None:
            return False
        column, value = self.file_path
        return connection.execute(sa.select(column).where(column == value).limit(1)).first() is not None


def took_place(catalog: Catalog, commit: WrittenCommit, cause: Exception) -> bool:
    """Whether a commit took place, although COMMIT raised an error. Looks on new connections, several times.

    Raises CommitUnknownError if that cannot be found out.
    """
    deadline, reason = time.monotonic() + _PATIENCE_SECONDS, ""
    for attempt in range(max(catalog.retry.max_count, _MIN_RETRIES) + 1):
        if attempt:
            catalog.retry.wait(attempt - 1)
        if time.monotonic() > deadline:
            break
        try:
            with catalog.write() as connection:
                found = commit.find(connection, catalog)
                if found is not None:
                    return found
                if catalog.latest_snapshot(connection).id > commit.snapshot.id:
                    reason = f"snapshot {commit.snapshot.id} has been expired since"
                    break
                _wait_for_lost_transaction(connection, catalog, commit.snapshot.id)
                return False
        except sa.exc.DBAPIError as error:
            reason = driver_message(error)
    statement = commit.statement(catalog)
    raise CommitUnknownError(
        f"the connection to the catalog in {catalog.database.location} broke during the commit"
        f" ({message_of(cause)}), and whether snapshot {commit.snapshot.id} was committed can not be found out:"
        f" {reason}. Do not run it again before you know. This statement, in the catalog database, returns a row if it"
        f" was committed: {statement}",
        statement,
    ) from cause


def _wait_for_lost_transaction(connection: sa.Connection, catalog: Catalog, snapshot_id: int) -> None:
    """Waits until the transaction that inserted a snapshot has ended without a commit; raises if it has not.

    The database may not have noticed that the connection is gone, and a COMMIT may still arrive. To insert the same
    snapshot id waits for that transaction, and succeeds only if it was rolled back.
    """
    catalog.database.limit_lock_wait(connection)
    catalog.database.insert(connection, t.snapshot, [{"snapshot_id": snapshot_id}])
    connection.get_transaction().rollback()  # type: ignore[union-attr]


def message_of(error: Exception) -> str:
    """The message of the database, or of an error that does not come from it."""
    return driver_message(error) if isinstance(error, sa.exc.DBAPIError) else str(error) or type(error).__name__
