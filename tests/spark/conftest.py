"""A lake on SQLite with the shared SparkSession."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
