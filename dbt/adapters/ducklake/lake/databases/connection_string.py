"""Parse a catalog string into the database that it names."""

from __future__ import annotations

import re

import sqlalchemy as sa

from ..errors import CatalogError
from .base import Database
from .duckdb import DuckDB
from .mysql import MySQL, driver_arguments
from .postgres import Postgres
from .sqlite import Sqlite

_PUBLIC_KEYWORDS = frozenset(
    {"host", "hostaddr", "port", "dbname", "db", "database", "user", "service", "socket", "unix_socket"}
)
"""The keywords whose values messages may show. A misspelled `password` must not show, so all others are secret."""

_KEYWORD_AND_VALUE = re.compile(r"\s*([A-Za-z_]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(?!')((?:[^\s\\]|\\.)*))")


def parse_keywords(text: str) -> dict[str, str]:
    """The `keyword=value` pairs of a connection string. Values are quoted like in libpq."""
    keywords: dict[str, str] = {}
    position = 0
    while position < len(text.rstrip()):
        match = _KEYWORD_AND_VALUE.match(text, position)
        if not match:
            raise CatalogError(
                "the catalog's connection string is not made of key=value words"
                f" (it goes wrong at character {position + 1})"
            )
        value = match[2] if match[2] is not None else match[3]
        keywords[match[1].lower()] = re.sub(r"\\(.)", r"\1", value)
        position = match.end()
    return keywords


def parse_catalog(text: str) -> Database:
    """The database for a catalog string, which is a path or connection string for ATTACH, or an SQLAlchemy URL."""
    text = text.strip()
    if text.lower().startswith("ducklake:"):
        text = text[len("ducklake:") :]
    if not text:
        raise CatalogError(
            "no catalog is named; give for example sqlite:lake/metadata.sqlite or postgres:dbname=lake host=localhost"
        )
    kind, colon, rest = text.partition(":")
    kind = kind.lower()
    if "+" in kind or (rest.startswith("//") and kind in ("sqlite", "duckdb", "mysql", "mariadb")):
        return _from_url(text)
    if kind in ("postgresql", "postgres") and rest.startswith("//"):
        return _from_url("postgresql:" + rest)
    if kind in ("sqlite", "sqlite_scanner"):
        return Sqlite(f"sqlite:{_require_file(kind, rest)}", sa.URL.create("sqlite", database=rest), {"timeout": 30})
    if kind in ("postgres", "postgresql", "postgres_scanner"):
        if rest.lstrip().startswith(("postgres://", "postgresql://")):
            return _from_url(rest.strip().replace("postgres://", "postgresql://", 1))
        return Postgres(_public_location("postgres", rest), sa.URL.create("postgresql+psycopg"), parse_keywords(rest))
    if kind in ("mysql", "mariadb", "mysql_scanner"):
        return MySQL(
            _public_location("mysql", rest), sa.URL.create("mysql+pymysql"), driver_arguments(parse_keywords(rest))
        )
    if kind == "duckdb":
        return _duckdb(rest)
    if colon and kind not in ("", "file") and not re.match(r"^[a-z]$|.*[/\\.]", kind):
        raise CatalogError(
            f"no catalog database is known as {kind!r}; known are sqlite:, postgres:, duckdb: and mysql:,"
            " the path of a DuckDB file, or an SQLAlchemy URL"
        )
    if re.match(r"\w+\s*=", text):
        raise CatalogError(
            "the catalog is made of key=value words but does not say of which database; put postgres: or mysql:"
            " in front, or duckdb: if it is the path of a file"
        )
    return _duckdb(text)


def _require_file(kind: str, path: str | None) -> str:
    if not path or path.startswith(":memory:"):
        raise CatalogError(
            f"a {kind} catalog is a file, and {path or 'nothing'!r} names none;"
            f" give its path, such as {kind}:lake/metadata.{kind}"
        )
    return path


def _duckdb(path: str) -> DuckDB:
    return DuckDB(
        location=f"duckdb:{_require_file('duckdb', path)}",
        url=sa.URL.create("duckdb", database=path),
        # Like the reference does. An older storage version has no variants.
        connect_args={"config": {"storage_compatibility_version": "latest"}},
        default_data_path=path + ".files/",
    )


def _public_location(kind: str, connection_string: str) -> str:
    """The connection string without secrets."""
    public = (f"{k}={v}" for k, v in parse_keywords(connection_string).items() if k in _PUBLIC_KEYWORDS)
    return f"{kind}:" + " ".join(public)


def _from_url(text: str) -> Database:
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        # The message may quote the password, so it is not passed on.
        raise CatalogError(
            "the catalog looks like a URL but can not be read as one; check its user, password"
            " (special characters percent-encoded), host and port"
        ) from None
    kind = url.get_backend_name()
    location = url.set(query={}).render_as_string(hide_password=True)
    if kind == "sqlite":
        _require_file(kind, url.database)
        return Sqlite(location, url, {"timeout": 30})
    if kind == "postgresql":
        url = url.set(drivername="postgresql+psycopg") if "+" not in text.split(":")[0] else url
        return Postgres(location, url.set(query={}), url.query)
    if kind in ("mysql", "mariadb"):
        url = url.set(drivername="mysql+pymysql") if "+" not in text.split(":")[0] else url
        return MySQL(location, url.set(query={}), driver_arguments(url.query))
    if kind == "duckdb":
        return _duckdb(url.database or "")
    raise CatalogError(f"a catalog can not be kept in {kind}; use sqlite, postgresql, duckdb or mysql")
