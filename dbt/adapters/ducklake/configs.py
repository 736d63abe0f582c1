"""What a model may be configured with, and what is wrong with it."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dbt.adapters.protocol import AdapterConfig
from dbt_common.exceptions import CompilationError

from .lake.errors import LakeError
from .lake.options import parse_option
from .spark.sql.ddl import CreateTable
from .spark.sql.definitions import parse_partition_keys
from .spark.sql.statements import parse
from .spark.sql.types import quoted, string_literal

_NOT_HERE = {
    "location_root": "a lake's files are where its data_path says",
    "clustered_by": "use partition_by: ['bucket(8, column)'], or sorted_by",
    "buckets": "use partition_by: ['bucket(8, column)']",
    "options": "use table_options",
    "tblproperties": "use table_options",
}


_CONDITIONS = ("merge_update_condition", "merge_insert_condition", "merge_with_delete_condition")


@dataclass
class DucklakeConfig(AdapterConfig):
    partition_by: list[str] | str | None = None
    partitioned_by: list[str] | str | None = None
    sorted_by: list[str] | str | None = None
    sort_by: list[str] | str | None = None
    table_options: dict[str, Any] | None = None
    partitions: list[Any] | None = None
    merge_update_condition: str | None = None
    merge_insert_condition: str | None = None
    merge_with_delete_condition: str | None = None
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


def layout_changes(config: Any, relation: str) -> list[tuple[str, str | None]]:
    """The statements that give a table which is there the layout of its model; files that are there stay.

    Beside each is what stands in for it while a column that it names is still to come.
    """
    statements: list[tuple[str, str | None]] = []
    for what, keys in (("partitioned by", partition_keys(config)), ("sorted by", sort_keys(config))):
        reset = f"alter table {relation} reset {what}"
        statements.append((f"alter table {relation} set {what} ({', '.join(keys)})" if keys else reset, reset))
    if options := table_options(config):
        pairs = (f"{string_literal(k)} = {string_literal(v)}" for k, v in options.items())
        statements.append((f"alter table {relation} set tblproperties ({', '.join(pairs)})", None))
    return statements


def named_columns(setting: str, names: Any, columns: Sequence[str], of: str) -> list[str]:
    """The columns that a setting names, quoted."""
    there = {name.lower(): name for name in columns}
    found = []
    for given in [names] if isinstance(names, str) else list(names or []):
        name = given.strip().strip('`"')
        if name.lower() not in there:
            raise CompilationError(
                f"{setting} names {given!r}, which is no column of {of}; it has {', '.join(columns)}"
            )
        found.append(quoted(there[name.lower()]))
    return found


def updated_columns(update: Any, exclude: Any, columns: Sequence[str]) -> list[str]:
    """The columns of a row that is there which a merge updates, quoted."""
    if update:
        return named_columns("merge_update_columns", update, columns, "the model")
    left_out = named_columns("merge_exclude_columns", exclude, columns, "the model")
    return [name for name in map(quoted, columns) if name not in left_out]


def conditions(predicates: Any) -> list[str]:
    """The incremental_predicates of a model as a list."""
    given = [predicates] if isinstance(predicates, str) else list(predicates or [])
    if not all(isinstance(p, str) and p.strip() for p in given):
        raise CompilationError(f"incremental_predicates takes conditions in SQL, and it is {predicates!r}")
    return given


def merge_insert_conditions(config: Any) -> list[str]:
    """What a new row must fulfil; one that asks to be deleted is not inserted either."""
    given = [c] if (c := config.get("merge_insert_condition")) else []
    delete = config.get("merge_with_delete_condition")
    if delete and "dbt_internal_dest" not in delete.lower():
        given.append(f"not coalesce({delete}, false)")
    return given


def partitions_condition(config: Any) -> str:
    """The condition for the rows of the `partitions` that a model replaces; nothing where it names none."""
    partitions = config.get("partitions")
    if partitions is None:
        return ""
    parsed = parse_partition_keys(", ".join(partition_keys(config))) if partition_keys(config) else ()
    keys = [key.column for key in parsed if key.transform == "identity"]
    if not isinstance(partitions, list) or not partitions:
        raise CompilationError(
            f"partitions takes a list of partition values, and it is {partitions!r}; leave it out to replace the"
            " partitions that the new rows are in"
        )
    found = []
    for values in partitions:
        named = values if isinstance(values, Mapping) else {keys[0]: values} if len(keys) == 1 else {}
        unknown = [name for name in named if name.lower() not in {key.lower() for key in keys}]
        if not named or unknown:
            raise CompilationError(
                f"partitions has {values!r}; write values of the one column of partition_by, or"
                f" {{column: value}} with its columns ({', '.join(keys) or 'there are none without a transform'})"
            )
        found.append(" and ".join(f"{quoted(name)} <=> {value}" for name, value in named.items()))
    return f"({') or ('.join(found)})"


def batch_conditions(event_time: str, types: Mapping[str, str], start: Any, end: Any) -> list[str]:
    """The window of a batch, in literals of the column's own type: files are told apart by them."""
    name = next((n for n in types if n.lower() == event_time.strip("`").lower()), None)
    if name is None:
        raise CompilationError(f"event_time is {event_time!r}, which is no column of the model: {', '.join(types)}")
    moments = [_utc(start), _utc(end)]
    if types[name] == "date" and all(m.time() == datetime.time() for m in moments):
        literals = [f"date'{m:%Y-%m-%d}'" for m in moments]
    elif types[name] == "timestamp_ntz":
        literals = [f"timestamp_ntz'{m:%Y-%m-%d %H:%M:%S}'" for m in moments]
    else:
        literals = [f"timestamp'{m:%Y-%m-%d %H:%M:%S}+00:00'" for m in moments]
    column = f"DBT_INTERNAL_DEST.{quoted(name)}"
    return [f"{column} >= {literals[0]}", f"{column} < {literals[1]}"]


def _utc(moment: Any) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    zone = datetime.timezone.utc
    return found.replace(tzinfo=zone) if found.tzinfo is None else found.astimezone(zone)


def _check_strategy(config: Any) -> None:
    strategy = config.get("incremental_strategy") or ("merge" if config.get("unique_key") else "append")
    for name in _CONDITIONS:
        value = config.get(name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise CompilationError(f"{name} takes a condition in SQL, and it is {value!r}")
        if value is not None and strategy not in ("merge", "default"):
            raise CompilationError(f"{name} is for the strategy merge, and the model's is {strategy!r}")
    if config.get("merge_update_columns") and config.get("merge_exclude_columns"):
        raise CompilationError("merge_update_columns and merge_exclude_columns exclude each other; leave one out")
    if strategy == "merge" and not config.get("unique_key"):
        raise CompilationError("the strategy merge needs a unique_key; without one, use append or insert_overwrite")
    conditions(config.get("incremental_predicates") or config.get("predicates"))
    if config.get("partitions") is not None:
        if strategy != "insert_overwrite":
            raise CompilationError(f"partitions is for insert_overwrite, and incremental_strategy is {strategy!r}")
        partitions_condition(config)


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
    if config.get("materialized") == "incremental":
        _check_strategy(config)
    for name in ("commit_message", "commit_author"):
        value = config.get(name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise CompilationError(f"{name} takes a text, and it is {value!r}")
    extra = config.get("commit_extra_info")
    if extra is not None and not isinstance(extra, Mapping):
        raise CompilationError(f"commit_extra_info takes names and values, and it is {extra!r}")
