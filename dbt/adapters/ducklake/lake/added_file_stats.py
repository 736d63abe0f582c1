"""Statistics of a Parquet file that is added to a table: from its footer, its path, and what it does not have."""

from __future__ import annotations

import decimal
from collections.abc import Mapping, Sequence

import pyarrow.parquet as pq

from .added_files import FileMatch
from .duckdb_text import parse_blob
from .geometry_stats import NO_GEOMETRIES
from .parquet_footer import file_stats, physical_types
from .path_values import PathValue, parse_path_value
from .stats import TYPES_WITHOUT_BOUNDS, UNKNOWN_STATS, ColumnStats
from .types import FLOATS, NESTED, Column, decimal_parts
from .values import Comparable, parse_value, render_value


def added_file_stats(
    metadata: pq.FileMetaData, columns: Sequence[Column], match: FileMatch, values: Mapping[str, PathValue]
) -> dict[int, ColumnStats]:
    """The statistics of a file's columns, by column id.

    Columns that the file does not have get some too. The reference writes none for them, and then takes a column with
    values in other files for one without NULLs.
    """
    rows = metadata.num_rows
    stats = file_stats(metadata, columns, name_map=match.name_map)
    by_id = {column.id: column for column in columns}
    for entry in match.name_map:
        if entry.is_partition:
            column = by_id[entry.column_id]
            parsed = parse_path_value(values[column.name.lower()].text, column.type)
            assert parsed is not None
            stats[column.id] = _constant(column.type, parsed.statistics_text, rows)
    top_level = {column.id for column in columns}
    for column in match.missing:
        for leaf in column.leaves():
            stats[leaf.id] = _default_stats(leaf, rows, is_top_level=leaf.id in top_level)
    return stats


def check_values(
    metadata: pq.FileMetaData, columns: Sequence[Column], match: FileMatch, stats: Mapping[int, ColumnStats]
) -> list[str]:
    """What the statistics of a file say against adding it: NULLs where none may be, decimals with too many digits."""
    problems = [_null_problem(column, stats) for column in columns]
    types = physical_types(metadata, columns, match.name_map)
    fields = [field for column in columns for field in column.walk()]
    problems += [_digits_problem(column, types[column.id], stats[column.id]) for column in fields if column.id in types]
    return [problem for problem in problems if problem is not None]


def _default_stats(column: Column, rows: int, is_top_level: bool) -> ColumnStats:
    """The statistics of a column that the file does not have."""
    if column.initial_default is None:
        return _constant(column.type, None, rows)
    if not is_top_level:  # a struct may be NULL, and the field then is as well
        return UNKNOWN_STATS
    value = _default_value(column)
    return UNKNOWN_STATS if value is None else _constant(column.type, render_value(value, column.type), rows)


def _default_value(column: Column) -> Comparable | None:
    assert column.initial_default is not None
    if column.type == "blob":
        return parse_blob(column.initial_default)
    return parse_value(column.initial_default, column.type)


def _constant(type_: str, text: str | None, rows: int) -> ColumnStats:
    """The statistics of a column that has one value in all rows, or NULL."""
    nulls = rows if text is None else 0
    bound = None if type_ in TYPES_WITHOUT_BOUNDS else text
    nan = False if type_ in FLOATS else None
    extra = NO_GEOMETRIES.text() if type_ == "geometry" and nulls else None
    return ColumnStats(0, rows - nulls, nulls, bound, bound, nan, extra, exact=True)


def _null_problem(column: Column, stats: Mapping[int, ColumnStats]) -> str | None:
    for field in column.walk():
        if field.nulls_allowed:
            continue
        null_counts = [stats[leaf.id].null_count if leaf.id in stats else None for leaf in field.leaves()]
        # A struct is NULL in no row in which one of its fields is not.
        in_rows = null_counts if field.type not in ("list", "map") else []
        if 0 in in_rows:
            continue
        if field.type in NESTED or None in null_counts:
            return f"column {field.name} is NOT NULL, and the file does not tell whether it has NULLs there"
        return f"column {field.name} is NOT NULL, and {null_counts[0]} rows of the file have no value for it"
    return None


def _digits_problem(column: Column, physical: str, stats: ColumnStats) -> str | None:
    """Why decimals do not fit into their column, whose digits before the point may be fewer than the file's."""
    wide, narrow = decimal_parts(column.type), decimal_parts(physical.partition(":")[2])
    if wide is None or narrow is None or narrow[0] - narrow[1] <= wide[0] - wide[1] or stats.value_count == 0:
        return None
    found = f"column {column.name} is decimal({narrow[0]},{narrow[1]}) in the file and {column.type} in the table"
    if stats.min_value is None or stats.max_value is None:
        return f"{found}, and the file does not tell whether all values fit"
    limit = decimal.Decimal(10) ** (wide[0] - wide[1])
    largest = max((decimal.Decimal(stats.min_value), decimal.Decimal(stats.max_value)), key=abs)
    return f"{found}, and the value {largest} does not fit" if abs(largest) >= limit else None
