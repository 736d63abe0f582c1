"""What a model may be configured with, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.protocol import AdapterConfig
from dbt_common.exceptions import CompilationError

from .lake.errors import LakeError
from .lake.options import parse_option
from .spark.statements import CreateTable, parse
from .spark.types import string_literal

_NOT_HERE = {
    "location_root": "a lake's files are where its data_path says",
    "clustered_by": "use partition_by: ['bucket(8, column)'], or sorted_by",
    "buckets": "use partition_by: ['bucket(8, column)']",
    "options": "use table_options",
    "tblproperties": "use table_options",
}


@dataclass
class DucklakeConfig(AdapterConfig):
    partition_by: list[str] | str | None = None
    partitioned_by: list[str] | str | None = None
    sorted_by: list[str] | str | None = None
    sort_by: list[str] | str | None = None
    table_options: dict[str, Any] | None = None
    commit_message: str | None = None
    commit_author: str | None = None
    commit_extra_info: dict[str, Any] | None = None


def _keys(config: Any, name: str, alias: str) -> list[str]:
    found = [(key, value) for key in (name, alias) if (value := config.get(key))]
    if len(found) > 1:
        raise CompilationError(f"{name} and {alias} mean the same; leave one of them out")
    if not found:
        return []
    key, value = found[0]
    keys = [value] if isinstance(value, str) else value
    if not isinstance(keys, list) or not all(isinstance(k, str) and k.strip() for k in keys):
        raise CompilationError(f"{key} takes a column or a list of them, and it is {value!r}")
    return keys


def partition_keys(config: Any) -> list[str]:
    return _keys(config, "partition_by", "partitioned_by")


def sort_keys(config: Any) -> list[str]:
    return _keys(config, "sorted_by", "sort_by")


def table_options(config: Any) -> dict[str, str]:
    options = config.get("table_options") or {}
    if not isinstance(options, Mapping):
        raise CompilationError(f"table_options takes options and their values, and it is {options!r}")
    try:
        return {name: parse_option(name, value, "table") for name, value in options.items()}
    except LakeError as error:
        raise CompilationError(f"table_options: {error}") from error


def layout_clauses(config: Any) -> str:
    """The clauses of CREATE TABLE that say how the table's files are laid out."""
    clauses = []
    if keys := partition_keys(config):
        clauses.append(f"partitioned by ({', '.join(keys)})")
    if keys := sort_keys(config):
        clauses.append(f"sorted by ({', '.join(keys)})")
    if options := table_options(config):
        pairs = (f"{string_literal(k)} = {string_literal(v)}" for k, v in options.items())
        clauses.append(f"tblproperties ({', '.join(pairs)})")
    return "\n".join(clauses)


def layout_changes(config: Any, relation: str) -> list[str]:
    """The statements that give a table which is there the layout of its model; files that are there stay."""
    partition, order = partition_keys(config), sort_keys(config)
    statements = [
        f"alter table {relation} set partitioned by ({', '.join(partition)})"
        if partition
        else f"alter table {relation} reset partitioned by",
        f"alter table {relation} set sorted by ({', '.join(order)})"
        if order
        else f"alter table {relation} reset sorted by",
    ]
    if options := table_options(config):
        pairs = (f"{string_literal(k)} = {string_literal(v)}" for k, v in options.items())
        statements.append(f"alter table {relation} set tblproperties ({', '.join(pairs)})")
    return statements


def _check_key(name: str, key: str, clause: str) -> None:
    try:
        statement = parse(f"create table t (c int) {clause} ({key})")
    except LakeError as error:
        raise CompilationError(f"{name}: {key!r} is no key: {error}") from error
    if not isinstance(statement, CreateTable) or statement.query is not None or statement.properties:
        raise CompilationError(f"{name}: {key!r} is no key")


def check(config: Any) -> None:
    """Raises an error for the first setting that is wrong, before anything is started."""
    for name, instead in _NOT_HERE.items():
        if config.get(name) is not None:
            raise CompilationError(f"{name} has no meaning in a lake: {instead}")
    file_format = config.get("file_format")
    if file_format not in (None, "parquet", "ducklake"):
        raise CompilationError(f"file_format is {file_format!r}, but a lake's files are Parquet; leave it out")
    layout_clauses(config)
    for name, keys, clause in (
        ("partition_by", partition_keys(config), "partitioned by"),
        ("sorted_by", sort_keys(config), "sorted by"),
    ):
        for key in keys:
            _check_key(name, key, clause)
    for name in ("commit_message", "commit_author"):
        value = config.get(name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise CompilationError(f"{name} takes a text, and it is {value!r}")
    extra = config.get("commit_extra_info")
    if extra is not None and not isinstance(extra, Mapping):
        raise CompilationError(f"commit_extra_info takes names and values, and it is {extra!r}")
