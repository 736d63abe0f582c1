"""Which files of a table can hold a row for which a predicate is true.

A predicate is compiled once and then asked of every file. It answers False only where the file's
statistics or partition values rule every row out; whatever it can not tell, it keeps. Values are
compared as Spark compares them, so 'can not tell' includes casts on which Spark's settings differ.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from .partitions import Bucket, Identity, PartitionSpec
from .predicates import And, Comparison, In, IsNotNull, IsNull, Operator, Or, Predicate, StartsWith, Value, columns_of
from .stats import UNBOUNDED, ColumnStats
from .types import FLOATS, INTEGER_BITS, NESTED, TIMESTAMPS, Column, decimal_parts, find_path
from .values import DAY, float32, parse


@dataclass(frozen=True)
class FileStats:
    """What the catalog says of one file's values; what is not said may be anything."""

    columns: Mapping[int, ColumnStats] = field(default_factory=dict)
    partition_id: int | None = None
    partition_values: Sequence[str | None] = ()


Test: TypeAlias = Callable[[FileStats], bool]


def needed_column_ids(predicate: Predicate, columns: Sequence[Column]) -> set[int]:
    """The columns whose statistics the compiled predicate will ask for."""
    found = (_find(columns, path) for path in columns_of(predicate))
    return {column.id for column in found if column is not None}


def compile_predicate(
    predicate: Predicate,
    columns: Sequence[Column],
    specs: Mapping[int, PartitionSpec] | None = None,
    time_zone: str = "UTC",
) -> Test:
    """A test that is false only of files in which the predicate is true for no row.

    `specs` are the table's partitionings by their id, past ones too. `time_zone` is the session's,
    in which a timestamp without a zone meets one with a zone. Keys of year, month, day and hour are
    not looked at: the statistics of their column say more.
    """
    return _Compiler(columns, specs or {}, _zone(time_zone)).test(predicate) or _keep


def may_match(
    predicate: Predicate,
    file: FileStats,
    columns: Sequence[Column],
    specs: Mapping[int, PartitionSpec] | None = None,
    time_zone: str = "UTC",
) -> bool:
    """Whether one file can hold a row for which the predicate is true."""
    return compile_predicate(predicate, columns, specs, time_zone)(file)


def _keep(file: FileStats) -> bool:
    return True


@dataclass(frozen=True)
class _Span:
    """A literal as an interval that surely holds it, and how a bound's text becomes one like it.

    Both are single values mostly. They widen where it is open which value Spark compares: a number
    as a float of four bytes or of eight, a local time that the clock showed twice.
    """

    low: Any
    high: Any
    read: Callable[[str], tuple[Any, Any] | None]

    def may(self, operator: Operator, low: Any, high: Any) -> bool:
        """Whether the operator can hold of a value between the bounds; a bound of None is open."""
        if operator == "<>":
            return not (low is not None and low == high == self.low == self.high)
        if operator in ("=", "<=") and low is not None and low > self.high:
            return False
        if operator in ("=", ">=") and high is not None and high < self.low:
            return False
        if operator == "<" and low is not None:
            return bool(low < self.high)
        if operator == ">" and high is not None:
            return bool(high > self.low)
        return True


@dataclass(frozen=True)
class _Compiler:
    columns: Sequence[Column]
    specs: Mapping[int, PartitionSpec]
    zone: datetime.tzinfo | None

    def test(self, predicate: Predicate) -> Test | None:
        """The test; None where it would keep every file."""
        if isinstance(predicate, And):
            tests = [test for part in predicate.parts if (test := self.test(part))]
            return (lambda file: all(test(file) for test in tests)) if tests else None
        if isinstance(predicate, Or):
            either = [self.test(part) for part in predicate.parts]
            if None in either:
                return None
            return lambda file: any(test(file) for test in either if test)
        if isinstance(predicate, Comparison | In | StartsWith | IsNull | IsNotNull):
            column = _find(self.columns, predicate.column)
            return self._column_test(predicate, column) if column is not None else None
        return None

    def _column_test(self, predicate: Comparison | In | StartsWith | IsNull | IsNotNull, column: Column) -> Test | None:
        if isinstance(predicate, IsNull):
            return self._null_test(column, wanted=True)
        if isinstance(predicate, IsNotNull):
            return self._null_test(column, wanted=False)
        if column.type in UNBOUNDED:
            return None
        if isinstance(predicate, StartsWith):
            return self._prefix_test(column, predicate.prefix)
        if isinstance(predicate, Comparison):
            return self._comparison_test(column, predicate.operator, (predicate.value,))
        return self._comparison_test(column, "=", predicate.values)

    def _comparison_test(self, column: Column, operator: Operator, values: Sequence[Value]) -> Test | None:
        spans = []
        for value in values:
            span = _span(value, column.type, self.zone)
            if span is None:
                return None
            spans.append(span)
        read = spans[0].read if spans else _plain(column.type)
        # IN may mix literals that are read in different ways; they are few, so ask each of its own.
        one_reader = all(span.read is read for span in spans)
        points = _points(spans) if one_reader and operator == "=" else None

        def between(low: str | None, high: str | None) -> bool:
            if one_reader:
                bounds = _read(read, low, high)
                if points is not None and None not in bounds:
                    first = bisect_left(points, bounds[0])
                    return first < len(points) and bool(points[first] <= bounds[1])
                return any(span.may(operator, *bounds) for span in spans)
            return any(span.may(operator, *_read(span.read, low, high)) for span in spans)

        nan_matches = column.type in FLOATS and operator in (">", ">=", "<>")
        by_identity = self._identity_keys(column)
        buckets = self._buckets(column, spans, values) if operator == "=" else {}

        def test(file: FileStats) -> bool:
            stats = file.columns.get(column.id)
            if stats is not None:
                if stats.value_count == 0 and stats.null_count:
                    return False
                nan = nan_matches and stats.contains_nan is not False
                if not nan and not between(stats.min_value, stats.max_value):
                    return False
            spec = file.partition_id
            if spec is None:
                return True
            for index in by_identity.get(spec, ()):
                if index < len(file.partition_values):
                    text = file.partition_values[index]
                    if text is None or (text != "nan" and not between(text, text)):
                        return False
            return all(
                index >= len(file.partition_values) or file.partition_values[index] in possible
                for index, possible in buckets.get(spec, ())
            )

        return test

    def _prefix_test(self, column: Column, prefix: str) -> Test | None:
        if column.type not in ("varchar", "json"):
            return None
        length = len(prefix)
        by_identity = self._identity_keys(column)

        def test(file: FileStats) -> bool:
            stats = file.columns.get(column.id)
            if stats is not None:
                if stats.value_count == 0 and stats.null_count:
                    return False
                if stats.min_value is not None and stats.min_value[:length] > prefix:
                    return False
                if stats.max_value is not None and stats.max_value < prefix:
                    return False
            return all(text is not None and text.startswith(prefix) for text in _values(file, by_identity))

        return test

    def _null_test(self, column: Column, wanted: bool) -> Test | None:
        by_identity = self._identity_keys(column)

        def test(file: FileStats) -> bool:
            stats = file.columns.get(column.id)
            # Two zeros are how the reference says that it did not count (timetz, interval).
            if stats is not None and (stats.null_count or stats.value_count):
                count = stats.null_count if wanted else stats.value_count
                if count == 0:
                    return False
            return all((text is None) == wanted for text in _values(file, by_identity))

        return test if column.type not in NESTED else None

    def _identity_keys(self, column: Column) -> dict[int, tuple[int, ...]]:
        """Where each partitioning keeps the column's own value."""
        if column.type == "blob":  # the reference's text for it is no hex, and not every blob has one
            return {}
        found = {
            spec.id: tuple(
                key.index for key in spec.fields if key.column_id == column.id and isinstance(key.transform, Identity)
            )
            for spec in self.specs.values()
        }
        return {spec_id: indexes for spec_id, indexes in found.items() if indexes}

    def _buckets(
        self, column: Column, spans: Sequence[_Span], values: Sequence[Value]
    ) -> dict[int, list[tuple[int, set[str | None]]]]:
        """The buckets that can hold one of the values, for each partitioning with such a key."""
        result: dict[int, list[tuple[int, set[str | None]]]] = {}
        for spec in self.specs.values():
            for key in spec.fields:
                if key.column_id != column.id or not isinstance(key.transform, Bucket):
                    continue
                possible: set[str | None] = set()
                for span, value in zip(spans, values, strict=True):
                    found = _possible_buckets(span, value, column.type, key.transform)
                    if found is None:
                        break
                    possible |= found
                else:
                    result.setdefault(spec.id, []).append((key.index, possible))
        return result


def _points(spans: Sequence[_Span]) -> list[Any] | None:
    """The values of many literals in their order, if each is one value."""
    if len(spans) < _MANY or any(span.low != span.high for span in spans):
        return None
    return sorted(span.low for span in spans)


_MANY = 16


def _values(file: FileStats, keys: Mapping[int, tuple[int, ...]]) -> Iterable[str | None]:
    for index in keys.get(file.partition_id, ()) if file.partition_id is not None else ():
        if index < len(file.partition_values):
            yield file.partition_values[index]


def _possible_buckets(span: _Span, value: Value, type_: str, bucket: Bucket) -> set[str | None] | None:
    """The buckets, as text, of rows equal to the literal; None where that can not be said."""
    candidates = {span.low, span.high}
    if type_ in FLOATS:
        # A row is equal as a float of four bytes or of eight, and hashes as a double either way.
        return {str(bucket.apply(candidate, "float64")) for candidate in candidates}
    if len(candidates) > 1 or isinstance(span.low, float):
        return None
    if type_ in INTEGER_BITS and type(span.low) is int:
        # The column may have been unsigned, or another width, when the file was written: then the
        # text was hashed instead of the number.
        return {
            str(bucket.apply(span.low, "int64" if -(2**63) <= span.low < 2**63 else "uint64")),
            str(bucket.apply(span.low, "uint64")),
        }
    if type_ in ("varchar", "json", "blob", "date", "boolean", "timestamp", "timestamp_us", "timestamptz"):
        return {str(bucket.apply(span.low, type_))} if _same_kind(value, type_) else None
    return None  # of a decimal the scale, and with it the hash, may have been another


def _same_kind(value: Value, type_: str) -> bool:
    return type_ != "date" or not isinstance(value, datetime.datetime)


def _find(columns: Sequence[Column], path: tuple[str, ...]) -> Column | None:
    """The column or field of a struct at the path; None of what lies in lists and maps."""
    found = find_path(tuple(columns), path)
    if not found or any(parent.type != "struct" for parent in found[:-1]):
        return None
    return found[-1]


def _read(read: Callable[[str], tuple[Any, Any] | None], low: str | None, high: str | None) -> tuple[Any, Any]:
    lowest = read(low) if low is not None else None
    highest = lowest if high == low else (read(high) if high is not None else None)
    return (lowest[0] if lowest else None), (highest[1] if highest else None)


# -- literals


_INTEGER = re.compile(r"\s*[+-]?\d+\s*")
_NUMBER = re.compile(r"\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?")
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?")
_EPOCH = datetime.datetime(1970, 1, 1)


def _span(value: Value, type_: str, zone: datetime.tzinfo | None) -> _Span | None:
    """The literal beside a column of the type; None where the comparison can not be foretold."""
    try:
        if type_ in INTEGER_BITS or decimal_parts(type_) or type_ in FLOATS:
            return _number_span(value, type_)
        if type_ == "date" or type_ in TIMESTAMPS:
            return _time_span(value, type_, zone)
    except (ValueError, OverflowError):  # no such day, or none that Python can count
        return None
    if type_ == "boolean":
        return _exactly(value, type_) if isinstance(value, bool) else None
    if type_ in ("varchar", "json"):
        return _exactly(value, type_) if isinstance(value, str) else None
    if type_ == "blob":
        return _exactly(value, type_) if isinstance(value, bytes) else None
    if type_ == "uuid" and isinstance(value, bytes) and len(value) == 16:
        return _exactly(str(uuid.UUID(bytes=value)), type_)
    return _exactly(value, type_) if type_ == "uuid" and isinstance(value, str) else None


def _exactly(value: Any, type_: str) -> _Span:
    return _Span(value, value, _plain(type_))


def _number_span(value: Value, type_: str) -> _Span | None:
    if isinstance(value, bool | bytes | datetime.date):
        return None
    if isinstance(value, str):
        # Beside an integer Spark takes a string for an integer, beside other numbers for a double.
        if not (_INTEGER if type_ in INTEGER_BITS else _NUMBER).fullmatch(value):
            return None
        value = int(value) if type_ in INTEGER_BITS else float(value)
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        return None
    if type_ in FLOATS or isinstance(value, float):
        return None if math.isnan(value) else _Span(*_float_interval(value), _read_float)
    return _exactly(value, type_) if _fits(decimal.Decimal(value), type_) else None


def _fits(value: decimal.Decimal, type_: str) -> bool:
    """Whether Spark finds a decimal type that holds both sides as they are."""
    parts = decimal_parts(type_)
    whole, scale = (parts[0] - parts[1], parts[1]) if parts else (20, 0)
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    return max(whole, len(digits) + exponent) + max(scale, -exponent) <= 38


def _float_interval(number: float | decimal.Decimal) -> tuple[float, float]:
    """The number as a double and as a float, in order: it may be compared as either."""
    try:
        double = float(number)
    except OverflowError:
        double = math.copysign(math.inf, number)
    single = float32(double)
    return (double, single) if double <= single else (single, double)


def _time_span(value: Value, type_: str, zone: datetime.tzinfo | None) -> _Span | None:
    if isinstance(value, str):
        parsed = _moment(value)
        if parsed is None or (type_ == "date" and isinstance(parsed, datetime.datetime)):
            return None
        value = parsed
    if not isinstance(value, datetime.date):
        return None
    if type_ == "date" and not isinstance(value, datetime.datetime):
        days = (value - _EPOCH.date()).days
        return _Span(days, days, _plain("date"))
    moment = value if isinstance(value, datetime.datetime) else datetime.datetime.combine(value, datetime.time())
    if type_ == "timestamptz":
        low, high = _instants(moment, zone)
    elif moment.tzinfo is not None:
        return None
    else:
        # Spark may hold the two local times against each other, or the instants that they are in
        # its zone. That is the same unless the clock is changed nearby.
        around = 0 if zone is not None and _steady(moment, zone) else DAY
        low, high = _nanoseconds(moment) - around, _nanoseconds(moment) + around
    return _Span(low, high, _midnight if type_ == "date" else _plain(type_))


def _moment(text: str) -> datetime.date | None:
    if _DATE.fullmatch(text):
        return datetime.date.fromisoformat(text)
    match = _TIMESTAMP.fullmatch(text)
    if not match:
        return None
    day = datetime.date.fromisoformat(match[1])
    clock = datetime.time(int(match[2]), int(match[3]), int(match[4]), int((match[5] or "").ljust(6, "0")))
    return datetime.datetime.combine(day, clock)


def _instants(moment: datetime.datetime, zone: datetime.tzinfo | None) -> tuple[int, int]:
    if moment.tzinfo is not None:
        offset = moment.utcoffset() or datetime.timedelta()
        instant = _nanoseconds(moment.replace(tzinfo=None) - offset)
        return instant, instant
    if zone is None:
        raise ValueError("the session's time zone is unknown")
    offsets = [moment.replace(tzinfo=zone, fold=fold).utcoffset() or datetime.timedelta() for fold in (0, 1)]
    both = sorted(_nanoseconds(moment - offset) for offset in offsets)
    return both[0], both[1]


def _steady(moment: datetime.datetime, zone: datetime.tzinfo) -> bool:
    around = (moment + datetime.timedelta(days=days) for days in (-2, -1, 0, 1, 2))
    return len({time.replace(tzinfo=zone, fold=fold).utcoffset() for time in around for fold in (0, 1)}) == 1


def _nanoseconds(moment: datetime.datetime) -> int:
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def _zone(name: str) -> datetime.tzinfo | None:
    match = _OFFSET.fullmatch(name)
    if match:
        offset = datetime.timedelta(hours=int(match[2]), minutes=int(match[3] or 0))
        return datetime.timezone(offset if match[1] == "+" else -offset)
    try:
        return datetime.timezone.utc if name in ("UTC", "GMT", "Z") else ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not in this machine's list of zones
        return None


# -- bounds


def _plain(type_: str) -> Callable[[str], tuple[Any, Any] | None]:
    return _PLAIN.setdefault(type_, _PlainReader(type_))


@dataclass(frozen=True)
class _PlainReader:
    """Reads a bound as the value it is; a nanosecond may be cut off where Spark reads it."""

    type: str

    def __call__(self, text: str) -> tuple[Any, Any] | None:
        value = parse(text, self.type)
        if value is None:
            return None
        if self.type == "timestamp_ns" and isinstance(value, int):
            return value - 999, value + 999
        return value, value


_PLAIN: dict[str, _PlainReader] = {}


def _read_float(text: str) -> tuple[Any, Any] | None:
    # A text that a float of four bytes left reads as another number in eight: keep room for both.
    try:
        number = float(text)
    except ValueError:
        return None
    return None if math.isnan(number) else _float_interval(number)


def _midnight(text: str) -> tuple[Any, Any] | None:
    days: Any = parse(text, "date")
    return None if days is None else (days * DAY, days * DAY)
