"""SQL of the incremental strategies: columns, predicates and conditions made of a model's configuration."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

from dbt_common.exceptions import CompilationError

from .spark.sql.quoting import quoted
from .table_layout import PartitionBy

STRATEGIES = ("append", "merge", "delete+insert", "insert_overwrite", "microbatch")

_MERGE_CONDITIONS = ("merge_update_condition", "merge_insert_condition", "merge_with_delete_condition")


def strategy_of(config: Any) -> str:
    """The incremental strategy that a model names, or its default: merge with a unique_key, else append."""
    return str(config.get("incremental_strategy") or ("merge" if config.get("unique_key") else "append"))


def check_strategy(config: Any) -> None:
    """Raises for the first setting that is wrong or does not fit the strategy."""
    strategy = strategy_of(config)
    for name in _MERGE_CONDITIONS:
        value = config.get(name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise CompilationError(f"{name} takes a condition in SQL, and it is {value!r}")
        if value is not None and strategy not in ("merge", "default"):
            raise CompilationError(f"{name} is for the strategy merge, and the model's is {strategy!r}")
    if config.get("merge_update_columns") and config.get("merge_exclude_columns"):
        raise CompilationError("merge_update_columns and merge_exclude_columns exclude each other; leave one out")
    if strategy == "merge" and not config.get("unique_key"):
        raise CompilationError("the strategy merge needs a unique_key; without one, use append or insert_overwrite")
    predicate_list(config.get("incremental_predicates") or config.get("predicates"))
    if config.get("partitions") is not None:
        if strategy != "insert_overwrite":
            raise CompilationError(f"partitions is for insert_overwrite, and incremental_strategy is {strategy!r}")
        partitions_condition(config)


def quoted_columns(setting: str, names: Any, columns: Sequence[str], owner: str) -> list[str]:
    """The columns that a setting names, quoted; `owner` is what an error says they are columns of."""
    by_lower_name = {column.lower(): column for column in columns}
    found = []
    for name in [names] if isinstance(names, str) else list(names or []):
        column = by_lower_name.get(name.strip().strip('`"').lower())
        if column is None:
            raise CompilationError(
                f"{setting} names {name!r}, which is no column of {owner}; it has {', '.join(columns)}"
            )
        found.append(quoted(column))
    return found


def merge_update_columns(update: Any, exclude: Any, columns: Sequence[str]) -> list[str]:
    """The columns that a merge updates in a matched row, quoted."""
    if update:
        return quoted_columns("merge_update_columns", update, columns, "the model")
    excluded = quoted_columns("merge_exclude_columns", exclude, columns, "the model")
    return [name for name in map(quoted, columns) if name not in excluded]


def predicate_list(predicates: Any) -> list[str]:
    """The incremental_predicates of a model as a list."""
    found = [predicates] if isinstance(predicates, str) else list(predicates or [])
    if not all(isinstance(p, str) and p.strip() for p in found):
        raise CompilationError(f"incremental_predicates takes conditions in SQL, and it is {predicates!r}")
    return found


def merge_insert_conditions(config: Any) -> list[str]:
    """The conditions of WHEN NOT MATCHED. A source row that asks for its own deletion is not inserted.

    A delete condition on the table's row, DBT_INTERNAL_DEST, is left out: an unmatched row has none.
    """
    found = [c] if (c := config.get("merge_insert_condition")) else []
    delete = config.get("merge_with_delete_condition")
    if delete and "dbt_internal_dest" not in delete.lower():
        found.append(f"not coalesce({delete}, false)")
    return found


def partitions_condition(config: Any) -> str:
    """The condition for the rows of the `partitions` that a model overwrites; empty if it names none."""
    partitions = config.get("partitions")
    if partitions is None:
        return ""
    keys = [key.column for key in PartitionBy.from_config(config).parsed_keys() if key.transform == "identity"]
    if not isinstance(partitions, list) or not partitions:
        raise CompilationError(
            f"partitions takes a list of partition values, and it is {partitions!r}; leave it out to replace the"
            " partitions that the new rows are in"
        )
    conditions = []
    for partition in partitions:
        values = partition if isinstance(partition, Mapping) else {keys[0]: partition} if len(keys) == 1 else {}
        unknown = [name for name in values if name.lower() not in {key.lower() for key in keys}]
        if not values or unknown:
            raise CompilationError(
                f"partitions has {partition!r}; write values of the one column of partition_by, or"
                f" {{column: value}} with its columns ({', '.join(keys) or 'there are none without a transform'})"
            )
        conditions.append(" and ".join(f"{quoted(name)} <=> {value}" for name, value in values.items()))
    return f"({') or ('.join(conditions)})"


def microbatch_conditions(event_time: str, types: Mapping[str, str], start: Any, end: Any) -> list[str]:
    """The window of a batch, as predicates on the table.

    The literals have the column's own type, so that data files are pruned by them.
    """
    name = next((n for n in types if n.lower() == event_time.strip("`").lower()), None)
    if name is None:
        raise CompilationError(f"event_time is {event_time!r}, which is no column of the model: {', '.join(types)}")
    bounds = [_as_utc(start), _as_utc(end)]
    if types[name] == "date" and all(bound.time() == datetime.time() for bound in bounds):
        literals = [f"date'{bound:%Y-%m-%d}'" for bound in bounds]
    elif types[name] == "timestamp_ntz":
        literals = [f"timestamp_ntz'{bound:%Y-%m-%d %H:%M:%S}'" for bound in bounds]
    else:
        literals = [f"timestamp'{bound:%Y-%m-%d %H:%M:%S}+00:00'" for bound in bounds]
    column = f"DBT_INTERNAL_DEST.{quoted(name)}"
    return [f"{column} >= {literals[0]}", f"{column} < {literals[1]}"]


def _as_utc(timestamp: str | datetime.datetime) -> datetime.datetime:
    found = datetime.datetime.fromisoformat(timestamp) if isinstance(timestamp, str) else timestamp
    utc = datetime.timezone.utc
    return found.replace(tzinfo=utc) if found.tzinfo is None else found.astimezone(utc)
