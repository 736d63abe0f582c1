"""CALL: procedures that are part of a transaction, and procedures on the lake as a whole, which are not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from ...lake.commit.staged import CommitInfo
from ...lake.errors import LakeError, NotFoundError
from ..change.command_context import CommandContext
from ..change.rollback import rollback
from ..maintenance.add_data_files import add_data_files
from ..maintenance.analyze import analyze
from ..maintenance.arguments import Expression, bind
from ..maintenance.cleanup import cleanup_old_files, delete_orphaned_files
from ..maintenance.context import MaintenanceContext
from ..maintenance.expire import expire_snapshots
from ..maintenance.flush import flush_inlined_data
from ..maintenance.health import health
from ..maintenance.maintain import checkpoint, maintain
from ..maintenance.merge_files import merge_adjacent_files, migrate_partitioning, rewrite_data_files
from ..maintenance.migrate import migrate
from ..read.table_functions import PREFIX, TABLE_FUNCTIONS
from ..sql import statements as st
from ..sql.quoting import quoted_name, string_literal


def call(context: CommandContext, statement: st.Call) -> int:
    """Calls a procedure in a transaction. Returns the number of rows affected."""
    procedure = PROCEDURES.get(_procedure_name(statement))
    if procedure is None:
        known = ", ".join(f"ducklake_{p}" for p in sorted({*PROCEDURES, *LAKE_PROCEDURES, *TABLE_FUNCTIONS}))
        raise NotFoundError(f"there is no procedure {'.'.join(statement.name)}; there are {known}")
    return procedure(context, _arguments(statement)) or 0


def is_lake_procedure(name: str) -> bool:
    """Whether a procedure works on the lake as a whole, outside of any transaction, and returns rows."""
    return _without_prefix(name) in LAKE_PROCEDURES


def call_on_lake(
    context: MaintenanceContext, name: str, positional: Sequence[Any], named: Mapping[str, Any]
) -> pa.Table:
    """Calls a procedure on the lake as a whole. Returns its rows."""
    function = LAKE_PROCEDURES[_without_prefix(name)]
    full_name = f"ducklake_{_without_prefix(name)}"
    return function(context, **bind(full_name, function, positional, named, context.planner.evaluate_timestamp))


def argument_values(statement: st.Call) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, by position and by name."""
    values = [(a.name, Expression(a.text) if a.literal is None else a.literal.value) for a in statement.arguments]
    return [value for name, value in values if name is None], {
        name: value for name, value in values if name is not None
    }


def table_function_query(statement: st.Call, lakes: Collection[str]) -> str | None:
    """The query for a call of a table function; None for a call of a procedure, or of an unknown name.

    As in DuckDB, the first argument may be the lake's name, with the table's schema before its name.
    """
    function = _procedure_name(statement)
    if function not in TABLE_FUNCTIONS or function in PROCEDURES or len(statement.name) > 2:
        return None
    lake = statement.name[0] if len(statement.name) == 2 else None
    texts = [argument.text for argument in statement.arguments if argument.name is None]
    named = [f"{argument.name} => {argument.text}" for argument in statement.arguments if argument.name is not None]
    if lake is None and len(texts) > _TABLE_ARGUMENTS.get(function, 0):
        literal = statement.arguments[0].literal
        if literal is not None and str(literal.value).lower() in lakes:
            lake, texts = str(literal.value), texts[1:]
            if function in _WITH_SCHEMA:
                names = [argument.literal for argument in statement.arguments[1:3]]
                parts = [str(name.value) for name in names if name is not None]
                texts = [string_literal(quoted_name(parts)), *texts[2:]]
    name = f"{PREFIX}{function}" if lake is None else quoted_name((lake, function))
    return f"select * from {name}({', '.join([*texts, *named])})"


_WITH_SCHEMA = ("table_changes", "table_insertions", "table_deletions")
_TABLE_ARGUMENTS = {"list_files": 1, "diff": 99, "new_changes": 99, **dict.fromkeys(_WITH_SCHEMA, 3)}
"""How many arguments by position the functions take that begin with a table's name. With more, a lake's is first."""


def _procedure_name(statement: st.Call) -> str:
    return _without_prefix(statement.name[-1])


def _without_prefix(name: str) -> str:
    return name.lower().removeprefix("ducklake_")


def _arguments(statement: st.Call) -> dict[str, Any]:
    """The arguments by name, or by position as a text."""
    arguments: dict[str, Any] = {}
    for index, argument in enumerate(statement.arguments):
        if argument.literal is None:
            raise LakeError(f"{statement.name[-1]} takes literals; {argument.text} is none")
        arguments[(argument.name or str(index)).lower()] = argument.literal.value
    return arguments


def _set_option(context: CommandContext, arguments: dict[str, Any]) -> None:
    name = arguments.pop("0", None) or arguments.pop("option", None)
    value = arguments.pop("1", None) if "1" in arguments else arguments.pop("value", None)
    if name is None:
        raise LakeError(
            "ducklake_set_option takes an option and its value: ducklake_set_option('parquet_compression', 'zstd')"
        )
    schema_name, table_name = arguments.pop("schema", None), arguments.pop("table_name", None)
    _refuse_other_arguments("ducklake_set_option", arguments)
    if table_name:
        table = context.table((schema_name, table_name) if schema_name else (table_name,))
        context.transaction.set_option(name, value, table=table)
    elif schema_name:
        context.transaction.set_option(name, value, schema=context.state.schema(schema_name))
    else:
        context.transaction.set_option(name, value)


def _set_commit_message(context: CommandContext, arguments: dict[str, Any]) -> None:
    author = arguments.pop("0", None) or arguments.pop("author", None)
    message = arguments.pop("1", None) or arguments.pop("commit_message", None)
    extra = arguments.pop("extra_info", None)
    _refuse_other_arguments("ducklake_set_commit_message", arguments)
    context.set_commit_info(CommitInfo(author or context.transaction.commit_info.author, message, extra))


def _refuse_other_arguments(procedure: str, arguments: Mapping[str, Any]) -> None:
    if arguments:
        raise LakeError(f"{procedure} does not take the argument {next(iter(arguments))}")


PROCEDURES: Mapping[str, Callable[[CommandContext, dict[str, Any]], int | None]] = {
    "set_option": _set_option,
    "set_commit_message": _set_commit_message,
    "rollback": rollback,
}
LAKE_PROCEDURES: Mapping[str, Callable[..., pa.Table]] = {
    "add_data_files": add_data_files,
    "analyze": analyze,
    "checkpoint": checkpoint,
    "cleanup_old_files": cleanup_old_files,
    "delete_orphaned_files": delete_orphaned_files,
    "expire_snapshots": expire_snapshots,
    "flush_inlined_data": flush_inlined_data,
    "health": health,
    "maintain": maintain,
    "merge_adjacent_files": merge_adjacent_files,
    "migrate": migrate,
    "migrate_partitioning": migrate_partitioning,
    "rewrite_data_files": rewrite_data_files,
}
"""Functions of a MaintenanceContext and of the procedure's arguments."""
