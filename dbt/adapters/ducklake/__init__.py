"""DuckLake for Spark, and for dbt on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .spark.results import Result
from .spark.session import LakeSession

__all__ = ["LakeSession", "Plugin", "Result"]  # noqa: F822 - Plugin comes from __getattr__


def _macros_folder() -> str:
    """The folder of the macros: dbt/include/ducklake if installed, macros/ in a checkout."""
    root = Path(__file__).parents[2]
    installed = root / "include" / "ducklake"
    return str(installed if installed.is_dir() else root.parent / "macros")


def __getattr__(name: str) -> Any:
    # Imports dbt only when dbt asks for the plugin: LakeSession does not need it.
    if name != "Plugin":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from dbt.adapters.base.plugin import AdapterPlugin

    from .credentials import DucklakeCredentials
    from .impl import DucklakeAdapter

    plugin = globals()[name] = AdapterPlugin(
        adapter=DucklakeAdapter,  # type: ignore[arg-type]  # dbt's own adapters do not fit its AdapterProtocol either
        credentials=DucklakeCredentials,
        include_path=_macros_folder(),
        dependencies=["spark"],
        project_name="dbt_ducklake",
    )
    return plugin
