"""What needs no rows starts no Spark: docs, freshness, listings, small seeds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

PROGRAM = """
import sys
from pyspark import SparkContext
from dbt.cli.main import dbtRunner
result = dbtRunner().invoke(sys.argv[1:])
assert SparkContext._gateway is None, "a Java process was started"
sys.exit(0 if result.success else 1)
"""

SCHEMA = """
version: 2
models:
  - name: numbers
    description: Ten numbers
    columns:
      - {name: id, description: Which number}
sources:
  - name: lake
    schema: "{{ target.schema }}"
    config:
      freshness: {warn_after: {count: 1, period: hour}, error_after: {count: 1, period: day}}
    tables:
      - name: numbers
      - name: through
      - name: nowhere
"""


def dbt_without_spark(project: Any, *command: str) -> str:
    """What a dbt command prints that runs in a process of its own, and fails if it starts Java."""
    where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--no-use-colors", *command, *where],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=project.project_root,
    )
    assert "a Java process was started" not in done.stderr, done.stdout
    return done.stdout


@pytest.mark.processes
class TestWithoutSpark:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        config = "materialized='table', partition_by=['bucket(2, id)'], sorted_by=['id desc'], persist_docs="
        return {
            "numbers.sql": f"{{{{ config({config}{{'relation': true, 'columns': true}}) }}}} select id from range(10)",
            "through.sql": "select *, 'x' as name from {{ ref('numbers') }}",
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"letters.csv": "id,letter,at,share\n1,a,2020-01-01,0.5\n2,b,2020-01-02,\n"}

    @pytest.fixture(scope="class")
    def built(self, project: Any) -> Any:
        run_dbt(["run"])
        return project

    def test_docs_come_from_the_catalog(self, built: Any) -> None:
        dbt_without_spark(built, "docs", "generate", "--no-compile")
        catalog = json.loads((Path(built.project_root) / "target" / "catalog.json").read_text())
        assert not catalog["errors"]
        numbers, through = catalog["nodes"]["model.test.numbers"], catalog["nodes"]["model.test.through"]
        assert numbers["metadata"]["comment"] == "Ten numbers"
        assert numbers["metadata"]["owner"] == "tester"
        assert numbers["columns"]["id"]["type"] == "bigint"
        assert numbers["columns"]["id"]["comment"] == "Which number"
        statistics = {name: s["value"] for name, s in numbers["stats"].items() if s["include"]}
        assert statistics["row_count"] == 10
        assert statistics["partitioned_by"] == "bucket(2, id)"
        assert statistics["sorted_by"] == "id DESC NULLS LAST"
        assert statistics["message"] == "dbt run: numbers (table)"
        assert {c["name"]: c["type"] for c in through["columns"].values()} == {"id": "bigint", "name": "string"}
        assert "numbers at" in through["stats"]["built_from"]["value"]

    def test_freshness_comes_from_the_times_of_snapshots(self, built: Any) -> None:
        log = dbt_without_spark(built, "source", "freshness")
        assert "PASS freshness of lake.numbers" in log
        assert "ERROR freshness of lake.nowhere" in log
        assert "nowhere` is no table of a lake" in log
        found = json.loads((Path(built.project_root) / "target" / "sources.json").read_text())["results"]
        ages = {r["unique_id"]: r.get("max_loaded_at_time_ago_in_s") for r in found}
        assert 0 <= ages["source.test.lake.numbers"] < 3600

    def test_a_small_seed_is_written_by_the_driver(self, built: Any) -> None:
        assert "PASS=1" in dbt_without_spark(built, "seed")
        rows = built.run_sql("select id, letter, at, share from {schema}.letters order by id", fetch="all")
        assert [str(v) for v in rows[0]] == ["1", "a", "2020-01-01", "0.5"]
        assert rows[1][3] is None

    def test_listing_and_parsing_need_nothing(self, built: Any) -> None:
        assert "test.numbers" in dbt_without_spark(built, "list")
