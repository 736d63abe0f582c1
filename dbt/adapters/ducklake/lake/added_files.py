"""Matching the schema of a Parquet file with the columns of the table that it is added to.

A file is matched by name, in any case, whatever field ids it has: `match_file` says which field is which column, and
what keeps the file from being added. Types may be narrower than those of the columns, as in the reference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq

from .files import NameMap, NameMapEntry
from .parquet_schema import ParquetField, schema_fields, stored_type, stored_type_text
from .path_values import PathValue, parse_path_value
from .types import FLOATS, INTEGER_RANGES, NESTED, Column, decimal_parts

_OF_EQUAL_TYPE = ("boolean", "varchar", "json", "blob", "uuid", "date", "time", "timestamptz", "interval", "geometry")
_LOCAL_TIMESTAMPS = {
    "timestamp": ("timestamp_ms", "timestamp", "timestamp_ns"),
    "timestamp_us": ("timestamp_ms", "timestamp", "timestamp_ns"),
    "timestamp_ns": ("timestamp_ms", "timestamp", "timestamp_ns"),
    "timestamp_s": ("timestamp_ms", "timestamp"),
    "timestamp_ms": ("timestamp_ms", "timestamp"),
}


@dataclass(frozen=True)
class MatchRules:
    """What a file may differ in from its table."""

    allow_missing: bool = False
    ignore_extra_columns: bool = False


@dataclass(frozen=True)
class FileMatch:
    """How the fields of a file match the columns of a table."""

    name_map: NameMap
    missing: tuple[Column, ...] = ()
    """The columns and nested fields that the file does not have."""
    missing_names: tuple[str, ...] = ()
    """Their names, with those of the structs that they are in."""
    ignored_names: tuple[str, ...] = ()
    """The fields of the file that the table does not have."""
    problems: tuple[str, ...] = ()
    """Why the file cannot be added, each in words that name the column."""


def match_file(
    metadata: pq.FileMetaData, columns: Sequence[Column], values: Mapping[str, PathValue], rules: MatchRules
) -> FileMatch:
    """Matches a file with the columns of a table. `values` are those in its path, by their keys in lower case.

    A column whose value is in the path is read from there, even if the file has it too.
    """
    matching = _Matching(metadata, rules)
    name_map = matching.match(schema_fields(metadata), columns, "", values)
    if not name_map and not matching.problems:
        matching.problems.append("the file has no column of the table")
    return FileMatch(
        name_map,
        tuple(matching.missing),
        tuple(matching.missing_names),
        tuple(matching.ignored_names),
        tuple(matching.problems),
    )


def _accepted_types(type_: str) -> tuple[str, ...]:
    """The types that a column without children takes from a file, narrower ones first; for decimals see `_accepts`."""
    if type_ in INTEGER_RANGES and "128" not in type_:
        low, high = INTEGER_RANGES[type_]
        return tuple(name for name, (lowest, highest) in INTEGER_RANGES.items() if low <= lowest and highest <= high)
    if type_ in FLOATS:
        return FLOATS[: FLOATS.index(type_) + 1]
    if type_ in _LOCAL_TIMESTAMPS:
        return _LOCAL_TIMESTAMPS[type_]
    return (type_,) if type_ in _OF_EQUAL_TYPE else ()


def _accepts(type_: str, stored: str) -> bool:
    """Whether a column of a type takes a file's type."""
    wide, narrow = decimal_parts(type_), decimal_parts(stored)
    if wide is not None:
        return narrow is not None and narrow[0] <= wide[0] and narrow[1] <= wide[1]
    return stored in _accepted_types(type_)


class _Matching:
    """The matching of one file, with what it finds on the way."""

    def __init__(self, metadata: pq.FileMetaData, rules: MatchRules) -> None:
        self.metadata = metadata
        self.rules = rules
        self.missing: list[Column] = []
        self.missing_names: list[str] = []
        self.ignored_names: list[str] = []
        self.problems: list[str] = []

    def match(
        self,
        fields: Sequence[ParquetField],
        columns: Sequence[Column],
        prefix: str,
        values: Mapping[str, PathValue] | None = None,
    ) -> NameMap:
        """The name map of the fields of a file or of a struct. `prefix` is the name of the struct with a dot."""
        values = values or {}
        self._refuse_names_in_two_cases(fields, prefix)
        by_name = {field.name.lower(): field for field in fields}
        entries = []
        for column in columns:
            field = by_name.pop(column.name.lower(), None)
            value = values.get(column.name.lower())
            if value is not None:
                entries.append(NameMapEntry(value.key, column.id, is_partition=True))
                self._check_path_value(column, value)
            elif field is not None:
                entries.append(self._entry(field, field.name, column, prefix + column.name))
            else:
                self._record_missing(column, prefix + column.name)
        for field in by_name.values():
            self._record_extra(prefix + field.name)
        return tuple(entries)

    def _entry(self, field: ParquetField, source_name: str, column: Column, name: str) -> NameMapEntry:
        if column.type not in NESTED:
            self._check_leaf(field, column, name)
            return NameMapEntry(source_name, column.id)
        if field.kind != column.type:
            self._refuse_type(name, self._field_text(field), column.type_text(), ())
            return NameMapEntry(source_name, column.id)
        if not field.has_usual_levels:
            self.problems.append(
                f"column {name} is a {field.kind} in an old form, which engines read differently; write the file anew"
            )
        return NameMapEntry(source_name, column.id, False, self._children(field, column, name))

    def _children(self, field: ParquetField, column: Column, name: str) -> NameMap:
        if column.type == "struct":
            before = len(self.problems)
            entries = self.match(field.children, column.children, f"{name}.")
            if not entries and len(self.problems) == before:
                self.problems.append(f"column {name} has no field of that struct in the table")
            return entries
        # The parts of lists and maps are matched by position: writers name them differently.
        names = ("list",) if column.type == "list" else ("key", "value")
        return tuple(
            self._entry(part, source_name, child, f"{name}.{child.name}")
            for part, source_name, child in zip(field.children, names, column.children, strict=True)
        )

    def _check_leaf(self, field: ParquetField, column: Column, name: str) -> None:
        if field.kind != "leaf":
            self._refuse_type(name, self._field_text(field), column.type, _accepted_types(column.type))
            return
        leaf = self.metadata.schema.column(field.leaves[0])
        stored = stored_type(leaf)
        if stored is None or not _accepts(column.type, stored):
            self._refuse_type(name, stored_type_text(leaf), column.type, _accepted_types(column.type))

    def _field_text(self, field: ParquetField) -> str:
        return field.kind if field.kind != "leaf" else stored_type_text(self.metadata.schema.column(field.leaves[0]))

    def _refuse_type(self, name: str, found: str, type_: str, accepted: Sequence[str]) -> None:
        if decimal_parts(type_):
            taken = ", which takes decimals of no more digits before or after the point"
        elif len(accepted) > 1:
            taken = f", which takes {', '.join(accepted)}"
        else:
            taken = "" if accepted or type_.partition("<")[0] in NESTED else ", which takes no type of a file"
        self.problems.append(f"column {name} is {found} in the file and {type_} in the table{taken}")

    def _check_path_value(self, column: Column, value: PathValue) -> None:
        if column.type in NESTED or parse_path_value(value.text, column.type) is None:
            self.problems.append(
                f"column {column.name} has the value {value.text!r} in the file's path,"
                f" which engines do not all read as {column.type};"
                " with hive_partitioning => false, columns are not taken from paths"
            )

    def _record_missing(self, column: Column, name: str) -> None:
        self.missing.append(column)
        self.missing_names.append(name)
        if not self.rules.allow_missing:
            self.problems.append(
                f"column {name} of the table is not in the file;"
                " with allow_missing => true its rows have its default or NULL there"
            )
        elif not column.nulls_allowed and column.initial_default is None:
            self.problems.append(f"column {name} is NOT NULL, and the file does not have it")

    def _record_extra(self, name: str) -> None:
        self.ignored_names.append(name)
        if not self.rules.ignore_extra_columns:
            self.problems.append(
                f"column {name} of the file is not in the table; with ignore_extra_columns => true it is left out"
            )

    def _refuse_names_in_two_cases(self, fields: Sequence[ParquetField], prefix: str) -> None:
        counts = Counter(field.name.lower() for field in fields)
        for name in (name for name, count in counts.items() if count > 1):
            spellings = " and ".join(prefix + field.name for field in fields if field.name.lower() == name)
            self.problems.append(f"the file has the columns {spellings}, which Spark does not tell apart")
