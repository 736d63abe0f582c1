"""The settings of a model, and their validation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.protocol import AdapterConfig
from dbt_common.exceptions import CompilationError

from .incremental import check_strategy
from .maintenance import MaintenanceSettings
from .other_adapters import check_own_config
from .reuse.settings import check_reuse
from .table_layout import TableLayout


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
    maintenance: bool | str | dict[str, Any] | None = None
    reuse: bool | str | None = None


def check_model_config(config: Any) -> None:
    """Raises for the first invalid setting, before the model runs."""
    check_own_config(config)
    TableLayout.from_config(config).check_syntax()
    if config.get("materialized") == "incremental":
        check_strategy(config)
    for name in ("commit_message", "commit_author"):
        value = config.get(name)
        if value is not None and not (isinstance(value, str) and value.strip()):
            raise CompilationError(f"{name} takes a text, and it is {value!r}")
    MaintenanceSettings.parse(config.get("maintenance"))
    check_reuse(config.get("reuse"))
    extra = config.get("commit_extra_info")
    if extra is not None and not isinstance(extra, Mapping):
        raise CompilationError(f"commit_extra_info takes names and values, and it is {extra!r}")
