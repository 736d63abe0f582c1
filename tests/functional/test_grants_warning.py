"""Grants, which a lake has nobody for."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.util import relation_from_name, run_dbt, run_dbt_and_capture

_GRANTED = """
models:
  - name: granted
    config:
      grants:
        select: ["somebody"]
"""


class TestGrantsWarning:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"granted.sql": "select 1 as id", "plain.sql": "select 1 as id", "schema.yml": _GRANTED}

    def test_warns_of_a_relation_with_grants(self, project: Any) -> None:
        results, logs = run_dbt_and_capture(["run"])
        assert [r.status for r in results] == ["success", "success"]
        assert f"grants of {relation_from_name(project.adapter, 'granted')} are ignored" in logs
        assert f"grants of {relation_from_name(project.adapter, 'plain')} are ignored" not in logs

    def test_the_warning_may_be_an_error(self, project: Any) -> None:
        results = run_dbt(["--warn-error", "run", "--select", "granted"], expect_pass=False)
        assert "are ignored: a lake has no users" in results[0].message
