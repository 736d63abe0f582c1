"""The interface of a catalog database, with the behavior that most databases share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar

import sqlalchemy as sa

from ..errors import CatalogError
from ..types import Column


@dataclass(frozen=True)
class Database:
    """A catalog database: how to connect to it, and what differs between databases."""

    location: str
    """The catalog string without secrets, for messages."""
    url: sa.URL = field(repr=False)
    connect_args: Mapping[str, Any] = field(default_factory=dict, repr=False)
    default_data_path: str | None = None
    """The data path of a new lake if none is given; None if one must be given."""

    name = ""
    driver = ""
    extra = ""
    """The extra of this package that installs the driver."""
    has_schemas = False
    supports_inlining = True
    supports_inlined_variants = False
    inlined_structs_are_sql = True
    """Whether the reference stores inlined structs as text in the form of SQL."""
    is_server = True
    """Whether there is a connection that can break, rather than a file."""
    max_dropped_tables: ClassVar[int | None] = None
    """How many tables one transaction may drop; None if it does not matter."""
    isolation_level: ClassVar[str | None] = None
    """What a transaction asks for if the database's default lets two queries see different states."""
    isolation_level_in_line: ClassVar[str | None] = None
    """What a transaction asks for that waits in line, if it would not see otherwise what was committed meanwhile."""

    def engine(self) -> sa.Engine:
        try:
            engine = sa.create_engine(
                self.url,
                connect_args=dict(self.connect_args),
                hide_parameters=True,  # keys of encrypted files are among them
                **self._engine_options(),
            )
        except (ImportError, sa.exc.NoSuchModuleError) as error:
            raise CatalogError(
                f"a {self.name} catalog needs the Python package {self.driver}, which is not installed:"
                f" pip install 'dbt-ducklake[{self.extra}]'"
            ) from error
        return engine

    def _engine_options(self) -> dict[str, Any]:
        return {"pool_pre_ping": True}

    def exists(self) -> bool:
        """Whether the database exists. True for servers, which report a missing database when they are connected."""
        return True

    def create_folder(self) -> None:
        """Creates the folder for the file of the database. Does nothing for servers."""

    def is_own_file(self, path: str) -> bool:
        """Whether a local path is that of the database itself, or of a file that the database keeps beside it."""
        return False

    @contextmanager
    def transaction(self, engine: sa.Engine, write: bool, in_line: bool = False) -> Iterator[sa.Connection]:
        """A transaction in which every query sees the same state of the catalog.

        With `in_line` it is one that calls `wait_in_line`. Where that waits, each query sees what was committed before
        it, also by writers that do not wait. So what the transaction has read holds only if it can insert the next
        snapshot.
        """
        options: dict[str, Any] = {"lake_write": write}
        isolation_level = (self.isolation_level_in_line if in_line else None) or self.isolation_level
        if isolation_level:
            options["isolation_level"] = isolation_level
        with engine.connect().execution_options(**options) as connection, connection.begin():
            if schema := connection.get_execution_options().get("lake_schema"):
                self.use_schema(connection, schema)
            yield connection

    def has_schema(self, connection: sa.Connection, schema: str) -> bool:
        return bool(connection.scalar(count_schemas(schema)))

    def create_schema(self, connection: sa.Connection, schema: str) -> None:
        # DDL takes no parameters, so the name is quoted.
        statement = f"CREATE SCHEMA IF NOT EXISTS {self.quote(schema)}"
        connection.execute(sa.DDL(statement.replace("%", "%%")))  # type: ignore[no-untyped-call]

    def use_schema(self, connection: sa.Connection, schema: str) -> None:
        """Makes a schema the default for names without one, until the transaction ends."""
        raise NotImplementedError

    def has_table(self, connection: sa.Connection, name: str) -> bool:
        return sa.inspect(connection).has_table(name)

    def table_names(self, connection: sa.Connection) -> list[str]:
        return sa.inspect(connection).get_table_names()

    def other_lakes(self, connection: sa.Connection) -> list[str]:
        """The other schemas of the database that hold the catalog of a lake."""
        if not self.has_schemas:
            return []
        schema, table = sa.column("table_schema", sa.String), sa.column("table_name", sa.String)
        of_lakes = sa.select(schema).distinct().select_from(sa.text("information_schema.tables"))
        return sorted(connection.scalars(of_lakes.where(table == "ducklake_metadata", *self._in_other_schemas())))

    def catalog_columns(self, connection: sa.Connection) -> Iterator[tuple[str, str]]:
        """The tables of the catalog, each with its columns, apart from those of inlined rows and deletes."""
        table, column = sa.column("table_name", sa.String), sa.column("column_name", sa.String)
        query = sa.select(table, column).select_from(sa.text("information_schema.columns"))
        rows = connection.execute(query.where(is_catalog_table(table), *self._in_current_schema()))
        return ((row[0], row[1]) for row in rows)

    def _in_current_schema(self) -> Sequence[sa.ColumnElement[bool]]:
        """Conditions on `information_schema.columns` for the tables of the schema that holds the catalog."""
        return [sa.column("table_schema") == sa.func.current_schema()]

    def _in_other_schemas(self) -> Sequence[sa.ColumnElement[bool]]:
        """Conditions on `information_schema.tables` for the tables of other schemas of the database."""
        return [sa.column("table_schema") != sa.func.current_schema()]

    def missing_privileges(self, connection: sa.Connection, needed: Mapping[str, Sequence[str]]) -> list[str]:
        """The privileges on catalog tables that the user lacks, such as `INSERT on ducklake_snapshot`.

        None where the database has no users, or tells of privileges only when one is missing.
        """
        return []

    def timestamp_sort_key(self, moment: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """An expression that sorts and compares like the moments in a column."""
        return moment

    def is_write_conflict(self, error: sa.exc.DBAPIError) -> bool:
        """Whether the error means that another writer was first, so that the commit can be retried."""
        return isinstance(error, sa.exc.IntegrityError)

    def is_unreachable(self, error: sa.exc.DBAPIError) -> bool:
        """Whether the error means that there is no connection, so that connecting can be retried."""
        return isinstance(error, sa.exc.OperationalError)

    def can_reconnect(self, error: Exception, connected: bool) -> bool:
        """Whether the error means that the connection broke or could not be made, so that another one may be tried."""
        if not self.is_server or not isinstance(error, sa.exc.DBAPIError):
            return False
        return error.connection_invalidated or (not connected and self.is_unreachable(error))

    def limit_lock_wait(self, connection: sa.Connection) -> None:
        """Makes statements of the transaction fail that wait for another one longer than LOCK_WAIT_SECONDS.

        A server may hold the transaction of a lost connection open for hours. Files have a limit of their own.
        """

    def wait_in_line(self, connection: sa.Connection) -> None:
        """Waits until no other transaction that called this for the same lake is open.

        It comes before all queries of a transaction that is `in_line`. It does nothing where the database lets one
        transaction write at a time, and where it has no such lock: there writers race, and the losers begin again. So
        do other programs, which do not wait.
        """

    @contextmanager
    def batch(self, connection: sa.Connection) -> Iterator[None]:
        """Statements without results, which may be sent without waiting for each answer. Errors come at the end."""
        yield

    def newest_rows(self, query: sa.Select[Any]) -> sa.Select[Any]:
        """A query for rows that the transaction is about to replace, as they are now.

        Mostly it is the same query: a transaction that replaces rows which others changed since it began is a write
        conflict. Where it is none, this query sees what others committed meanwhile, and makes further ones wait.
        """
        return query

    def insert(self, connection: sa.Connection, table: sa.Table, rows: Sequence[Mapping[str, Any]]) -> None:
        connection.execute(table.insert(), list(rows))

    def inlined_type(self, column: Column) -> str:
        """The SQL type of a column in a table of inlined rows."""
        raise NotImplementedError

    def inlined_value(self, value: Any, type_: str) -> Any:
        """What a table of inlined rows stores for a value of a type. Dates and timestamps are text."""
        return value

    def keeps_inlined(self, column: Column) -> bool:
        """Whether a table of inlined rows that the reference created keeps every value of a column as it is."""
        return True

    def inlined_names(self, connection: sa.Connection, table: str, columns: Sequence[str]) -> Sequence[str]:
        """The names that these columns have in a table of inlined rows, which the reference may have created."""
        return columns

    def decodable(self, column: sa.ColumnClause[Any], type_: str) -> sa.ColumnElement[Any]:
        """An expression for a column of inlined rows whose values `duckdb_text.decode` can decode."""
        return column

    def integer_of_text(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """The integer that a text is in digits, as one that compares with 64-bit integers; NULL for other texts."""
        raise NotImplementedError

    def text_by_code_points(self, text: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
        """An expression that compares with others of its kind as texts do by their code points."""
        return text

    def quote(self, identifier: str) -> str:
        return '"' + identifier.replace('"', '""') + '"'


LOCK_WAIT_SECONDS = 5

BULK_INSERT_ROWS = 50
"""From this number of rows on, a bulk insert is faster where the database has one."""

SMALL_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


def driver_message(error: sa.exc.DBAPIError) -> str:
    """The first line of the database's message, without the SQL statement."""
    return next((line.strip() for line in str(error.orig).splitlines() if line.strip()), "no reason given")


def is_catalog_table(name: sa.ColumnElement[str]) -> sa.ColumnElement[bool]:
    """Whether a table is one of the catalog's, apart from those of inlined rows and deletes, which may be many."""
    is_inlined = name.startswith("ducklake_inlined_", autoescape=True)
    return sa.and_(
        name.startswith("ducklake_", autoescape=True), sa.or_(~is_inlined, name == "ducklake_inlined_data_tables")
    )


def count_schemas(name: str) -> sa.Select[Any]:
    """A query that counts the schemas of this name."""
    query = sa.select(sa.func.count()).select_from(sa.text("information_schema.schemata"))
    return query.where(sa.column("schema_name") == name)
