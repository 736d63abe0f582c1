"""What differs between the databases that can hold a catalog: one class each, and nowhere else."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import uniform
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import RESERVED_WORDS
from sqlalchemy.pool import NullPool

from .errors import CatalogError
from .types import Column, decimal_parts

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


@dataclass(frozen=True)
class Database:
    """A catalog database: how to reach it, and how it does what the others do otherwise."""

    location: str
    """Where it is, in words that may be shown: never with a secret."""
    url: sa.URL = field(repr=False)
    connect_args: Mapping[str, Any] = field(default_factory=dict, repr=False)

    name = ""
    driver = ""
    extra = ""
    """The optional part of this package that brings the driver."""
    default_data_path: str | None = None
    has_schemas = False
    transactional_ddl = True
    supports_inlining = True
    inlined_structs_are_sql = True
    """Whether inlined structs are text, which the reference writes as SQL."""
    read_isolation: str | None = None

    def engine(self) -> sa.Engine:
        try:
            engine = sa.create_engine(self.url, connect_args=dict(self.connect_args), **self._engine_options())
        except (ImportError, sa.exc.NoSuchModuleError) as error:
            raise CatalogError(
                f"a {self.name} catalog needs the Python package {self.driver}, which is not installed:"
                f" pip install 'dbt-ducklake[{self.extra}]'"
            ) from error
        return engine

    def _engine_options(self) -> dict[str, Any]:
        return {"pool_pre_ping": True}

    def exists(self) -> bool:
        """Whether there is a database to connect to; servers say so when asked."""
        return True

    @contextmanager
    def transaction(self, engine: sa.Engine, write: bool) -> Iterator[sa.Connection]:
        """A transaction in which every query sees the same catalog."""
        options: dict[str, Any] = {"lake_write": write}
        if self.read_isolation:
            options["isolation_level"] = self.read_isolation
        with engine.connect().execution_options(**options) as connection, connection.begin():
            if schema := connection.get_execution_options().get("lake_schema"):
                self.enter_schema(connection, schema)
            yield connection

    def has_schema(self, connection: sa.Connection, schema: str) -> bool:
        return bool(connection.scalar(_schemata(schema)))

    def create_schema(self, connection: sa.Connection, schema: str) -> None:
        # DDL takes no parameters: the name is quoted.
        statement = f"CREATE SCHEMA IF NOT EXISTS {self.quote(schema)}"
        connection.execute(sa.DDL(statement.replace("%", "%%")))  # type: ignore[no-untyped-call]

    def enter_schema(self, connection: sa.Connection, schema: str) -> None:
        """Names without a schema mean that one, until the transaction ends."""
        raise NotImplementedError

    def has_table(self, connection: sa.Connection, name: str) -> bool:
        return sa.inspect(connection).has_table(name)

    def table_names(self, connection: sa.Connection) -> list[str]:
        return sa.inspect(connection).get_table_names()

    def in_time_order(self, moment: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """What orders as the moments do that the column holds."""
        return moment

    def is_race(self, error: sa.exc.DBAPIError) -> bool:
        """Whether another writer came first, so that a commit may be tried again."""
        return isinstance(error, sa.exc.IntegrityError)

    def is_unreachable(self, error: sa.exc.DBAPIError) -> bool:
        return isinstance(error, sa.exc.OperationalError)

    def insert(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        connection.execute(table.insert(), list(rows))

    def inlined_type(self, column: Column) -> str:
        """The type that a column has in a table of inlined rows."""
        raise NotImplementedError

    def inlined_name(self, column: str) -> str:
        """The name that a column has in a table of inlined rows."""
        return column

    def readable(self, column: sa.ColumnClause[Any], type_: str) -> sa.ColumnElement[Any]:
        """The column of inlined rows in a form whose text `inlined.decode` knows."""
        return column

    def quote(self, identifier: str) -> str:
        return '"' + identifier.replace('"', '""') + '"'


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
        if column.type == "boolean" or column.type in _SMALL_INTEGERS:
            return "BIGINT"
        return "BLOB" if column.type == "blob" else "VARCHAR"


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
        query = _schemata(schema).where(sa.column("catalog_name") == sa.func.current_database())
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
        native = type_ in ("boolean", "varchar", "blob", *_SMALL_INTEGERS)
        return column if native else sa.cast(column, sa.String())


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


_FILE_IN_USE = ("Could not set lock", "Unique file handle conflict")
"""What DuckDB says while another process, or a thread that is just closing it, has the file."""
_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SMALL_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")

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


def first_line(error: sa.exc.DBAPIError) -> str:
    """What the database said, without the statement that it said it of."""
    return next((line.strip() for line in str(error.orig).splitlines() if line.strip()), "no reason given")


def _schemata(schema: str) -> sa.Select[Any]:
    query = sa.select(sa.func.count()).select_from(sa.text("information_schema.schemata"))
    return query.where(sa.column("schema_name") == schema)


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
        return MySQL(_shown("mysql", rest), sa.URL.create("mysql+pymysql"), _mysql_arguments(parse_words(rest)))
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


_MYSQL_WORDS = {
    **{word: word for word in ("host", "user", "password", "database", "port", "unix_socket", "charset")},
    **{word: word for word in ("ssl_ca", "ssl_cert", "ssl_key", "connect_timeout", "read_timeout", "write_timeout")},
    "db": "database",
    "passwd": "password",
    "socket": "unix_socket",
}


def _mysql_arguments(words: Mapping[str, Any]) -> dict[str, Any]:
    """What the driver is told, from the words of a connection string or the query of a URL."""
    arguments: dict[str, Any] = {}
    for word, value in words.items():
        if word not in _MYSQL_WORDS:
            raise CatalogError(
                f"the catalog's connection string has a word {word!r}; known are {', '.join(_MYSQL_WORDS)}"
            )
        if word in ("port", *(w for w in _MYSQL_WORDS if w.endswith("_timeout"))):
            if not value.isdigit():
                raise CatalogError(f"the catalog's connection string has a {word} that is no number")
            value = int(value)
        arguments[_MYSQL_WORDS[word]] = value
    return {"charset": "utf8mb4", **arguments}


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
        return MySQL(shown, url.set(query={}), _mysql_arguments(url.query))
    if kind == "duckdb":
        return _duckdb(url.database or "")
    raise CatalogError(f"a catalog can not be kept in {kind}; use sqlite, postgresql, duckdb or mysql")
