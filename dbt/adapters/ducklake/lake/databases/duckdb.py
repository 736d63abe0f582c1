"""DuckDB as a catalog database."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from random import uniform
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from ..types import Column, decimal_parts
from .base import SMALL_INTEGERS, Database, schemata_named


class DuckDB(Database):
    name = "duckdb"
    driver = "duckdb-engine"
    extra = "duckdb"
    has_schemas = True
    inlined_structs_are_sql = False

    def _engine_options(self) -> dict[str, Any]:
        # A connection that stays open would lock the file for every other process.
        return {"poolclass": NullPool}

    lock_timeout = 30.0
    """For how many seconds somebody else may keep the file to himself: as long as with SQLite."""

    def engine(self) -> sa.Engine:
        engine = super().engine()

        @sa.event.listens_for(engine, "do_connect")
        def _(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
            deadline, wait = time.monotonic() + self.lock_timeout, 0.02
            while True:
                try:
                    return dialect.connect(*arguments, **options)
                except dialect.dbapi.Error as error:
                    if not any(sign in str(error) for sign in _FILE_IN_USE) or time.monotonic() > deadline:
                        raise
                # Each try starts a whole DuckDB: too many of them only keep the holder from getting done.
                time.sleep(wait * uniform(0.5, 1.0))
                wait = min(wait * 1.5, 0.5)

        return engine

    def exists(self) -> bool:
        return os.path.exists(self.url.database or "")

    def has_schema(self, connection: sa.Connection, schema: str) -> bool:
        query = schemata_named(schema).where(sa.column("catalog_name") == sa.func.current_database())
        return bool(connection.scalar(query))

    def enter_schema(self, connection: sa.Connection, schema: str) -> None:
        connection.exec_driver_sql(f"USE {self.quote(schema)}")

    def has_table(self, connection: sa.Connection, name: str) -> bool:
        return name in self.table_names(connection)

    def table_names(self, connection: sa.Connection) -> list[str]:
        # The driver's own way of asking takes a dot in a schema's name for the end of a database's.
        query: sa.Select[Any] = sa.select(sa.column("table_name")).select_from(sa.text("information_schema.tables"))
        return list(
            connection.scalars(
                query.where(
                    sa.column("table_catalog") == sa.func.current_database(),
                    sa.column("table_schema") == sa.func.current_schema(),
                )
            )
        )

    def is_race(self, error: sa.exc.DBAPIError) -> bool:
        return super().is_race(error) or any(
            sign in str(error.orig)
            for sign in ("Transaction conflict", "Conflict on", "write-write conflict", "PRIMARY KEY or UNIQUE")
        )

    def is_unreachable(self, error: sa.exc.DBAPIError) -> bool:
        return False  # a file is there or not, and whoever locks it was waited for

    def insert(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) < 50:
            super().insert(connection, table, rows)
            return
        # Row by row is slow in a column store: hand over one Arrow table.
        import pyarrow as pa

        columns = list(rows[0])
        driver: Any = connection.connection.driver_connection
        driver.register("lake_rows", pa.table({c: [row[c] for row in rows] for c in columns}))
        target = sa.insert(table).from_select(
            [table.c[c] for c in columns],
            sa.select(*(sa.cast(sa.column(c), table.c[c].type) for c in columns)).select_from(sa.table("lake_rows")),
        )
        try:
            connection.execute(target)
        finally:
            driver.unregister("lake_rows")

    def inlined_type(self, column: Column) -> str:
        if column.type == "struct":
            fields = ", ".join(f"{self.quote(c.name)} {self.inlined_type(c)}" for c in column.children)
            return f"STRUCT({fields})"
        if column.type == "list":
            return f"{self.inlined_type(column.children[0])}[]"
        if column.type == "map":
            key, value = column.children
            return f"MAP({self.inlined_type(key)}, {self.inlined_type(value)})"
        if decimal := decimal_parts(column.type):
            return f"DECIMAL({decimal[0]},{decimal[1]})"
        return _DUCKDB_TYPES[column.type]

    def readable(self, column: sa.ColumnClause[Any], type_: str) -> sa.ColumnElement[Any]:
        native = type_ in ("boolean", "varchar", "blob", *SMALL_INTEGERS)
        return column if native else sa.cast(column, sa.String())


_FILE_IN_USE = ("Could not set lock", "Unique file handle conflict")
"""What DuckDB says while another process, or a thread that is just closing it, has the file."""

_DUCKDB_TYPES = {
    "boolean": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INTEGER",
    "int64": "BIGINT",
    "int128": "HUGEINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINTEGER",
    "uint64": "UBIGINT",
    "uint128": "UHUGEINT",
    "float32": "FLOAT",
    "float64": "DOUBLE",
    "time": "TIME",
    "time_ns": "TIME_NS",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
    "timestamp_us": "TIMESTAMP",
    "timestamp_ms": "TIMESTAMP_MS",
    "timestamp_ns": "TIMESTAMP_NS",
    "timestamp_s": "TIMESTAMP_S",
    "timestamptz": "TIMESTAMP WITH TIME ZONE",
    "timetz": "TIME WITH TIME ZONE",
    "interval": "INTERVAL",
    "varchar": "VARCHAR",
    "json": "JSON",
    "blob": "BLOB",
    "uuid": "UUID",
    "variant": "VARIANT",
}
