"""Answers of both engines, with the names and types of their columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb
import pyarrow as pa

from dbt.adapters.ducklake import LakeSession

Answer = tuple[list[str], list[str], list[tuple[Any, ...]]]
"""The names, the types and the rows of a result."""

_DUCKDB_TYPES = {
    "BOOLEAN": "boolean",
    "TINYINT": "tinyint",
    "SMALLINT": "smallint",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "HUGEINT": "decimal(38,0)",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "BLOB": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}


def of_duckdb(connection: duckdb.DuckDBPyConnection, query: str) -> Answer:
    described = connection.execute(f"describe {query}").fetchall()
    types = [_DUCKDB_TYPES.get(kind, kind.lower()) for _, kind, *_ in described]
    types = [_nested(kind) for kind in types]
    columns = ", ".join(
        f'"{name}"' + ("::decimal(38,0)" if kind == "HUGEINT" else "")
        for name, kind in ((str(d[0]).replace('"', '""'), d[1]) for d in described)
    )
    return (
        [d[0] for d in described],
        types,
        _rows(connection.execute(f"select {columns} from ({query})").to_arrow_table()),
    )


def _nested(kind: str) -> str:
    """Returns the Spark type of a DuckDB type in lower case."""
    if kind.endswith("[]"):
        element = kind[:-2].upper()
        return f"array<{_DUCKDB_TYPES.get(element, element.lower())}>"
    if kind.startswith("struct("):
        fields = [part.split(" ", 1) for part in kind[7:-1].split(", ")]
        return "struct<" + ",".join(f"{n.strip(chr(34))}:{_DUCKDB_TYPES.get(k.upper(), k)}" for n, k in fields) + ">"
    return kind


def of_spark(lake: LakeSession, query: str) -> Answer:
    found = lake.sql(query)
    types = [field.dataType.simpleString() for field in found.schema]
    return list(found.columns), types, _rows(found.toArrow())


def _rows(table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [[repr(value) for value in _values(column)] for column in table.columns]
    return sorted(zip(*columns, strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_timestamp(column.type):  # as numbers: Python's timestamps end with the year 9999
        return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64()).to_pylist()
    if pa.types.is_date(column.type):
        return column.cast(pa.int32()).to_pylist()
    return column.to_pylist()


def differences(case: str, spark: Answer, other: Answer) -> Iterator[str]:
    for what, ours, theirs in zip(("names", "types"), spark, other, strict=False):
        if ours != theirs:
            yield f"{case}\n  {what}: spark {ours}\n  {' ' * len(what)}  duckdb {theirs}"
    if spark[2] != other[2]:
        pairs = [(a, b) for a, b in zip(spark[2], other[2], strict=False) if a != b]
        for a, b in pairs[:4] or [(len(spark[2]), len(other[2]))]:
            if isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b) > 2:
                different = [(n, x, y) for n, x, y in zip(spark[0], a, b, strict=True) if x != y]
                yield f"{case} at {a[0]}:" + "".join(f"\n  {n}: spark {x}, duckdb {y}" for n, x, y in different)
            else:
                yield f"{case}\n  spark  {a}\n  duckdb {b}"
