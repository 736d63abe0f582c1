"""The cases on MySQL, where the reference does not run here: Spark alone, on twin lakes.

Each statement runs on a lake in MySQL and on one in SQLite, whose rows DuckDB has judged, and both must read alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import duckdb
import pytest
import sqlalchemy as sa
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.sql.tokens import StatementError

from .engines import Both, Step, difference, rows_of


class Twins(Both):
    """A lake in MySQL with its twin in SQLite, in place of a lake with two engines."""

    def __init__(self, spark: SparkSession, address: Any, twin_address: Any) -> None:
        super().__init__(spark, address)
        self.twin = LakeSession(twin_address.catalog, data_path=twin_address.data_path, spark=spark, author="us")

    def close(self) -> None:
        super().close()
        self.twin.close()

    def spark(self, *statements: str) -> None:
        for statement in statements:
            self.twin.execute(statement)
            self.lake.execute(statement)

    def duckdb(self, *statements: str) -> None:
        """Runs what DuckDB would run, if Spark understands it."""
        for statement in statements:
            try:
                self.twin.execute(statement)
            except (StatementError, ParseException, AnalysisException):
                _needs_duckdb(statement)
            self.lake.execute(statement)

    def write(self, writer: str, *steps: Step) -> None:
        for step in steps:
            if step.spark is not None:
                self.spark(step.spark)
            else:
                assert step.duckdb is not None
                self.duckdb(step.duckdb)

    @contextmanager
    def connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        _needs_duckdb("a connection of DuckDB's")
        yield

    def catalog_rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.lake.lake().catalog.read() as connection:
            try:
                return [tuple(row) for row in connection.execute(sa.text(query.replace("{m}.", "")))]
            except sa.exc.DBAPIError:
                _needs_duckdb(query)

    def agree(self, spark: str, duckdb: str | None = None, expected: Any = None) -> list[tuple[Any, ...]]:
        theirs = sorted(rows_of(self.twin.sql(spark).toArrow()), key=repr)
        ours = sorted(self.spark_rows(spark), key=repr)
        assert ours == theirs, f"\nquery {spark}\nmysql  {ours}\nsqlite {theirs}"
        if expected is not None:
            assert ours == sorted(expected, key=repr)
        return ours

    def compare(self, *, first: int = 1) -> int:
        """Asserts that every table has the same rows in both lakes at every snapshot; says how often."""
        places = [p for p in self._places(self.lake) if p[0] >= first]
        assert places == [p for p in self._places(self.twin) if p[0] >= first]
        for snapshot, schema, table in places:
            query = f"select * from `{schema}`.`{table}` version as of {snapshot}"
            mysql, sqlite = self.lake.sql(query).toArrow(), self.twin.sql(query).toArrow()
            assert mysql.schema == sqlite.schema
            rows = [sorted(rows_of(found), key=repr) for found in (mysql, sqlite)]
            assert rows[0] == rows[1], f"\n{schema}.{table} at {snapshot}\n{difference(*rows, mysql.column_names)}"
        return len(places)

    @staticmethod
    def _places(session: LakeSession) -> list[tuple[int, str, str]]:
        lake = session.lake()
        with lake.catalog.read() as connection:
            newest = lake.catalog.latest_snapshot(connection).id
        states = ((version, lake.snapshot_at(version=version)[1]) for version in range(newest + 1))
        return sorted(
            (version, state.schema_of(table).name, table.name)
            for version, state in states
            for table in state.tables.values()
        )


def _needs_duckdb(what: str) -> NoReturn:
    pytest.skip(f"DuckDB does not run on MySQL here, and Spark has no words for this: {what:.100}")
