"""Rows that a transaction inserts into the catalog instead of writing a data file for them."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from .arrow_types import arrow_type, has_plain_type, with_field_ids
from .catalog import Catalog
from .databases.base import Database
from .inlined import InlinedRows, can_inline
from .parquet_footer import file_stats
from .predicates import ReadPredicate
from .pruning import FileStats, compile_predicate
from .stats import ColumnStats
from .types import Column
from .values import nanoseconds_per_unit, render_value

FIRST_STAGED_ROW_ID = 2 * 10**18
"""The row ids of inserted rows before the commit, which assigns real ones."""


_MAX_BYTES = 1 << 20
"""Larger values are better kept in a file, however few rows they are in."""


@dataclass(frozen=True, eq=False)
class NewInlinedRows:
    """Rows of a table, with the table's columns in order, and their statistics by column id."""

    rows: pa.Table
    columns: tuple[Column, ...]
    stats: Mapping[int, ColumnStats]

    @classmethod
    def of(cls, rows: pa.Table, columns: tuple[Column, ...]) -> NewInlinedRows:
        """The rows, whose columns have these names, in any order, and values of these types."""
        rows = with_field_ids(rows, columns)
        return cls(rows, columns, _statistics(rows, columns))

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def can_be_stored(self) -> bool:
        """Whether the catalog should hold the values. Not every program gets past the character NUL in a text."""
        if self.rows.nbytes > _MAX_BYTES:
            return False
        texts = (self.rows.column(c.name) for c in self.columns if c.type in ("varchar", "json"))
        return not any(pc.any(pc.match_substring(text, "\0")).as_py() for text in texts)

    def without(self, positions: frozenset[int]) -> NewInlinedRows:
        kept = [i for i in range(len(self)) if i not in positions]
        return NewInlinedRows.of(self.rows.take(kept), self.columns)

    def values(self, database: Database) -> list[tuple[Any, ...]]:
        """The rows as tuples of what the catalog database stores."""
        columns = (_stored_values(self.rows.column(i), c, database) for i, c in enumerate(self.columns))
        return list(zip(*columns, strict=True))


def _statistics(rows: pa.Table, columns: Sequence[Column]) -> dict[int, ColumnStats]:
    """The statistics that a Parquet file in the lake would have, since one in memory has them."""
    file = io.BytesIO()
    pq.write_table(rows, file, store_schema=False)
    return file_stats(pq.read_metadata(file), columns)


def may_match_rows(inlined: InlinedRows, read: ReadPredicate, columns: Sequence[Column]) -> bool:
    """Whether one of the rows of a table with these columns may satisfy the predicate."""
    test = compile_predicate(read.predicate, columns, time_zone=read.time_zone)
    known = [c for c in columns if has_plain_type(c)]
    rows = with_field_ids(inlined.rows.select(range(len(columns))), known)
    return any(test(FileStats(_statistics(rows.slice(i, 1), known))) for i in range(len(rows)))


def takes_inserts(catalog: Catalog, columns: Sequence[Column]) -> bool:
    """Whether rows of these columns can be inserted into the catalog."""
    return can_inline(catalog, columns) and all(
        has_plain_type(column) and catalog.database.keeps_inlined(column) for column in columns
    )


def staged_inlined_rows(inserts: Sequence[NewInlinedRows], columns: Sequence[Column]) -> InlinedRows | None:
    """Inserted rows as those of a table with these columns, with staged row ids and no snapshot."""
    parts = [insert.rows for insert in inserts if len(insert)]
    if not parts:
        return None
    rows = pa.concat_tables(part.replace_schema_metadata(None) for part in parts)
    arrays = [rows.column(i).cast(arrow_type(c, exact=True)) for i, c in enumerate(columns)]
    row_ids = pa.array(range(FIRST_STAGED_ROW_ID, FIRST_STAGED_ROW_ID + len(rows)), pa.int64())
    arrays += [row_ids, pa.nulls(len(rows), pa.int64())]
    return InlinedRows(pa.Table.from_arrays(arrays, [*(c.name for c in columns), "row_id", "begin_snapshot"]))


def without_staged_rows(
    inserts: Sequence[NewInlinedRows], staged_row_ids: frozenset[int]
) -> tuple[NewInlinedRows, ...]:
    """The inserts without the rows that have these staged row ids."""
    kept, start = [], FIRST_STAGED_ROW_ID
    for insert in inserts:
        positions = frozenset(i - start for i in staged_row_ids if start <= i < start + len(insert))
        start += len(insert)
        if len(positions) < len(insert):
            kept.append(insert.without(positions) if positions else insert)
    return tuple(kept)


def only_staged(inlined: InlinedRows) -> InlinedRows:
    """Those of the rows that a transaction inserted."""
    return InlinedRows(inlined.rows.filter(pc.greater_equal(inlined.row_ids, FIRST_STAGED_ROW_ID)))


def is_staged(row_id: int) -> bool:
    return row_id >= FIRST_STAGED_ROW_ID


def _stored_values(values: pa.ChunkedArray, column: Column, database: Database) -> list[Any]:
    encode: Callable[[Any], Any] = lambda value: database.inlined_value(value, column.type)  # noqa: E731
    if column.type == "date":
        values, encode = values.cast(pa.int32()), lambda days: render_value(days, "date")
    elif column.type in ("timestamp", "timestamptz"):
        unit = nanoseconds_per_unit(column.type)
        values, encode = values.cast(pa.int64()), lambda count: render_value(count * unit, column.type)
    return [None if value is None else encode(value) for value in values.to_pylist()]
