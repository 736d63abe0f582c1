"""The official suite: simple copy."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.simple_copy import test_copy_uppercase as copy_uppercase
from dbt.tests.adapter.simple_copy import test_simple_copy as simple_copy

from .not_here import left_out


class TestSimpleCopy(simple_copy.TestSimpleCopyBase):
    test_simple_copy_with_materialized_views = left_out(
        "simple_copy.test_simple_copy.SimpleCopyBase.test_simple_copy_with_materialized_views"
    )


class TestEmptyModelsArentRun(simple_copy.TestEmptyModelsArentRun):
    pass


class TestSimpleCopyUppercase(copy_uppercase.TestSimpleCopyUppercase):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, lake_target: dict[str, Any]) -> dict[str, Any]:
        """A lake whose name has capitals, as the suite's database does."""
        return {**lake_target, "database": "lakeMixedCase"}
