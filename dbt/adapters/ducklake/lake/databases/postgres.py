"""PostgreSQL as a catalog database."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import uniform
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import OID

from ..types import Column, decimal_parts
from . import base
from .base import BULK_INSERT_ROWS, Database


class Postgres(Database):
    name = "postgres"
    driver = "psycopg"
    extra = "postgres"
    has_schemas = True
    isolation_level = "REPEATABLE READ"
    # A transaction of REPEATABLE READ sees the state before its first query, which is the one that waits.
    isolation_level_in_line = "READ COMMITTED"
    max_dropped_tables = 1000  # each takes a few of the 6,400 locks that a server has by default

    def use_schema(self, connection: sa.Connection, schema: str) -> None:
        connection.execute(sa.select(sa.func.set_config("search_path", self.quote(schema), True)))

    def is_unreachable(self, error: sa.exc.DBAPIError) -> bool:
        return super().is_unreachable(error) and not any(message in str(error.orig) for message in _REFUSALS)

    def is_write_conflict(self, error: sa.exc.DBAPIError) -> bool:
        return getattr(error.orig, "sqlstate", None) in _WRITE_CONFLICTS

    def limit_lock_wait(self, connection: sa.Connection) -> None:
        connection.execute(sa.select(sa.func.set_config("lock_timeout", f"{base.LOCK_WAIT_SECONDS}s", True)))

    def wait_in_line(self, connection: sa.Connection) -> None:
        # The lock is one of the transaction: it ends with it, however that ends, and works behind a pool that gives a
        # connection to one client for each transaction. It needs no privilege, and locks no table.
        for pause in _PAUSES:
            if connection.scalar(_TRY_LOCK):
                return
            time.sleep(pause * uniform(0.5, 1.0))
        connection.execute(_LOCK)

    @contextmanager
    def batch(self, connection: sa.Connection) -> Iterator[None]:
        driver: Any = connection.connection.driver_connection
        if not hasattr(driver, "pipeline"):  # that of another driver than psycopg
            yield
            return
        dialect = connection.dialect
        error_class: Any = dialect.loaded_dbapi.Error
        failed: Exception | None = None
        try:
            with driver.pipeline():
                try:
                    yield
                except Exception as error:  # The pipeline would log an error of its own beside this one.
                    failed = error
        except error_class as error:
            if failed is None:
                is_disconnect = dialect.is_disconnect(error, driver, None)
                if is_disconnect:
                    connection.invalidate(error)
                raise sa.exc.DBAPIError.instance(
                    None, None, error, error_class, connection_invalidated=is_disconnect, dialect=dialect
                ) from error
        if failed is not None:
            raise failed

    def missing_privileges(self, connection: sa.Connection, needed: Mapping[str, Sequence[str]]) -> list[str]:
        pairs = [(privilege, table) for table, privileges in needed.items() for privilege in privileges]
        has = [sa.func.has_table_privilege(self.quote(table), privilege) for privilege, table in pairs]
        granted = connection.execute(sa.select(*has)).one()
        return [f"{privilege} on {table}" for (privilege, table), held in zip(pairs, granted, strict=True) if not held]

    def insert(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) < BULK_INSERT_ROWS:
            super().insert(connection, table, rows)
            return
        # Each row would be a message of its own. One array for each column is a single message.
        columns = list(rows[0])
        arrays = [sa.literal([row[c] for row in rows], sa.ARRAY(table.c[c].type)) for c in columns]
        source = sa.func.unnest(*arrays).table_valued(*columns, name="lake_rows").render_derived()
        connection.execute(sa.insert(table).from_select(columns, sa.select(*(source.c[c] for c in columns))))

    def inlined_type(self, column: Column) -> str:
        if decimal := decimal_parts(column.type):
            return f"DECIMAL({decimal[0]},{decimal[1]})"
        return _INLINED_TYPES.get(column.type, "VARCHAR")

    def inlined_value(self, value: Any, type_: str) -> Any:
        return value.encode() if isinstance(value, str) else value

    def inlined_names(self, connection: sa.Connection, table: str, columns: Sequence[str]) -> Sequence[str]:
        # The reference leaves out the quotes where its own keywords allow that, and PostgreSQL folds unquoted names to
        # lower case. Which names those are depends on the version that wrote, so PostgreSQL is asked.
        if all(column == column.lower() for column in columns):
            return columns
        attribute = sa.table("pg_attribute", *map(sa.column, ("attname", "attnum", "attrelid")), schema="pg_catalog")
        oid = sa.cast(sa.func.to_regclass(self.quote(table)), OID)
        query = sa.select(attribute.c.attname).where(attribute.c.attrelid == oid, attribute.c.attnum > 0)
        names: Iterable[str] = connection.scalars(query)
        stored = {name.lower(): name for name in names}
        return [stored.get(column.lower(), column) for column in columns]

    def integer_of_text(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.case((text.regexp_match("^-?[0-9]{1,20}$"), sa.cast(text, sa.Numeric)))

    def text_by_code_points(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.collate(text, "C")

    def decodable(self, column: sa.ColumnClause[Any], type_: str) -> sa.ColumnElement[Any]:
        if type_ in ("time", "timetz", "interval", "uuid"):
            return sa.cast(column, sa.String())
        return column


_WRITE_CONFLICTS = ("23505", "40001", "40P01", "55P03")
"""The SQLSTATE of a unique violation, a serialization failure, a deadlock and a lock wait timeout."""

_LAKE = sa.cast(sa.func.to_regclass("ducklake_snapshot"), sa.Integer)
"""Stands for the lake: each schema of a database has its own table of snapshots."""
_LINE = (0x6C616B65, _LAKE)
"""The keys of the advisory lock. The first one is this package's, so that locks of other programs are others."""
_TRY_LOCK = sa.select(sa.func.pg_try_advisory_xact_lock(*_LINE))
_LOCK = sa.select(sa.func.pg_advisory_xact_lock(*_LINE))

_PAUSES = (0.01, 0.05, 0.1, 0.2, 0.4)
"""Seconds between attempts to get the lock, before a writer stands in the queue of the server.

In the queue nobody is overtaken. But while there is a queue, the catalog is idle after each commit until the next
process runs, which takes longer than a commit where many processes share a machine. So the queue is only for those who
have waited long.
"""

_REFUSALS = ("authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry")
"""Parts of messages of a server that answers but refuses the connection."""

_INLINED_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "SMALLINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "uint8": "INTEGER",
    "uint16": "INTEGER",
    "uint32": "BIGINT",
    "float32": "REAL",
    "float64": "DOUBLE PRECISION",
    "varchar": "BYTEA",
    "json": "BYTEA",
    "blob": "BYTEA",
    "time": "TIME",
    "timetz": "TIME WITH TIME ZONE",
    "interval": "INTERVAL",
    "uuid": "UUID",
}
