"""Lakes with both engines on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any
from zlib import crc32

import pytest
from pyspark.sql import SparkSession

from .engines import CATALOGS, WRITERS, Both
from .twins import Twins


@pytest.fixture
def open_lake(spark: SparkSession, new_lake: Callable[[str], Any]) -> Iterator[Callable[..., Both]]:
    """Makes a lake on the catalog database of that kind, with both engines."""
    opened = []

    def make(kind: str, **options: Any) -> Both:
        twins = kind == "mysql" and not options
        opened.append(
            Twins(spark, new_lake(kind), new_lake("sqlite")) if twins else Both(spark, new_lake(kind), **options)
        )
        return opened[-1]

    yield make
    for lake in opened:
        lake.close()


@pytest.fixture(params=[*CATALOGS, "mysql"])
def lake(request: pytest.FixtureRequest, open_lake: Callable[..., Both]) -> Both:
    """A new lake on each kind of catalog database; on MySQL, with Spark alone."""
    return open_lake(request.param)


@pytest.fixture(params=WRITERS)
def writer(request: pytest.FixtureRequest) -> str:
    """Who writes: one engine, or both in turns."""
    return str(request.param)


USUAL = {("sqlite", "spark"), ("sqlite", "duckdb"), ("postgres", "turns"), ("duckdb", "turns")}
"""Catalogs and writers of a usual run; INTEROP_MATRIX=full runs each with each."""

USUAL_DELETES = ("sqlite", "by Spark")
MORE_DELETES = (("postgres", "in files"), ("duckdb", "inlined"))
"""Likewise, catalogs and where deletes are kept; of the latter each test has one."""


USUAL_ON_MYSQL = {
    "test_a_column_dropped_and_added_again_is_another_column",
    "test_a_partition_column_is_renamed_and_its_old_name_is_added_again",
    "test_a_row_without_a_value_gets_the_default_of_its_column",
    "test_columns_and_fields_are_added_renamed_and_dropped",
    "test_tables_schemas_and_names_come_and_go",
}
"""The tests that a usual run has on MySQL; INTEROP_MATRIX=full has each test there that DuckDB is not needed for."""


ON_EACH_CATALOG = {
    "test_views_of_both_engines_call_macros",
    "test_a_query_of_the_past_calls_the_macro_of_its_snapshot",
}
"""The tests of macros that a usual run has on each catalog database, and the others on SQLite alone."""

BY_TURNS = ("postgres", "duckdb")
"""Where both engines write in turns in a usual run of `test_evolution_by_name`; each test has one of them."""


def _is_unusual(test: str, module: str, given: dict[str, Any]) -> bool:
    if given.get("macros", "sqlite") != "sqlite":
        return test not in ON_EACH_CATALOG
    is_in_turns = module.endswith("test_evolution_by_name") and given.get("writer") == "turns"
    return is_in_turns and given.get("lake") != BY_TURNS[crc32(test.encode()) % len(BY_TURNS)]


def _runs_on_mysql(item: pytest.Item, given: dict[str, Any], full: bool) -> bool:
    name = getattr(item, "originalname", item.name)
    return given.get("writer") in (None, "spark") and (full or name in USUAL_ON_MYSQL)


def _unusual_deletes(test: str, pair: tuple[str, str]) -> bool:
    return pair not in (USUAL_DELETES, MORE_DELETES[crc32(test.encode()) % len(MORE_DELETES)])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    full = os.environ.get("INTEROP_MATRIX") == "full"
    chosen, left_out = [], []
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {})
        if full or given.get("lake") == "mysql":
            runs = given.get("lake") != "mysql" or _runs_on_mysql(item, given, full)
            (chosen if runs else left_out).append(item)
            continue
        pair = (given.get("lake"), given.get("writer"))
        unusual = None not in pair and pair not in USUAL
        unusual = unusual or _is_unusual(getattr(item, "originalname", item.name), item.module.__name__, given)
        pair = (given.get("lake"), given.get("how"))
        unusual = unusual or (None not in pair and _unusual_deletes(item.originalname, pair))
        (left_out if unusual else chosen).append(item)
    items[:] = chosen
    if left_out:
        config.hook.pytest_deselected(items=left_out)
