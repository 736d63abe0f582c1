"""A lake on SQLite with the shared SparkSession."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession

from ..conftest import LakeAddress


@pytest.fixture
def lake(spark: SparkSession, new_lake: Callable[[str], LakeAddress]) -> Iterator[LakeSession]:
    address = new_lake("sqlite")
    session = LakeSession(address.catalog, data_path=address.data_path, spark=spark, author="tester")
    yield session
    session.close()


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
