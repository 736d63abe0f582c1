"""CREATE FUNCTION and DROP FUNCTION."""

from __future__ import annotations

from ...lake.errors import AlreadyExistsError, NotFoundError
from ..change.command_context import CommandContext
from ..sql import statements as st
from ..sql.functions import duckdb_body, macro_impl, spark_words, tags_of, value_query, with_type

# -- functions


def create_function(context: CommandContext, statement: st.CreateFunction) -> int:
    schema, name = context.place(statement.name)
    found = context.state.find_macro(schema.name, name)
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
        context.transaction.drop_macro(found)
    words = spark_words(tags, statement.name)
    context.planner.check(name, words, context.query_context.within(context.lake, schema.name))
    body = duckdb_body(statement)
    if body is not None:
        body = with_type(body, statement, context.query(value_query(statement)).schema[0].dataType)
    context.transaction.create_macro(schema, name, (macro_impl(statement, body),), tags)
    return 0


def drop_function(context: CommandContext, statement: st.DropFunction) -> int:
    found = context.query_context.find_macro(statement.name)
    if found is not None and found[0] is context.lake:
        context.transaction.drop_macro(found[2])
    elif not statement.if_exists:
        raise NotFoundError(f"there is no function {'.'.join(statement.name)}")
    return 0
