"""DuckLake for Spark, and for dbt on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .spark.results import Result
from .spark.session import LakeSession

__all__ = ["LakeSession", "Plugin", "Result"]  # noqa: F822 - Plugin comes from __getattr__


def _macros() -> str:
    """The folder of macros: installed as dbt.include.ducklake, or at the top of a checkout."""
    root = Path(__file__).parents[2]
    installed = root / "include" / "ducklake"
    return str(installed if installed.is_dir() else root.parent / "macros")


def __getattr__(name: str) -> Any:
    # dbt is only loaded for those who ask for it: LakeSession alone does not.
    if name != "Plugin":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from dbt.adapters.base import AdapterPlugin

    from .credentials import DucklakeCredentials
    from .impl import DucklakeAdapter

    plugin = globals()[name] = AdapterPlugin(
        adapter=DucklakeAdapter,
        credentials=DucklakeCredentials,
        include_path=_macros(),
        dependencies=["spark"],
        project_name="dbt_ducklake",
    )
    return plugin
