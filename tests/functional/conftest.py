"""dbt projects on one lake, with one SparkSession for all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import reference

pytest_plugins = ["dbt.tests.fixtures.project"]


@pytest.fixture(scope="session")
def lake_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lake")


Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def ask(lake_folder: Path) -> Iterator[Ask]:
    """What DuckDB answers."""
    connection = reference.connect(f"sqlite:{lake_folder}/metadata.sqlite", f"{lake_folder}/data/")
    yield lambda query: connection.execute(query).fetchall()
    connection.close()


@pytest.fixture(scope="class")
def dbt_profile_target(lake_target: dict[str, Any]) -> dict[str, Any]:
    return lake_target


@pytest.fixture(scope="class")
def lake_target(lake_folder: Path) -> dict[str, Any]:
    """The target, for classes that have a `dbt_profile_target` of their own."""
    return {
        "type": "ducklake",
        "catalog": f"sqlite:{lake_folder}/metadata.sqlite",
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
