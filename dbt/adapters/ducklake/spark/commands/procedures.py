"""CALL: procedures that are part of a transaction, and procedures on the lake as a whole, which are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ...lake.commit.staged import CommitInfo
from ...lake.errors import LakeError, NotFoundError
from ..change.command_context import CommandContext
from ..change.rollback import rollback
from ..read.lakes import Lake
from ..sql import statements as st


def call(context: CommandContext, statement: st.Call) -> int:
    """Calls a procedure in a transaction. Returns the number of rows affected."""
    procedure = PROCEDURES.get(_procedure_name(statement))
    if procedure is None:
        known = ", ".join(f"ducklake_{p}" for p in sorted({*PROCEDURES, *LAKE_PROCEDURES}))
        raise NotFoundError(f"there is no procedure {'.'.join(statement.name)}; there are {known}")
    return procedure(context, _arguments(statement)) or 0


def is_lake_procedure(statement: st.Call) -> bool:
    """Whether a procedure works on the lake as a whole, outside of any transaction, and returns rows."""
    return _procedure_name(statement) in LAKE_PROCEDURES


def call_on_lake(lake: Lake, statement: st.Call) -> pa.Table:
    """Calls a procedure on the lake as a whole. Returns its rows."""
    return LAKE_PROCEDURES[_procedure_name(statement)](lake, _arguments(statement))


def _procedure_name(statement: st.Call) -> str:
    return statement.name[-1].lower().removeprefix("ducklake_")


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


def _migrate(lake: Lake, arguments: dict[str, Any]) -> pa.Table:
    version = arguments.pop("0", None) or arguments.pop("version", None)
    dry_run = bool(arguments.pop("dry_run", False))
    _refuse_other_arguments("ducklake_migrate", arguments)
    migration = lake.migrate(None if version is None else str(version), dry_run=dry_run)
    return pa.table(
        {
            "from_version": pa.repeat(migration.from_version, len(migration.changes)),
            "to_version": pa.repeat(migration.to_version, len(migration.changes)),
            "change": pa.array(migration.changes, pa.string()),
        }
    )


def _refuse_other_arguments(procedure: str, arguments: Mapping[str, Any]) -> None:
    if arguments:
        raise LakeError(f"{procedure} does not take the argument {next(iter(arguments))}")


PROCEDURES: Mapping[str, Callable[[CommandContext, dict[str, Any]], int | None]] = {
    "set_option": _set_option,
    "set_commit_message": _set_commit_message,
    "rollback": rollback,
}
LAKE_PROCEDURES: Mapping[str, Callable[[Lake, dict[str, Any]], pa.Table]] = {"migrate": _migrate}
