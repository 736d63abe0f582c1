"""The official suite: simple copy."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.simple_copy import test_copy_uppercase as copy_uppercase
from dbt.tests.adapter.simple_copy import test_simple_copy as simple_copy

from .dialect import APPEND
from .not_here import left_out


class _Append:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"seeds": {"quote_columns": False}, "models": APPEND}


class TestSimpleCopy(_Append, simple_copy.TestSimpleCopyBase):
    test_simple_copy_with_materialized_views = left_out(
        "simple_copy.test_simple_copy.SimpleCopyBase.test_simple_copy_with_materialized_views"
    )


class TestEmptyModelsArentRun(_Append, simple_copy.TestEmptyModelsArentRun):
    pass


class TestSimpleCopyUppercase(_Append, copy_uppercase.TestSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, lake_target: dict[str, Any]) -> dict[str, Any]:
        """A lake whose name has capitals, as the suite's database does."""
        return {**lake_target, "database": "lakeMixedCase"}
