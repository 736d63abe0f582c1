"""The partition keys, sort keys and properties of a table, as CREATE TABLE and ALTER TABLE set them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlglot

from ...lake import evolution as evolve
from ...lake.errors import SchemaChangeError, UnsupportedError
from ...lake.options import OPTIONS
from ...lake.partitions import Bucket, Transform, parse_transform
from ...lake.snapshot import Table
from ...lake.sorting import SortKey
from ...lake.types import find_path
from ..change.command_context import CommandContext
from ..sql.definitions import PartitionKey
from ..sql.definitions import SortKey as ParsedSortKey
from ..sql.sort_keys import duckdb_sort_expression, spark_sort_expression


def set_partition_keys(context: CommandContext, table: Table, keys: Sequence[PartitionKey]) -> Table:
    pairs = [(key.column, _transform(key)) for key in keys]
    format_version = context.lake.catalog.format
    for _, transform in pairs:
        if isinstance(transform, format_version.transforms_of_later_versions):
            raise UnsupportedError(
                f"table {table.name} can not be partitioned by {transform}: the lake has format version"
                f" {format_version.name}, and only later ones have {transform}; ducklake_migrate brings it up to date"
            )
    new_id = context.transaction.new_provisional_id()
    return context.transaction.alter_table(table, lambda t: evolve.set_partition(t, pairs, new_id))


def _transform(key: PartitionKey) -> Transform:
    return Bucket(key.buckets or 1) if key.transform == "bucket" else parse_transform(key.transform)


def set_sort_keys(context: CommandContext, table: Table, keys: Sequence[ParsedSortKey]) -> Table:
    sort_keys = tuple(_sort_key(context, key, table) for key in keys)
    for key in sort_keys:
        spark_sort_expression(key, table, context.find_macro)  # raises if Spark cannot sort by it
    new_id = context.transaction.new_provisional_id()
    return context.transaction.alter_table(table, lambda t: evolve.set_sort(t, sort_keys, new_id))


def _sort_key(context: CommandContext, key: ParsedSortKey, table: Table) -> SortKey:
    """A sort key as DuckDB SQL, which every reader expects in the catalog.

    NULLs come last unless the statement says otherwise, as in the reference.
    """
    try:
        tree = sqlglot.parse_one(key.expression, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise SchemaChangeError(f"table {table.name} can not be sorted by {key.expression!r}") from error
    for column in tree.find_all(sqlglot.exp.Column):
        if column.table or find_path(table.columns, (column.name,)) is None:
            columns = ", ".join(c.name for c in table.columns)
            raise SchemaChangeError(
                f"table {table.name} can not be sorted by {key.expression}: it has no column {column.sql()};"
                f" it has {columns}"
            )
    if isinstance(tree, sqlglot.exp.Column):
        text = tree.sql(dialect="duckdb")
    else:
        text = duckdb_sort_expression(key.expression, table, context.find_macro)
    return SortKey(text, key.descending, bool(key.nulls_first))


def set_properties(context: CommandContext, table: Table, properties: Mapping[str, str]) -> Table:
    """Sets properties: those that are options of DuckLake as options of the table, the others as tags."""
    tags = dict(table.tags)
    for name, value in properties.items():
        if name.lower() in OPTIONS:
            context.transaction.set_option(name, value, table=table)
        else:
            tags[name] = value
    if tags != dict(table.tags):
        context.transaction.set_tags(table, tuple(sorted(tags.items())))
    return context.state.tables[table.id]
