"""The test suite of the `ducklake` extension, replayed: what its tests leave reads the same in both engines.

It takes an unpacked checkout of duckdb/ducklake, branch v1.5-variegata, which is no part of this project:

    DUCKLAKE_CHECKOUT=../ducklake pytest -m long tests/corpus/test_reference_suite.py -k compaction

DUCKLAKE_CATALOG=sqlite runs it with SQLite in place of DuckDB files as catalogs, DUCKLAKE_QUESTIONS=60 asks at most so
many questions about a lake at a time.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from .comparison import DIFFERENT, EQUAL
from .conftest import RECORD
from .replay import replay

CHECKOUT = os.environ.get("DUCKLAKE_CHECKOUT")
CATALOGS = {"duckdb": None, "sqlite": "sqlite:{TEST_DIR}/{BASE_TEST_NAME}.sqlite"}


def _tests() -> list[Any]:
    if CHECKOUT is None:
        reason = "DUCKLAKE_CHECKOUT is not set: the path of an unpacked checkout of duckdb/ducklake, v1.5-variegata"
        return [pytest.param("", marks=pytest.mark.skip(reason=reason))]
    root = Path(CHECKOUT) / "test" / "sql"
    return sorted(str(path.relative_to(root)) for kind in ("test", "test_slow") for path in root.rglob(f"*.{kind}"))


@pytest.mark.long
@pytest.mark.parametrize("name", _tests())
def test_lakes_of_the_reference_suite_read_the_same(
    name: str,
    interpreting_spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    root = Path(str(CHECKOUT)).absolute()
    monkeypatch.chdir(root)
    spark = interpreting_spark
    try:
        replayed = replay(
            root / "test/sql" / name, tmp_path, spark, CATALOGS[os.environ.get("DUCKLAKE_CATALOG", "duckdb")]
        )
    finally:
        spark.catalog.clearCache()
        shutil.rmtree(tmp_path)  # hundreds of lakes are large
    found = [(phase, finding) for phase, findings in replayed.findings.items() for finding in findings.items]
    record_property(
        RECORD,
        {
            "test": name,
            "executed": replayed.course.executed,
            "lakes": replayed.lakes,
            "stopped": replayed.course.stopped,
            "surprises": replayed.course.surprises,
            "left_out": dict(replayed.course.left_out + replayed.left_out),
            "counts": [(p, *key, n) for p, f in replayed.findings.items() for key, n in f.count().items()],
            "details": [(phase, f.outcome, str(f)) for phase, f in found if f.outcome != EQUAL],
        },
    )
    different = [f"{phase}: {finding}" for phase, finding in found if finding.outcome == DIFFERENT]
    assert not different, "\n".join(different)
