"""A lake on SQLite with the shared SparkSession, and the ways to keep position deletes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.change import row_positions
from dbt.adapters.ducklake.spark.read import deletion_masks

from ..lakes import LakeAddress


@pytest.fixture
def lake(spark: SparkSession, new_lake: Callable[[str], LakeAddress]) -> Iterator[LakeSession]:
    address = new_lake("sqlite")
    session = LakeSession(address.catalog, data_path=address.data_path, spark=spark, author="tester")
    yield session
    session.close()


WAYS = ("in the catalog", "by the driver", "by Spark")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, lake: LakeSession, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where position deletes are kept and who reads them.

    A test with this fixture has a case for each way; the hook below marks all but one of them as long.
    """
    if request.param != "in the catalog":
        lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    if request.param == "by Spark":
        for name in ("MAX_DRIVER_ROWS", "MAX_DRIVER_POSITIONS"):
            monkeypatch.setattr(row_positions, name, 0)
        monkeypatch.setattr(deletion_masks, "MAX_FILES", 0)
    return str(request.param)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks all but one `way` of each test as long. Which one remains differs from test to test."""
    items_of: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        if "way" in params:
            items_of[item.nodeid.replace(params["way"], "")].append(item)
    for test, ways in items_of.items():
        usual = crc32(test.encode()) % len(ways)
        for index, item in enumerate(ways):
            if index != usual:
                item.add_marker(pytest.mark.long)
