"""Two engines on one lake: they take turns at writing it, and both read every snapshot of it."""

from __future__ import annotations

import datetime
import decimal
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession

from .. import reference

CATALOGS = ("sqlite", "postgres", "duckdb")
WRITERS = ("spark", "duckdb", "turns")

METADATA = "__ducklake_metadata_lake"
_READERS = 4


@dataclass(frozen=True)
class Step:
    """One statement, in each engine's words; None where an engine has none for it, and the other does it."""

    spark: str | None
    duckdb: str | None


def both(text: str) -> Step:
    """A statement that both engines take as it is."""
    return Step(text, text)


def each(spark: str, duckdb: str) -> Step:
    """A statement that differs in its words."""
    return Step(spark, duckdb)


def by_duckdb(text: str) -> Step:
    """What only DuckDB can do."""
    return Step(None, text)


def by_spark(text: str) -> Step:
    """What only Spark can do."""
    return Step(text, None)


class Both:
    """One lake, and the two engines on it.

    DuckDB's connection is closed before Spark goes on: a lake whose catalog is a DuckDB file has
    one process, and one instance, at a time.
    """

    def __init__(
        self,
        spark: SparkSession,
        address: Any,
        data_path: str | None = None,
        encrypted: bool = False,
        **options: Any,
    ) -> None:
        self.address = address
        self.data_path = address.data_path if data_path is None else data_path
        self.options = options
        self.lake = LakeSession(
            address.catalog, data_path=self.data_path, spark=spark, author="us", encrypted=encrypted
        )

    def close(self) -> None:
        self.lake.close()

    # -- statements

    def spark(self, *statements: str) -> None:
        for statement in statements:
            self.lake.execute(statement)

    def duckdb(self, *statements: str) -> None:
        with self.connection() as connection:
            for statement in statements:
                connection.execute(statement)

    @contextmanager
    def connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        connection = reference.connect(self.address.catalog, self.data_path, **self.options)
        # With several threads its change feed now and then tells all rows of a file, in a snapshot nobody asked for.
        connection.execute("SET threads = 1")
        try:
            yield connection
        finally:
            connection.close()

    def write(self, writer: str, *steps: Step) -> None:
        """Carries out a case: by one engine, or by both in turns, as far as they can."""
        for turn, step in enumerate(steps):
            chosen = ("spark", "duckdb")[turn % 2] if writer == "turns" else writer
            text = getattr(step, chosen)
            if text is None:
                chosen = "duckdb" if chosen == "spark" else "spark"
                text = getattr(step, chosen)
            (self.spark if chosen == "spark" else self.duckdb)(text)

    # -- rows

    def spark_rows(self, query: str) -> list[tuple[Any, ...]]:
        return rows_of(self.lake.sql(query).toArrow())

    def duckdb_rows(self, query: str) -> list[tuple[Any, ...]]:
        with self.connection() as connection:
            return rows_of(arrow_of(connection, query))

    def catalog_rows(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of the catalog's own tables; `{m}` stands for where they are."""
        with self.connection() as connection:
            return list(connection.execute(query.replace("{m}", METADATA)).fetchall())

    def agree(self, spark: str, duckdb: str | None = None, expected: Any = None) -> list[tuple[Any, ...]]:
        """Asserts that both engines answer a query with the same rows, in any order; returns them."""
        theirs = sorted(self.duckdb_rows(duckdb or spark), key=repr)
        ours = sorted(self.spark_rows(spark), key=repr)
        assert ours == theirs, f"\nquery {spark}\nspark  {ours}\nduckdb {theirs}"
        if expected is not None:
            assert ours == sorted(expected, key=repr)
        return ours

    def compare(self, *, first: int = 1) -> int:
        """Asserts that both engines read the same from every table at every snapshot; says how often."""
        with self.connection() as connection:
            places = connection.execute(_TABLES.replace("{m}", METADATA), [first]).fetchall()
            theirs: dict[Any, Any] = {}
            for place in places:
                snapshot, schema, table = place
                try:
                    theirs[place] = arrow_of(
                        connection, f"from {_quoted(schema)}.{_quoted(table)} at (version => {snapshot})"
                    )
                except duckdb.Error as error:
                    raise AssertionError(f"DuckDB can not read {schema}.{table} at {snapshot}: {error}") from error

        def ours(place: tuple[int, str, str]) -> pa.Table:
            snapshot, schema, table = place
            name = f"lake.{_ticked(schema)}.{_ticked(table)}"
            return self.lake.sql(f"select * from {name} version as of {snapshot}").toArrow()

        # A DuckDB file has one connection at a time here; see test_threads.
        with ThreadPoolExecutor(1 if self.address.kind == "duckdb" else _READERS) as pool:
            read = dict(zip(places, pool.map(ours, places), strict=True))
        for place in places:
            names = [read[place].column_names, theirs[place].column_names]
            assert names[0] == names[1], f"columns at {place}: spark {names[0]}, duckdb {names[1]}"
            spark_rows = sorted(rows_of(read[place]), key=repr)
            duckdb_rows = sorted(rows_of(theirs[place]), key=repr)
            assert spark_rows == duckdb_rows, (
                f"\ntable {place[1]}.{place[2]} at snapshot {place[0]}\n{difference(spark_rows, duckdb_rows, names[0])}"
            )
        return len(places)


_TABLES = """
select s.snapshot_id, n.schema_name, t.table_name
from {m}.ducklake_snapshot s
join {m}.ducklake_table t on t.begin_snapshot <= s.snapshot_id and coalesce(t.end_snapshot > s.snapshot_id, true)
join {m}.ducklake_schema n on n.schema_id = t.schema_id
 and n.begin_snapshot <= s.snapshot_id and coalesce(n.end_snapshot > s.snapshot_id, true)
where s.snapshot_id >= ?
order by 1, 2, 3
"""


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _ticked(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def difference(ours: list[Any], theirs: list[Any], names: list[str]) -> str:
    """What only one engine has; of single rows, the columns that differ."""
    left, right = _without(ours, theirs), _without(theirs, ours)
    if len(left) == len(right) and len(names) > 3:
        lines = [
            f"{name}: spark {a!r:.300}, duckdb {b!r:.300}"
            for x, y in zip(left, right, strict=True)
            for name, a, b in zip(names, x, y, strict=True)
            if a != b
        ]
        return "\n".join(lines[:40])
    return f"spark only  {left!r:.2000}\nduckdb only {right!r:.2000}"


def _without(rows: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    left = list(others)
    result = []
    for row in rows:
        if row in left:
            left.remove(row)
        else:
            result.append(row)
    return result


# -- values that compare

# What Spark does not have is compared in the words that it reads it in.
_IN_SPARKS_WORDS = {
    "HUGEINT": "decimal(38,0)",
    "UHUGEINT": "varchar",
    "UUID": "varchar",
    "JSON": "varchar",
    "TIME": "varchar",
    "TIME_NS": "varchar",
    "TIME WITH TIME ZONE": "varchar",
    "INTERVAL": "varchar",
    "TIMESTAMP_S": "timestamp",
    "TIMESTAMP_MS": "timestamp",
    "TIMESTAMP_NS": "timestamp",
    "VARIANT": "json",
}


def arrow_of(connection: duckdb.DuckDBPyConnection, query: str) -> pa.Table:
    """What DuckDB answers, in types that Spark has."""
    described = connection.execute(
        f"describe ({query})" if query.startswith("select") else f"describe {query}"
    ).fetchall()
    parts = []
    for name, kind, *_ in described:
        target = _IN_SPARKS_WORDS.get(kind)
        column = _quoted(name)
        parts.append(f"cast({column} as {target}) as {column}" if target else column)
    source = f"({query})" if query.startswith("select") else query.removeprefix("from ")
    return connection.execute(f"select {', '.join(parts)} from {source}").to_arrow_table()


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [[_plain(v, f.type) for v in _values(table.column(i))] for i, f in enumerate(table.schema)]
    return list(zip(*columns, strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    kind = column.type
    if pa.types.is_timestamp(kind):
        # As counts: Python's own moments end at the year 9999, and have no infinities.
        unit = column.cast(pa.timestamp("us", kind.tz), safe=False)
        return [v and Moment(v, kind.tz) if v is not None else None for v in unit.cast(pa.int64()).to_pylist()]
    if pa.types.is_date(kind):
        return [v if v is None else ("date", v) for v in column.cast(pa.int32()).to_pylist()]
    if isinstance(kind, pa.BaseExtensionType):
        return _values(pa.chunked_array([c.storage for c in column.chunks], kind.storage_type))
    return list(column.to_pylist())


def Moment(micros: int, zone: str | None) -> tuple[str, int]:
    return ("instant" if zone else "moment", micros)


_INTERVAL = re.compile(r"(?=.*(\d:|month|day|year|second))[-\d .:a-z]+")


def _plain(value: Any, kind: pa.DataType) -> Any:
    """A value in a form that is the same from either engine."""
    if value is None:
        return None
    if pa.types.is_map(kind):
        pairs = [(_plain(k, kind.key_type), _plain(v, kind.item_type)) for k, v in value]
        return sorted(pairs, key=repr)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_plain(v, kind.value_type) for v in value]
    if pa.types.is_struct(kind):
        if {"metadata", "value"} == {f.name for f in kind}:
            return "variant"
        return {f.name: _plain(value[f.name], f.type) for f in kind}
    if isinstance(value, datetime.datetime):
        if value.tzinfo:
            value = value.astimezone(datetime.timezone.utc)
        return value.isoformat()
    if isinstance(value, datetime.time):
        return _plain_text(value.isoformat().rstrip("0") if value.microsecond else value.isoformat())
    if isinstance(value, datetime.date):
        return ("date", (value - datetime.date(1970, 1, 1)).days)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, decimal.Decimal):
        return int(value) if value == value.to_integral_value() else str(value.normalize())
    if isinstance(value, str):
        return _plain_text(value)
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value


def _plain_text(text: str) -> Any:
    if text[:1] in "{[" and text:
        try:
            return "json " + json.dumps(json.loads(text), sort_keys=True)
        except ValueError:
            return text
    if _INTERVAL.fullmatch(text) and (found := interval_parts(text)):
        return found
    return text


_UNITS = {
    "year": (12, 0, 0),
    "month": (1, 0, 0),
    "day": (0, 1, 0),
    "second": (0, 0, 10**6),
    "millisecond": (0, 0, 1000),
}
_PART = re.compile(r"(-?\d+) (year|month|day|second|millisecond)s?|(-?)(\d+):(\d\d):(\d\d)(?:\.(\d+))?")


def interval_parts(text: str) -> tuple[str, int, int, int] | None:
    """Months, days and microseconds of an interval's text, in DuckDB's words or in ours."""
    total = [0, 0, 0]
    if _PART.sub("", text).strip() or (not re.search("month|day|year|second", text) and ":" not in text):
        return None
    if re.fullmatch(r"\d\d:\d\d:\d\d(\.\d+)?", text):
        return None  # a time of day reads the same
    for match in _PART.finditer(text):
        if match[2]:
            total = [t + int(match[1]) * unit for t, unit in zip(total, _UNITS[match[2]], strict=True)]
        else:
            micros = ((int(match[4]) * 60 + int(match[5])) * 60 + int(match[6])) * 10**6
            micros += int((match[7] or "").ljust(6, "0"))
            total[2] += -micros if match[3] else micros
    return ("interval", *total)
