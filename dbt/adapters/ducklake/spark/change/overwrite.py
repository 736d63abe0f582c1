"""Overwrites: INSERT that replaces all rows, rows by a condition, rows by key values, or whole partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake import tables as t
from ...lake.errors import ConstraintError, NotFoundError
from ...lake.files import NewDataFile
from ...lake.partitions import PartitionSpec
from ...lake.snapshot import Table
from ...lake.types import find_path
from ..read.local_rows import small_dataframe
from ..read.scan import FILE, POSITION, scan_dataframe
from ..sql import statements as st
from ..sql.quoting import quoted
from ..write.layout import partition_value_sql
from .broadcast import fits_broadcast
from .command_context import CommandContext
from .key_pruning import EqualityKey, key_predicate
from .row_deletion import delete_rows
from .row_positions import RowPositions
from .target import TargetTable

PartitionValues = tuple[str | None, ...]


def insert_overwrite(context: CommandContext, statement: st.Insert, table: Table, rows: DataFrame) -> int:
    """Writes rows that have the table's columns, and deletes the rows that the statement replaces."""
    if statement.replace_using:
        return _replace_using(context, statement, table, rows)
    if statement.replace_where is not None:
        return _replace_where(context, statement, table, rows, statement.replace_where)
    dynamic = context.planner.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static") or ""
    if statement.replace_partitions or (dynamic.lower() == "dynamic" and table.partition is not None):
        return _replace_partitions(context, table, rows)
    static = [f"{quoted(p.column)} <=> {p.expression}" for p in statement.partition if p.expression is not None]
    if static:
        return _replace_where(context, statement, table, rows, " and ".join(static))
    return _replace_all(context, table, rows)


def _replace_all(context: CommandContext, table: Table, rows: DataFrame) -> int:
    context.transaction.truncate(table)
    context.transaction.record_read(table)
    return context.write(rows, table)


def _replace_where(context: CommandContext, statement: st.Insert, table: Table, rows: DataFrame, condition: str) -> int:
    target = TargetTable.of(context, statement)
    replaced = target.select([FILE, POSITION], f"where {condition}")
    return _replace_rows(context, table, target, RowPositions.of(replaced, target.scan, checkpointed=False), rows)


def _replace_using(context: CommandContext, statement: st.Insert, table: Table, rows: DataFrame) -> int:
    columns = [_key_column(table, name) for name in statement.replace_using]
    rows = rows.localCheckpoint()  # read twice: for the keys, and to be written
    target = TargetTable.of(context, statement)
    if context.is_in_parts(table):
        keys = [EqualityKey(name, quoted(name)) for name in columns]
        target.changed_relation.extra_predicate = key_predicate(rows, None, keys)
    view = context.planner.register_view(F.broadcast(rows) if fits_broadcast(rows) else rows)
    try:
        same_key = " and ".join(f"{target.qualifier}.{quoted(name)} = _lake_new.{quoted(name)}" for name in columns)
        where = "" if statement.replace_where is None else f" where {statement.replace_where}"
        replaced = target.select([FILE, POSITION], f"left semi join {view} as _lake_new on {same_key}{where}")
        positions = RowPositions.of(replaced, target.scan, checkpointed=False)
    finally:
        rows.sparkSession.catalog.dropTempView(view)
    return _replace_rows(context, table, target, positions, rows)


def _key_column(table: Table, name: str) -> str:
    path = find_path(table.columns, (name,))
    if path is None:
        columns = ", ".join(c.name for c in table.columns)
        raise NotFoundError(f"REPLACE USING names {name}, which table {table.name} has not; it has {columns}")
    return path[0].name


def _replace_rows(
    context: CommandContext, table: Table, target: TargetTable, replaced: RowPositions, rows: DataFrame
) -> int:
    context.transaction.record_read(table, target.read_predicate())
    delete_rows(context, table, target.scan, replaced)
    return context.write(rows, table)


def _replace_partitions(context: CommandContext, table: Table, rows: DataFrame) -> int:
    """Replaces the partitions that the rows are in. A table without partition keys is one partition."""
    spec = table.partition
    if spec is None:
        count = _replace_all(context, table, rows)
        if count == 0:
            raise ConstraintError(
                f"REPLACE PARTITIONS with no rows would empty table {table.name}, which has no partition keys;"
                " give it some, or TRUNCATE it"
            )
        return count
    transaction = context.transaction
    scan = context.lake.plan_scan(table, transaction.base, context.state, transaction=transaction)
    staged = transaction.data_changes(table).added_files
    count = context.write(rows, table, may_inline=False)
    replaced = {file.partition_values for file in transaction.data_changes(table).added_files[len(staged) :]}
    transaction.record_read(table)
    values_of_file = _partition_values_by_file(context, table, spec, staged)
    ended_files = [f for f in scan.files if values_of_file.get(f.id) in replaced]
    # Files of another partitioning and inlined rows may hold rows of several partitions: search them row by row.
    unpartitioned = replace(scan, files=[f for f in scan.files if f.id not in values_of_file])
    if replaced and (unpartitioned.files or unpartitioned.inlined):
        found = scan_dataframe(context.planner.spark, context.lake.file_reader, unpartitioned, with_row_positions=True)
        in_replaced = _rows_in_partitions(found, table, spec, replaced)
        positions = RowPositions.of(in_replaced, unpartitioned, checkpointed=False)
        delete_rows(context, table, unpartitioned, positions, whole_files=ended_files)
    else:
        transaction.end_files(table, ended_files)
    return count


def _partition_values_by_file(
    context: CommandContext, table: Table, spec: PartitionSpec, staged: Sequence[NewDataFile]
) -> dict[int, PartitionValues]:
    """The partition values of the files written with a partitioning. Staged files have ids below zero."""
    found = {-i: f.partition_values for i, f in enumerate(staged, start=1) if f.partition_id == spec.id}
    if table.id < 0 or spec.id < 0:
        return found
    data, values = t.data_file, t.file_partition_value
    query = (
        sa.select(values.c.data_file_id, values.c.partition_value)
        .join(data, data.c.data_file_id == values.c.data_file_id)
        .where(data.c.table_id == table.id, data.c.partition_id == spec.id, t.alive(data, context.transaction.base.id))
        .order_by(values.c.data_file_id, values.c.partition_key_index)
    )
    with context.lake.catalog.read() as connection:
        for row in connection.execute(query):
            found[row.data_file_id] = (*found.get(row.data_file_id, ()), row.partition_value)
    return found


def _rows_in_partitions(
    rows: DataFrame, table: Table, spec: PartitionSpec, partitions: set[PartitionValues]
) -> DataFrame:
    """The positions of the rows that are in one of the partitions."""
    columns = {c.id: c for c in table.columns}
    value_names = [f"_lake_text_{field.index}" for field in spec.fields]
    wanted_names = [f"_lake_wanted_{field.index}" for field in spec.fields]
    values = [
        F.expr(partition_value_sql(columns[field.column_id], field)).alias(name)
        for field, name in zip(spec.fields, value_names, strict=True)
    ]
    wanted = small_dataframe(rows.sparkSession, partitions, **dict.fromkeys(wanted_names, pa.string()))
    same = [F.col(value).eqNullSafe(F.col(name)) for value, name in zip(value_names, wanted_names, strict=True)]
    condition = reduce(lambda one, other: one & other, same)
    with_values = rows.select(FILE, POSITION, *values)
    return with_values.join(F.broadcast(wanted), condition, "left_semi").select(FILE, POSITION)
