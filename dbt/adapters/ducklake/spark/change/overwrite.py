"""INSERT that takes the place of rows: of all, of those that a condition or a key names, of whole partitions."""

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
from ..read.local_rows import few
from ..read.scan import FILE, POSITION, dataframe
from ..sql import statements as st
from ..sql.types import quoted
from ..write.layout import partition_text
from .command_context import CommandContext
from .key_pruning import Key, asked_of_target, fits_broadcast
from .position_deletes import Places, take_away
from .target import TargetTable

Values = tuple[str | None, ...]


def replaced_insert(context: CommandContext, statement: st.Insert, table: Table, rows: DataFrame) -> int:
    """Writes rows of a table's shape in the place of those that the statement names."""
    if statement.replace_using:
        return _using(context, statement, table, rows)
    if statement.replace_where is not None:
        return _where(context, statement, table, rows, statement.replace_where)
    dynamic = context.planner.spark.conf.get("spark.sql.sources.partitionOverwriteMode", "static") or ""
    if statement.replace_partitions or (dynamic.lower() == "dynamic" and table.partition is not None):
        return _partitions(context, table, rows)
    static = [f"{quoted(p.column)} <=> {p.expression}" for p in statement.partition if p.expression is not None]
    if static:
        return _where(context, statement, table, rows, " and ".join(static))
    return _all(context, table, rows)


def _all(context: CommandContext, table: Table, rows: DataFrame) -> int:
    context.transaction.truncate(table)
    context.transaction.rewrites(table)
    return context.write(rows, table)


def _where(context: CommandContext, statement: st.Insert, table: Table, rows: DataFrame, condition: str) -> int:
    target = TargetTable.of(context, statement.name, statement.alias, statement.with_clause)
    places = target.select([FILE, POSITION], f"where {condition}")
    return _in_place(context, table, target, Places.of(places, target.scan, computed=False), rows)


def _using(context: CommandContext, statement: st.Insert, table: Table, rows: DataFrame) -> int:
    columns = [_column(table, name) for name in statement.replace_using]
    rows = rows.localCheckpoint()  # they are looked at twice: for their keys, and to be written
    target = TargetTable.of(context, statement.name, statement.alias, statement.with_clause)
    if context.file_count(table) > 1:
        target.changing.asked = asked_of_target(rows, None, [Key(name, quoted(name)) for name in columns])
    view = context.planner.register(F.broadcast(rows) if fits_broadcast(rows) else rows)
    try:
        same = " and ".join(f"{target.label}.{quoted(name)} = _lake_new.{quoted(name)}" for name in columns)
        where = "" if statement.replace_where is None else f" where {statement.replace_where}"
        rest = f"left semi join {view} as _lake_new on {same}{where}"
        named = target.select([FILE, POSITION], rest)
        places = Places.of(named, target.scan, computed=False)
    finally:
        rows.sparkSession.catalog.dropTempView(view)
    return _in_place(context, table, target, places, rows)


def _column(table: Table, name: str) -> str:
    path = find_path(table.columns, (name,))
    if path is None:
        there = ", ".join(c.name for c in table.columns)
        raise NotFoundError(f"REPLACE USING names {name}, which table {table.name} has not; it has {there}")
    return path[0].name


def _in_place(context: CommandContext, table: Table, target: TargetTable, places: Places, rows: DataFrame) -> int:
    context.transaction.rewrites(table, target.read())
    take_away(context, table, target.scan, places)
    return context.write(rows, table)


def _partitions(context: CommandContext, table: Table, rows: DataFrame) -> int:
    """Replaces the partitions that the rows are in; a table without partition keys is one."""
    spec = table.partition
    if spec is None:
        count = _all(context, table, rows)
        if count == 0:
            raise ConstraintError(
                f"REPLACE PARTITIONS with no rows would empty table {table.name}, which has no partition keys;"
                " give it some, or TRUNCATE it"
            )
        return count
    transaction = context.transaction
    scan = context.lake.scan(table, transaction.base, context.state, transaction=transaction)
    before = transaction.data(table).added
    count = context.write(rows, table)
    new = {file.partition_values for file in transaction.data(table).added[len(before) :]}
    transaction.rewrites(table)
    known = _values_of(context, table, spec, before)
    # Files of another partitioning, and inlined rows, are in no partition: their rows are looked at.
    others = replace(scan, files=[f for f in scan.files if f.id not in known])
    whole = [f for f in scan.files if known.get(f.id) in new]
    if new and (others.files or others.inlined):
        found = dataframe(context.planner.spark, context.lake.storage, others, places=True)
        places = Places.of(_among(found, table, spec, new), others, computed=False)
        take_away(context, table, others, places, besides=whole)
    else:
        transaction.end_files(table, whole)
    return count


def _values_of(
    context: CommandContext, table: Table, spec: PartitionSpec, staged: Sequence[NewDataFile]
) -> dict[int, Values]:
    """The partition values of the files that a partitioning split, staged ones by ids below zero."""
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


def _among(rows: DataFrame, table: Table, spec: PartitionSpec, wanted: set[Values]) -> DataFrame:
    """The places of the rows whose partition is one of those."""
    texts = []
    for field in spec.fields:
        column = next(c for c in table.columns if c.id == field.column_id)
        texts.append(F.expr(partition_text(column, field)).alias(f"_lake_text_{field.index}"))
    names = [f"_lake_text_{field.index}" for field in spec.fields]
    known = few(rows.sparkSession, wanted, **{name.replace("text", "wanted"): pa.string() for name in names})
    same = [F.col(name).eqNullSafe(F.col(name.replace("text", "wanted"))) for name in names]
    keyed = rows.select(FILE, POSITION, *texts)
    condition = reduce(lambda one, other: one & other, same)
    return keyed.join(F.broadcast(known), condition, "left_semi").select(FILE, POSITION)
