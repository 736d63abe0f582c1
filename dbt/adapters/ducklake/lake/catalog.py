"""The catalog of a lake: open it, read snapshots and options, write in short transactions."""

from __future__ import annotations

import datetime
import os
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa

from . import tables as t
from .databases.base import Database, driver_message
from .databases.connection_string import parse_catalog
from .errors import CatalogError, ConflictError, NotFoundError, ReadOnlyError
from .format_versions import FORMAT_VERSIONS, NEW_LAKES, WRITABLE_VERSIONS, FormatVersion
from .lake_creation import create_lake, load_settings
from .migration import can_migrate
from .options import Options, parse_option
from .paths import as_folder, local_path, same_folder, scheme_of
from .retry import Retry

T = TypeVar("T")

_CONNECT_ATTEMPTS = 4

_WRITER: Mapping[str, Sequence[str]] = {
    "ducklake_snapshot": ("INSERT",),
    "ducklake_snapshot_changes": ("INSERT",),
    "ducklake_data_file": ("INSERT", "UPDATE"),
    "ducklake_table_stats": ("INSERT", "UPDATE"),
}
"""What any writer needs in the catalog database, by table."""
_MAINTAINER: Mapping[str, Sequence[str]] = {
    "ducklake_snapshot": ("DELETE",),
    "ducklake_data_file": ("DELETE",),
    "ducklake_files_scheduled_for_deletion": ("DELETE",),
}
"""What expiry and clean-up need besides."""


@dataclass(frozen=True)
class SnapshotInfo:
    """A row of `ducklake_snapshot`."""

    id: int
    time: datetime.datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int

    @classmethod
    def from_row(cls, row: Any) -> SnapshotInfo:
        return cls(*row)


@dataclass(frozen=True)
class Commit:
    """A row of `ducklake_snapshot_changes`."""

    snapshot_id: int
    changes_made: str
    """The changes as text; see `snapshot_changes.parse_changes`."""
    author: str | None
    message: str | None
    extra_info: str | None


@dataclass(frozen=True)
class NewSnapshots:
    """The snapshots that were committed since another one."""

    latest: SnapshotInfo
    """The newest of the lake, which may be the other one."""
    commits: tuple[Commit, ...]
    is_complete: bool
    """Whether none of them is expired, nor the other one."""


_FORMAT = sa.select(t.ducklake_metadata.c.value).where(
    t.ducklake_metadata.c.key == "version", t.ducklake_metadata.c.scope.is_(None)
)
"""The format version that the catalog has."""

_NEW_SNAPSHOTS = (
    sa.select(
        t.snapshot,
        t.snapshot_changes.c.changes_made,
        t.snapshot_changes.c.author,
        t.snapshot_changes.c.commit_message,
        t.snapshot_changes.c.commit_extra_info,
        _FORMAT.scalar_subquery().label("format_version"),
    )
    .select_from(t.snapshot.outerjoin(t.snapshot_changes, t.snapshot.c.snapshot_id == t.snapshot_changes.c.snapshot_id))
    .where(t.snapshot.c.snapshot_id >= sa.bindparam("base_id"))
    .order_by(t.snapshot.c.snapshot_id)
)
"""Made once, because other writers wait while it is executed."""


class Catalog:
    """The catalog of one lake. Threads may share it."""

    def __init__(
        self,
        database: Database,
        engine: sa.Engine,
        *,
        data_path: str,
        metadata_schema: str | None,
        read_only: bool,
        retry: Retry,
        option_defaults: Mapping[str, str],
        format_version: FormatVersion,
        is_encrypted: bool = False,
    ) -> None:
        self.database = database
        self.format = format_version
        self.data_path = data_path
        self.metadata_schema = metadata_schema
        self.read_only = read_only
        self.retry = retry
        self.option_defaults = option_defaults
        """Defaults of this session for options that the lake does not set."""
        self.is_encrypted = is_encrypted
        """Whether new files are encrypted."""
        self._engine = engine
        self._checked_access: set[str] = set()

    @classmethod
    def open(
        cls,
        catalog: str,
        data_path: str | None = None,
        *,
        metadata_schema: str | None = None,
        read_only: bool = False,
        create_if_not_exists: bool = True,
        override_data_path: bool = False,
        retry: Retry | None = None,
        data_inlining_row_limit: int | None = None,
        format_version: str | None = None,
        encrypted: bool = False,
    ) -> Catalog:
        """Opens the lake that a catalog string names. Creates it if there is none and that is allowed.

        `format_version` and `encrypted` are those of a new lake. An existing lake keeps its own.
        """
        new_format = _writable_version(format_version or NEW_LAKES)
        database = parse_catalog(catalog)
        option_defaults = {}
        if data_inlining_row_limit is not None:
            option_defaults["data_inlining_row_limit"] = parse_option(
                "data_inlining_row_limit", data_inlining_row_limit
            )
        if metadata_schema and not database.has_schemas:
            raise CatalogError(
                f"metadata_schema {metadata_schema!r} is given, but a {database.name} database has no schemas;"
                " leave it out"
            )
        retry = retry or Retry()
        engine = database.engine()
        if metadata_schema:
            engine = engine.execution_options(lake_schema=metadata_schema)
        may_create = create_if_not_exists and not read_only
        if not may_create and not database.exists():
            raise _no_lake_error(database, read_only)
        settings = _connect(database, retry, lambda: load_settings(engine, database, metadata_schema))
        if settings is None:
            if not may_create:
                raise _no_lake_error(database, read_only)
            data_path = data_path or database.default_data_path
            if not data_path:
                raise CatalogError(
                    f"there is no lake in {database.location} yet, and data_path is not given:"
                    " say where its data files shall be, and it is created"
                )
            folder = as_folder(data_path)
            settings = _connect(
                database, retry, lambda: create_lake(engine, database, metadata_schema, folder, new_format, encrypted)
            )
        found_format = _format_of(settings, database)
        _connect(database, retry, lambda: _check_layout(engine, database, found_format))
        is_encrypted = settings.get("encrypted", "false").lower() == "true"
        if encrypted and not is_encrypted:
            raise CatalogError(
                f"encrypted is true, but the lake in {database.location} is not encrypted, and files that are written"
                " can not become so; leave encrypted out, or copy the tables into a new lake"
            )
        stored_path = settings["data_path"]
        if data_path and not same_folder(data_path, stored_path) and not override_data_path:
            raise CatalogError(
                f"data_path is {data_path!r}, but the lake in {database.location} keeps its data in"
                f" {stored_path!r}; leave data_path out to use the lake as it is"
            )
        return cls(
            database,
            engine,
            data_path=as_folder(data_path) if data_path and override_data_path else stored_path,
            metadata_schema=metadata_schema,
            read_only=read_only,
            retry=retry,
            option_defaults=option_defaults,
            format_version=found_format,
            is_encrypted=is_encrypted,
        )

    def __repr__(self) -> str:
        return f"Catalog({self.database.location!r}, data_path={self.data_path!r})"

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def read(self, other_schema: str | None = None) -> Iterator[sa.Connection]:
        """A short read transaction, in which all queries see the same state of the catalog.

        `other_schema` is that of another lake in the same database, to read that one's catalog.
        """
        engine = self._engine if other_schema is None else self._engine.execution_options(lake_schema=other_schema)
        try:
            with self.database.transaction(engine, write=False) as connection:
                yield connection
        except sa.exc.DBAPIError as error:
            reason = driver_message(error)
            raise CatalogError(f"the catalog in {self.database.location} can not be read: {reason}") from error

    @contextmanager
    def write(self, in_line: bool = False) -> Iterator[sa.Connection]:
        """A short write transaction, for one attempt to commit. With `in_line`, `wait_in_line` is its first query."""
        self.check_writable()
        with self.database.transaction(self._engine, write=True, in_line=in_line) as connection:
            yield connection

    def sql_text(self, query: sa.Select[Any]) -> str:
        """A query as SQL for the catalog database, for a user to run."""
        compiled = query.compile(self._engine, compile_kwargs={"literal_binds": True})
        return " ".join(str(compiled).split())

    def check_writable(self) -> None:
        """Raises if the lake is opened read-only."""
        if self.read_only:
            raise ReadOnlyError(
                f"the lake in {self.database.location} is opened read-only; set read_only: false to change it"
            )
        self._check_access(_WRITER, "write to")
        if self.format.is_read_only:
            raise ReadOnlyError(
                f"the lake in {self.database.location} has format version {self.format.name}, which was never released"
                " and is only read; copy its tables into a new lake to change them"
            )

    def check_maintainable(self) -> None:
        """Raises if the user may not delete what nobody needs: snapshots, and the files of snapshots."""
        self.check_writable()
        self._check_access(_MAINTAINER, "maintain")

    def _check_access(self, needed: Mapping[str, Sequence[str]], verb: str) -> None:
        """Raises if the user lacks privileges in the catalog, or may not write into the folder of the lake's files."""
        if verb in self._checked_access:
            return
        with self.read() as connection:
            missing = self.database.missing_privileges(connection, needed)
        if missing:
            raise ReadOnlyError(
                f"the user of {self.database.location} may not {verb} the lake, for lack of {', '.join(missing)};"
                " ask its administrator for these privileges, or set read_only: true"
            )
        if scheme_of(self.data_path) in (None, "file"):
            folder = local_path(self.data_path)
            if os.path.isdir(folder) and not os.access(folder, os.W_OK):
                raise ReadOnlyError(
                    f"this user may not write into the data path {self.data_path} of the lake;"
                    " ask its administrator for the permission, or set read_only: true"
                )
        self._checked_access.add(verb)

    def check_format(self, connection: sa.Connection) -> None:
        """Raises if the lake was migrated to another format version since it was opened."""
        self._check_format_is(connection.scalar(_FORMAT))

    def _check_format_is(self, current: str | None) -> None:
        if current != self.format.name:
            raise CatalogError(
                f"the lake in {self.database.location} was migrated from format version {self.format.name} to {current}"
                " in the meantime; open it again"
            )

    def has_table(self, connection: sa.Connection, name: str) -> bool:
        """Whether the catalog database has a table of this name."""
        return self.database.has_table(connection, name)

    def options(self, connection: sa.Connection) -> Options:
        rows = connection.execute(sa.select(t.ducklake_metadata)).all()
        return Options.from_rows(((r.scope, r.scope_id, r.key, r.value) for r in rows), self.option_defaults)

    def latest_snapshot(self, connection: sa.Connection) -> SnapshotInfo:
        latest_id = sa.select(sa.func.max(t.snapshot.c.snapshot_id)).scalar_subquery()
        row = connection.execute(sa.select(t.snapshot).where(t.snapshot.c.snapshot_id == latest_id)).one()
        return SnapshotInfo.from_row(row)

    def new_snapshots(self, connection: sa.Connection, base: SnapshotInfo) -> NewSnapshots:
        """What was committed since a snapshot, with one query. Checks the format version as well."""
        rows = connection.execute(_NEW_SNAPSHOTS, {"base_id": base.id}).all()
        if not rows:
            self.check_format(connection)
            return NewSnapshots(self.latest_snapshot(connection), (), is_complete=False)
        self._check_format_is(rows[0].format_version)
        latest = SnapshotInfo.from_row(rows[-1][: len(t.snapshot.columns)])
        commits = tuple(
            Commit(r.snapshot_id, r.changes_made or "", r.author, r.commit_message, r.commit_extra_info)
            for r in rows
            if r.snapshot_id > base.id
        )
        return NewSnapshots(latest, commits, is_complete=len(rows) == latest.id - base.id + 1)

    def snapshot_at_version(self, connection: sa.Connection, version: int) -> SnapshotInfo:
        ids = t.snapshot.c.snapshot_id
        row = connection.execute(sa.select(t.snapshot).where(ids == version)).first()
        if row is not None:
            return SnapshotInfo.from_row(row)
        below = connection.scalar(sa.select(sa.func.max(ids)).where(ids < version))
        above = connection.scalar(sa.select(sa.func.min(ids)).where(ids > version))
        nearest = " and ".join(str(n) for n in (below, above) if n is not None)
        reason = "it was expired" if above is not None and below is not None else "the lake never had it"
        if above is not None and below is None:
            reason = "it was expired, or never was"
        raise NotFoundError(f"there is no snapshot {version}: {reason}; nearest to it there is {nearest}")

    def snapshot_at_timestamp(self, connection: sa.Connection, moment: datetime.datetime) -> SnapshotInfo:
        """The snapshot that was the latest one at that moment. Raises if it may be one that was expired."""
        sort_key = self.database.timestamp_sort_key
        row = connection.execute(
            sa.select(t.snapshot)
            .where(sort_key(t.snapshot.c.snapshot_time) <= sort_key(sa.literal(moment, t.Instant())))
            .order_by(sort_key(t.snapshot.c.snapshot_time).desc(), t.snapshot.c.snapshot_id.desc())
            .limit(1)
        ).first()
        if row is not None:
            ids = t.snapshot.c.snapshot_id
            following = connection.scalar(sa.select(sa.func.min(ids)).where(ids > row.snapshot_id))
            if following is not None and following > row.snapshot_id + 1:
                raise NotFoundError(
                    f"there is no snapshot at {moment.isoformat()}: which one was the latest is not known: those"
                    f" between {row.snapshot_id} and {following} were expired; read one of these two by its version"
                )
            return SnapshotInfo.from_row(row)
        first = connection.execute(sa.select(t.snapshot).order_by(t.snapshot.c.snapshot_id).limit(1)).one()
        raise NotFoundError(
            f"there is no snapshot at {moment.isoformat()}: the lake's first is {first.snapshot_id}"
            f" of {first.snapshot_time.isoformat()}"
        )

    def check_not_expired(self, connection: sa.Connection, snapshot_id: int) -> None:
        """Raises if a snapshot that a transaction reads was expired after it began: rows of its files may be gone."""
        ids = t.snapshot.c.snapshot_id
        if connection.scalar(sa.select(ids).where(ids == snapshot_id)) is None:
            raise ConflictError(
                f"snapshot {snapshot_id}, which the transaction reads, was expired after it began; run it again, and"
                " keep snapshots longer than transactions take"
            )

    def first_snapshot_since(self, connection: sa.Connection, moment: datetime.datetime) -> SnapshotInfo:
        """The first snapshot that was committed at that moment or later."""
        sort_key = self.database.timestamp_sort_key
        committed_since = sort_key(t.snapshot.c.snapshot_time) >= sort_key(sa.literal(moment, t.Instant()))
        query = sa.select(t.snapshot).where(committed_since).order_by(t.snapshot.c.snapshot_id).limit(1)
        row = connection.execute(query).first()
        if row is not None:
            return SnapshotInfo.from_row(row)
        last = self.latest_snapshot(connection)
        raise NotFoundError(
            f"there is no snapshot since {moment.isoformat()}: the lake's last is {last.id} of {last.time.isoformat()}"
        )

    def commit_times(self, connection: sa.Connection, snapshot_ids: Iterable[int]) -> dict[int, datetime.datetime]:
        """The commit time of each snapshot. An expired one gets the time of the next snapshot that is left, if any."""
        wanted = sorted(set(snapshot_ids))
        if not wanted:
            return {}
        snapshot_id = t.snapshot.c.snapshot_id
        query = sa.select(snapshot_id, t.snapshot.c.snapshot_time).where(snapshot_id >= wanted[0])
        rows = connection.execute(query.order_by(snapshot_id)).all()
        ids = [row.snapshot_id for row in rows]
        indexes = {wanted_id: bisect_left(ids, wanted_id) for wanted_id in wanted}
        return {wanted_id: rows[index].snapshot_time for wanted_id, index in indexes.items() if index < len(rows)}

    def commits_after(self, connection: sa.Connection, snapshot_id: int) -> list[Commit]:
        changes = t.snapshot_changes
        query = sa.select(changes).where(changes.c.snapshot_id > snapshot_id).order_by(changes.c.snapshot_id)
        return [
            Commit(r.snapshot_id, r.changes_made or "", r.author, r.commit_message, r.commit_extra_info)
            for r in connection.execute(query)
        ]


def _no_lake_error(database: Database, read_only: bool) -> CatalogError:
    reason = "the lake is opened read-only" if read_only else "create_if_not_exists is false"
    return CatalogError(
        f"there is no lake in {database.location}, and none is created because {reason};"
        " check the catalog string, or let it be created once"
    )


def _connect(database: Database, retry: Retry, work: Callable[[], T]) -> T:
    """Runs the first work in a catalog database. Retries a few times while the database is unreachable."""
    start = time.monotonic()
    for attempt in range(_CONNECT_ATTEMPTS):
        try:
            return work()
        except sa.exc.DBAPIError as error:
            if not database.is_unreachable(error):
                reason = driver_message(error)
                raise CatalogError(f"the catalog in {database.location} can not be read: {reason}") from error
            if attempt == _CONNECT_ATTEMPTS - 1:
                seconds = time.monotonic() - start
                raise CatalogError(
                    f"the catalog database {database.location} does not answer ({_CONNECT_ATTEMPTS} tries in"
                    f" {seconds:.1f} s): {driver_message(error)}"
                ) from error
            retry.wait(attempt)
    raise AssertionError("unreachable")


def _writable_version(name: str) -> FormatVersion:
    if name not in WRITABLE_VERSIONS:
        raise CatalogError(
            f"format_version is {name!r}, and new lakes can have version {' or '.join(WRITABLE_VERSIONS)}"
        )
    return FORMAT_VERSIONS[name]


def _format_of(settings: Mapping[str, str], database: Database) -> FormatVersion:
    """The format version of a lake. Raises if it is not known."""
    name = settings.get("version", "unknown")
    if name not in FORMAT_VERSIONS:
        advice = "install a newer dbt-ducklake"
        if can_migrate(name):
            advice = "bring the lake up to date with `dbt run-operation ducklake_migrate` or LakeSession.migrate"
        raise CatalogError(
            f"the lake in {database.location} has format version {name}, and this package works with"
            f" {' and '.join(WRITABLE_VERSIONS)}; {advice}"
        )
    return FORMAT_VERSIONS[name]


def _check_layout(engine: sa.Engine, database: Database, format_version: FormatVersion) -> None:
    """Raises if the catalog holds something that nobody here knows: this package would neither read nor keep it.

    Unknown tables and columns without values are fine. A new row has no value in such a column.
    """
    with database.transaction(engine, write=False) as connection:
        for table_name, column_name in database.catalog_columns(connection):
            table = format_version.tables.get(table_name)
            if table is not None and column_name in table.columns:
                continue
            column: sa.ColumnClause[Any] = sa.column(sa.quoted_name(column_name, quote=True))
            source = sa.table(sa.quoted_name(table_name, quote=True))
            if connection.scalar(sa.select(sa.func.count(column)).select_from(source)):
                raise CatalogError(
                    f"the lake in {database.location} has format version {format_version.name}, and"
                    f" {table_name}.{column_name} in its catalog, which has values, is not known to this package;"
                    " install a newer dbt-ducklake"
                )
