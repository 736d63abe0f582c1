"""How rows are arranged before they are written: partition keys, sort order, tasks."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake.errors import LakeError
from ...lake.partitions import (
    HIVE_NULL,
    Identity,
    PartitionField,
    PartitionSpec,
    parse_hive_folder,
    partition_text_sql,
)
from ...lake.snapshot import Table
from ...lake.sorting import SortKey
from ...lake.types import Column
from ..sql.types import quoted, string_literal
from .target import WriteTarget

PARTITION_PREFIX = "_lake_part_"

ESCAPE = "~"
"""What comes before texts in a folder's name that Spark would take for NULL, and before those that begin so."""


def arrange(rows: DataFrame, target: WriteTarget) -> tuple[DataFrame, list[str]]:
    """The rows in the partitions and the order of the table, and the columns that split them."""
    spec, sort = target.table.partition, target.table.sort
    order = sort_columns(sort.keys, target.table) if sort and target.flag("sort_on_insert") else []
    if spec is None:
        if order:
            # Each task gets one range, so that the files' bounds overlap little.
            rows = rows.repartitionByRange(*order).sortWithinPartitions(*order)
        return rows, []
    keys = []
    for field in spec.fields:
        column = next(c for c in target.table.columns if c.id == field.column_id)
        text = _key_text(column, field)
        keys.append(f"{PARTITION_PREFIX}{field.index}")
        rows = rows.withColumn(keys[-1], F.expr(text))
    # One task a partition, as far as it is not too large for one: few files, each full.
    rows = rows.hint("rebalance", *(F.col(k) for k in keys))
    if order:
        rows = rows.sortWithinPartitions(*keys, *order)
    return rows, keys


def partition_text(column: Column, field: PartitionField) -> str:
    """The Spark SQL for a row's partition value as the catalog has it."""
    value = quoted(column.name)
    if column.type == "time":
        moment = f"cast(concat('1970-01-01 ', cast({value} as string)) as timestamp_ntz)"
        value = f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {moment})"
    if isinstance(field.transform, Identity):
        return partition_text_sql(value, column.type)
    return f"cast({field.transform.spark_sql(value, column.type)} as string)"


def _key_text(column: Column, field: PartitionField) -> str:
    """The same, as Spark makes a folder's name of it and takes neither '' nor its own word for NULL."""
    text = partition_text(column, field)
    if column.type not in ("varchar", "json", "blob") or not isinstance(field.transform, Identity):
        return text
    mark, null = string_literal(ESCAPE), string_literal(HIVE_NULL)
    taken = f"{text} in ('', {null}) or startswith({text}, {mark})"
    return f"case when {taken} then concat({mark}, {text}) else {text} end"


def sort_columns(keys: Sequence[SortKey], table: Table) -> list[SparkColumn]:
    """A table's sort order in Spark; keys in DuckDB's words are translated."""
    result = []
    for key in keys:
        value = F.expr(sort_expression(key, table))
        if key.descending:
            result.append(value.desc_nulls_first() if key.nulls_first else value.desc_nulls_last())
        else:
            result.append(value.asc_nulls_first() if key.nulls_first else value.asc_nulls_last())
    return result


def sort_expression(key: SortKey, table: Table) -> str:
    """What a key sorts by, in Spark's SQL."""
    return key.expression if key.dialect == "spark" else _translated(key.expression, key.dialect, table)


def _translated(expression: str, dialect: str, table: Table) -> str:
    import sqlglot

    try:
        return sqlglot.transpile(expression, read=dialect, write="spark", unsupported_level=sqlglot.ErrorLevel.RAISE)[0]
    except sqlglot.errors.SqlglotError as error:
        raise LakeError(
            f"table {table.name} is sorted by {expression!r}, which can not be said in Spark's SQL;"
            " set another order (ALTER TABLE ... SET SORTED BY), or the option sort_on_insert to false"
        ) from error


def partition_values_of_path(path: str, spec: PartitionSpec) -> tuple[str | None, ...]:
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        if folder.startswith(PARTITION_PREFIX):
            key, value = parse_hive_folder(folder)
            found[key] = value[len(ESCAPE) :] if value is not None and value.startswith(ESCAPE) else value
    return tuple(found[f"{PARTITION_PREFIX}{field.index}"] for field in spec.fields)
