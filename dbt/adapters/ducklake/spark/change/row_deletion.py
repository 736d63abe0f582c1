"""Deletes rows that are known by their positions: ends whole files, rewrites files, or adds position deletes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import functions as F

from ...lake.files import DataFile
from ...lake.snapshot import Table
from ..read.local_rows import arrow_dataframe
from ..read.scan import FILE, OWN_ROW_ID, POSITION, TableScan, internal_names, scan_dataframe
from ..sql.kept_text import table_as_text
from .command_context import CommandContext
from .position_deletes import PositionDeletesWriter
from .row_positions import RowPositions

_ROW_ID, _BEGIN_SNAPSHOT = "_lake_row_id_then", "_lake_begun"


def delete_rows(
    context: CommandContext,
    table: Table,
    scan: TableScan,
    positions: RowPositions,
    whole_files: Sequence[DataFile] = (),
) -> int:
    """Stages the deletion of rows of a scan, and of whole files that are not in it. Returns the rows of the scan.

    The positions must be distinct.
    """
    counts = positions.counts_by_file()
    total = sum(counts.values())
    if None in counts:
        context.transaction.delete_inlined_rows(table, positions.inlined_row_ids())
        del counts[None]
    touched = {key: scan.files_by_key[key] for key in counts if key is not None}
    ended = {key for key, file in touched.items() if counts[key] == file.live_rows}
    partial = {key: file for key, file in touched.items() if key not in ended}
    rewritten = _files_to_rewrite(context, table, partial, counts)
    if rewritten:
        _rewrite_files(context, table, scan.part(list(rewritten.values())), positions.in_files(rewritten))
        ended |= rewritten.keys()
        partial = {key: file for key, file in partial.items() if key not in rewritten}
    if partial:
        in_partial = positions.in_files(partial) if ended else positions
        count = sum(counts[key] for key in partial)
        deletes = PositionDeletesWriter(context, table, partial, in_partial, count).write()
        context.transaction.delete_positions(table, deletes, {file.id: counts[key] for key, file in partial.items()})
    all_ended = [*whole_files, *(touched[key] for key in ended)]
    if all_ended:
        # Last and in one call: ending a staged file changes the ids of the staged files after it.
        context.transaction.end_files(table, all_ended)
    return total


def _files_to_rewrite(
    context: CommandContext, table: Table, files: Mapping[str, DataFile], counts: Mapping[str | None, int]
) -> dict[str, DataFile]:
    """The files that lose so many rows that the remaining ones are written to new files.

    Only with `rewrite_delete_threshold` set: nobody changed the remaining rows, yet the change feed shows them as
    updated.
    """
    threshold = context.transaction.options.explicit_value("rewrite_delete_threshold", table.schema_id, table.id)
    if threshold is None:
        return {}
    share = float(threshold)
    return {
        key: file
        for key, file in files.items()
        if file.id >= 0 and file.record_count - file.live_rows + counts[key] >= share * file.record_count
    }


def _rewrite_files(context: CommandContext, table: Table, scan: TableScan, deleted: RowPositions) -> None:
    """Writes the rows of a scan that are not deleted into new files. They keep their row ids."""
    spark = context.planner.spark
    scan = replace(scan, table=table_as_text(scan.table))
    rows = scan_dataframe(spark, context.lake.file_reader, scan, with_virtual_columns=True, with_row_positions=True)
    names = internal_names(table)
    rows = rows.toDF(*names, _ROW_ID, _BEGIN_SNAPSHOT, FILE, POSITION, OWN_ROW_ID)
    if deleted.collected is None:
        positions = deleted.changed.select(FILE, POSITION)
    else:  # running the query again might return other rows
        parts = [pa.table([pa.repeat(key, len(p)), p], [FILE, POSITION]) for key, p in deleted.collected.items()]
        positions = F.broadcast(arrow_dataframe(spark, pa.concat_tables(parts)))
    remaining = rows.join(positions, [FILE, POSITION], "left_anti")
    remaining = remaining.select(*names, _ROW_ID).toDF(*(c.name for c in table.columns), _ROW_ID)
    context.transaction.record_updates(table, context.write(remaining, table, _ROW_ID, kept_text=True))
