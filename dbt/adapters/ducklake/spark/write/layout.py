"""The layout of rows before they are written: partition values, sort order, and how tasks share the rows."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from pyspark.errors import PySparkException
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ...lake.errors import LakeError
from ...lake.partition_values import HIVE_NULL, parse_hive_folder, partition_text_sql
from ...lake.partitions import Bucket, Identity, PartitionField, PartitionSpec
from ...lake.snapshot import Table
from ...lake.sorting import SortKey
from ...lake.types import Column
from ..sql.decoding import nanoseconds_of_text, timestamp_ns_of_text
from ..sql.kept_text import as_text, is_kept_as_text, type_of_text
from ..sql.quoting import quoted, string_literal
from ..sql.sort_keys import spark_sort_expression
from .small_results import gather_if_small
from .target import WriteTarget

logger = logging.getLogger(__name__)

PARTITION_PREFIX = "_lake_part_"

ESCAPE = "~"
"""The prefix of partition values in folder names that Spark would take for NULL, and of those that begin with it."""


def partition_and_sort(
    rows: DataFrame, target: WriteTarget, kept_text: bool = False, sorts: bool | None = None
) -> tuple[DataFrame, list[str]]:
    """The rows in the table's partitions and sort order, and the names of the added partition columns.

    With `kept_text`, some columns are text: see `sql.kept_text`. The order ends before the first key that names one.
    `sorts` is whether to sort at all, which is the option `sort_on_insert` if it is not given.
    """
    spec, sort = target.table.partition, target.table.sort
    sorts = target.flag("sort_on_insert") if sorts is None else sorts
    order_keys = _sort_keys(sort.keys, target.table, kept_text) if sort and sorts else []
    order = _sort_columns(rows, order_keys, target)
    if spec is None:
        if order:
            # Each task gets one range of values, so the bounds of files hardly overlap.
            return rows.repartitionByRange(*order).sortWithinPartitions(*order), []
        return gather_if_small(rows), []
    keys = []
    for field in spec.fields:
        column = next(c for c in target.table.columns if c.id == field.column_id)
        keys.append(f"{PARTITION_PREFIX}{field.index}")
        rows = rows.withColumn(keys[-1], F.expr(_folder_value_sql(as_text(column) if kept_text else column, field)))
    # One task for each partition, unless it is too large for one: few files, and each is full.
    rows = rows.hint("rebalance", *(F.col(k) for k in keys))
    if order:
        rows = rows.sortWithinPartitions(*keys, *order)
    return rows, keys


def in_one_partition(rows: DataFrame, target: WriteTarget, file_count: int, kept_text: bool = False) -> DataFrame:
    """The rows of one partition in the table's sort order, one task for each file. Only an order needs a shuffle."""
    sort = target.table.sort
    order = _sort_columns(rows, _sort_keys(sort.keys, target.table, kept_text), target) if sort else []
    ranges = order and file_count > 1
    rows = rows.repartitionByRange(file_count, *order) if ranges else rows.coalesce(file_count)
    return rows.sortWithinPartitions(*order) if order else rows


def partition_value_sql(column: Column, field: PartitionField) -> str:
    """The Spark SQL for a row's partition value, as text in the catalog's form."""
    value = quoted(column.name)
    if column.type == "time":
        timestamp = f"cast(concat('1970-01-01 ', cast({value} as string)) as timestamp_ntz)"
        micros = f"timestampdiff(MICROSECOND, timestamp_ntz'1970-01-01 00:00:00', {timestamp})"
        value = f"if({value} > time'23:59:59.999999', {86_400 * 10**6}L, {micros})"
    type_ = column.type
    if type_of_text(type_) != type_:
        value, type_ = _typed_value(value, column, field)
    if isinstance(field.transform, Identity):
        return partition_text_sql(value, type_)
    return f"cast({field.transform.spark_sql(value, type_)} as string)"


def _typed_value(text: str, column: Column, field: PartitionField) -> tuple[str, str]:
    """The SQL of the value that a partition key takes of a column that is text, and the type with the same key."""
    if type_of_text(column.type) == "int128":
        return text, "varchar"
    if isinstance(field.transform, Identity):
        return f"if(contains({text}, '.'), rtrim('.', rtrim('0', {text})), {text})", "varchar"
    if isinstance(field.transform, Bucket):
        return nanoseconds_of_text(text), "int64"
    # The reference rounds to microseconds before it takes the year, month, day or hour.
    rounded_up = f"if(substring({text}, 27, 1) >= '5', 1, 0)"
    return f"timestampadd(MICROSECOND, {rounded_up}, {timestamp_ns_of_text(text)})", "timestamp_ns"


def _sort_keys(keys: Sequence[SortKey], table: Table, kept_text: bool) -> list[SortKey]:
    """The keys up to the first that names a column that is text."""
    texts = [re.escape(c.name) for c in table.columns if kept_text and is_kept_as_text(c)]
    names_text = re.compile(rf"\b({'|'.join(texts)})\b", re.IGNORECASE) if texts else None
    return list(takewhile(lambda key: names_text is None or not names_text.search(key.expression), keys))


def _folder_value_sql(column: Column, field: PartitionField) -> str:
    """The Spark SQL for a partition value in a folder name.

    Spark takes '' and its own folder name for NULL as NULL, so these strings get the prefix `ESCAPE`.
    """
    text = partition_value_sql(column, field)
    if column.type not in ("varchar", "json", "blob") or not isinstance(field.transform, Identity):
        return text
    escape, null = string_literal(ESCAPE), string_literal(HIVE_NULL)
    needs_escape = f"{text} in ('', {null}) or startswith({text}, {escape})"
    return f"case when {needs_escape} then concat({escape}, {text}) else {text} end"


def _sort_columns(rows: DataFrame, keys: Sequence[SortKey], target: WriteTarget) -> list[SparkColumn]:
    """A table's sort order as Spark columns. It ends before the first key that Spark cannot compute, with a warning.

    DuckDB accepts any expression, and its order does not change what the table holds.
    """
    table = target.table
    result = []
    for key in keys:
        try:
            value = F.expr(spark_sort_expression(key, table, target.find_macro))
            if key.expression not in rows.columns:
                _ = rows.select(value).schema  # analyzes it
        except (LakeError, PySparkException) as error:
            _warn_once(
                f"new files of table {table.name} are not sorted by {key.expression}, which Spark can not compute:"
                f" {str(error).splitlines()[0]}"
            )
            break
        if key.descending:
            result.append(value.desc_nulls_first() if key.nulls_first else value.desc_nulls_last())
        else:
            result.append(value.asc_nulls_first() if key.nulls_first else value.asc_nulls_last())
    return result


@lru_cache(maxsize=1000)
def _warn_once(message: str) -> None:
    logger.warning(message)


def partition_values_of_folders(folders: str, spec: PartitionSpec) -> tuple[str | None, ...]:
    """The partition values in the names of the folders by which Spark tells the partition of a file."""
    found: dict[str, str | None] = {}
    for folder in folders.split("/"):
        key, value = parse_hive_folder(folder)
        found[key] = value[len(ESCAPE) :] if value is not None and value.startswith(ESCAPE) else value
    return tuple(found[f"{PARTITION_PREFIX}{field.index}"] for field in spec.fields)
