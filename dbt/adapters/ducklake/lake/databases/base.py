"""What every catalog database does, and the hooks where databases differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from ..errors import CatalogError
from ..types import Column


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
        return bool(connection.scalar(schemata_named(schema)))

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


SMALL_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")


def first_line(error: sa.exc.DBAPIError) -> str:
    """What the database said, without the statement that it said it of."""
    return next((line.strip() for line in str(error.orig).splitlines() if line.strip()), "no reason given")


def schemata_named(schema: str) -> sa.Select[Any]:
    query = sa.select(sa.func.count()).select_from(sa.text("information_schema.schemata"))
    return query.where(sa.column("schema_name") == schema)
