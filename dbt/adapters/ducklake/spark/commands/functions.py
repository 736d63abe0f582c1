"""CREATE FUNCTION and DROP FUNCTION."""

from __future__ import annotations

from ...lake.errors import AlreadyExistsError, NotFoundError
from ..change.command_context import CommandContext
from ..sql import statements as st
from ..sql.functions import (
    body_query,
    duckdb_expression,
    duckdb_macro,
    function_tags,
    spark_definition,
)


def create_function(context: CommandContext, statement: st.CreateFunction) -> int:
    schema, name = context.resolve_name(statement.name)
    found = context.state.find_macro(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is not None and not statement.or_replace:
        raise AlreadyExistsError(
            f"{schema.name}.{name} already exists; use CREATE OR REPLACE FUNCTION, or IF NOT EXISTS"
        )
    tags = function_tags(statement)
    if found is not None and dict(found.tags) == tags:
        return 0
    if found is not None:
        context.transaction.drop_macro(found)
    words = spark_definition(tags)
    context.planner.check_function(name, words, context.query_context.with_current_schema(context.lake, schema.name))
    body = duckdb_expression(statement, lambda: context.query(body_query(statement)).schema[0].dataType)
    context.transaction.create_macro(schema, name, (duckdb_macro(statement, body),), tags)
    return 0


def drop_function(context: CommandContext, statement: st.DropFunction) -> int:
    found = context.query_context.find_macro(statement.name)
    if found is not None and found[0] is context.lake:
        context.transaction.drop_macro(found[2])
    elif not statement.if_exists:
        raise NotFoundError(f"there is no function {'.'.join(statement.name)}")
    return 0
