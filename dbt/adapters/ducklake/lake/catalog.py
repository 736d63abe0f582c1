"""Open or create a lake, and read and write its catalog."""

from __future__ import annotations

import datetime
import logging
import os
import time
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from random import uniform
from typing import Any, TypeVar

import sqlalchemy as sa

from . import tables as t
from .databases.base import Database, first_line
from .databases.connection_string import parse_catalog
from .errors import BusyError, CatalogError, ConflictError, NotFoundError, ReadOnlyError
from .options import Options, parse_option
from .paths import as_folder, same_folder

logger = logging.getLogger(__name__)
T = TypeVar("T")

FORMAT_VERSION = "1.0"
_OPENING_TRIES = 4


@dataclass(frozen=True)
class Retry:
    """How often and how patiently a commit is tried again: the reference's settings and defaults."""

    max_count: int = 10
    wait_ms: float = 100
    backoff: float = 1.5

    def wait(self, attempt: int) -> None:
        time.sleep(self.wait_ms / 1000 * self.backoff**attempt * uniform(0.5, 1.0))

    def planned(self, work: Callable[[], T], again: Callable[[], bool] = lambda: True) -> T:
        """Does work that ends in a commit; does it anew on what others committed that it could not pass.

        `again` prepares that, and says whether it is to be. Whoever was in the way has committed for
        good: of all who compete, one always gets on.
        """
        for attempt in range(self.max_count):
            try:
                return work()
            except BusyError:
                raise
            except ConflictError as error:
                self.wait(attempt)
                if not again():
                    raise
                logger.info("planned again: %s", error)
        return work()


@dataclass(frozen=True)
class SnapshotInfo:
    """A row of `ducklake_snapshot`."""

    id: int
    time: datetime.datetime
    schema_version: int
    next_catalog_id: int
    next_file_id: int


@dataclass(frozen=True)
class Commit:
    """A snapshot as its row in `ducklake_snapshot_changes` tells of it."""

    snapshot_id: int
    changes_made: str
    author: str | None
    message: str | None
    extra_info: str | None


def _info(row: Any) -> SnapshotInfo:
    return SnapshotInfo(*row)


class Catalog:
    """A lake's catalog in its database; safe to share between threads."""

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
    ) -> None:
        self.database = database
        self.data_path = data_path
        self.metadata_schema = metadata_schema
        self.read_only = read_only
        self.retry = retry
        self.option_defaults = option_defaults
        """What this session takes for options that the lake does not set, in place of the usual defaults."""
        self._engine = engine

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
    ) -> Catalog:
        """The lake at `catalog`; created there if there is none and that is allowed."""
        database = parse_catalog(catalog)
        given = data_inlining_row_limit
        inlining = None if given is None else parse_option("data_inlining_row_limit", given)
        if metadata_schema and not database.has_schemas:
            raise CatalogError(
                f"metadata_schema {metadata_schema!r} is given, but a {database.name} database has no schemas;"
                " leave it out"
            )
        retry = retry or Retry()
        engine = database.engine()
        if metadata_schema:
            engine = engine.execution_options(lake_schema=metadata_schema)
        create = create_if_not_exists and not read_only
        if not create and not database.exists():
            raise _missing(database, read_only)
        stored = _reach(database, retry, lambda: _stored(engine, database, metadata_schema))
        if stored is None:
            if not create:
                raise _missing(database, read_only)
            data_path = data_path or database.default_data_path
            if not data_path:
                raise CatalogError(
                    f"there is no lake in {database.location} yet, and data_path is not given:"
                    " say where its data files shall be, and it is created"
                )
            folder = as_folder(data_path)
            stored = _reach(database, retry, lambda: _create(engine, database, metadata_schema, folder))
        _check(stored, database)
        stored_path = stored["data_path"]
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
            option_defaults={} if inlining is None else {"data_inlining_row_limit": inlining},
        )

    def __repr__(self) -> str:
        return f"Catalog({self.database.location!r}, data_path={self.data_path!r})"

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def read(self) -> Iterator[sa.Connection]:
        """A short transaction for reading, in which all queries see one state of the catalog."""
        with self.database.transaction(self._engine, write=False) as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[sa.Connection]:
        """A short transaction for one commit."""
        if self.read_only:
            raise ReadOnlyError(
                f"the lake in {self.database.location} is opened read-only; set read_only: false to change it"
            )
        with self.database.transaction(self._engine, write=True) as connection:
            yield connection

    def options(self, connection: sa.Connection) -> Options:
        rows = connection.execute(sa.select(t.ducklake_metadata)).all()
        return Options.from_rows(((r.scope, r.scope_id, r.key, r.value) for r in rows), self.option_defaults)

    def latest(self, connection: sa.Connection) -> SnapshotInfo:
        newest = sa.select(sa.func.max(t.snapshot.c.snapshot_id)).scalar_subquery()
        row = connection.execute(sa.select(t.snapshot).where(t.snapshot.c.snapshot_id == newest)).one()
        return _info(row)

    def at_version(self, connection: sa.Connection, version: int) -> SnapshotInfo:
        row = connection.execute(sa.select(t.snapshot).where(t.snapshot.c.snapshot_id == version)).first()
        if row is not None:
            return _info(row)
        ids = t.snapshot.c.snapshot_id
        below = connection.scalar(sa.select(sa.func.max(ids)).where(ids < version))
        above = connection.scalar(sa.select(sa.func.min(ids)).where(ids > version))
        near = " and ".join(str(n) for n in (below, above) if n is not None)
        why = "it was expired" if above is not None and below is not None else "the lake never had it"
        if above is not None and below is None:
            why = "it was expired, or never was"
        raise NotFoundError(f"there is no snapshot {version}: {why}; nearest to it there is {near}")

    def at_timestamp(self, connection: sa.Connection, moment: datetime.datetime) -> SnapshotInfo:
        """The last snapshot that was there at that moment."""
        in_order = self.database.in_time_order
        row = connection.execute(
            sa.select(t.snapshot)
            .where(in_order(t.snapshot.c.snapshot_time) <= in_order(sa.literal(moment, t.Instant())))
            .order_by(in_order(t.snapshot.c.snapshot_time).desc(), t.snapshot.c.snapshot_id.desc())
            .limit(1)
        ).first()
        if row is not None:
            return _info(row)
        first = connection.execute(sa.select(t.snapshot).order_by(t.snapshot.c.snapshot_id).limit(1)).one()
        raise NotFoundError(
            f"there is no snapshot at {moment.isoformat()}: the lake's first is {first.snapshot_id}"
            f" of {first.snapshot_time.isoformat()}"
        )

    def first_since(self, connection: sa.Connection, moment: datetime.datetime) -> SnapshotInfo:
        """The first snapshot of that moment or after it."""
        in_order = self.database.in_time_order
        time = in_order(t.snapshot.c.snapshot_time)
        since = sa.select(t.snapshot).where(time >= in_order(sa.literal(moment, t.Instant())))
        row = connection.execute(since.order_by(t.snapshot.c.snapshot_id).limit(1)).first()
        if row is not None:
            return _info(row)
        last = self.latest(connection)
        raise NotFoundError(
            f"there is no snapshot since {moment.isoformat()}: the lake's last is {last.id} of {last.time.isoformat()}"
        )

    def times(self, connection: sa.Connection, snapshots: Iterable[int]) -> dict[int, datetime.datetime]:
        """When snapshots were committed; of one that was expired, when the next one was that is there."""
        wanted = sorted(set(snapshots))
        if not wanted:
            return {}
        query = sa.select(t.snapshot.c.snapshot_id, t.snapshot.c.snapshot_time)
        rows = connection.execute(
            query.where(t.snapshot.c.snapshot_id >= wanted[0]).order_by(t.snapshot.c.snapshot_id)
        ).all()
        ids = [row.snapshot_id for row in rows]
        places = {snapshot: bisect_left(ids, snapshot) for snapshot in wanted}
        return {snapshot: rows[place].snapshot_time for snapshot, place in places.items() if place < len(rows)}

    def commits_after(self, connection: sa.Connection, snapshot_id: int) -> list[Commit]:
        changes = t.snapshot_changes
        query = sa.select(changes).where(changes.c.snapshot_id > snapshot_id).order_by(changes.c.snapshot_id)
        return [
            Commit(r.snapshot_id, r.changes_made or "", r.author, r.commit_message, r.commit_extra_info)
            for r in connection.execute(query)
        ]

    def has_table(self, connection: sa.Connection, name: str) -> bool:
        return self.database.has_table(connection, name)


def _missing(database: Database, read_only: bool) -> CatalogError:
    reason = "the lake is opened read-only" if read_only else "create_if_not_exists is false"
    return CatalogError(
        f"there is no lake in {database.location}, and none is created because {reason};"
        " check the catalog string, or let it be created once"
    )


def _reach(database: Database, retry: Retry, ask: Callable[[], T]) -> T:
    """The answer of the catalog database, asked a few times if it does not answer at once."""
    begun = time.monotonic()
    for attempt in range(_OPENING_TRIES):
        try:
            return ask()
        except sa.exc.DBAPIError as error:
            if not database.is_unreachable(error):
                reason = first_line(error)
                raise CatalogError(f"the catalog in {database.location} can not be read: {reason}") from error
            if attempt == _OPENING_TRIES - 1:
                seconds = time.monotonic() - begun
                raise CatalogError(
                    f"the catalog database {database.location} does not answer ({_OPENING_TRIES} tries in"
                    f" {seconds:.1f} s): {first_line(error)}"
                ) from error
            retry.wait(attempt)
    raise AssertionError("unreachable")


def _stored(engine: sa.Engine, database: Database, schema: str | None) -> dict[str, str] | None:
    """The lake's global settings; None where the database holds no lake."""
    if not database.exists():
        return None
    # A schema that is not there yet can not be entered.
    with database.transaction(engine.execution_options(lake_schema=None), write=False) as connection:
        if schema and not database.has_schema(connection, schema):
            return None
    with database.transaction(engine, write=False) as connection:
        if not database.has_table(connection, t.ducklake_metadata.name):
            return None
        # Before version 0.3 there was no scope.
        rows = connection.execute(sa.select(sa.text("*")).select_from(t.ducklake_metadata)).mappings().all()
    return {str(row["key"]): str(row["value"]) for row in rows if row.get("scope") is None} or None


def _check(stored: dict[str, str], database: Database) -> None:
    version = stored.get("version", "unknown")
    if version != FORMAT_VERSION:
        raise CatalogError(
            f"the lake in {database.location} has format version {version}, and this package works with"
            f" version {FORMAT_VERSION}; attach it once with DuckDB's ducklake extension and AUTOMATIC_MIGRATION"
            " to bring an older lake up to date, or install a newer dbt-ducklake for a newer one"
        )
    if stored.get("encrypted", "false").lower() == "true":
        raise CatalogError(
            f"the lake in {database.location} is encrypted, and Spark's Parquet reader can not be given a key"
            " for each file; use it with DuckDB, or copy it into a lake without ENCRYPTED"
        )


def _create(engine: sa.Engine, database: Database, schema: str | None, data_path: str) -> dict[str, str]:
    """A new lake: the tables, the schema `main`, and snapshot 0."""

    try:
        creator = f"dbt-ducklake {version('dbt-ducklake')}"
    except PackageNotFoundError:
        creator = "dbt-ducklake"
    settings = {
        "version": FORMAT_VERSION,
        "created_by": creator,
        "data_path": data_path,
        "encrypted": "false",
    }
    if database.name in ("sqlite", "duckdb"):
        os.makedirs(os.path.dirname(os.path.abspath(database.url.database or "")), exist_ok=True)
    now = datetime.datetime.now(datetime.timezone.utc)
    try:
        if schema:
            _create_metadata_schema(engine.execution_options(lake_schema=None), database, schema)
        with database.transaction(engine, write=True) as connection:
            # Where each of these commits by itself, whoever inserts snapshot 0 has made the lake.
            for table in t.metadata.sorted_tables:
                connection.execute(sa.schema.CreateTable(table, if_not_exists=True))
            connection.execute(
                t.snapshot.insert(),
                {
                    "snapshot_id": 0,
                    "snapshot_time": now,
                    "schema_version": 0,
                    "next_catalog_id": 1,
                    "next_file_id": 0,
                },
            )
            connection.execute(
                t.ducklake_metadata.insert(),
                [{"key": key, "value": value} for key, value in settings.items()],
            )
            connection.execute(t.snapshot_changes.insert(), {"snapshot_id": 0, "changes_made": 'created_schema:"main"'})
            connection.execute(
                t.schema.insert(),
                {
                    "schema_id": 0,
                    "schema_uuid": str(uuid.uuid4()),
                    "begin_snapshot": 0,
                    "schema_name": "main",
                    "path": "main/",
                    "path_is_relative": True,
                },
            )
    except sa.exc.DBAPIError as error:
        # Two processes may create the lake at once: the second one finds it there.
        found = _stored(engine, database, schema)
        if found is None and database.is_unreachable(error):
            raise
        if found is None:
            raise CatalogError(f"no lake can be created in {database.location}: {first_line(error)}") from error
        return found
    return settings


def _create_metadata_schema(engine: sa.Engine, database: Database, schema: str) -> None:
    try:
        with database.transaction(engine, write=True) as connection:
            if not database.has_schema(connection, schema):
                database.create_schema(connection, schema)
    except sa.exc.DBAPIError as error:
        # IF NOT EXISTS does not spare the second of two creators: he hears of a duplicate key.
        if not database.is_race(error):
            raise
