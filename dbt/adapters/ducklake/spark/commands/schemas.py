"""CREATE SCHEMA and DROP SCHEMA."""

from __future__ import annotations

from ..change.command_context import CommandContext
from ..sql import statements as st


def create_schema(context: CommandContext, statement: st.CreateSchema) -> int:
    name = statement.name[-1]
    if context.state.find_schema(name) and statement.if_not_exists:
        return 0
    context.transaction.create_schema(name, statement.comment)
    return 0


def drop_schema(context: CommandContext, statement: st.DropSchema) -> int:
    name = statement.name[-1]
    if context.state.find_schema(name) is None and statement.if_exists:
        return 0
    context.transaction.drop_schema(name, statement.cascade)
    return 0
