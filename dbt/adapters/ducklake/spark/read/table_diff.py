"""What differs between two versions of a table: its rows by a key, as they were and as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake.catalog import SnapshotInfo
from ...lake.errors import LakeError, NotFoundError
from ...lake.feed import read_lost
from ...lake.inlined import InlinedRows
from ...lake.snapshot import LakeState, Table
from ...lake.types import find_path
from ..sql.types import query_type, quoted
from ..sql.virtual_columns import ROW_ID
from .change_feed import bound_of, lost_rows, moment_of, table_name_of
from .context import Found
from .lakes import Lake
from .scan import dataframe

if TYPE_CHECKING:
    from .table_functions import Call

_ROW_ID, _SNAPSHOT = "_lake_row_id", "_lake_snapshot"


def diff(call: Call) -> DataFrame:
    """`ducklake_diff('main.orders', 3, 7, 'id')`: the rows that were added, removed or changed.

    Only what came and went between the versions is read. Without a key a row is known by its row id.
    """
    name = table_name_of(call.arguments)
    texts = [bound_of(call.arguments, which) for which in ("from", "to")]
    key = call.arguments.value("key", positional=True)
    lake, schema, table_name = call.place(name)
    (start, then), (end, now) = (moment_of(call, lake, text, lake.catalog.at_timestamp) for text in texts)
    if start.id > end.id:
        raise LakeError(f"{call.arguments.name} goes from a version to a later one, and {start.id} is after {end.id}")
    table = call.table(lake, schema, table_name, end, now)
    old = then.tables.get(table.id) or call.table(lake, schema, table_name, start, then)
    for found, at, state in ((old, start, then), (table, end, now)):
        call.context.saw(Found(lake, schema, found, state, at, None))
    if old.id == table.id:
        with lake.catalog.read() as connection:
            folder = now.folder(lake.catalog.data_path, table)
            lost = read_lost(connection, lake.catalog, table, folder, start.id, end.id)
        before = lost_rows(call.planner.spark, lake.storage, lost, _ROW_ID)
        after = _rows(call, lake, table, end, now, since=start.id)
    else:
        before = _by_name(_rows(call, lake, old, start, then), table)
        after = _rows(call, lake, table, end, now)
    return _compared(before, after, table, [key] if isinstance(key, str) else list(key or ()))


def _rows(call: Call, lake: Lake, table: Table, at: SnapshotInfo, state: LakeState, since: int = -1) -> DataFrame:
    """The rows that a table has at a snapshot and that came after another one, with their row ids."""
    scan = lake.scan(table, at, state)
    files = [f for f in scan.files if max(f.begin_snapshot or 0, f.partial_max or 0) > since]
    inlined = scan.inlined
    if inlined is not None:
        inlined = InlinedRows(inlined.rows.filter(pc.field("begin_snapshot") > since))
    scan = replace(scan, files=files, inlined=inlined)
    rows = dataframe(call.planner.spark, lake.storage, scan, virtual=True)
    rows = rows.toDF(*(f"_lake_c{index}" for index in range(len(table.columns))), _ROW_ID, _SNAPSHOT)
    rows = rows.where(F.col(_SNAPSHOT) > since).drop(_SNAPSHOT)
    return rows.toDF(*(c.name for c in table.columns), _ROW_ID)


def _by_name(rows: DataFrame, table: Table) -> DataFrame:
    """The rows of another table of that name, in the columns of this one."""
    there = {name.lower(): name for name in rows.columns}
    columns = [
        F.col(quoted(there[c.name.lower()])).cast(query_type(c)).alias(c.name)
        if c.name.lower() in there
        else F.lit(None).cast(query_type(c)).alias(c.name)
        for c in table.columns
    ]
    return rows.select(*columns, _ROW_ID)


def _compared(before: DataFrame, after: DataFrame, table: Table, key: Sequence[str]) -> DataFrame:
    names = [_key_column(table, name) for name in key] or [_ROW_ID]
    whole = F.struct(*(F.col(quoted(c.name)) for c in table.columns))
    sides = []
    for side, rows in (("before", before), ("after", after)):
        keys = [F.col(quoted(name)).alias(f"_lake_{side}_{i}") for i, name in enumerate(names)]
        sides.append(rows.select(*keys, whole.alias(side)))
    same = [F.col(f"_lake_before_{i}").eqNullSafe(F.col(f"_lake_after_{i}")) for i in range(len(names))]
    joined = sides[0].join(sides[1], reduce(lambda one, other: one & other, same), "full")
    kind = F.when(F.col("before").isNull(), F.lit("added")).when(F.col("after").isNull(), F.lit("removed"))
    shown = [
        F.coalesce(F.col(f"_lake_before_{i}"), F.col(f"_lake_after_{i}")).alias(ROW_ID if name == _ROW_ID else name)
        for i, name in enumerate(names)
    ]
    differs = ~_comparable("before", table).eqNullSafe(_comparable("after", table))
    return joined.where(differs).select(kind.otherwise(F.lit("changed")).alias("diff"), *shown, "before", "after")


def _comparable(side: str, table: Table) -> SparkColumn:
    """A row as something that can be compared, which maps and variants can not."""
    kinds = {field.type for column in table.columns for field in column.walk()}
    return F.to_json(F.col(side)) if kinds & {"map", "variant"} else F.col(side)


def _key_column(table: Table, name: str) -> str:
    found = find_path(table.columns, (name,))
    if found is None:
        there = ", ".join(c.name for c in table.columns)
        raise NotFoundError(f"ducklake_diff: table {table.name} has no column {name} for a key; it has {there}")
    return found[0].name
