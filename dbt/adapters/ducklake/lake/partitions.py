"""Partition specs and their transforms.

A transform knows its text in the catalog, the Spark SQL expression by which the writer computes it, and its result for
a Python value, which file pruning uses. The values of `year`, `month`, `day` and `hour` are parts of a date (year 2024,
hour 7), as the reference writes them. The table in DuckLake's documentation has offsets since 1970 instead, which are
the values of the `epoch_` transforms of DuckLake 1.1.
"""

from __future__ import annotations

import datetime
import decimal
import re
import struct
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from .errors import CatalogError
from .murmur3 import SPARK_SEED_ZERO, murmur3, murmur3_bytes_sql
from .partition_values import EPOCH_SQL, encode_partition_value, partition_text_sql, utc_sql
from .types import FLOATS, NESTED, TIMESTAMPS, decimal_parts
from .values import NANOSECONDS_PER_DAY, civil_from_days, comparable_value, float32, nanoseconds_per_unit

_HASHED_AS_INT64 = ("boolean", "int8", "int16", "int32", "int64")
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_TYPES_WITHOUT_TEXT = frozenset(["blob", "interval", "timetz", "variant", "geometry", *NESTED])


class Transform:
    """A function from a column's value to a partition value. NULL stays NULL."""

    def __str__(self) -> str:
        """The transform's text in the catalog."""
        raise NotImplementedError

    def applies_to(self, type_: str) -> bool:
        """Whether the transform accepts columns of the type."""
        raise NotImplementedError

    def result_type(self, type_: str) -> str:
        """The type of the partition values of a column of the type."""
        return "int64"

    def hive_key(self, column_name: str, used_names: Collection[str]) -> str:
        """The name of the key in a folder, which depends on the names of the keys before it, as in the reference."""
        name = self._default_hive_key(column_name)
        is_used = name.lower() in {used.lower() for used in used_names}
        return f"{name}_{column_name}" if is_used else name

    def spark_sql(self, column_sql: str, type_: str) -> str:
        """The Spark SQL expression for the partition value of a column of the type."""
        raise NotImplementedError

    def apply(self, value: Any, type_: str) -> Any:
        """The partition value of a Python value. A timestamp may be a datetime or nanoseconds."""
        raise NotImplementedError

    def _default_hive_key(self, column_name: str) -> str:
        return str(self)


@dataclass(frozen=True)
class Identity(Transform):
    """The value itself."""

    def __str__(self) -> str:
        return "identity"

    def applies_to(self, type_: str) -> bool:
        # The reference accepts blobs too, but fails on bytes that are not UTF-8.
        return type_ not in _TYPES_WITHOUT_TEXT

    def result_type(self, type_: str) -> str:
        return type_

    def spark_sql(self, column_sql: str, type_: str) -> str:
        return column_sql

    def apply(self, value: Any, type_: str) -> Any:
        return value

    def _default_hive_key(self, column_name: str) -> str:
        return column_name


class _OfTime(Transform):
    """A transform of dates and timestamps."""

    def applies_to(self, type_: str) -> bool:
        return type_ == "date" or type_ in TIMESTAMPS

    def apply(self, value: Any, type_: str) -> int | None:
        since_epoch = comparable_value(value, type_)
        if not isinstance(since_epoch, int):
            return None  # the reference maps infinity to NULL
        days, nanoseconds = (since_epoch, 0) if type_ == "date" else divmod(since_epoch, NANOSECONDS_PER_DAY)
        return self._at(days, nanoseconds // (3600 * 10**9))

    def _at(self, days: int, hour: int) -> int:
        """The partition value at an hour of a day, which is counted since 1970."""
        raise NotImplementedError


class _Calendar(_OfTime):
    """A part of a date or timestamp. A timestamp with time zone is taken in UTC.

    The reference takes the time zone of its session, so two sessions may partition the same instants differently. It
    never prunes by these values. UTC makes them independent of the writing session.
    """

    def __str__(self) -> str:
        return type(self).__name__.lower()

    def spark_sql(self, column_sql: str, type_: str) -> str:
        column = utc_sql(column_sql) if type_ == "timestamptz" else column_sql
        return f"CAST({self}({column}) AS BIGINT)"

    def _at(self, days: int, hour: int) -> int:
        return self._part(*civil_from_days(days), hour)

    def _part(self, year: int, month: int, day: int, hour: int) -> int:
        raise NotImplementedError


@dataclass(frozen=True)
class Year(_Calendar):
    """The calendar year."""

    def _part(self, year: int, month: int, day: int, hour: int) -> int:
        return year


@dataclass(frozen=True)
class Month(_Calendar):
    """The month of the year, 1 to 12."""

    def _part(self, year: int, month: int, day: int, hour: int) -> int:
        return month


@dataclass(frozen=True)
class Day(_Calendar):
    """The day of the month, 1 to 31."""

    def _part(self, year: int, month: int, day: int, hour: int) -> int:
        return day


@dataclass(frozen=True)
class Hour(_Calendar):
    """The hour of the day, 0 to 23. The hour of a date is 0, as in the reference."""

    def spark_sql(self, column_sql: str, type_: str) -> str:
        if type_ == "date":
            return f"IF({column_sql} IS NULL, NULL, 0L)"
        return super().spark_sql(column_sql, type_)

    def _part(self, year: int, month: int, day: int, hour: int) -> int:
        return hour


class SinceEpoch(_OfTime):
    """Whole units of time since 1970-01-01, rounded down. A timestamp with time zone is taken in UTC.

    Unlike the parts of a date, the values are in order of time. Iceberg has the same transforms.
    """

    unit = ""

    def __str__(self) -> str:
        return f"epoch_{self.unit}"

    def spark_sql(self, column_sql: str, type_: str) -> str:
        column = utc_sql(column_sql) if type_ == "timestamptz" else column_sql
        return f"CAST({self._since_epoch_sql(column)} AS BIGINT)"

    def bounds(self, value: int, type_: str) -> tuple[str | None, str | None]:
        """The bounds of the times with this partition value, as statistics have them; None where Python has no date."""
        try:
            first, last = self._start(value), self._start(value + 1) - _MICROSECOND
        except (OverflowError, ValueError):
            return None, None
        if type_ == "date":
            return first.date().isoformat(), last.date().isoformat()
        zone = "+00" if type_ == "timestamptz" else ""
        return f"{first.isoformat(' ')}{zone}", f"{last.isoformat(' ')}999{zone}"

    def _since_epoch_sql(self, column: str) -> str:
        raise NotImplementedError

    def _start(self, value: int) -> datetime.datetime:
        """The first moment with this partition value."""
        raise NotImplementedError


@dataclass(frozen=True)
class EpochYear(SinceEpoch):
    unit = "year"

    def _since_epoch_sql(self, column: str) -> str:
        return f"year({column}) - 1970"

    def _at(self, days: int, hour: int) -> int:
        return civil_from_days(days)[0] - 1970

    def _start(self, value: int) -> datetime.datetime:
        return datetime.datetime(1970 + value, 1, 1)


@dataclass(frozen=True)
class EpochMonth(SinceEpoch):
    unit = "month"

    def _since_epoch_sql(self, column: str) -> str:
        return f"(year({column}) - 1970) * 12 + month({column}) - 1"

    def _at(self, days: int, hour: int) -> int:
        year, month, _ = civil_from_days(days)
        return (year - 1970) * 12 + month - 1

    def _start(self, value: int) -> datetime.datetime:
        return datetime.datetime(1970 + value // 12, value % 12 + 1, 1)


@dataclass(frozen=True)
class EpochDay(SinceEpoch):
    unit = "day"

    def _since_epoch_sql(self, column: str) -> str:
        return f"unix_date(CAST({column} AS DATE))"

    def _at(self, days: int, hour: int) -> int:
        return days

    def _start(self, value: int) -> datetime.datetime:
        return _EPOCH + datetime.timedelta(days=value)


@dataclass(frozen=True)
class EpochHour(SinceEpoch):
    unit = "hour"

    def spark_sql(self, column_sql: str, type_: str) -> str:
        if type_ == "date":
            return f"CAST(unix_date({column_sql}) * 24L AS BIGINT)"
        return super().spark_sql(column_sql, type_)

    def _since_epoch_sql(self, column: str) -> str:
        return f"unix_date(CAST({column} AS DATE)) * 24L + hour({column})"

    def _at(self, days: int, hour: int) -> int:
        return days * 24 + hour

    def _start(self, value: int) -> datetime.datetime:
        return _EPOCH + datetime.timedelta(hours=value)


EPOCH_TRANSFORMS = (EpochYear, EpochMonth, EpochDay, EpochHour)
"""The transforms that only DuckLake 1.1 has."""


@dataclass(frozen=True)
class Bucket(Transform):
    """One of `count` buckets, by the Murmur3 hash of the value.

    The reference defines which bytes of a value are hashed:

    - eight bytes of signed integers, booleans, floats (as 64-bit floats), dates (days), times and timestamps (in
      their own unit) and decimals of up to 18 digits (unscaled)
    - the UTF-8 bytes of strings and the bytes of blobs
    - the UTF-8 bytes of the text of all other types, such as unsigned integers and UUIDs
    """

    count: int

    def __str__(self) -> str:
        return f"bucket({self.count})"

    def applies_to(self, type_: str) -> bool:
        return type_ == "blob" or type_ not in _TYPES_WITHOUT_TEXT

    def result_type(self, type_: str) -> str:
        return "int32"

    def spark_sql(self, column_sql: str, type_: str) -> str:
        return f"IF({column_sql} IS NULL, NULL, ({_hash_sql(column_sql, type_)} & 2147483647) % {self.count})"

    def apply(self, value: Any, type_: str) -> int | None:
        if value is None:
            return None
        return (murmur3(hashed_bytes(value, type_)) & 0x7FFFFFFF) % self.count

    def _default_hive_key(self, column_name: str) -> str:
        return "bucket"


_TRANSFORMS: dict[str, Transform] = {
    str(t): t for t in (Identity(), Year(), Month(), Day(), Hour(), *(epoch() for epoch in EPOCH_TRANSFORMS))
}
_BUCKET = re.compile(r"bucket\((\d+)\)")


def parse_transform(text: str) -> Transform:
    """The transform with the given text in the catalog."""
    if text in _TRANSFORMS:
        return _TRANSFORMS[text]
    match = _BUCKET.fullmatch(text)
    if not match or not 0 < int(match[1]) < 2**31:
        raise CatalogError(
            f"the catalog names the partition transform {text!r}; known are {', '.join(_TRANSFORMS)} and bucket(n)"
        )
    return Bucket(int(match[1]))


@dataclass(frozen=True)
class PartitionField:
    """A key of a partition spec: its index, the top-level source column and the transform."""

    index: int
    column_id: int
    transform: Transform


@dataclass(frozen=True)
class PartitionSpec:
    """The keys by which new files of a table are partitioned."""

    id: int
    fields: tuple[PartitionField, ...]


def hashed_bytes(value: Any, type_: str) -> bytes:
    """The bytes of a value that `Bucket` hashes."""
    if type_ == "blob":
        return bytes(value)
    if type_ in FLOATS:
        return struct.pack("<d", (float32(value) if type_ == "float32" else float(value)) + 0.0)
    comparable = comparable_value(value, type_)
    if type_ in _HASHED_AS_INT64 or type_ == "date":
        return struct.pack("<q", int(comparable))
    if type_ in TIMESTAMPS or type_ == "time":
        return struct.pack("<q", int(comparable) // nanoseconds_per_unit(type_))
    parts = decimal_parts(type_)
    if parts and parts[0] <= 18:
        return struct.pack("<q", int(decimal.Decimal(comparable).scaleb(parts[1])))
    return (encode_partition_value(value, type_) or "").encode()


def _hash_sql(column: str, type_: str) -> str:
    """The Spark SQL expression for `murmur3(hashed_bytes(...))`. Its result for NULL is undefined.

    The column has its type in Spark: TIMESTAMP_NTZ for `timestamp` types, TIMESTAMP for `timestamptz`, microseconds
    for `time`, a string for `uuid` and a decimal for `uint64`.
    """
    if type_ in FLOATS:
        return f"hash({SPARK_SEED_ZERO}, CAST({column} AS DOUBLE))"
    if type_ in _HASHED_AS_INT64:
        return f"hash({SPARK_SEED_ZERO}, CAST({column} AS BIGINT))"
    if type_ == "date":
        return f"hash({SPARK_SEED_ZERO}, CAST(unix_date({column}) AS BIGINT))"
    if type_ == "time":
        return f"hash({SPARK_SEED_ZERO}, {column})"
    if type_ == "timestamptz":
        return f"hash({SPARK_SEED_ZERO}, unix_micros({column}))"
    if type_ in TIMESTAMPS:
        return f"hash({SPARK_SEED_ZERO}, {_timestamp_units_sql(column, type_)})"
    parts = decimal_parts(type_)
    if parts and parts[0] <= 18:
        return f"hash({SPARK_SEED_ZERO}, CAST({column} * {10 ** parts[1]}BD AS BIGINT))"
    if type_ in ("blob", "varchar", "json"):
        return murmur3_bytes_sql(f"CAST({column} AS BINARY)")
    return murmur3_bytes_sql(f"CAST({partition_text_sql(column, type_)} AS BINARY)")


def _timestamp_units_sql(column: str, type_: str) -> str:
    micros = f"timestampdiff(MICROSECOND, {EPOCH_SQL}, {column})"
    if type_ == "timestamp_ns":
        return f"{micros} * 1000L"
    step = nanoseconds_per_unit(type_) // 1000
    return micros if step == 1 else f"({micros} - pmod({micros}, {step}L)) DIV {step}L"
