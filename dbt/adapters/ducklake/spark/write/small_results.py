"""Small results: the driver takes those of plain types from Spark; one task writes the others, so they are one file."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

SMALL_BYTES = 1 << 18
"""What Spark may expect of a small result and of all that it reads: a few thousand rows, enough work for one task."""
_MAX_LEAVES = 20
MAX_ROWS = 20_000
"""How many rows the driver takes, however little space Spark expects them to need."""

_HIDES_WORK = re.compile(
    r"^[\s:+-]*(?:Generate|Expand|MapElements|MapPartitions|\w*(?:Python|Pandas|InArrow|Script)\w*)\b", re.MULTILINE
)
"""Operators that make more rows than Spark expects, or run code that may take any time."""
_STATISTICS = re.compile(r"Statistics\(sizeInBytes=([0-9.E+]+) (\w+)")
_UNITS = {"B": 1, "KiB": 1 << 10}


def collect_if_small(rows: DataFrame) -> pa.Table | None:
    """The rows if they are few; None for others, which Spark computes a second time if it expected less."""
    if not _is_small(rows):
        return None
    try:
        found = rows.coalesce(1).limit(MAX_ROWS + 1).toArrow()
    except (PySparkException, Py4JJavaError) as error:
        if "spark.driver.maxResultSize" in str(error):
            return None
        raise
    return found if len(found) <= MAX_ROWS else None


def gather_if_small(rows: DataFrame) -> DataFrame:
    """The rows, in one partition if Spark expects them to be few. Needs neither a job nor a shuffle."""
    return rows.coalesce(1) if _is_small(rows) else rows


def _is_small(rows: DataFrame) -> bool:
    is_connect = type(rows).__module__.startswith("pyspark.sql.connect")
    return _is_small_on_connect(rows) if is_connect else _is_small_in_plan(rows)


def _is_small_in_plan(rows: DataFrame) -> bool:
    plan: Any = rows._jdf.queryExecution().optimizedPlan()
    leaves = plan.collectLeaves()
    return (
        leaves.size() <= _MAX_LEAVES
        and all(_expected_bytes(node) <= SMALL_BYTES for node in (plan, *map(leaves.apply, range(leaves.size()))))
        and _HIDES_WORK.search(plan.treeString()) is None
    )


def _expected_bytes(node: Any) -> int:
    return int(str(node.stats().sizeInBytes()))


def _is_small_on_connect(rows: Any) -> bool:
    plan = rows._explain_string(mode="cost").partition("== Physical Plan ==")[0]
    sizes = [float(size) * _UNITS.get(unit, float("inf")) for size, unit in _STATISTICS.findall(plan)]
    return bool(sizes) and max(sizes) <= SMALL_BYTES and _HIDES_WORK.search(plan) is None
