"""SQLite as a catalog database."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import sqlalchemy as sa

from ..types import Column, decimal_parts
from ..values import render_value
from .base import SMALL_INTEGERS, is_catalog_table
from .file_database import FileDatabase


class Sqlite(FileDatabase):
    name = "sqlite"

    def engine(self) -> sa.Engine:
        engine = super().engine()

        @sa.event.listens_for(engine, "connect")
        def _(connection: Any, record: Any) -> None:
            connection.isolation_level = None  # Otherwise the driver begins transactions by itself.

        @sa.event.listens_for(engine, "begin")
        def _(connection: sa.Connection) -> None:
            write = connection.get_execution_options().get("lake_write")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

        return engine

    def is_write_conflict(self, error: sa.exc.DBAPIError) -> bool:
        return super().is_write_conflict(error) or "locked" in str(error.orig)

    def catalog_columns(self, connection: sa.Connection) -> Iterator[tuple[str, str]]:
        table = sa.table("sqlite_master", sa.column("type"), sa.column("name", sa.String))
        columns = sa.func.pragma_table_info(table.c.name).table_valued("name")
        query = sa.select(table.c.name, columns.c.name).select_from(table.join(columns, sa.true()))
        rows = connection.execute(query.where(table.c.type == "table", is_catalog_table(table.c.name)))
        return ((row[0], row[1]) for row in rows)

    def timestamp_sort_key(self, moment: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # SQLite stores moments as text, each with any UTC offset and any number of digits. The sort key is the number
        # of microseconds since 1970.
        text = sa.type_coerce(moment, sa.String())
        date_and_time, rest = sa.func.substr(text, 1, 19), sa.func.substr(text, 20)
        sign_index = sa.func.max(sa.func.instr(rest, "+"), sa.func.instr(rest, "-"))
        fraction = sa.case((sign_index == 0, rest), else_=sa.func.substr(rest, 1, sign_index - 1))
        microseconds = sa.func.round(sa.cast(sa.literal("0").concat(fraction), sa.REAL) * 1_000_000)
        offset = (
            sa.cast(sa.func.substr(rest, sign_index + 1, 2), sa.Integer) * 3600
            + sa.cast(sa.func.substr(rest, sign_index + 4, 2), sa.Integer) * 60
        )
        is_negative = sa.func.substr(rest, sign_index, 1) == "-"
        offset = sa.case((sign_index == 0, 0), (is_negative, -offset), else_=offset)
        seconds = sa.cast(sa.func.strftime("%s", date_and_time), sa.Integer)
        return (seconds - offset) * 1_000_000 + sa.cast(microseconds, sa.Integer)

    def integer_of_text(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # Of larger integers CAST makes the largest one of 64 bits.
        is_integer = sa.and_(
            text.op("GLOB")("[-0-9]*"), sa.not_(sa.func.substr(text, 2).op("GLOB")("*[^0-9]*")), text != "-"
        )
        return sa.case((is_integer, sa.cast(text, sa.Integer)))

    def inlined_type(self, column: Column) -> str:
        if column.type == "boolean" or column.type in SMALL_INTEGERS:
            return "BIGINT"
        return "BLOB" if column.type == "blob" else "VARCHAR"

    def inlined_value(self, value: Any, type_: str) -> Any:
        if isinstance(value, bool):
            return int(value)
        if isinstance(value, float | Decimal):
            return render_value(value, type_)
        return value

    def keeps_inlined(self, column: Column) -> bool:
        # The reference declares the type DECIMAL, of which SQLite makes a binary number.
        decimal = decimal_parts(column.type)
        return decimal is None or decimal[0] <= _EXACT_DIGITS


_EXACT_DIGITS = 15
"""The decimal digits that every 64-bit binary number keeps."""
