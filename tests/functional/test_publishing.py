"""`publish: run`: a command is one snapshot, after its tests passed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from .. import reference

Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def ask(lake_folder: Path) -> Iterator[Ask]:
    """What DuckDB answers."""
    connection = reference.connect(f"sqlite:{lake_folder}/metadata.sqlite", f"{lake_folder}/data/")
    yield lambda query: connection.execute(query).fetchall()
    connection.close()


NUMBERS = "id,n\n1,10\n2,20\n"
ORDERS = """{{ config(materialized='table', post_hook="insert into {{ target.schema }}.audit values ('orders')") }}
select id, n * {{ var('factor', 1) }} as n from {{ ref('numbers') }}
"""
LINES = """{{ config(materialized='incremental', unique_key='id') }}
select id, n + 1 as n from {{ ref('orders') }}
"""
ASIDE = """{{ config(materialized='table', post_hook="insert into {{ target.schema }}.audit values ('aside')") }}
select 1 as id
"""
TOTALS = "select sum(n) as n from {{ ref('lines') }}"
SCHEMA = """
models:
  - name: orders
    columns:
      - name: n
        data_tests:
          - accepted_values:
              arguments: {values: [10, 20, 30, 40], quote: false}
  - name: lines
    columns:
      - name: id
        data_tests: [unique]
"""


class PublishedRuns:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, lake_target: dict[str, Any]) -> dict[str, Any]:
        return {**lake_target, "publish": "run"}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"numbers.csv": NUMBERS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "lines.sql": LINES,
            "aside.sql": ASIDE,
            "totals.sql": TOTALS,
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-start": "create table if not exists {{ target.schema }}.audit (node string)"}


def results(project: Any) -> dict[str, dict[str, Any]]:
    found = json.loads(Path(project.project_root, "target", "run_results.json").read_text())["results"]
    return {r["unique_id"].split(".")[2]: r for r in found}


SNAPSHOTS = "select snapshot_id, commit_message, commit_extra_info from lake.snapshots() order by snapshot_id"


class TestPublishedRun(PublishedRuns):
    def test_a_build_is_one_snapshot_after_its_tests(self, project: Any, ask: Ask) -> None:
        before = len(ask(SNAPSHOTS))
        _, log = run_dbt_and_capture(["build"])
        assert "Published 5 nodes as snapshot" in log
        snapshots = ask(SNAPSHOTS)
        assert len(snapshots) == before + 1
        snapshot, message, text = snapshots[-1]
        assert message == "dbt build: 5 nodes"
        schema = project.test_schema
        assert ask(f"select n from lake.{schema}.totals") == [(32,)]
        assert sorted(ask(f"from lake.{schema}.audit")) == [("aside",), ("orders",)]
        info = json.loads(text)
        nodes = {node["node_id"].split(".")[-1]: node for node in info["nodes"]}
        assert set(nodes) == {"numbers", "orders", "lines", "aside", "totals"}
        assert info["invocation_id"]
        assert "invocation_id" not in nodes["orders"]
        assert nodes["lines"]["rows"] == {"inserted": 2, "updated": 0, "deleted": 0}
        ids = dict(ask("select table_name, table_id from __ducklake_metadata_lake.ducklake_table"))
        assert nodes["lines"]["inputs"] == [
            {"relation": f"lake.{schema}.orders", "table_id": ids["orders"], "snapshot": snapshot}
        ]
        assert nodes["lines"]["changed"] == [ids["lines"]]
        assert nodes["orders"]["changed"] == sorted((ids["orders"], ids["audit"]))
        assert results(project)["orders"]["adapter_response"]["snapshot_id"] == snapshot
        assert results(project)["orders"]["message"].startswith(f"snapshot {snapshot}, ")

    def test_a_failed_test_leaves_the_lake_as_it_was(self, project: Any, ask: Ask, lake_folder: Path) -> None:
        run_dbt(["build"])
        before, files = ask(SNAPSHOTS), set(lake_folder.rglob("*.parquet"))
        _, log = run_dbt_and_capture(["build", "--vars", "factor: 3"], expect_pass=False)
        assert "Nothing is published, since accepted_values_orders" in log
        assert ask(SNAPSHOTS) == before
        assert set(lake_folder.rglob("*.parquet")) == files
        found = results(project)
        assert {name: found[name]["status"] for name in ("numbers", "orders", "aside", "lines")} == dict.fromkeys(
            ("numbers", "orders", "aside", "lines"), "skipped"
        )

    def test_retry_builds_all_that_was_not_published(self, project: Any, ask: Ask) -> None:
        run_dbt(["build", "--vars", "factor: 3"], expect_pass=False)
        before = len(ask(SNAPSHOTS))
        _, log = run_dbt_and_capture(["retry", "--vars", "factor: 2"])
        assert "Published 4 nodes" in log  # the view is what it was
        assert len(ask(SNAPSHOTS)) == before + 1
        assert ask(f"select sum(n) from lake.{project.test_schema}.orders") == [(60,)]

    def test_what_passed_is_published_with_all_that_it_stands_on(self, project: Any, ask: Ask) -> None:
        run_dbt(["build"])
        write_file(ASIDE.replace("1 as id", "7 as id"), project.project_root, "models", "aside.sql")
        audited = len(ask(f"from lake.{project.test_schema}.audit"))
        _, log = run_dbt_and_capture(
            ["build", "--vars", "{factor: 3, ducklake_publish_on_failure: passed}"], expect_pass=False
        )
        assert "Not published: orders, since the test accepted_values_orders" in log
        assert "Published 2 nodes as snapshot" in log
        assert ask(f"select id from lake.{project.test_schema}.aside") == [(7,)]
        assert ask(f"select sum(n) from lake.{project.test_schema}.orders") == [(30,)]
        assert len(ask(f"from lake.{project.test_schema}.audit")) == audited + 1
        found = results(project)
        assert found["orders"]["status"] == "skipped"
        assert found["aside"]["status"] == "success"


class TestNewChangesOfTheSameRun(PublishedRuns):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": "{{ config(materialized='incremental', unique_key='id') }}\n"
            "select id, {{ var('n', 1) }} as n from range({{ var('start', 0) }}, {{ var('start', 0) }} + 3)",
            "events.sql": "{{ config(materialized='incremental') }}\n"
            "select id, n, change_type from {{ ducklake_new_changes(ref('orders')) }}",
        }

    def test_staged_changes_are_consumed_with_the_run_that_makes_them(self, project: Any, ask: Ask) -> None:
        orders, events = (f"lake.{project.test_schema}.{name}" for name in ("orders", "events"))
        run_dbt(["run"])
        assert ask(f"from {events} order by all") == [(i, 1, "insert") for i in range(3)]
        project.run_sql(f"insert into {orders} values (9, 9)")
        run_dbt(["run", "--vars", "{start: 2, n: 2}"])
        new = ask(f"from {events} where n > 1 or id = 2 order by all")
        assert new == [
            (2, 1, "insert"),
            (2, 1, "update_preimage"),
            (2, 2, "update_postimage"),
            (3, 2, "insert"),
            (4, 2, "insert"),
            (9, 9, "insert"),
        ]
        project.run_sql(f"delete from {orders} where id = 9")
        run_dbt(["run", "-s", "events"])
        assert ask(f"select change_type from {events} where id = 9 order by all") == [("delete",), ("insert",)]
        before = ask(SNAPSHOTS)
        run_dbt(["run", "-s", "events"])
        assert ask(SNAPSHOTS) == before
