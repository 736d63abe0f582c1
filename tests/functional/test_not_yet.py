"""What is not there says so, with what to do instead."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import run_dbt

FUNCTION = """
functions:
  - name: double
    arguments: [{name: x, data_type: int}]
    returns: {data_type: int}
"""
SNAPSHOT = """
snapshots:
  - name: history
    relation: ref('good')
    config: {unique_key: id, strategy: check, check_cols: all}
"""


class TestNotYet:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "good.sql": "{{ config(materialized='table') }} select 1 as id",
            "merged.sql": "{{ config(materialized='incremental', unique_key='id') }} select 1 as id",
        }

    @pytest.fixture(scope="class")
    def functions(self) -> dict[str, str]:
        return {"double.sql": "x * 2", "double.yml": FUNCTION}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.yml": SNAPSHOT}

    @pytest.mark.parametrize(
        ("node", "words"),
        [
            ("double", "temporary function of Spark's"),
            ("history", "version as of"),
            ("merged", "incremental strategy 'merge' is not valid"),
        ],
    )
    def test_a_node_that_needs_it_fails_with_a_way_out(self, project: Any, node: str, words: str) -> None:
        run_dbt(["run", "-s", "good"])
        (result,) = run_dbt(["build", "-s", node], expect_pass=False).results
        assert words in result.message
