"""The table diff: rows that were added, removed or changed between two versions of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake.catalog import SnapshotInfo
from ...lake.change_feed import read_deletes_since
from ...lake.errors import LakeError, NotFoundError
from ...lake.snapshot import LakeState, Table
from ...lake.types import find_path
from ..sql.quoting import quoted
from ..sql.types import query_type
from ..sql.virtual_columns import ROW_ID
from .changed_rows import deleted_rows_with_id, rows_with_id_since, staged_rows_with_id
from .context import ResolvedRelation
from .function_call import TableFunctionCall
from .lakes import Lake

_ROW_ID = "_lake_row_id"


def diff(call: TableFunctionCall) -> DataFrame:
    """`ducklake_diff('main.orders', 3, 7, 'id')`: the rows that were added, removed or changed from snapshot 3 to 7.

    Rows are matched by the key, or by row id without one. Only rows that were inserted or deleted between the versions
    are read. If another table of that name took the table's place, all rows of both are compared.

    From NULL to NULL it is what the running transaction has changed.
    """
    name = call.arguments.table_name()
    from_bound, to_bound = (call.arguments.bound_or_null(bound) for bound in ("from", "to"))
    key = call.arguments.value("key", positional=True)
    keys = [key] if isinstance(key, str) else list(key or ())
    lake, schema, table_name = call.resolve_name(name)
    if from_bound is None and to_bound is None:
        return _staged_diff(call, lake, schema, table_name, keys)
    if from_bound is None or to_bound is None:
        raise call.arguments.missing_bound("from" if from_bound is None else "to")
    start, old_state = call.resolve_bound(lake, from_bound, lake.catalog.snapshot_at_timestamp)
    end, new_state = call.resolve_bound(lake, to_bound, lake.catalog.snapshot_at_timestamp)
    if start.id > end.id:
        function = call.arguments.function_name
        raise LakeError(f"{function} goes from a version to a later one, and {start.id} is after {end.id}")
    table = call.table(lake, schema, table_name, end, new_state)
    old_table = old_state.tables.get(table.id) or call.table(lake, schema, table_name, start, old_state)
    for relation, snapshot, state in ((old_table, start, old_state), (table, end, new_state)):
        call.context.record_read(ResolvedRelation(lake, schema, relation, state, snapshot, None))
    if old_table.id == table.id:
        with lake.catalog.read() as connection:
            folder = new_state.table_folder(lake.catalog.data_path, table)
            deletes = read_deletes_since(connection, lake.catalog, table, folder, start.id, end.id)
        before = deleted_rows_with_id(call.planner.spark, lake.file_reader, deletes, _ROW_ID)
        after = _rows_with_id(call, lake, table, end, new_state, since=start.id)
    else:
        before = _with_columns_of(table, _rows_with_id(call, lake, old_table, start, old_state))
        after = _rows_with_id(call, lake, table, end, new_state)
    return _compare(before, after, table, keys)


def _staged_diff(call: TableFunctionCall, lake: Lake, schema: str, name: str, keys: Sequence[str]) -> DataFrame:
    """What the running transaction has changed in a table."""
    transaction = call.context.transaction_on(lake.name)
    base, state, base_state = transaction.base, transaction.state, transaction.base_state
    table = call.table(lake, schema, name, base, state)
    old_table = base_state.tables.get(table.id) or base_state.find_relation(schema, name)
    now = lake.plan_scan(table, base, state, transaction=transaction)
    is_same = isinstance(old_table, Table) and old_table.id == table.id
    was = lake.plan_scan(table, base, state) if is_same else replace(now, files=(), inlined=None)
    before, after = staged_rows_with_id(call.planner.spark, lake.file_reader, was, now, _ROW_ID)
    if isinstance(old_table, Table) and not is_same:
        before = _with_columns_of(table, _rows_with_id(call, lake, old_table, base, base_state))
    return _compare(before, after, table, keys)


def _rows_with_id(
    call: TableFunctionCall, lake: Lake, table: Table, snapshot: SnapshotInfo, state: LakeState, since: int = -1
) -> DataFrame:
    """The rows of a table at a snapshot that were inserted after snapshot `since`, with their row ids."""
    scan = lake.plan_scan(table, snapshot, state)
    return rows_with_id_since(call.planner.spark, lake.file_reader, scan, since, _ROW_ID)


def _with_columns_of(table: Table, rows: DataFrame) -> DataFrame:
    """The rows of another table with the columns of this one, matched by name; NULL where the other has none."""
    names = {name.lower(): name for name in rows.columns}
    columns = [
        F.col(quoted(names[c.name.lower()])).cast(query_type(c)).alias(c.name)
        if c.name.lower() in names
        else F.lit(None).cast(query_type(c)).alias(c.name)
        for c in table.columns
    ]
    return rows.select(*columns, _ROW_ID)


def _compare(before: DataFrame, after: DataFrame, table: Table, key: Sequence[str]) -> DataFrame:
    """One row for each key whose row differs: the kind of difference, the key, and the row before and after."""
    names = [_key_column(table, name) for name in key] or [_ROW_ID]
    row = F.struct(*(F.col(quoted(c.name)) for c in table.columns))
    sides = []
    for side, rows in (("before", before), ("after", after)):
        keys = [F.col(quoted(name)).alias(f"_lake_{side}_{i}") for i, name in enumerate(names)]
        sides.append(rows.select(*keys, row.alias(side)))
    same_key = [F.col(f"_lake_before_{i}").eqNullSafe(F.col(f"_lake_after_{i}")) for i in range(len(names))]
    joined = sides[0].join(sides[1], reduce(lambda one, other: one & other, same_key), "full")
    kind = F.when(F.col("before").isNull(), F.lit("added")).when(F.col("after").isNull(), F.lit("removed"))
    key_columns = [
        F.coalesce(F.col(f"_lake_before_{i}"), F.col(f"_lake_after_{i}")).alias(ROW_ID if name == _ROW_ID else name)
        for i, name in enumerate(names)
    ]
    differs = ~_comparable("before", table).eqNullSafe(_comparable("after", table))
    return joined.where(differs).select(kind.otherwise(F.lit("changed")).alias("diff"), *key_columns, "before", "after")


def _comparable(side: str, table: Table) -> SparkColumn:
    """One side's row as a comparable value. Spark cannot compare maps and variants, so such a row becomes JSON."""
    types = {field.type for column in table.columns for field in column.walk()}
    return F.to_json(F.col(side)) if types & {"map", "variant"} else F.col(side)


def _key_column(table: Table, name: str) -> str:
    path = find_path(table.columns, (name,))
    if path is None:
        columns = ", ".join(c.name for c in table.columns)
        raise NotFoundError(f"ducklake_diff: table {table.name} has no column {name} for a key; it has {columns}")
    return path[0].name
