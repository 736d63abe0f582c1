"""MySQL and MariaDB as a catalog database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from ..errors import CatalogError
from .base import Database


class MySQL(Database):
    name = "mysql"
    driver = "pymysql"
    extra = "mysql"
    transactional_ddl = False
    supports_inlining = False

    def is_race(self, error: sa.exc.DBAPIError) -> bool:
        # duplicate key, lock wait timeout, deadlock
        code = error.orig.args[0] if error.orig and error.orig.args else None
        return code in (1062, 1205, 1213, 1020)

    def is_unreachable(self, error: sa.exc.DBAPIError) -> bool:
        return super().is_unreachable(error) and not self.is_race(error)

    def quote(self, identifier: str) -> str:
        return "`" + identifier.replace("`", "``") + "`"


_WORDS = {
    **{word: word for word in ("host", "user", "password", "database", "port", "unix_socket", "charset")},
    **{word: word for word in ("ssl_ca", "ssl_cert", "ssl_key", "connect_timeout", "read_timeout", "write_timeout")},
    "db": "database",
    "passwd": "password",
    "socket": "unix_socket",
}


def driver_arguments(words: Mapping[str, Any]) -> dict[str, Any]:
    """What the driver is told, from the words of a connection string or the query of a URL."""
    arguments: dict[str, Any] = {}
    for word, value in words.items():
        if word not in _WORDS:
            raise CatalogError(f"the catalog's connection string has a word {word!r}; known are {', '.join(_WORDS)}")
        if word in ("port", *(w for w in _WORDS if w.endswith("_timeout"))):
            if not value.isdigit():
                raise CatalogError(f"the catalog's connection string has a {word} that is no number")
            value = int(value)
        arguments[_WORDS[word]] = value
    return {"charset": "utf8mb4", **arguments}
