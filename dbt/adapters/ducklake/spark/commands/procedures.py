"""CALL: the procedures `ducklake_set_option`, `ducklake_set_commit_message` and `ducklake_rollback`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...lake.commit.staged import CommitInfo
from ...lake.errors import LakeError, NotFoundError
from ..change.command_context import CommandContext
from ..change.rollback import rollback
from ..sql import statements as st


def call(context: CommandContext, statement: st.Call) -> int:
    name = statement.name[-1].lower().removeprefix("ducklake_")
    procedure = PROCEDURES.get(name)
    if procedure is None:
        known = ", ".join(f"ducklake_{p}" for p in PROCEDURES)
        raise NotFoundError(f"there is no procedure {'.'.join(statement.name)}; there are {known}")
    arguments: dict[str, Any] = {}
    for index, argument in enumerate(statement.arguments):
        if argument.literal is None:
            raise LakeError(f"{statement.name[-1]} takes literals; {argument.text} is none")
        arguments[(argument.name or str(index)).lower()] = argument.literal.value
    return procedure(context, arguments) or 0


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
