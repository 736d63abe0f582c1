"""DuckDB as a catalog database."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from random import uniform
from typing import Any

import sqlalchemy as sa

from ..types import Column, decimal_parts
from .base import BULK_INSERT_ROWS, SMALL_INTEGERS, count_schemas
from .file_database import FileDatabase


class DuckDB(FileDatabase):
    name = "duckdb"
    driver = "duckdb-engine"
    extra = "duckdb"
    has_schemas = True
    supports_inlined_variants = True
    inlined_structs_are_sql = False
    lock_timeout = 30.0
    """How many seconds to wait while another process has the file open. SQLite waits as long."""

    def engine(self) -> sa.Engine:
        engine = super().engine()

        @sa.event.listens_for(engine, "do_connect")
        def _(dialect: Any, record: Any, arguments: Any, options: Any) -> Any:
            deadline, wait = time.monotonic() + self.lock_timeout, 0.02
            while True:
                try:
                    return dialect.connect(*arguments, **options)
                except dialect.dbapi.Error as error:
                    if not any(message in str(error) for message in _FILE_IN_USE) or time.monotonic() > deadline:
                        raise
                # Each attempt starts a whole DuckDB. Too many of them slow down the process that holds the lock.
                time.sleep(wait * uniform(0.5, 1.0))
                wait = min(wait * 1.5, 0.5)

        return engine

    def has_schema(self, connection: sa.Connection, schema: str) -> bool:
        query = count_schemas(schema).where(sa.column("catalog_name") == sa.func.current_database())
        return bool(connection.scalar(query))

    def use_schema(self, connection: sa.Connection, schema: str) -> None:
        connection.exec_driver_sql(f"USE {self.quote(schema)}")

    def has_table(self, connection: sa.Connection, name: str) -> bool:
        return name in self.table_names(connection)

    def table_names(self, connection: sa.Connection) -> list[str]:
        # SQLAlchemy's inspection takes a dot in the name of a schema for a separator.
        query: sa.Select[Any] = sa.select(sa.column("table_name")).select_from(sa.text("information_schema.tables"))
        return list(
            connection.scalars(
                query.where(
                    sa.column("table_catalog") == sa.func.current_database(),
                    sa.column("table_schema") == sa.func.current_schema(),
                )
            )
        )

    def _in_current_schema(self) -> Sequence[sa.ColumnElement[bool]]:
        return [*super()._in_current_schema(), sa.column("table_catalog") == sa.func.current_database()]

    def _in_other_schemas(self) -> Sequence[sa.ColumnElement[bool]]:
        return [*super()._in_other_schemas(), sa.column("table_catalog") == sa.func.current_database()]

    def is_write_conflict(self, error: sa.exc.DBAPIError) -> bool:
        return super().is_write_conflict(error) or any(message in str(error.orig) for message in _WRITE_CONFLICTS)

    def is_unreachable(self, error: sa.exc.DBAPIError) -> bool:
        return False  # The file exists or not, and `engine` has waited for locks.

    def insert(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) < BULK_INSERT_ROWS:
            super().insert(connection, table, rows)
            return
        # Inserting single rows into a column store is slow. One Arrow table is fast.
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

    def integer_of_text(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.case((sa.func.regexp_full_match(text, "-?[0-9]{1,20}"), sa.try_cast(text, sa.Numeric(38, 0))))

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
        return _INLINED_TYPES[column.type]

    def decodable(self, column: sa.ColumnClause[Any], type_: str) -> sa.ColumnElement[Any]:
        native = type_ in ("boolean", "varchar", "blob", "variant", *SMALL_INTEGERS)
        return column if native else sa.cast(column, sa.String())


_FILE_IN_USE = ("Could not set lock", "Unique file handle conflict")
"""Parts of DuckDB's messages while another process has the file open, or a thread is just closing it."""

_WRITE_CONFLICTS = ("Transaction conflict", "Conflict on", "write-write conflict", "PRIMARY KEY or UNIQUE")
"""Parts of DuckDB's messages for conflicts of concurrent transactions."""

_INLINED_TYPES = {
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
