"""MySQL and MariaDB as a catalog database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from ..errors import CatalogError
from . import base
from .base import Database


class MySQL(Database):
    name = "mysql"
    driver = "pymysql"
    extra = "mysql"
    supports_inlining = False

    def is_write_conflict(self, error: sa.exc.DBAPIError) -> bool:
        code = error.orig.args[0] if error.orig and error.orig.args else None
        return code in _WRITE_CONFLICTS

    def is_unreachable(self, error: sa.exc.DBAPIError) -> bool:
        return super().is_unreachable(error) and not self.is_write_conflict(error)

    def newest_rows(self, query: sa.Select[Any]) -> sa.Select[Any]:
        return query.with_for_update()

    def limit_lock_wait(self, connection: sa.Connection) -> None:
        connection.detach()  # The setting is one of the connection, which must not serve others afterwards.
        connection.exec_driver_sql(f"SET SESSION innodb_lock_wait_timeout = {base.LOCK_WAIT_SECONDS}")

    def _in_current_schema(self) -> Sequence[sa.ColumnElement[bool]]:
        return [sa.column("table_schema") == sa.func.database()]

    def integer_of_text(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.case((text.regexp_match("^-?[0-9]{1,20}$"), sa.cast(text, sa.Numeric(38, 0))))

    def text_by_code_points(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        return sa.func.hex(text)  # whatever the collation is, and whatever it does with spaces at the end

    def quote(self, identifier: str) -> str:
        return "`" + identifier.replace("`", "``") + "`"


_WRITE_CONFLICTS = (1062, 1205, 1213, 1020)
"""The error codes of a duplicate key, a lock wait timeout, a deadlock, and a row that changed since it was read."""

_ARGUMENTS = {
    **{name: name for name in ("host", "user", "password", "database", "port", "unix_socket", "charset")},
    **{name: name for name in ("ssl_ca", "ssl_cert", "ssl_key", "connect_timeout", "read_timeout", "write_timeout")},
    "db": "database",
    "passwd": "password",
    "socket": "unix_socket",
}
"""The arguments of the driver, by the keywords of a connection string."""


def driver_arguments(keywords: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of the driver for the keywords of a connection string or the query of a URL."""
    arguments: dict[str, Any] = {}
    for keyword, value in keywords.items():
        if keyword not in _ARGUMENTS:
            raise CatalogError(
                f"the catalog's connection string has a word {keyword!r}; known are {', '.join(_ARGUMENTS)}"
            )
        if keyword == "port" or keyword.endswith("_timeout"):
            if not value.isdigit():
                raise CatalogError(f"the catalog's connection string has a {keyword} that is no number")
            value = int(value)
        arguments[_ARGUMENTS[keyword]] = value
    return {"charset": "utf8mb4", **arguments}
