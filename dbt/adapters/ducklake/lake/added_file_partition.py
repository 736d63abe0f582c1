"""The partition of a Parquet file that is added to a partitioned table.

Engines prune by partition values, so a wrong one hides rows. A value is certain if the column itself is read from the
file's path, or if statistics prove that all rows have it. Otherwise the file is added without partition values, as
files are that are older than the table's partition keys.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .partition_values import encode_partition_value
from .partitions import (
    Day,
    EpochDay,
    EpochHour,
    EpochMonth,
    EpochYear,
    Hour,
    Identity,
    Month,
    PartitionField,
    PartitionSpec,
    SinceEpoch,
    Transform,
    Year,
)
from .path_values import PathValue, parse_path_value
from .stats import ColumnStats
from .types import FLOATS, Column
from .values import Comparable, parse_value

_IN_ORDER: Mapping[type[Transform], SinceEpoch] = {
    Year: EpochYear(),
    Month: EpochMonth(),
    Day: EpochDay(),
    Hour: EpochHour(),
}
"""For a part of a date, the transform that is equal for all times between two only if the part is."""


@dataclass(frozen=True)
class FilePartition:
    """The partition of a file."""

    values: tuple[str | None, ...] | None
    """In the order of the keys; None if they are not certain."""
    problems: tuple[str, ...] = ()
    """Why the file is not in one partition of the table."""


def partition_of_file(
    spec: PartitionSpec,
    columns: Sequence[Column],
    values: Mapping[str, PathValue],
    stats: Mapping[int, ColumnStats],
) -> FilePartition:
    """The partition of a file. `values` are those in its path, by their keys in lower case."""
    found: list[_Value | None] = []
    problems: list[str] = []
    used_keys: set[str] = set()
    for field in spec.fields:
        column = next(c for c in columns if c.id == field.column_id)
        key = field.transform.hive_key(column.name, used_keys)
        used_keys.add(key)
        proven = _proven(field, column, stats.get(column.id))
        in_path = values.get(key.lower())
        if in_path is not None:
            parsed = parse_path_value(in_path.text, field.transform.result_type(column.type))
            if parsed is None or (proven is not None and proven.text != parsed.partition_text):
                problems.append(_contradiction(in_path, column, proven))
            elif isinstance(field.transform, Identity):
                proven = _Value(parsed.partition_text)
        elif proven is None:
            problems.append(
                f"the table is partitioned by {key}, and the file has rows of several partitions, or does not tell;"
                f" its path has no folder {key}=..."
            )
        found.append(proven)
    certain = tuple(value.text for value in found if value is not None)
    return FilePartition(certain if len(certain) == len(found) else None, tuple(problems))


@dataclass(frozen=True)
class _Value:
    text: str | None


def _contradiction(in_path: PathValue, column: Column, proven: _Value | None) -> str:
    has = "" if proven is None else f", and column {column.name} of the file is of the partition {proven.text}"
    return f"the file's path has {in_path.key}={in_path.text}{has}; it is no partition of the table"


def _proven(field: PartitionField, column: Column, stats: ColumnStats | None) -> _Value | None:
    """The partition value that all rows of a file have, if its statistics prove one."""
    if stats is None or stats.value_count is None or stats.null_count is None:
        return None
    if stats.value_count == 0:
        return _Value(None)
    if stats.null_count or stats.min_value is None or stats.max_value is None:
        return None
    low, high = parse_value(stats.min_value, column.type), parse_value(stats.max_value, column.type)
    if low is None or high is None or not _are_in_one_partition(field.transform, column.type, low, high, stats):
        return None
    value = field.transform.apply(low, column.type)
    return None if value is None else _Value(encode_partition_value(value, field.transform.result_type(column.type)))


def _are_in_one_partition(
    transform: Transform, type_: str, low: Comparable, high: Comparable, stats: ColumnStats
) -> bool:
    in_order = transform if isinstance(transform, SinceEpoch) else _IN_ORDER.get(type(transform))
    if in_order is not None:
        # The reference rounds nanoseconds before it takes a part of them.
        return type_ != "timestamp_ns" and in_order.apply(low, type_) == in_order.apply(high, type_)
    return low == high and stats.exact and (type_ not in FLOATS or stats.contains_nan is False)
