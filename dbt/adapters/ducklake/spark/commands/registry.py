"""What each statement that changes a lake does to a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake import evolution as evolve
from ...lake.changes import CommitInfo
from ...lake.errors import AlreadyExistsError, LakeError, NotFoundError, SchemaChangeError, UnsupportedError
from ...lake.snapshot import Table, View
from ...lake.types import Column, find_path
from ..change.command_context import Scope
from ..change.merge import merge
from ..change.overwrite import replaced_insert
from ..change.rollback import rollback
from ..change.schema_merge import take_up
from ..change.target import delete, update
from ..sql import statements as st
from ..sql.defaults import default_of, default_sql
from ..sql.functions import duckdb_body, macro_impl, spark_words, tags_of, value_query, with_type
from ..sql.types import lake_column
from ..sql.views import COLUMNS_TAG, columns_tag, view_columns
from .alter import alter, set_partition, set_properties, set_sort

# -- schemas


def _create_schema(scope: Scope, statement: st.CreateSchema) -> int:
    name = statement.name[-1]
    if scope.state.find_schema(name) and statement.if_not_exists:
        return 0
    scope.transaction.create_schema(name, statement.comment)
    return 0


def _drop_schema(scope: Scope, statement: st.DropSchema) -> int:
    name = statement.name[-1]
    if scope.state.find_schema(name) is None and statement.if_exists:
        return 0
    scope.transaction.drop_schema(name, statement.cascade)
    return 0


# -- tables


def _create_table(scope: Scope, statement: st.CreateTable) -> int:
    schema, name = scope.place(statement.name)
    found = scope.state.find(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is None and statement.must_exist:
        raise NotFoundError(f"there is no table {schema.name}.{name} to replace; use CREATE OR REPLACE TABLE")
    rows = scope.query(statement.query) if statement.query is not None else None
    columns = _columns(statement, rows, name)
    if found is not None and not (statement.or_replace or statement.must_exist):
        raise AlreadyExistsError(f"{schema.name}.{name} already exists; use CREATE OR REPLACE TABLE, or IF NOT EXISTS")
    if isinstance(found, Table):
        table = scope.transaction.replace_table(found, columns, statement.comment)
    else:
        if found is not None:
            scope.transaction.drop(found)
        table = scope.transaction.create_table(schema, name, columns, statement.comment)
    table = set_partition(scope, table, statement.partition_keys)
    table = set_sort(scope, table, statement.sort_keys)
    table = set_properties(scope, table, dict(statement.properties))
    return scope.write(rows, table) if rows is not None else 0


def _columns(statement: st.CreateTable, rows: DataFrame | None, table: str) -> tuple[Column, ...]:
    """The columns that a statement gives a table, from its list or from its query."""
    if rows is None or statement.columns:
        return tuple(_column(d, table) for d in statement.columns)
    return tuple(lake_column(field) for field in rows.schema.fields)


def _column(definition: Any, table: str) -> Column:
    column: Column = definition.column
    if definition.default is None:
        return column
    value, kind = default_of(definition.default, column, table)
    return replace(
        column,
        default_value=value,
        default_value_type=kind,
        initial_default=value if kind == "literal" else None,
    )


def _create_table_like(scope: Scope, statement: st.CreateTableLike) -> int:
    schema, name = scope.place(statement.name)
    if scope.state.find(schema.name, name) is not None and statement.if_not_exists:
        return 0
    table = scope.transaction.create_table_like(schema, name, scope.table(statement.source))
    set_properties(scope, table, dict(statement.properties))
    return 0


def _drop(scope: Scope, statement: st.Drop) -> int:
    if statement.if_exists and scope.find(statement.name) is None:
        return 0
    relation = scope.relation(statement.name)
    kind = "table" if isinstance(relation, Table) else "view"
    if kind != statement.kind:
        raise NotFoundError(f"{'.'.join(statement.name)} is a {kind}, not a {statement.kind}: use DROP {kind.upper()}")
    scope.transaction.drop(relation)
    return 0


def _truncate(scope: Scope, statement: st.Truncate) -> int:
    scope.transaction.truncate(scope.table(statement.name))
    return 0


# -- views


def _create_view(scope: Scope, statement: st.CreateView) -> int:
    schema, name = scope.place(statement.name)
    found = scope.state.find(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is not None and not statement.or_replace:
        raise AlreadyExistsError(f"{schema.name}.{name} already exists; use CREATE OR REPLACE VIEW, or IF NOT EXISTS")
    tags = dict(statement.properties)
    if statement.comment is not None:
        tags["comment"] = statement.comment
    scope.put_view(found, schema, name, statement.query, tuple(c.name for c in statement.columns), tags)
    return 0


# -- functions


def _create_function(scope: Scope, statement: st.CreateFunction) -> int:
    schema, name = scope.place(statement.name)
    found = scope.state.find_macro(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is not None and not statement.or_replace:
        raise AlreadyExistsError(
            f"{schema.name}.{name} already exists; use CREATE OR REPLACE FUNCTION, or IF NOT EXISTS"
        )
    tags = tags_of(statement)
    if found is not None and dict(found.tags) == tags:
        return 0
    if found is not None:
        scope.transaction.drop_macro(found)
    words = spark_words(tags, statement.name)
    scope.planner.check(name, words, scope.context.within(scope.lake, schema.name))
    body = duckdb_body(statement)
    if body is not None:
        body = with_type(body, statement, scope.query(value_query(statement)).schema[0].dataType)
    scope.transaction.create_macro(schema, name, (macro_impl(statement, body),), tags)
    return 0


def _drop_function(scope: Scope, statement: st.DropFunction) -> int:
    found = scope.context.find_macro(statement.name)
    if found is not None and found[0] is scope.lake:
        scope.transaction.drop_macro(found[2])
    elif not statement.if_exists:
        raise NotFoundError(f"there is no function {'.'.join(statement.name)}")
    return 0


# -- rows


def _insert(scope: Scope, statement: st.Insert) -> int:
    table = scope.table(statement.name)
    rows = scope.query(statement.full_query)
    if statement.schema_evolution:
        table = take_up(scope, table, _named(rows, table, statement))
    rows = _shaped(rows, table, statement)
    return replaced_insert(scope, statement, table, rows) if statement.replaces else scope.write(rows, table)


def _named(rows: DataFrame, table: Table, statement: st.Insert) -> list[s.StructField]:
    """The columns of a query as the table calls them; those beyond its own keep their names."""
    wanted = _wanted(rows.columns, table, statement)
    if statement.columns is not None:
        for name in wanted:
            table.column(name)  # who lists columns says what there is
    names = [*wanted, *rows.columns[len(wanted) :]]
    return [s.StructField(name, f.dataType) for name, f in zip(names, rows.schema.fields, strict=False)]


def _wanted(names: list[str], table: Table, statement: st.Insert) -> list[str]:
    """The columns of the table that a query of columns of these names is for."""
    if statement.by_name:
        return names
    if statement.columns is not None:
        return list(statement.columns)
    return [c.name for c in table.columns if c.name.lower() not in _static(statement)]


def _static(statement: st.Insert) -> dict[str, str]:
    """The values that PARTITION gives, by columns in lower case."""
    return {p.column.lower(): p.expression for p in statement.partition if p.expression is not None}


def _shaped(rows: DataFrame, table: Table, statement: st.Insert) -> DataFrame:
    """The rows of a query as the columns of a table: by position, or by name; defaults for the rest."""
    static, names = _static(statement), rows.columns
    wanted = _wanted(names, table, statement)
    if len(wanted) != len(names):
        given = ", ".join(names)
        raise SchemaChangeError(
            f"table {table.name} takes {len(wanted)} columns here ({', '.join(wanted)}), but the query gives"
            f" {len(names)} ({given}); list the columns, or use INSERT INTO ... BY NAME"
        )
    position: dict[str, int] = {}
    for index, name in enumerate(wanted):
        column = find_path(table.columns, (name,))
        if column is None:
            raise NotFoundError(
                f"table {table.name} has no column {name}; it has {', '.join(c.name for c in table.columns)}"
            )
        if column[0].name in position:
            raise SchemaChangeError(f"column {name} of table {table.name} is given twice")
        position[column[0].name] = index
    rows = rows.toDF(*(f"_lake_{i}" for i in range(len(names))))
    return rows.select(
        *(
            F.col(f"_lake_{position[c.name]}").alias(c.name)
            if c.name in position
            else F.expr(static.get(c.name.lower()) or default_sql(c)).alias(c.name)
            for c in table.columns
        )
    )


def _comment_on(scope: Scope, statement: st.CommentOn) -> int:
    if statement.kind == "schema":
        scope.transaction.set_schema_comment(statement.name[-1], statement.comment)
        return 0
    if statement.kind == "column":
        view = scope.find(statement.name[:-1])
        if isinstance(view, View):
            scope.transaction.set_tags(view, _with_column_comment(view, statement.name[-1], statement.comment))
            return 0
        table, path = _column_place(scope, statement.name)
        scope.transaction.alter_table(table, lambda t: evolve.set_column_comment(t, path, statement.comment))
        return 0
    relation = scope.relation(statement.name)
    scope.transaction.set_tags(relation, evolve.with_comment(relation.tags, statement.comment))
    return 0


def _with_column_comment(view: View, column: str, comment: str | None) -> tuple[tuple[str, str], ...]:
    columns = view_columns(view)
    if columns is None:
        raise UnsupportedError(f"the columns of view {view.name}, which another engine created, take no comments")
    if not any(c.name.lower() == column.lower() for c in columns):
        raise NotFoundError(f"view {view.name} has no column {column}; it has {', '.join(c.name for c in columns)}")
    columns = [replace(c, comment=comment) if c.name.lower() == column.lower() else c for c in columns]
    return tuple(sorted({**dict(view.tags), COLUMNS_TAG: columns_tag(columns)}.items()))


def _column_place(scope: Scope, name: Sequence[str]) -> tuple[Table, tuple[str, ...]]:
    """The table and the column of a dotted name: the longest beginning that is a table is the table."""
    for length in (3, 2, 1):
        if length >= len(name):
            continue
        place = scope.context.find(name[:length])
        if place is None or place[0] is not scope.lake or scope.state.find_schema(place[1]) is None:
            continue
        relation = scope.state.find(place[1], place[2])
        if isinstance(relation, Table) and find_path(relation.columns, tuple(name[length:])):
            return relation, tuple(name[length:])
    raise NotFoundError(f"there is no column {'.'.join(name)}")


# -- CALL


def _call(scope: Scope, statement: st.Call) -> int:
    name = statement.name[-1].lower().removeprefix("ducklake_")
    handler = PROCEDURES.get(name)
    if handler is None:
        known = ", ".join(f"ducklake_{p}" for p in PROCEDURES)
        raise NotFoundError(f"there is no procedure {'.'.join(statement.name)}; there are {known}")
    arguments: dict[str, Any] = {}
    for index, argument in enumerate(statement.arguments):
        if argument.literal is None:
            raise LakeError(f"{statement.name[-1]} takes literals; {argument.text} is none")
        arguments[(argument.name or str(index)).lower()] = argument.literal.value
    return handler(scope, arguments) or 0


def _call_set_option(scope: Scope, arguments: dict[str, Any]) -> None:
    name = arguments.pop("0", None) or arguments.pop("option", None)
    value = arguments.pop("1", None) if "1" in arguments else arguments.pop("value", None)
    if name is None:
        raise LakeError(
            "ducklake_set_option takes an option and its value: ducklake_set_option('parquet_compression', 'zstd')"
        )
    schema_name, table_name = arguments.pop("schema", None), arguments.pop("table_name", None)
    _nothing_left("ducklake_set_option", arguments)
    if table_name:
        table = scope.table((schema_name, table_name) if schema_name else (table_name,))
        scope.transaction.set_option(name, value, table=table)
    elif schema_name:
        scope.transaction.set_option(name, value, schema=scope.state.schema(schema_name))
    else:
        scope.transaction.set_option(name, value)


def _call_set_commit_message(scope: Scope, arguments: dict[str, Any]) -> None:
    author = arguments.pop("0", None) or arguments.pop("author", None)
    message = arguments.pop("1", None) or arguments.pop("commit_message", None)
    extra = arguments.pop("extra_info", None)
    _nothing_left("ducklake_set_commit_message", arguments)
    scope.commit_info(CommitInfo(author or scope.transaction.commit_info.author, message, extra))


def _nothing_left(procedure: str, arguments: Mapping[str, Any]) -> None:
    if arguments:
        raise LakeError(f"{procedure} does not take the argument {next(iter(arguments))}")


PROCEDURES: Mapping[str, Callable[[Scope, dict[str, Any]], int | None]] = {
    "set_option": _call_set_option,
    "set_commit_message": _call_set_commit_message,
    "rollback": rollback,
}

COMMANDS: Mapping[type, Callable[[Scope, Any], int]] = {
    st.CreateSchema: _create_schema,
    st.DropSchema: _drop_schema,
    st.CreateTable: _create_table,
    st.CreateTableLike: _create_table_like,
    st.CreateView: _create_view,
    st.Drop: _drop,
    st.CreateFunction: _create_function,
    st.DropFunction: _drop_function,
    st.Truncate: _truncate,
    st.Insert: _insert,
    st.Delete: delete,
    st.Update: update,
    st.Merge: merge,
    st.Alter: alter,
    st.CommentOn: _comment_on,
    st.Call: _call,
}
"""Each statement that changes a lake, and what it does; the number is of the rows it wrote."""
