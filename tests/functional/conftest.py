"""dbt projects on one lake, with one SparkSession for all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .. import reference

pytest_plugins = ["dbt.tests.fixtures.project"]


@pytest.fixture(scope="session")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


@pytest.fixture(scope="session")
def lake_catalog(lake_folder: Path) -> str:
    return f"sqlite:{lake_folder}/metadata.sqlite"


Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def ask(lake_folder: Path, lake_catalog: str) -> Ask:
    """What DuckDB answers. It is there only while it does: a catalog that is a DuckDB file has one user at a time."""

    def answer(query: str) -> list[tuple[Any, ...]]:
        with reference.connect(lake_catalog, f"{lake_folder}/data/") as connection:
            return connection.execute(query).fetchall()

    return answer


@pytest.fixture(scope="class")
def dbt_profile_target(lake_target: dict[str, Any]) -> dict[str, Any]:
    return lake_target


@pytest.fixture(scope="class")
def lake_target(lake_folder: Path, lake_catalog: str) -> dict[str, Any]:
    """The target, for classes that have a `dbt_profile_target` of their own."""
    return {
        "type": "ducklake",
        "catalog": lake_catalog,
        "data_path": f"{lake_folder}/data/",
        "threads": 4,
        "author": "tester",
        "spark": {
            "master": "local[2]",
            "config": {
                "spark.sql.shuffle.partitions": "2",
                "spark.sql.session.timeZone": "UTC",
                "spark.driver.memory": "1g",
            },
        },
    }
