"""Columns as text, of types of which Spark cannot hold every value.

An `int128` may have 39 digits, and a `timestamp_ns` has nanoseconds. A row-level change writes new versions of rows,
with the values of all columns that it does not assign. It reads those of these types as text and writes the text, of
which DuckDB reads every digit.
"""

from __future__ import annotations

from dataclasses import replace

from ...lake.snapshot import Table
from ...lake.types import Column

TEXT_TYPES = {"int128": "int128 as text", "timestamp_ns": "timestamp_ns as text"}
"""What stands for the type of a column that is text. These names are in no catalog."""
_TYPES = {text: type_ for type_, text in TEXT_TYPES.items()}


def is_kept_as_text(column: Column) -> bool:
    """Whether the column, or a part of it, has one of the types."""
    return any(field.type in TEXT_TYPES for field in column.walk())


def as_text(column: Column) -> Column:
    """The column with text in place of each of the types."""
    return replace(column, type=TEXT_TYPES.get(column.type, column.type), children=tuple(map(as_text, column.children)))


def table_as_text(table: Table) -> Table:
    """The table with its columns as text. A scan of it has them so."""
    return replace(table, columns=tuple(map(as_text, table.columns)))


def type_of_text(type_: str) -> str:
    """The type in the catalog of a column that `as_text` returned."""
    return _TYPES.get(type_, type_)


def kept_text_name(column: Column) -> str:
    """The name under which a scan has the column as text, beside the column itself."""
    return f"_lake_text_{column.id}"
