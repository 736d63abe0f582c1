"""A lake on SQLite with the shared SparkSession."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.change import position_deletes as masks
from dbt.adapters.ducklake.spark.read import deletion_masks as living

from ..conftest import LakeAddress


@pytest.fixture
def lake(spark: SparkSession, new_lake: Callable[[str], LakeAddress]) -> Iterator[LakeSession]:
    address = new_lake("sqlite")
    session = LakeSession(address.catalog, data_path=address.data_path, spark=spark, author="tester")
    yield session
    session.close()


WAYS = ("in the catalog", "by the driver", "by Spark")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, lake: LakeSession, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the positions of deleted rows are kept: each test with it runs in all three ways, usually in one of them."""
    if request.param != "in the catalog":
        lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    if request.param == "by Spark":
        for name in ("DRIVER_ROWS", "DRIVER_POSITIONS"):
            monkeypatch.setattr(masks, name, 0)
        monkeypatch.setattr(living, "FEW_FILES", 0)
    return str(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the ways in which a test runs all but one are long; which one it is differs from test to test."""
    ways: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if "way" in given:
            ways[item.nodeid.replace(given["way"], "")].append(item)
    for test, some in ways.items():
        usual = crc32(test.encode()) % len(some)
        for index, item in enumerate(some):
            if index != usual:
                item.add_marker(pytest.mark.long)
