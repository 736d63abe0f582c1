"""Every Python block runs. A lake that a reader does not have is replaced by a copy of the prepared one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import dbt.adapters.ducklake
from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.credentials import DucklakeCredentials
from dbt.adapters.ducklake.lake.migration import Migration

from .blocks import Block, run_blocks
from .conftest import BUCKET

PYTHON = [b for b in run_blocks("python") if "def model(" not in b.text]

OpenLake = Callable[..., LakeSession]


@pytest.fixture
def open_lake(spark: SparkSession, lake_copy: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> OpenLake:
    """LakeSession with the test's Spark. Its parameters are checked as the fields of a profile."""
    copies = iter(f"lake{number}.sqlite" for number in range(100))

    def local(catalog: str, data_path: str | None) -> tuple[str, str | None]:
        is_new_lake = catalog.startswith("sqlite:") and data_path is not None
        return (catalog, data_path) if is_new_lake else (lake_copy(next(copies)), None)

    def open_(catalog: str, data_path: str | None = None, **settings: Any) -> LakeSession:
        fields = {name: value for name, value in settings.items() if not isinstance(value, SparkSession)}
        DucklakeCredentials.validate({"catalog": catalog, "data_path": data_path, **fields})
        settings.pop("metadata_schema", None)  # which PostgreSQL has, and the copy does not
        attach = [{**lake, "catalog": lake_copy(next(copies))} for lake in settings.pop("attach", [])]
        return LakeSession(*local(catalog, data_path), **{**settings, "spark": spark, "attach": attach})

    def migrate(catalog: str, *arguments: Any, **settings: Any) -> Migration:
        return LakeSession.migrate(local(catalog, None)[0], *arguments, **settings)

    open_.migrate = migrate  # type: ignore[attr-defined]
    monkeypatch.setattr(dbt.adapters.ducklake, "LakeSession", open_)
    return open_


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: block.id)
def test_a_python_block_runs(
    block: Block, spark: SparkSession, open_lake: OpenLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = {"LakeSession": open_lake, "catalog": "postgres:dbname=lake", "my_spark_session": spark}
    exec(
        compile(block.text.replace(BUCKET, str(tmp_path)), block.id, "exec"),
        {**names, "lake": open_lake("postgres:dbname=lake")},
    )
