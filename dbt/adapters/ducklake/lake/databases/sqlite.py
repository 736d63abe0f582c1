"""SQLite as a catalog database."""

from __future__ import annotations

import os
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from ..types import Column
from .base import SMALL_INTEGERS, Database


class Sqlite(Database):
    name = "sqlite"

    def _engine_options(self) -> dict[str, Any]:
        # A connection costs nothing here, and one that is kept would keep a deleted file alive.
        return {"poolclass": NullPool}

    def engine(self) -> sa.Engine:
        engine = super().engine()

        @sa.event.listens_for(engine, "connect")
        def _(connection: Any, record: Any) -> None:
            connection.isolation_level = None  # the driver's own idea of when to begin is in the way

        @sa.event.listens_for(engine, "begin")
        def _(connection: sa.Connection) -> None:
            write = connection.get_execution_options().get("lake_write")
            connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

        return engine

    def exists(self) -> bool:
        return os.path.exists(self.url.database or "")

    def is_race(self, error: sa.exc.DBAPIError) -> bool:
        return super().is_race(error) or "locked" in str(error.orig)

    def in_time_order(self, moment: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        # Times are text here, and each may be written with another UTC offset and other digits.
        text = sa.type_coerce(moment, sa.String())
        whole, rest = sa.func.substr(text, 1, 19), sa.func.substr(text, 20)
        sign = sa.func.max(sa.func.instr(rest, "+"), sa.func.instr(rest, "-"))
        digits = sa.case((sign == 0, rest), else_=sa.func.substr(rest, 1, sign - 1))
        fraction = sa.func.round(sa.cast(sa.literal("0").concat(digits), sa.REAL) * 1_000_000)
        ahead = (
            sa.cast(sa.func.substr(rest, sign + 1, 2), sa.Integer) * 3600
            + sa.cast(sa.func.substr(rest, sign + 4, 2), sa.Integer) * 60
        )
        ahead = sa.case((sign == 0, 0), (sa.func.substr(rest, sign, 1) == "-", -ahead), else_=ahead)
        seconds = sa.cast(sa.func.strftime("%s", whole), sa.Integer)
        return (seconds - ahead) * 1_000_000 + sa.cast(fraction, sa.Integer)

    def inlined_type(self, column: Column) -> str:
        if column.type == "boolean" or column.type in SMALL_INTEGERS:
            return "BIGINT"
        return "BLOB" if column.type == "blob" else "VARCHAR"
