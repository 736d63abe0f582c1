"""The positions of the rows that a statement changes, collected to the driver where they are few enough."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..read.deletion_masks import deleted_positions
from ..read.parquet import FILE_POOL, FileReader
from ..read.position_keys import position_keys
from ..read.scan import FILE, POSITION, TableScan
from ..sql.quoting import quoted, string_literal

MAX_DRIVER_ROWS = 20_000_000
"""Scans of up to this many rows have their positions collected straight away: at most 160 MB."""
MAX_DRIVER_POSITIONS = 1_000_000
"""Positions of larger scans are counted first, and collected if they are at most this many."""

_POSITION_KEY, _IS_CHANGED, _COUNT = "_lake_position_key", "_lake_is_changed", "_lake_count"

PositionsByFile = Mapping[str | None, pa.Array]
"""Sorted positions by file key; under None, the row ids of inlined rows."""


@dataclass(frozen=True)
class RowPositions:
    """The positions of the rows that a statement changes."""

    candidates: DataFrame
    """The rows that the statement's query returned. Some may stay unchanged: a MERGE has no clause for them."""
    changed: DataFrame
    """The candidates that are changed. They are checkpointed unless `collected` holds their positions."""
    collected: PositionsByFile | None
    """The positions of the changed rows; None if they are too many for the driver."""
    has_duplicates: bool | None = None
    """Whether two candidates have the same position; None if the driver does not know."""

    @classmethod
    def of(
        cls, rows: DataFrame, scan: TableScan, *, checkpointed: bool = True, action_column: str | None = None
    ) -> RowPositions:
        """The positions of rows of a scan. With an `action_column`, rows that have NULL in it stay unchanged."""
        fits = scan_fits_driver(scan)
        candidates = rows if fits or checkpointed else rows.localCheckpoint()
        changed = candidates if action_column is None else candidates.where(F.col(action_column).isNotNull())
        if not fits and candidates.count() > MAX_DRIVER_POSITIONS:
            return cls(candidates, changed, None)
        every, collected = _collect(candidates, scan, action_column)
        duplicates = any(pc.any(pc.equal(p[1:], p[:-1])).as_py() for p in every.values() if len(p) > 1)
        return cls(candidates, changed, collected, duplicates)

    @classmethod
    def without_deleted(cls, rows: DataFrame, scan: TableScan, reader: FileReader) -> RowPositions:
        """The positions of rows of a scan that fits the driver, where the rows include deleted ones."""
        files = {key: file for key, file in scan.files_by_key.items() if file.has_deletes}
        # The driver reads the deleted positions while Spark runs the query.
        deleted = FILE_POOL.map(lambda file: deleted_positions(reader, file, scan.snapshot_id), files.values())
        found, _ = _collect(rows, scan, None)
        collected = dict(found)
        for key, positions in zip(files, deleted, strict=True):
            if key in collected:
                collected[key] = collected[key].filter(pc.invert(pc.is_in(collected[key], value_set=positions)))
        collected = {key: positions for key, positions in collected.items() if len(positions)}
        return cls(rows, rows, collected, has_duplicates=False)

    def counts_by_file(self) -> dict[str | None, int]:
        """The number of changed rows by file key; under None, that of inlined rows."""
        if self.collected is not None:
            return {key: len(positions) for key, positions in self.collected.items()}
        counts = self.changed.groupBy(FILE).agg(F.count("*").alias(_COUNT)).toArrow()
        return dict(zip(counts.column(FILE).to_pylist(), counts.column(_COUNT).to_pylist(), strict=True))

    def inlined_row_ids(self) -> frozenset[int]:
        if self.collected is not None:
            return frozenset(self.collected[None].to_pylist())
        row_ids = self.changed.where(F.col(FILE).isNull()).select(POSITION).toArrow().column(0)
        return frozenset(row_ids.to_pylist())

    def in_files(self, keys: Collection[str]) -> RowPositions:
        """The positions in some of the files."""
        collected = None if self.collected is None else {key: p for key, p in self.collected.items() if key in keys}
        changed = self.changed.where(F.col(FILE).isin(*keys)) if len(keys) < 100 else self.changed
        return replace(self, changed=changed, collected=collected)

    def find_duplicate(self) -> tuple[str | None, int, int] | None:
        """A file key and position that several candidates have, and how many; None if all positions differ."""
        if self.has_duplicates is False:
            return None
        counts = self.candidates.groupBy(FILE, POSITION).agg(F.count("*").alias(_COUNT))
        found = counts.where(F.col(_COUNT) > 1).limit(1).toArrow().to_pylist()
        return next(((r[FILE], r[POSITION], r[_COUNT]) for r in found), None)

    def distinct(self) -> RowPositions:
        collected = None if self.collected is None else {key: pc.unique(p) for key, p in self.collected.items()}
        return replace(self, changed=self.changed.dropDuplicates([FILE, POSITION]), collected=collected)

    def __bool__(self) -> bool:
        return self.collected is None or bool(self.collected)


def scan_fits_driver(scan: TableScan) -> bool:
    """Whether the driver may hold the positions of all rows of a scan."""
    inlined = len(scan.inlined) if scan.inlined else 0
    return fits_driver(sum(f.record_count for f in scan.files) + inlined)


def fits_driver(positions: int) -> bool:
    return positions <= MAX_DRIVER_ROWS


def _collect(rows: DataFrame, scan: TableScan, action_column: str | None) -> tuple[PositionsByFile, PositionsByFile]:
    """The positions of all rows, and those of the rows with an action.

    Each position arrives as one number, the hash of the file key plus the position in the file. Sent as text, the
    file keys would be most of the data.
    """
    salt, offsets = position_keys({key: f.record_count for key, f in scan.files_by_key.items()})
    salted = f"concat({FILE}, {string_literal(salt)})" if salt else FILE
    columns = [f"if({FILE} is not null, xxhash64({salted}) + {POSITION}, null) as {_POSITION_KEY}"]
    if scan.inlined is not None:
        columns.append(f"if({FILE} is null, {POSITION}, null) as {POSITION}")
    if action_column is not None:
        columns.append(f"{quoted(action_column)} is not null as {_IS_CHANGED}")
    every = rows.selectExpr(*columns).toArrow()
    changed = every if action_column is None else every.filter(pc.field(_IS_CHANGED))
    by_file = _split_by_file(every, offsets)
    return by_file, by_file if len(changed) == len(every) else _split_by_file(changed, offsets)


def _split_by_file(table: pa.Table, offsets: Mapping[str, int]) -> PositionsByFile:
    """Sorts the position keys and splits them into the ranges of the files, which start at `offsets`."""
    result: dict[str | None, pa.Array] = {}
    if POSITION in table.column_names:
        row_ids = table.column(POSITION).drop_null().combine_chunks()
        if len(row_ids):
            result[None] = row_ids.sort()
    position_keys = table.column(_POSITION_KEY).drop_null().combine_chunks().sort()
    order = sorted(offsets, key=lambda key: offsets[key])
    indices = range(len(position_keys))
    starts = [bisect_left(indices, offsets[key], key=lambda i: position_keys[i].as_py()) for key in order]
    for key, (start, end) in zip(order, pairwise([*starts, len(position_keys)]), strict=True):
        if end > start:
            result[key] = pc.subtract(position_keys[start:end], offsets[key])
    return result
