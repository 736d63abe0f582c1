"""Geometries as they are written: Spark's GEOMETRY, WKB, and WKT all become WKB, whatever the query gives."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.errors import UnsupportedError
from ...lake.snapshot import Table
from ...lake.types import Column
from ..sql.quoting import quoted, string_literal
from .well_known_text import wkb_of_text

_FIRST_VERSION = (4, 2)
"""The first version of Spark that writes GEOMETRY to Parquet."""


def check_geometries_writable(spark: SparkSession, table: Table) -> None:
    """Raises if the table has geometries and this Spark cannot write them so that DuckDB reads them."""
    geometry = next((c for c in table.columns if any(f.type == "geometry" for f in c.walk())), None)
    if geometry is None or tuple(map(int, spark.version.split(".")[:2])) >= _FIRST_VERSION:
        return
    raise UnsupportedError(
        f"column {geometry.name} of table {table.name} is a geometry, which Spark {spark.version} can read but not"
        " write; use Spark 4.2 or newer, write to this table with DuckDB, or keep the shape in a binary column"
    )


def with_wkb(rows: DataFrame, columns: Sequence[Column]) -> DataFrame:
    """The rows, with WKB in place of GEOMETRY values and of texts in columns that are geometries."""
    geometries = {c.name.lower(): c for c in columns if any(f.type == "geometry" for f in c.walk())}
    if not geometries:
        return rows
    converted = {}
    for field in rows.schema.fields:
        column = geometries.get(field.name.lower())
        value = None if column is None else _wkb(quoted(field.name), column, field.dataType, 0)
        if value is not None:
            converted[field.name] = F.expr(value)
    return rows.withColumns(converted) if converted else rows


def _wkb(sql: str, column: Column, source: s.DataType, depth: int) -> str | None:
    """The SQL of a value with WKB for its geometries; None if nothing in it must be converted."""
    if column.type == "geometry":
        if isinstance(source, s.GeometryType):
            return f"st_asbinary({sql})"
        return wkb_of_text(sql, column.name) if isinstance(source, s.StringType) else None
    if column.type == "list" and isinstance(source, s.ArrayType):
        item = f"g{depth}"
        inner = _wkb(item, column.children[0], source.elementType, depth + 1)
        return inner and f"transform({sql}, {item} -> {inner})"
    if column.type == "map" and isinstance(source, s.MapType):
        key, item = f"k{depth}", f"g{depth}"
        inner = _wkb(item, column.children[1], source.valueType, depth + 1)
        return inner and f"transform_values({sql}, ({key}, {item}) -> {inner})"
    if column.type == "struct" and isinstance(source, s.StructType):
        return _wkb_of_fields(sql, column, source, depth)
    return None


def _wkb_of_fields(sql: str, column: Column, source: s.StructType, depth: int) -> str | None:
    parts, is_converted = [], False
    for field in source.fields:
        child, value = column.child(field.name), f"{sql}.{quoted(field.name)}"
        inner = None if child is None else _wkb(value, child, field.dataType, depth)
        is_converted |= inner is not None
        parts += [string_literal(field.name), inner or value]
    return f"if({sql} is null, null, named_struct({', '.join(parts)}))" if is_converted else None
