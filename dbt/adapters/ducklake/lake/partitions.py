"""How a table's rows are split into files: transforms, keys, and the folders they give.

A transform knows its text in the catalog, the Spark SQL that computes it for the writer, and what
it makes of one Python value, for the pruner. Partition values are calendar values (year 2024, hour
7), as the reference writes them; the documentation's table speaks of offsets since 1970 instead.
"""

from __future__ import annotations

import datetime
import decimal
import re
import struct
import uuid
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

from .errors import CatalogError
from .types import FLOATS, INTEGER_BITS, NESTED, TIMESTAMPS, decimal_parts
from .values import DAY, civil_from_days, float32, nanoseconds_per_unit, parse, render

HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"

_EPOCH = datetime.date(1970, 1, 1)
_EPOCH_SQL = "TIMESTAMP_NTZ '1970-01-01 00:00:00'"
_LONGS = ("boolean", "int8", "int16", "int32", "int64")
_NO_TEXT = frozenset(["blob", "interval", "timetz", "variant", "geometry", *NESTED])


class Transform:
    """What a partition key computes of a column's value; NULL stays NULL."""

    def __str__(self) -> str:
        """The transform's text in the catalog."""
        raise NotImplementedError

    def applies_to(self, type_: str) -> bool:
        """Whether a column of the type can be the source."""
        raise NotImplementedError

    def result_type(self, type_: str) -> str:
        return "int64"

    def hive_key(self, column_name: str, used_names: Collection[str]) -> str:
        """The key's name in a folder, as the reference names it after the keys before it."""
        name = self._key_name(column_name)
        taken = name.lower() in {used.lower() for used in used_names}
        return f"{name}_{column_name}" if taken else name

    def spark_sql(self, column_sql: str, type_: str) -> str:
        """The Spark SQL expression that computes the value of a column of the type."""
        raise NotImplementedError

    def apply(self, value: Any, type_: str) -> Any:
        """The transform of one Python value; a timestamp may be a datetime or nanoseconds."""
        raise NotImplementedError

    def _key_name(self, column_name: str) -> str:
        return str(self)


@dataclass(frozen=True)
class Identity(Transform):
    """The value itself."""

    def __str__(self) -> str:
        return "identity"

    def applies_to(self, type_: str) -> bool:
        # The reference takes blobs too, and fails on bytes that are no UTF-8.
        return type_ not in _NO_TEXT

    def result_type(self, type_: str) -> str:
        return type_

    def spark_sql(self, column_sql: str, type_: str) -> str:
        return column_sql

    def apply(self, value: Any, type_: str) -> Any:
        return value

    def _key_name(self, column_name: str) -> str:
        return column_name


class _Calendar(Transform):
    """A part of a date or timestamp. Of a timestamp with zone it is the part in UTC.

    The reference takes its session's time zone there, so two sessions may split the same instants
    differently. It never prunes by these values; UTC makes ours the same whoever writes.
    """

    def __str__(self) -> str:
        return type(self).__name__.lower()

    def applies_to(self, type_: str) -> bool:
        return type_ == "date" or type_ in TIMESTAMPS

    def spark_sql(self, column_sql: str, type_: str) -> str:
        column = _utc_sql(column_sql) if type_ == "timestamptz" else column_sql
        return f"CAST({self}({column}) AS BIGINT)"

    def apply(self, value: Any, type_: str) -> int | None:
        counted = _count(value, type_)
        if not isinstance(counted, int):
            return None  # of an infinity the reference makes NULL
        days, clock = (counted, 0) if type_ == "date" else divmod(counted, DAY)
        return self._part(*civil_from_days(days), clock // (3600 * 10**9))

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
    """The hour of the day, 0 to 23; of a date it is 0, as in the reference."""

    def spark_sql(self, column_sql: str, type_: str) -> str:
        if type_ == "date":
            return f"IF({column_sql} IS NULL, NULL, 0L)"
        return super().spark_sql(column_sql, type_)

    def _part(self, year: int, month: int, day: int, hour: int) -> int:
        return hour


@dataclass(frozen=True)
class Bucket(Transform):
    """One of `count` buckets, by the value's Murmur3 hash.

    What is hashed is the reference's choice: eight bytes for signed integers, booleans, floats (as
    a double), dates (days), times and timestamps (in their own unit) and decimals of up to 18
    digits (unscaled); UTF-8 for strings; the bytes of blobs; and the text of all others, unsigned
    integers and uuids among them.
    """

    count: int

    def __str__(self) -> str:
        return f"bucket({self.count})"

    def applies_to(self, type_: str) -> bool:
        return type_ == "blob" or type_ not in _NO_TEXT

    def result_type(self, type_: str) -> str:
        return "int32"

    def spark_sql(self, column_sql: str, type_: str) -> str:
        return f"IF({column_sql} IS NULL, NULL, ({murmur3_sql(column_sql, type_)} & 2147483647) % {self.count})"

    def apply(self, value: Any, type_: str) -> int | None:
        if value is None:
            return None
        return (murmur3(hashed_bytes(value, type_)) & 0x7FFFFFFF) % self.count

    def _key_name(self, column_name: str) -> str:
        return "bucket"


_CALENDAR: dict[str, Transform] = {str(t): t for t in (Identity(), Year(), Month(), Day(), Hour())}
_BUCKET = re.compile(r"bucket\((\d+)\)")


def parse_transform(text: str) -> Transform:
    """The transform that the catalog's text names."""
    if text in _CALENDAR:
        return _CALENDAR[text]
    match = _BUCKET.fullmatch(text)
    if not match or not 0 < int(match[1]) < 2**31:
        raise CatalogError(
            f"the catalog names the partition transform {text!r}; known are {', '.join(_CALENDAR)} and bucket(n)"
        )
    return Bucket(int(match[1]))


@dataclass(frozen=True)
class PartitionField:
    """One key of a partitioning: its place, the top-level column, and what is computed of it."""

    index: int
    column_id: int
    transform: Transform


@dataclass(frozen=True)
class PartitionSpec:
    """The keys by which a table's new files are split."""

    id: int
    fields: tuple[PartitionField, ...]


# -- values as text, and folders


def encode_partition_value(value: Any, type_: str) -> str | None:
    """The text of a key's value in `ducklake_file_partition_value`; None for NULL."""
    if value is None:
        return None
    if type_ == "boolean":
        return "true" if value else "false"
    counted = _count(value, type_)
    if isinstance(counted, int) and decimal_parts(type_):
        counted = decimal.Decimal(counted)
    return render(counted, type_)


def partition_text_sql(column_sql: str, type_: str) -> str:
    """The Spark SQL expression for the same text, of a value of the type."""
    column = column_sql
    if type_ in FLOATS:
        return _float_text_sql(column)
    if type_ == "timestamptz":
        return f"concat({_dated_text_sql(_utc_sql(column))}, '+00')"
    if type_ == "date" or type_ in TIMESTAMPS:
        return _dated_text_sql(column)
    if type_ == "time":
        clock = f"substring(CAST(timestampadd(MICROSECOND, {column}, {_EPOCH_SQL}) AS STRING), 12)"
        return f"IF({column} = 86400000000L, '24:00:00', {clock})"
    if type_ == "uuid":
        return f"lower(CAST({column} AS STRING))"
    if decimal_parts(type_):
        # A plain cast may answer 0E-10, depending on the session.
        return f"format_number({column}, '{render(decimal.Decimal(0), type_)}')"
    return f"CAST({column} AS STRING)"


def hive_folder(key: str, value: str | None) -> str:
    """One folder of a partitioned file's path: `region=EU%2Fx%20y`."""
    return f"{_escape(key)}={HIVE_NULL if value is None else _escape(value)}"


def parse_hive_folder(folder: str) -> tuple[str, str | None]:
    """The key and the value that a folder's name speaks of."""
    key, _, value = folder.partition("=")
    return unquote(key), None if value == HIVE_NULL else unquote(value)


def _escape(text: str) -> str:
    return quote(text, safe="")


def _utc_sql(column: str) -> str:
    """A timestamp with zone as the wall clock in UTC, whatever the session's zone."""
    return f"timestampadd(MICROSECOND, unix_micros({column}), {_EPOCH_SQL})"


def _dated_text_sql(column: str) -> str:
    # Spark writes +12000-01-01 and -0043-03-15 where the reference has 12000-01-01 and 0044-03-15 (BC).
    text = f"ltrim('+', CAST({column} AS STRING))"
    past = f"CAST({column} AS STRING)"
    year = f"lpad(CAST(1 - year({column}) AS STRING), 4, '0')"
    start = f"locate('-', {past}, 2)"
    before_christ = f"concat({year}, substring({past}, {start}, 6), ' (BC)', substring({past}, {start} + 6))"
    return f"IF(year({column}) > 0, {text}, {before_christ})"


def _float_text_sql(column: str) -> str:
    # Spark writes 1.0E20, Infinity and NaN where the reference has 1e+20, inf and nan, and goes over
    # to exponents at 10^7 instead of 10^16.
    text = f"CAST({column} AS STRING)"
    exponent = f"CAST(substring_index({text}, 'E', -1) AS INT)"
    mantissa = rf"regexp_replace(substring_index({text}, 'E', 1), '[.]0$', '')"
    plain = rf"regexp_replace(CAST(CAST({text} AS DECIMAL(38, 21)) AS STRING), '0+$', '')"
    return (
        f"CASE WHEN isnan({column}) THEN 'nan'"
        f" WHEN {column} = CAST('inf' AS DOUBLE) THEN 'inf'"
        f" WHEN {column} = CAST('-inf' AS DOUBLE) THEN '-inf'"
        f" WHEN NOT contains({text}, 'E') THEN {text}"
        f" WHEN abs({column}) >= 1e-4 AND abs({column}) < 1e16"
        f" THEN IF(endswith({plain}, '.'), concat({plain}, '0'), {plain})"
        f" ELSE concat({mantissa}, IF({exponent} < 0, 'e-', 'e+'),"
        f" IF(abs({exponent}) < 10, '0', ''), CAST(abs({exponent}) AS STRING)) END"
    )


# -- Murmur3


def murmur3(data: bytes) -> int:
    """Murmur3 x86 32 with seed 0, as a signed number."""
    hashed = 0
    whole = len(data) & ~3
    for (block,) in struct.iter_unpack("<I", data[:whole]):
        hashed = _rotate(hashed ^ _mix(block), 13) * 5 + _N & _MASK
    hashed ^= _mix(int.from_bytes(data[whole:], "little")) ^ len(data)
    hashed = (hashed ^ hashed >> 16) * _M1 & _MASK
    hashed = (hashed ^ hashed >> 13) * _M2 & _MASK
    return _signed(hashed ^ hashed >> 16)


def hashed_bytes(value: Any, type_: str) -> bytes:
    """The bytes of a value that `bucket` hashes."""
    if type_ == "blob":
        return bytes(value)
    if type_ in FLOATS:
        return struct.pack("<d", (float32(value) if type_ == "float32" else float(value)) + 0.0)
    counted = _count(value, type_)
    if type_ in _LONGS or type_ == "date":
        return struct.pack("<q", int(counted))
    if type_ in TIMESTAMPS or type_ == "time":
        return struct.pack("<q", int(counted) // nanoseconds_per_unit(type_))
    parts = decimal_parts(type_)
    if parts and parts[0] <= 18:
        return struct.pack("<q", int(decimal.Decimal(counted).scaleb(parts[1])))
    return (encode_partition_value(value, type_) or "").encode()


def murmur3_sql(column_sql: str, type_: str) -> str:
    """The Spark SQL expression that hashes as `murmur3` does; of NULL it is anything.

    A column has the type that Spark knows it by: `timestamp` types are TIMESTAMP_NTZ, `timestamptz`
    is TIMESTAMP, `time` is microseconds, `uuid` is a string and `uint64` a decimal.
    """
    column = column_sql
    if type_ in FLOATS:
        return f"hash({_SEED_ZERO}, CAST({column} AS DOUBLE))"
    if type_ in _LONGS:
        return f"hash({_SEED_ZERO}, CAST({column} AS BIGINT))"
    if type_ == "date":
        return f"hash({_SEED_ZERO}, CAST(unix_date({column}) AS BIGINT))"
    if type_ == "time":
        return f"hash({_SEED_ZERO}, {column})"
    if type_ == "timestamptz":
        return f"hash({_SEED_ZERO}, unix_micros({column}))"
    if type_ in TIMESTAMPS:
        return f"hash({_SEED_ZERO}, {_ntz_count_sql(column, type_)})"
    parts = decimal_parts(type_)
    if parts and parts[0] <= 18:
        return f"hash({_SEED_ZERO}, CAST({column} * {10 ** parts[1]}BD AS BIGINT))"
    if type_ in ("blob", "varchar", "json"):
        return _murmur3_bytes_sql(f"CAST({column} AS BINARY)")
    return _murmur3_bytes_sql(f"CAST({partition_text_sql(column, type_)} AS BINARY)")


def _ntz_count_sql(column: str, type_: str) -> str:
    micros = f"timestampdiff(MICROSECOND, {_EPOCH_SQL}, {column})"
    if type_ == "timestamp_ns":
        return f"{micros} * 1000L"
    step = nanoseconds_per_unit(type_) // 1000
    return micros if step == 1 else f"({micros} - pmod({micros}, {step}L)) DIV {step}L"


_MASK = 0xFFFFFFFF
_C1, _C2, _N = 0xCC9E2D51, 0x1B873593, 0xE6546B64
_M1, _M2 = 0x85EBCA6B, 0xC2B2AE35
_SEED_ZERO = -1693959553  # hashes to 0 from Spark's own seed, 42: what follows it starts at seed 0


def _mix(block: int) -> int:
    return _rotate(block * _C1 & _MASK, 15) * _C2 & _MASK


def _rotate(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) & _MASK


def _signed(number: int) -> int:
    number &= _MASK
    return number - 2**32 if number >> 31 else number


def _inverse(factor: int) -> int:
    return _signed(pow(factor, -1, 2**32))


def _murmur3_bytes_sql(data: str) -> str:
    """Standard Murmur3 of a binary expression, made of Spark's `hash`, which is not standard.

    Spark goes its own way only with the last bytes of a binary whose length is no multiple of four.
    So: pad with zeros to the next multiple (a whole block if it is one already), and hash. Undo the
    finalizer and the padded block's last step; what is left is the state before the standard's own
    end: `^ length` and the finalizer. The finalizer is inside `hash` too: of the one integer that
    takes it to the wanted state. Every step uses the one before as seldom as can be, since SQL has
    no names for them: shifts and multiplications are on 64 bits, which never overflow here.
    """
    length = f"octet_length({data})"
    padded_length = f"(shiftright({length}, 2) * 4 + 4)"
    state = f"hash({_SEED_ZERO}, rpad({data}, {padded_length}, X'00'))"
    state = _times_sql(_xor_shifts_sql(state, 16), _M2)
    state = _times_sql(_xor_shifts_sql(state, 13, 26), _M1)
    state = f"(CAST({_xor_shifts_sql(state, 16)} ^ {padded_length} AS BIGINT) & {_MASK}L)"
    state = f"({_before_block_sql(state)} ^ {length} ^ 4L)"
    block = f"({_signed_sql(f'({_before_block_sql(state)} ^ 42L)')} * {_inverse(_C2)}L)"
    block = f"({_signed_sql(_rotate_sql(block, 17))} * {_inverse(_C1)}L)"
    return f"hash(CAST({_signed_sql(block)} AS INT))"


def _before_block_sql(state: str) -> str:
    """Undoes `rotate(x, 13) * 5 + n`."""
    return _rotate_sql(f"(({state} - {_N}L) * {_inverse(5)}L)", 19)


def _xor_shifts_sql(number: str, *bits: int) -> str:
    return "(" + " ^ ".join([number, *(f"shiftrightunsigned({number}, {b})" for b in bits)]) + ")"


def _times_sql(number: str, undone: int) -> str:
    """Undoes a multiplication of an INT, modulo 2^32."""
    return f"CAST({_signed_sql(f'CAST({number} AS BIGINT) * {_inverse(undone)}L')} AS INT)"


def _signed_sql(number: str) -> str:
    """The low 32 bits of a BIGINT as a signed number."""
    return f"shiftright(shiftleft({number}, 32), 32)"


def _rotate_sql(number: str, bits: int) -> str:
    """The low 32 bits rotated left: a multiplication modulo 2^32 - 1, moved by one to keep all ones."""
    return f"((({number} & {_MASK}L) * {2**bits}L - 1L) % {_MASK}L + 1L)"


def _count(value: Any, type_: str) -> Any:
    """A date as days and a timestamp or time as nanoseconds; any other value as it is."""
    if isinstance(value, str) and type_ not in ("varchar", "json"):
        return parse(value, type_)
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.timezone.utc).replace(tzinfo=None)
        since = value - datetime.datetime(1970, 1, 1)
        return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    if isinstance(value, datetime.date):
        days = (value - _EPOCH).days
        return days if type_ == "date" else days * DAY
    if isinstance(value, datetime.time):
        return ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    if isinstance(value, bool) and type_ in INTEGER_BITS:
        return int(value)
    if isinstance(value, int | float) and decimal_parts(type_):
        return decimal.Decimal(value)
    return value
