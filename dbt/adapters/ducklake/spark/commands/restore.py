"""RESTORE: the words of Delta for a rollback of one table or schema."""

from __future__ import annotations

from typing import Any

from ..change.command_context import CommandContext
from ..change.rollback import rollback
from ..sql import statements as st
from ..sql.quoting import quoted_name


def restore(context: CommandContext, statement: st.Restore) -> int:
    """Rolls a table, a view or a schema back. Returns the number of rows deleted or inserted again."""
    arguments: dict[str, Any] = (
        {"schema": statement.name[-1]} if statement.kind == "schema" else {"0": quoted_name(statement.name)}
    )
    if statement.timestamp is None:
        arguments["version"] = statement.version
    else:
        arguments["timestamp"] = context.planner.evaluate_timestamp(statement.timestamp).isoformat()
    return rollback(context, arguments)
