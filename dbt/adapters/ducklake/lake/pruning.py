"""File pruning: which files of a table may contain a row for which a predicate is true.

A predicate is compiled once into a test, which then runs on every file. The test is False only if the file's
statistics or partition values rule out every row. In doubt it keeps the file, for example if the comparison needs
a cast that depends on Spark's settings: values compare here as they compare in Spark.
"""

from __future__ import annotations

import datetime
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from .literals import LiteralInterval, bound_parser, literal_interval, parse_bounds, session_time_zone
from .partitions import Bucket, Identity, PartitionSpec, SinceEpoch
from .predicates import (
    And,
    ColumnPath,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Value,
    referenced_columns,
)
from .stats import TYPES_WITHOUT_BOUNDS, ColumnStats
from .types import FLOATS, INTEGER_RANGES, NESTED, Column, find_path


@dataclass(frozen=True)
class FileStats:
    """The column statistics and partition values of one file. A missing one allows any value."""

    columns: Mapping[int, ColumnStats] = field(default_factory=dict)
    partition_id: int | None = None
    partition_values: Sequence[str | None] = ()


FileTest: TypeAlias = Callable[[FileStats], bool]
"""Whether a file may contain a matching row."""


def needed_column_ids(predicate: Predicate, columns: Sequence[Column]) -> set[int]:
    """The ids of the columns whose statistics the compiled predicate needs."""
    found = (find_column(columns, path) for path in referenced_columns(predicate))
    return {column.id for column in found if column is not None}


def compile_predicate(
    predicate: Predicate,
    columns: Sequence[Column],
    specs: Mapping[int, PartitionSpec] | None = None,
    time_zone: str = "UTC",
) -> FileTest:
    """A test that is False only for files without any row for which the predicate is true.

    `specs` are all partition specs of the table by id, past ones too. `time_zone` is that of the session, in which
    Spark compares a timestamp without time zone with one that has a time zone. Partition values of year, month, day
    and hour are not used, because the statistics of their column tell more. Those since 1970 are in order of time, so
    they stand in for statistics that are missing.
    """
    return _Compiler(columns, specs or {}, session_time_zone(time_zone)).file_test(predicate) or _keep


def may_match(
    predicate: Predicate,
    file: FileStats,
    columns: Sequence[Column],
    specs: Mapping[int, PartitionSpec] | None = None,
    time_zone: str = "UTC",
) -> bool:
    """Whether one file may contain a row for which the predicate is true."""
    return compile_predicate(predicate, columns, specs, time_zone)(file)


def _keep(file: FileStats) -> bool:
    return True


@dataclass(frozen=True)
class _Compiler:
    columns: Sequence[Column]
    specs: Mapping[int, PartitionSpec]
    zone: datetime.tzinfo | None

    def file_test(self, predicate: Predicate) -> FileTest | None:
        """The test for the predicate; None if it would keep every file."""
        if isinstance(predicate, And):
            tests = [test for part in predicate.parts if (test := self.file_test(part))]
            return (lambda file: all(test(file) for test in tests)) if tests else None
        if isinstance(predicate, Or):
            alternatives = [self.file_test(part) for part in predicate.parts]
            if None in alternatives:
                return None
            return lambda file: any(test(file) for test in alternatives if test)
        if isinstance(predicate, Comparison | In | StartsWith | IsNull | IsNotNull):
            column = find_column(self.columns, predicate.column)
            return self._column_test(predicate, column) if column is not None else None
        return None

    def _column_test(
        self, predicate: Comparison | In | StartsWith | IsNull | IsNotNull, column: Column
    ) -> FileTest | None:
        if isinstance(predicate, IsNull):
            return self._null_test(column, is_null=True)
        if isinstance(predicate, IsNotNull):
            return self._null_test(column, is_null=False)
        if column.type in TYPES_WITHOUT_BOUNDS:
            return None
        if isinstance(predicate, StartsWith):
            return self._prefix_test(column, predicate.prefix)
        if isinstance(predicate, Comparison):
            return self._comparison_test(column, predicate.operator, (predicate.value,))
        return self._comparison_test(column, "=", predicate.values)

    def _comparison_test(self, column: Column, operator: Operator, values: Sequence[Value]) -> FileTest | None:
        literals = []
        for value in values:
            literal = literal_interval(value, column.type, self.zone)
            if literal is None:
                return None
            literals.append(literal)
        parse_bound = literals[0].parse_bound if literals else bound_parser(column.type)
        # The literals of an IN may need different parsers of the bounds. They are few then: test each by itself.
        same_parser = all(literal.parse_bound is parse_bound for literal in literals)
        points = _sorted_points(literals) if same_parser and operator == "=" else None

        def may_match(low: str | None, high: str | None) -> bool:
            if not same_parser:
                return any(literal.may_match(operator, *literal.parse_bounds(low, high)) for literal in literals)
            bounds = parse_bounds(parse_bound, low, high)
            if points is not None and None not in bounds:
                first = bisect_left(points, bounds[0])
                return first < len(points) and bool(points[first] <= bounds[1])
            return any(literal.may_match(operator, *bounds) for literal in literals)

        nan_matches = column.type in FLOATS and operator in (">", ">=", "<>")
        identity_keys = self._identity_keys(column)
        epoch_keys = self._epoch_keys(column)
        buckets = self._possible_buckets(column, literals, values) if operator == "=" else {}

        def test(file: FileStats) -> bool:
            stats = file.columns.get(column.id)
            if stats is not None:
                if stats.value_count == 0 and stats.null_count:
                    return False
                may_be_nan = nan_matches and stats.contains_nan is not False
                if not may_be_nan and not may_match(stats.min_value, stats.max_value):
                    return False
            for text in _partition_values(file, identity_keys):
                if text is None or (text != "nan" and not may_match(text, text)):
                    return False
            if file.partition_id is None:
                return True
            for index, transform in epoch_keys.get(file.partition_id, ()):
                if index < len(file.partition_values):
                    value = file.partition_values[index]
                    if value is None or not may_match(*transform.bounds(int(value), column.type)):
                        return False
            return all(
                index >= len(file.partition_values) or file.partition_values[index] in possible
                for index, possible in buckets.get(file.partition_id, ())
            )

        return test

    def _prefix_test(self, column: Column, prefix: str) -> FileTest | None:
        if column.type not in ("varchar", "json"):
            return None
        length = len(prefix)
        identity_keys = self._identity_keys(column)

        def test(file: FileStats) -> bool:
            stats = file.columns.get(column.id)
            if stats is not None:
                if stats.value_count == 0 and stats.null_count:
                    return False
                if stats.min_value is not None and stats.min_value[:length] > prefix:
                    return False
                if stats.max_value is not None and stats.max_value < prefix:
                    return False
            return all(text is not None and text.startswith(prefix) for text in _partition_values(file, identity_keys))

        return test

    def _null_test(self, column: Column, is_null: bool) -> FileTest | None:
        identity_keys = self._identity_keys(column)

        def test(file: FileStats) -> bool:
            stats = file.columns.get(column.id)
            # The reference writes two zeros if it did not count (timetz, interval).
            if stats is not None and (stats.null_count or stats.value_count):
                count = stats.null_count if is_null else stats.value_count
                if count == 0:
                    return False
            return all((text is None) == is_null for text in _partition_values(file, identity_keys))

        return test if column.type not in NESTED else None

    def _identity_keys(self, column: Column) -> dict[int, tuple[int, ...]]:
        """The indexes of the column's identity partition keys, by spec id."""
        if column.type == "blob":  # the reference's text of a blob is not hexadecimal, and not every blob has one
            return {}
        found = {
            spec.id: tuple(
                key.index for key in spec.fields if key.column_id == column.id and isinstance(key.transform, Identity)
            )
            for spec in self.specs.values()
        }
        return {spec_id: indexes for spec_id, indexes in found.items() if indexes}

    def _epoch_keys(self, column: Column) -> dict[int, list[tuple[int, SinceEpoch]]]:
        """The indexes and transforms of the column's partition keys that count since 1970, by spec id."""
        return {
            spec.id: [
                (key.index, key.transform)
                for key in spec.fields
                if key.column_id == column.id and isinstance(key.transform, SinceEpoch)
            ]
            for spec in self.specs.values()
        }

    def _possible_buckets(
        self, column: Column, literals: Sequence[LiteralInterval], values: Sequence[Value]
    ) -> dict[int, list[tuple[int, set[str | None]]]]:
        """The index of each bucket key of the column and the buckets that may contain one of the values, by spec id."""
        result: dict[int, list[tuple[int, set[str | None]]]] = {}
        for spec in self.specs.values():
            for key in spec.fields:
                if key.column_id != column.id or not isinstance(key.transform, Bucket):
                    continue
                possible: set[str | None] = set()
                for literal, value in zip(literals, values, strict=True):
                    buckets = _buckets_of_literal(literal, value, column.type, key.transform)
                    if buckets is None:
                        break
                    possible |= buckets
                else:
                    result.setdefault(spec.id, []).append((key.index, possible))
        return result


_MIN_POINTS = 16
"""From how many literals on a binary search is used."""


def _sorted_points(literals: Sequence[LiteralInterval]) -> list[Any] | None:
    """The values of many literals in order; None for a few literals or if one is not a single value."""
    if len(literals) < _MIN_POINTS or not all(literal.is_point for literal in literals):
        return None
    return sorted(literal.low for literal in literals)


def _partition_values(file: FileStats, keys: Mapping[int, tuple[int, ...]]) -> Iterator[str | None]:
    """The file's values of partition keys, whose indexes are given by spec id."""
    if file.partition_id is not None:
        for index in keys.get(file.partition_id, ()):
            if index < len(file.partition_values):
                yield file.partition_values[index]


def _buckets_of_literal(literal: LiteralInterval, value: Value, type_: str, bucket: Bucket) -> set[str | None] | None:
    """The buckets, as text, of values equal to the literal; None if they are uncertain."""
    candidates = {literal.low, literal.high}
    if type_ in FLOATS:
        # Equal values are 32-bit or 64-bit floats. Both are hashed as 64-bit floats.
        return {str(bucket.apply(candidate, "float64")) for candidate in candidates}
    if len(candidates) > 1 or isinstance(literal.low, float):
        return None
    if type_ in INTEGER_RANGES and type(literal.low) is int:
        # The column may have had another type when the file was written. Values of an unsigned type are hashed as
        # text, those of a signed type as numbers.
        return {
            str(bucket.apply(literal.low, "int64" if -(2**63) <= literal.low < 2**63 else "uint64")),
            str(bucket.apply(literal.low, "uint64")),
        }
    if type_ in ("varchar", "json", "blob", "date", "boolean", "timestamp", "timestamp_us", "timestamptz"):
        is_timestamp_beside_date = type_ == "date" and isinstance(value, datetime.datetime)
        return None if is_timestamp_beside_date else {str(bucket.apply(literal.low, type_))}
    return None  # a decimal may have had another scale when the file was written, and so another hash


def find_column(columns: Sequence[Column], path: ColumnPath) -> Column | None:
    """The column or struct field at the path; None for anything inside lists and maps."""
    found = find_path(tuple(columns), path)
    if not found or any(parent.type != "struct" for parent in found[:-1]):
        return None
    return found[-1]
