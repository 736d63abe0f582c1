"""Column statistics and physical types from the footers of Parquet files."""

from __future__ import annotations

import decimal
import math
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow.parquet as pq

from .files import NameMap, NameMapEntry
from .geometry_stats import NO_GEOMETRIES, chunk_geometry_stats
from .parquet_schema import ParquetField, is_in_utc, logical_type, schema_fields
from .stats import TYPES_WITHOUT_BOUNDS, ColumnStats, merge_column_stats
from .types import FLOATS, INTEGER_RANGES, TIMESTAMPS, Column, decimal_parts
from .values import NANOSECONDS_PER_UNIT, Comparable, float32, nanoseconds_per_unit, parse_value, render_value

# Writers that put complete bounds of a string into the footer, or none. Others may truncate them at the end of a
# character (DuckDB at 256 bytes, parquet-rs at 64), and pyarrow does not tell.
_WRITERS_OF_COMPLETE_BOUNDS = ("parquet-mr", "parquet-cpp-arrow")
_SURELY_COMPLETE_BELOW = 60
"""Bytes below which no known writer truncates a bound."""

# Writers whose float bounds reveal a NaN: a bound is NaN or there are no bounds. pyarrow ignores NaN in bounds.
_WRITERS_THAT_REVEAL_NAN = ("parquet-mr", "DuckDB")


def file_stats(
    metadata: pq.FileMetaData,
    columns: Sequence[Column],
    truncated_at: int | None = None,
    name_map: NameMap | None = None,
) -> dict[int, ColumnStats]:
    """The statistics of the columns of a file, by column id.

    Columns are matched by the name map if there is one, else by field id, or by name if the Parquet schema has no ids.
    Lists, structs and maps have no statistics of their own, and columns missing from the file have none. `truncated_at`
    is the writer's `parquet.statistics.truncate.length`, if one was set.
    """
    footer = _Footer(metadata, truncated_at)
    return {column.id: footer.stats(column, leaves) for column, leaves in _matched(metadata, columns, name_map)}


def physical_types(
    metadata: pq.FileMetaData, columns: Sequence[Column], name_map: NameMap | None = None
) -> dict[int, str]:
    """The physical types of a file's columns, by column id. Only for columns of one leaf.

    A type that does not follow from the column's has a suffix: `INT64:ns`, `INT32:uint8`, `INT64:decimal(10,2)`.
    Columns are matched by the name map if there is one.
    """
    found = {}
    for column, leaves in _matched(metadata, columns, name_map):
        if len(leaves) == 1:
            leaf = metadata.schema.column(leaves[0])
            found[column.id] = leaf.physical_type + _type_suffix(logical_type(leaf))
    return found


def value_range(metadata: pq.FileMetaData, name: str) -> tuple[int, int] | None:
    """The least and the greatest value of a column of integers without NULL; None if the file has no such column."""
    index = next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name), None)
    if index is None:
        return None
    statistics = [metadata.row_group(i).column(index).statistics for i in range(metadata.num_row_groups)]
    return min(s.min for s in statistics), max(s.max for s in statistics)


def _type_suffix(logical: Mapping[str, Any]) -> str:
    if "timeUnit" in logical:
        return f":{_unit(logical)}"
    if logical["Type"] == "Int" and not logical["isSigned"]:
        return f":uint{logical['bitWidth']}"
    return f":decimal({logical['precision']},{logical['scale']})" if logical["Type"] == "Decimal" else ""


def positional_name_map(metadata: pq.FileMetaData, columns: Sequence[Column]) -> NameMap | None:
    """The name map of a file without field ids, whose columns are those of the table by position.

    None if the file has field ids. The reference reads files that were added before it wrote name maps in this way.
    """
    fields = schema_fields(metadata)
    return None if fields and all(f.field_id is not None for f in fields) else _positional_entries(fields, columns)


def _positional_entries(fields: Sequence[ParquetField], columns: Sequence[Column]) -> NameMap:
    return tuple(
        NameMapEntry(field.name, column.id, False, _positional_entries(field.children, column.children))
        for field, column in zip(fields, columns, strict=False)
    )


def _matched(
    metadata: pq.FileMetaData, columns: Sequence[Column], name_map: NameMap | None
) -> Iterator[tuple[Column, tuple[int, ...]]]:
    fields = schema_fields(metadata)
    return _match(fields, columns) if name_map is None else _match_by_name(fields, columns, name_map)


def _match(fields: Sequence[ParquetField], columns: Sequence[Column]) -> Iterator[tuple[Column, tuple[int, ...]]]:
    """The columns with statistics of their own, each with its leaves in the file."""
    by_id = {field.field_id: field for field in fields if field.field_id is not None}
    by_name = {} if by_id else {field.name.lower(): field for field in fields}
    for column in columns:
        field = by_id.get(column.id) or by_name.get(column.name.lower())
        if field is not None:
            yield from _match_column(field, column)


def _match_by_name(
    fields: Sequence[ParquetField], columns: Sequence[Column], name_map: NameMap
) -> Iterator[tuple[Column, tuple[int, ...]]]:
    """The columns with statistics of their own, each with its leaves in a file with a name map."""
    by_name = {field.name: field for field in fields}
    entries = {entry.column_id: entry for entry in name_map if not entry.is_partition}
    for column in columns:
        if (entry := entries.get(column.id)) is not None and entry.source_name in by_name:
            yield from _match_column(by_name[entry.source_name], column, entry.children)


def _match_column(
    field: ParquetField, column: Column, name_map: NameMap | None = None
) -> Iterator[tuple[Column, tuple[int, ...]]]:
    if column.type == "struct":
        matched = _match if name_map is None else partial(_match_by_name, name_map=name_map)
        yield from matched(field.children, column.children)
    elif column.type in ("list", "map"):
        # Elements, keys and values are matched by position: writers name them differently.
        if len(field.children) == len(column.children):
            for child_field, child in zip(field.children, column.children, strict=True):
                entries = None if name_map is None else _children_of(child, name_map)
                yield from _match_column(child_field, child, entries)
    elif not field.children or column.type == "variant":
        yield column, field.leaves


def _children_of(column: Column, name_map: NameMap) -> NameMap:
    return next((entry.children for entry in name_map if entry.column_id == column.id), ())


class _Footer:
    """Statistics of a footer, merged over its row groups."""

    def __init__(self, metadata: pq.FileMetaData, truncated_at: int | None) -> None:
        self._schema = metadata.schema
        self._groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        writer = metadata.created_by or ""
        self._reveals_nan = writer.startswith(_WRITERS_THAT_REVEAL_NAN)
        if truncated_at is not None:
            self._complete_below: float = truncated_at - 3  # the end of a character is up to three bytes earlier
        elif writer.startswith(_WRITERS_OF_COMPLETE_BOUNDS):
            self._complete_below = math.inf
        else:
            self._complete_below = _SURELY_COMPLETE_BELOW

    def stats(self, column: Column, leaves: tuple[int, ...]) -> ColumnStats:
        is_float = column.type in FLOATS
        extra = NO_GEOMETRIES.text() if column.type == "geometry" else None
        total = ColumnStats(0, 0, 0, None, None, False if is_float else None, extra, exact=True)
        for group in self._groups:
            chunks = [group.column(leaf) for leaf in leaves]
            # A variant's first leaf has an entry for every value. The other leaves hold parts of values.
            stats = self._chunk_stats(column.type, leaves[0], chunks[0])
            size = sum(chunk.total_compressed_size for chunk in chunks)
            total = merge_column_stats(total, replace(stats, column_size_bytes=size), column.type)
        return total

    def _chunk_stats(self, type_: str, leaf: int, chunk: Any) -> ColumnStats:
        field = self._schema.column(leaf)
        statistics = chunk.statistics
        nulls = statistics.null_count if statistics is not None and statistics.has_null_count else None
        if nulls is None and (field.max_definition_level == 0 or chunk.num_values == 0):
            nulls = 0
        values = None if nulls is None else chunk.num_values - nulls
        low = high = None
        nan: bool | None = None
        exact = False
        if values == 0:
            exact, nan = True, False
        elif statistics is not None and statistics.has_min_max and type_ not in TYPES_WITHOUT_BOUNDS:
            raw_low, raw_high = statistics.min_raw, statistics.max_raw
            nan = _is_nan(raw_low) or _is_nan(raw_high) or (False if self._reveals_nan else None)
            low = _bound(raw_low, field, type_, upper=False)
            high = _bound(raw_high, field, type_, upper=True)
            exact = low is not None and high is not None and low[1] and high[1]
            if isinstance(raw_low, bytes) and field.physical_type == "BYTE_ARRAY":
                exact = exact and max(len(raw_low), len(raw_high)) < self._complete_below
        return ColumnStats(
            column_size_bytes=0,
            value_count=values,
            null_count=nulls,
            min_value=low[0] if low else None,
            max_value=high[0] if high else None,
            contains_nan=nan if type_ in FLOATS else None,
            extra_stats=chunk_geometry_stats(chunk, values).text() if type_ == "geometry" else None,
            exact=exact,
        )


def _is_nan(raw: object) -> bool:
    return isinstance(raw, float) and math.isnan(raw)


def _bound(raw: Any, field: Any, type_: str, upper: bool) -> tuple[str, bool] | None:
    """A bound of the footer as text of the column's type, and whether it is exact."""
    value = _bound_value(raw, field, type_)
    if value is None:
        return None
    exact = True
    if type_ in TIMESTAMPS or type_ in ("time", "time_ns"):
        step = nanoseconds_per_unit(type_)
        if isinstance(value, int) and value % step:
            value, exact = (value // step + upper) * step, False
    text = render_value(value, type_)
    # Most databases cannot store a NUL in a text. The reference leaves such bounds out there, too.
    return None if "\0" in text else (text, exact)


def _bound_value(raw: Any, field: Any, type_: str) -> Comparable | None:
    """A bound of the footer as a value of the column's type; None if the file's type does not determine it."""
    physical, logical = field.physical_type, logical_type(field)
    kind = logical["Type"]
    if type_ in INTEGER_RANGES and physical in ("INT32", "INT64") and kind in ("None", "Int"):
        if kind == "Int" and not logical["isSigned"]:
            return int(raw) & (2**32 - 1 if physical == "INT32" else 2**64 - 1)
        return int(raw)
    if (type_ in INTEGER_RANGES or decimal_parts(type_)) and kind == "Decimal":
        return _decimal(raw, logical["scale"], type_)
    if decimal_parts(type_) and physical in ("INT32", "INT64") and kind in ("None", "Int"):
        return decimal.Decimal(int(raw))
    if type_ in FLOATS and physical in ("FLOAT", "DOUBLE") and kind == "None":
        if math.isnan(raw) or (type_ == "float32" and float32(raw) != raw):
            return None
        return float(raw)
    if type_ == "boolean" and physical == "BOOLEAN":
        return bool(raw)
    if type_ == "date" and kind == "Date":
        return math.copysign(math.inf, raw) if abs(raw) == 2**31 - 1 else int(raw)
    if type_ in TIMESTAMPS and kind == "Timestamp":
        return _timestamp(raw, logical, zoned=type_ == "timestamptz")
    if type_ in ("time", "time_ns") and kind == "Time":
        return int(raw) * NANOSECONDS_PER_UNIT[_unit(logical)]
    if not isinstance(raw, bytes):
        return None
    if type_ == "timestamp_ns" and kind == "String":  # in order of their text, as `kept_text` writes them
        return parse_value(raw.decode(), type_)
    if type_ in ("varchar", "json") and kind in ("String", "JSON", "Enum"):
        return _text(raw)
    if type_ == "uuid" and len(raw) == 16 and kind in ("UUID", "None"):
        return str(uuid.UUID(bytes=raw))
    return bytes(raw) if type_ == "blob" and kind == "None" else None


def _decimal(raw: Any, scale: int, type_: str) -> Comparable | None:
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
    if type_ in INTEGER_RANGES:
        return unscaled if scale == 0 else None
    parts = decimal_parts(type_)
    if parts is None or parts[1] < scale:
        return None
    return decimal.Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def _timestamp(raw: int, logical: Mapping[str, Any], zoned: bool) -> Comparable | None:
    if is_in_utc(logical) != zoned:
        return None
    if abs(raw) == 2**63 - 1:  # the reference's infinities
        return math.copysign(math.inf, raw)
    return int(raw) * NANOSECONDS_PER_UNIT[_unit(logical)]


def _unit(logical: Mapping[str, Any]) -> str:
    return {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}[logical["timeUnit"]]


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:  # a bound that was truncated inside a character
        return None
