"""PostgreSQL as a catalog database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS

from ..types import Column, decimal_parts
from .base import Database


class Postgres(Database):
    name = "postgres"
    driver = "psycopg"
    extra = "postgres"
    has_schemas = True
    read_isolation = "REPEATABLE READ"

    def enter_schema(self, connection: sa.Connection, schema: str) -> None:
        connection.execute(sa.select(sa.func.set_config("search_path", self.quote(schema), True)))

    def is_unreachable(self, error: sa.exc.DBAPIError) -> bool:
        refused = ("authentication failed", "does not exist", "no password supplied", "no pg_hba.conf entry")
        return super().is_unreachable(error) and not any(sign in str(error.orig) for sign in refused)

    def is_race(self, error: sa.exc.DBAPIError) -> bool:
        # unique violation, serialization failure, deadlock
        return getattr(error.orig, "sqlstate", None) in ("23505", "40001", "40P01")

    def insert(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        if len(rows) < 50:
            super().insert(connection, table, rows)
            return
        # Row by row is a message each: hand over one array for each column.
        columns = list(rows[0])
        arrays = [sa.literal([row[c] for row in rows], sa.ARRAY(table.c[c].type)) for c in columns]
        source = sa.func.unnest(*arrays).table_valued(*columns, name="lake_rows").render_derived()
        connection.execute(sa.insert(table).from_select(columns, sa.select(*(source.c[c] for c in columns))))

    def inlined_type(self, column: Column) -> str:
        if decimal := decimal_parts(column.type):
            return f"DECIMAL({decimal[0]},{decimal[1]})"
        return {
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
        }.get(column.type, "VARCHAR")

    def inlined_name(self, column: str) -> str:
        # The reference quotes only what it must, and PostgreSQL takes what is not quoted in lower case.
        quoted = not _PLAIN_NAME.fullmatch(column) or column.lower() in RESERVED_WORDS
        return column if quoted else column.lower()

    def readable(self, column: sa.ColumnClause[Any], type_: str) -> sa.ColumnElement[Any]:
        if type_ in ("time", "timetz", "interval", "uuid"):
            return sa.cast(column, sa.String())
        return column


_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
