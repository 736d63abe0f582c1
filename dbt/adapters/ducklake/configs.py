"""The settings of a model, and their validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.protocol import AdapterConfig
from dbt_common.exceptions import CompilationError

from .incremental import check_strategy
from .table_layout import TableLayout

# Settings of dbt-spark that mean nothing in a lake, and what to use instead.
_UNSUPPORTED = {
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
    partitions: list[Any] | None = None
    merge_update_condition: str | None = None
    merge_insert_condition: str | None = None
    merge_with_delete_condition: str | None = None
    commit_message: str | None = None
    commit_author: str | None = None
    commit_extra_info: dict[str, Any] | None = None


def check_model_config(config: Any) -> None:
    """Raises for the first invalid setting, before the model runs."""
    for name, instead in _UNSUPPORTED.items():
        if config.get(name) is not None:
            raise CompilationError(f"{name} has no meaning in a lake: {instead}")
    file_format = config.get("file_format")
    if file_format not in (None, "parquet", "ducklake"):
        raise CompilationError(f"file_format is {file_format!r}, but a lake's files are Parquet; leave it out")
    TableLayout.from_config(config).check_syntax()
    if config.get("materialized") == "incremental":
        check_strategy(config)
    for name in ("commit_message", "commit_author"):
        value = config.get(name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise CompilationError(f"{name} takes a text, and it is {value!r}")
    extra = config.get("commit_extra_info")
    if extra is not None and not isinstance(extra, Mapping):
        raise CompilationError(f"commit_extra_info takes names and values, and it is {extra!r}")
