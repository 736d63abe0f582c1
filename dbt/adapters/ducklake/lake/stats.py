"""Statistics of columns: read from a Parquet footer, merged over files, widened for the table.

The catalog keeps bounds as text. They say which files a query may skip, and the reference also
answers MIN and MAX from the table's: a bound may be loose, and then somebody must know that it is.
"""

from __future__ import annotations

import decimal
import json
import math
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from .types import FLOATS, INTEGER_BITS, NESTED, TIMESTAMPS, Column, decimal_parts
from .values import NANOSECONDS, Ordered, float32, nanoseconds_per_unit, parse, render

# The reference keeps no bounds for these, and neither do we.
UNBOUNDED = frozenset(["int128", "uint128", "interval", "timetz", "variant", "geometry"])

# Writers that put a string's whole bounds into the footer or none at all. Others may cut them
# (DuckDB at 256 bytes, parquet-rs at 64, at the end of a character) and pyarrow does not tell.
_WHOLE_BOUNDS = ("parquet-mr", "parquet-cpp-arrow")
_SURELY_WHOLE = 60  # bytes

# Writers that give a float's bounds away when there is a NaN. pyarrow's looks past it instead.
_NAN_SHOWS = ("parquet-mr", "DuckDB")


@dataclass(frozen=True)
class ColumnStats:
    """What one file holds of a column; None is what nobody knows."""

    column_size_bytes: int
    value_count: int | None  # without the nulls, as the reference counts
    null_count: int | None
    min_value: str | None
    max_value: str | None
    contains_nan: bool | None
    extra_stats: str | None = None
    exact: bool = False  # whether the bounds are the least and the greatest value themselves


@dataclass(frozen=True)
class TableColumnStats:
    """What all files of a table hold of a column; without bounds there is no value yet."""

    contains_null: bool | None
    contains_nan: bool | None
    min_value: str | None
    max_value: str | None
    extra_stats: str | None = None
    exact: bool = field(default=True, compare=False)  # whether widening kept the bounds true


def file_stats(
    metadata: pq.FileMetaData, columns: Sequence[Column], truncated_at: int | None = None
) -> dict[int, ColumnStats]:
    """The statistics of every column of the file that holds values itself, by column id.

    Columns are found by field id, and by name where the Parquet schema has no ids. Lists, structs
    and maps have none of their own; what the file lacks is left out. `truncated_at` is the writer's
    `parquet.statistics.truncate.length`, where one was set.
    """
    reader = _Footer(metadata, truncated_at)
    return {column.id: reader.stats(column, leaves) for column, leaves in _match(_tree(metadata), columns)}


def physical_types(metadata: pq.FileMetaData, columns: Sequence[Column]) -> dict[int, str]:
    """How a file holds each column's values, by column id, for columns of one leaf: `INT64`, `INT64:ns`."""
    found = {}
    for column, leaves in _match(_tree(metadata), columns):
        if len(leaves) == 1:
            leaf = metadata.schema.column(leaves[0])
            logical = json.loads(leaf.logical_type.to_json())
            unit = f":{_unit(logical)}" if "timeUnit" in logical else ""
            found[column.id] = f"{leaf.physical_type}{unit}"
    return found


def merge(current: ColumnStats, new: ColumnStats, type_: str) -> ColumnStats:
    """The statistics of both files' rows together."""
    if new.value_count == 0 or current.value_count == 0:
        bounds = current if new.value_count == 0 else new
        low, high, exact = bounds.min_value, bounds.max_value, bounds.exact
    else:
        low = _outer(current.min_value, new.min_value, type_, least=True)
        high = _outer(current.max_value, new.max_value, type_, least=False)
        exact = current.exact and new.exact and low is not None and high is not None
    return ColumnStats(
        column_size_bytes=current.column_size_bytes + new.column_size_bytes,
        value_count=_sum(current.value_count, new.value_count),
        null_count=_sum(current.null_count, new.null_count),
        min_value=low,
        max_value=high,
        contains_nan=_either(current.contains_nan, new.contains_nan),
        extra_stats=current.extra_stats if current.extra_stats == new.extra_stats else None,
        exact=exact,
    )


def widen(current: TableColumnStats | None, file: ColumnStats, type_: str) -> TableColumnStats:
    """The table's statistics with one more file; its `exact` says whether this kept the bounds true.

    Where a file has values of unknown bounds the table gets the widest there are: the reference
    takes NULL for 'no value yet', and its next insert would put its own range in their place. If it
    is not exact the reference must not answer MIN and MAX from here: it does so while
    `ducklake_table_stats.record_count` equals the number of live rows.
    """
    nulls = None if file.null_count is None else file.null_count > 0
    nans = file.contains_nan
    if current is None:
        current = TableColumnStats(nulls, nans, None, None)
    nulls, nans = _either(current.contains_null, nulls), _either(current.contains_nan, nans)
    least, greatest = widest(type_)
    if file.value_count == 0 or least is None or greatest is None:
        return replace(current, contains_null=nulls, contains_nan=nans, exact=True)

    low = least if file.min_value is None else file.min_value
    high = greatest if file.max_value is None else file.max_value
    exact = file.exact
    if current.min_value is not None or current.max_value is not None:
        # One bound without the other is how the reference writes a bound that it does not know.
        old = (current.min_value or least, current.max_value or greatest)
        low = _outer(old[0], low, type_, least=True) or least
        high = _outer(old[1], high, type_, least=False) or greatest
        known = None not in (current.min_value, current.max_value)
        exact = known and (file.exact or (low, high) == old)
    # Of blobs, and of floats that may hold NaN, the reference never answers from here.
    unasked = type_ == "blob" or (type_ in FLOATS and nans is not False)
    return TableColumnStats(nulls, nans, low, high, current.extra_stats, exact or unasked)


def widest(type_: str) -> tuple[str | None, str | None]:
    """The least and the greatest text that bound any value of the type; None where none are kept."""
    if type_ in UNBOUNDED or type_ in NESTED:
        return None, None
    if type_ in INTEGER_BITS:
        low, high = INTEGER_BITS[type_]
        return str(low), str(high)
    if parts := decimal_parts(type_):
        limit = decimal.Decimal((0, (9,) * parts[0], -parts[1]))
        return render(limit.copy_negate(), type_), render(limit, type_)
    if type_ in FLOATS:
        return "-inf", "inf"
    if type_ == "date" or type_ in TIMESTAMPS:
        return "-infinity", "infinity"
    return {
        "boolean": ("0", "1"),
        "time": ("00:00:00", "24:00:00"),
        "time_ns": ("00:00:00", "24:00:00"),
        "varchar": ("", "\U0010ffff" * 16),
        "json": ("", "\U0010ffff" * 16),
        "uuid": (str(uuid.UUID(int=0)), str(uuid.UUID(int=2**128 - 1))),
        "blob": ("", "FF" * 64),
    }.get(type_, (None, None))


def _outer(current: str | None, new: str | None, type_: str, least: bool) -> str | None:
    """The bound that holds for both; None where either is unknown."""
    if current is None or new is None:
        return None
    a: Any = parse(current, type_)
    b: Any = parse(new, type_)
    if a is None or b is None:
        return None
    return new if (b < a if least else b > a) else current


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def _either(a: bool | None, b: bool | None) -> bool | None:
    if a or b:
        return True
    return None if a is None or b is None else False


@dataclass(frozen=True)
class _Node:
    """One field of the Parquet schema; `leaves` are the numbers of the columns below it."""

    name: str
    field_id: int | None
    children: tuple[_Node, ...]
    leaves: tuple[int, ...]


def _tree(metadata: pq.FileMetaData) -> tuple[_Node, ...]:
    # Arrow's schema is the one view that shows field ids; its leaves are the columns in order.
    counter = iter(range(metadata.num_columns))

    def node(field: pa.Field) -> _Node:
        children = tuple(node(child) for child in _arrow_children(field.type))
        leaves = tuple(leaf for child in children for leaf in child.leaves) or (next(counter),)
        field_id = (field.metadata or {}).get(b"PARQUET:field_id")
        return _Node(field.name, None if field_id is None else int(field_id), children, leaves)

    return tuple(node(field) for field in metadata.schema.to_arrow_schema())


def _arrow_children(type_: pa.DataType) -> list[pa.Field]:
    if isinstance(type_, pa.BaseExtensionType):
        return _arrow_children(type_.storage_type)
    if pa.types.is_struct(type_):
        return [type_.field(i) for i in range(type_.num_fields)]
    if pa.types.is_map(type_):
        return [type_.key_field, type_.item_field]
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return [type_.value_field]
    return []


def _match(nodes: Sequence[_Node], columns: Sequence[Column]) -> Iterator[tuple[Column, tuple[int, ...]]]:
    by_id = {node.field_id: node for node in nodes if node.field_id is not None}
    by_name = {} if by_id else {node.name.lower(): node for node in nodes}
    for column in columns:
        node = by_id.get(column.id) or by_name.get(column.name.lower())
        if node is not None:
            yield from _match_column(node, column)


def _match_column(node: _Node, column: Column) -> Iterator[tuple[Column, tuple[int, ...]]]:
    if column.type == "struct":
        yield from _match(node.children, column.children)
    elif column.type in ("list", "map"):
        # An element, a key and a value are where they are, whatever a writer calls them.
        if len(node.children) == len(column.children):
            for child_node, child in zip(node.children, column.children, strict=True):
                yield from _match_column(child_node, child)
    elif not node.children or column.type == "variant":
        yield column, node.leaves


class _Footer:
    """The footer's statistics, read column by column over all row groups."""

    def __init__(self, metadata: pq.FileMetaData, truncated_at: int | None) -> None:
        self._schema = metadata.schema
        self._groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        writer = metadata.created_by or ""
        self._nan_shows = writer.startswith(_NAN_SHOWS)
        # Cutting at the end of a character leaves up to three bytes less.
        self._whole_below = (
            truncated_at - 3
            if truncated_at is not None
            else (math.inf if writer.startswith(_WHOLE_BOUNDS) else _SURELY_WHOLE)
        )

    def stats(self, column: Column, leaves: tuple[int, ...]) -> ColumnStats:
        is_float = column.type in FLOATS
        total = ColumnStats(0, 0, 0, None, None, False if is_float else None, exact=True)
        for group in self._groups:
            chunks = [group.column(leaf) for leaf in leaves]
            # A variant's first leaf is there for every value; the others hold parts of it.
            part = self._chunk(column.type, leaves[0], chunks[0])
            size = sum(chunk.total_compressed_size for chunk in chunks)
            total = merge(total, replace(part, column_size_bytes=size), column.type)
        return total

    def _chunk(self, type_: str, leaf: int, chunk: Any) -> ColumnStats:
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
        elif statistics is not None and statistics.has_min_max and type_ not in UNBOUNDED:
            raw_low, raw_high = statistics.min_raw, statistics.max_raw
            nan = _is_nan(raw_low) or _is_nan(raw_high) or (False if self._nan_shows else None)
            low = _bound(raw_low, field, type_, upper=False)
            high = _bound(raw_high, field, type_, upper=True)
            exact = low is not None and high is not None and low[1] and high[1]
            if isinstance(raw_low, bytes) and field.physical_type == "BYTE_ARRAY":
                exact = exact and max(len(raw_low), len(raw_high)) < self._whole_below
        return ColumnStats(
            column_size_bytes=0,
            value_count=values,
            null_count=nulls,
            min_value=low[0] if low else None,
            max_value=high[0] if high else None,
            contains_nan=nan if type_ in FLOATS else None,
            exact=exact,
        )


def _is_nan(raw: object) -> bool:
    return isinstance(raw, float) and math.isnan(raw)


def _bound(raw: Any, field: Any, type_: str, upper: bool) -> tuple[str, bool] | None:
    """The footer's bound as the column's text, and whether nothing was lost on the way."""
    value = _value(raw, field, type_)
    if value is None:
        return None
    exact = True
    if type_ in TIMESTAMPS or type_ in ("time", "time_ns"):
        step = nanoseconds_per_unit(type_)
        if isinstance(value, int) and value % step:
            value, exact = (value // step + upper) * step, False
    text = render(value, type_)
    # Few databases hold a NUL in a text; beside them the reference leaves such bounds out too.
    return None if "\0" in text else (text, exact)


def _value(raw: Any, field: Any, type_: str) -> Ordered | None:
    """The footer's bound as a value of the column's type; None where the file's type says nothing of it."""
    physical, logical = field.physical_type, json.loads(field.logical_type.to_json())
    kind = logical["Type"]
    if type_ in INTEGER_BITS and physical in ("INT32", "INT64") and kind in ("None", "Int"):
        if kind == "Int" and not logical["isSigned"]:
            return int(raw) & (2**32 - 1 if physical == "INT32" else 2**64 - 1)
        return int(raw)
    if (type_ in INTEGER_BITS or decimal_parts(type_)) and kind == "Decimal":
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
        return int(raw) * NANOSECONDS[_unit(logical)]
    if not isinstance(raw, bytes):
        return None
    if type_ in ("varchar", "json") and kind in ("String", "JSON", "Enum"):
        return _text(raw)
    if type_ == "uuid" and len(raw) == 16 and kind in ("UUID", "None"):
        return str(uuid.UUID(bytes=raw))
    return bytes(raw) if type_ == "blob" and kind == "None" else None


def _decimal(raw: Any, scale: int, type_: str) -> Ordered | None:
    unscaled = int.from_bytes(raw, "big", signed=True) if isinstance(raw, bytes) else int(raw)
    if type_ in INTEGER_BITS:
        return unscaled if scale == 0 else None
    parts = decimal_parts(type_)
    if parts is None or parts[1] < scale:
        return None
    return decimal.Decimal((unscaled < 0, tuple(map(int, str(abs(unscaled)))), -scale))


def _timestamp(raw: int, logical: dict[str, Any], zoned: bool) -> Ordered | None:
    if logical["isAdjustedToUTC"] != zoned:
        return None
    if abs(raw) == 2**63 - 1:  # the reference's infinities
        return math.copysign(math.inf, raw)
    return int(raw) * NANOSECONDS[_unit(logical)]


def _unit(logical: dict[str, Any]) -> str:
    return {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}[logical["timeUnit"]]


def _text(raw: bytes) -> str | None:
    try:
        return raw.decode()
    except UnicodeDecodeError:  # a bound that was cut inside a character
        return None
