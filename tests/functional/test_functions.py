"""dbt functions: nodes of the lake, one snapshot each, called by models and by DuckDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import get_connection, run_dbt

PROPERTIES = """
functions:
  - name: taxed
    description: It's the price with its tax
    config:
      persist_docs: {relation: true}
      post_hook: "insert into {{ target.schema }}.log select {{ this }}(100)"
    arguments:
      - {name: price, data_type: double}
      - {name: rate, data_type: double, default_value: 0.5}
    returns: {data_type: double}
  - name: best
    arguments: [{name: at_most, data_type: double}]
    returns: {data_type: double}
  - name: counted
    config: {type: aggregate}
    arguments: [{name: x, data_type: int}]
    returns: {data_type: bigint}
  - name: slow
    config: {runtime_version: "3.11", entry_point: slow}
    arguments: [{name: x, data_type: int}]
    returns: {data_type: int}
"""


class TestFunctions:
    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return {
            "functions.yml": PROPERTIES,
            "taxed.sql": "price * (1 + rate) -- and no more",
            "best.sql": "select max({{ function('taxed') }}(price)) from {{ ref('prices') }} where price <= at_most",
            "counted.sql": "count(x)",
            "slow.py": "def slow(x):\n    return x",
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "prices.sql": "{{ config(materialized='table') }} select cast(id as double) as price from range(5)",
            "taxes.sql": "{{ config(materialized='table') }}\n"
            "select price, {{ function('taxed') }}(price, 0.25d) as t, {{ function('best') }}(price) as b"
            " from {{ ref('prices') }}",
            "cheap.sql": "select * from {{ ref('taxes') }} where {{ function('taxed') }}(price) < 2",
        }

    @pytest.fixture(scope="class", autouse=True)
    def log(self, project: Any) -> None:
        project.run_sql("create table {schema}.log (taxed double)")

    def messages(self, project: Any) -> list[str]:
        found = project.run_sql("select commit_message from ducklake_snapshots() order by snapshot_id", fetch="all")
        return [row[0] for row in found]

    def test_a_build_makes_functions_before_what_calls_them(self, project: Any) -> None:
        before = len(self.messages(project))
        names = ["prices", "taxed", "best", "taxes", "cheap"]
        run_dbt(["build", "-s", *names])
        kinds = {"taxed": "function", "best": "function", "cheap": "view"}
        made = [f"dbt build: {name} ({kinds.get(name, 'table')})" for name in names]
        assert sorted(self.messages(project)[before:]) == sorted(made)
        assert project.run_sql("select * from {schema}.cheap order by price", fetch="all") == [
            (0.0, 0.0, 0.0),
            (1.0, 1.25, 1.5),
        ]
        run_dbt(["docs", "generate"])
        # The hook is part of the function's snapshot.
        assert project.run_sql("select taxed from {schema}.log", fetch="all") == [(150.0,)]

    def test_a_function_that_is_the_same_is_no_snapshot(self, project: Any) -> None:
        run_dbt(["build", "-s", "prices", "taxed", "best"])
        before = self.messages(project)
        (result,) = run_dbt(["build", "-s", "best"]).results
        assert self.messages(project) == before
        assert result.message == "no change"

    @pytest.mark.parametrize(
        ("name", "words"),
        [("counted", "counted is one of type aggregate in sql"), ("slow", "slow is one of type scalar in python")],
    )
    def test_what_is_no_scalar_function_in_sql_says_so(self, project: Any, name: str, words: str) -> None:
        (result,) = run_dbt(["build", "-s", name], expect_pass=False).results
        assert "A lake keeps functions in SQL" in result.message
        assert words in result.message

    def test_a_body_that_is_wrong_leaves_what_was_there(self, project: Any) -> None:
        run_dbt(["build", "-s", "taxed"])
        path = Path(project.project_root) / "functions" / "taxed.sql"
        text = path.read_text()
        path.write_text("nothing * 2")
        try:
            (result,) = run_dbt(["build", "-s", "taxed"], expect_pass=False).results
        finally:
            path.write_text(text)
        assert "[UNRESOLVED_COLUMN" in result.message
        assert project.run_sql("select {schema}.taxed(2)", fetch="all") == [(3.0,)]

    def test_a_function_is_found_and_dropped(self, project: Any) -> None:
        run_dbt(["build", "-s", "taxed"])
        schema = project.adapter.Relation.create(database=project.database, schema=project.test_schema)
        with get_connection(project.adapter):
            found = project.adapter.list_relations_without_caching(schema)
            (taxed,) = [r for r in found if r.is_function and r.identifier == "taxed"]
            project.adapter.drop_relation(taxed)
            assert taxed not in project.adapter.list_relations_without_caching(schema)
