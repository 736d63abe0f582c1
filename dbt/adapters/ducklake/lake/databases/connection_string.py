"""From a catalog string to the database that it names."""

from __future__ import annotations

import re

import sqlalchemy as sa

from ..errors import CatalogError
from .base import Database
from .duckdb import DuckDB
from .mysql import MySQL, driver_arguments
from .postgres import Postgres
from .sqlite import Sqlite

SHOWN_WORDS = frozenset(
    {"host", "hostaddr", "port", "dbname", "db", "database", "user", "service", "socket", "unix_socket"}
)
"""The words of a connection string that may be shown; a misspelt password is no secret less."""

_WORD = re.compile(r"\s*([A-Za-z_]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|(?!')((?:[^\s\\]|\\.)*))")


def parse_words(text: str) -> dict[str, str]:
    """The `key=value` words of a connection string, quoted as libpq does."""
    words: dict[str, str] = {}
    position = 0
    while position < len(text.rstrip()):
        match = _WORD.match(text, position)
        if not match:
            raise CatalogError(
                "the catalog's connection string is not made of key=value words"
                f" (it goes wrong at character {position + 1})"
            )
        value = match[2] if match[2] is not None else match[3]
        words[match[1].lower()] = re.sub(r"\\(.)", r"\1", value)
        position = match.end()
    return words


def parse_catalog(text: str) -> Database:
    """The database that a catalog string names: what ATTACH takes, or an SQLAlchemy URL."""
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
        return Sqlite(f"sqlite:{_file(kind, rest)}", sa.URL.create("sqlite", database=rest), {"timeout": 30})
    if kind in ("postgres", "postgresql", "postgres_scanner"):
        if rest.lstrip().startswith(("postgres://", "postgresql://")):
            return _from_url(rest.strip().replace("postgres://", "postgresql://", 1))
        return Postgres(_shown("postgres", rest), sa.URL.create("postgresql+psycopg"), parse_words(rest))
    if kind in ("mysql", "mariadb", "mysql_scanner"):
        return MySQL(_shown("mysql", rest), sa.URL.create("mysql+pymysql"), driver_arguments(parse_words(rest)))
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


def _file(kind: str, path: str | None) -> str:
    if not path or path.startswith(":memory:"):
        raise CatalogError(
            f"a {kind} catalog is a file, and {path or 'nothing'!r} names none;"
            f" give its path, such as {kind}:lake/metadata.{kind}"
        )
    return path


def _duckdb(path: str) -> DuckDB:
    # As the reference does: an older storage has no variants.
    storage = {"config": {"storage_compatibility_version": "latest"}}
    database = DuckDB(f"duckdb:{_file('duckdb', path)}", sa.URL.create("duckdb", database=path), storage)
    object.__setattr__(database, "default_data_path", path + ".files/")
    return database


def _shown(kind: str, words: str) -> str:
    return f"{kind}:" + " ".join(f"{key}={value}" for key, value in parse_words(words).items() if key in SHOWN_WORDS)


def _from_url(text: str) -> Database:
    try:
        url = sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):
        # What went wrong there may quote the password, so it is not passed on.
        raise CatalogError(
            "the catalog looks like a URL but can not be read as one; check its user, password"
            " (special characters percent-encoded), host and port"
        ) from None
    kind = url.get_backend_name()
    shown = url.set(query={}).render_as_string(hide_password=True)
    if kind == "sqlite":
        _file(kind, url.database)
        return Sqlite(shown, url, {"timeout": 30})
    if kind == "postgresql":
        url = url.set(drivername="postgresql+psycopg") if "+" not in text.split(":")[0] else url
        return Postgres(shown, url.set(query={}), url.query)
    if kind in ("mysql", "mariadb"):
        url = url.set(drivername="mysql+pymysql") if "+" not in text.split(":")[0] else url
        return MySQL(shown, url.set(query={}), driver_arguments(url.query))
    if kind == "duckdb":
        return _duckdb(url.database or "")
    raise CatalogError(f"a catalog can not be kept in {kind}; use sqlite, postgresql, duckdb or mysql")
