"""The official suite: dbt clone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.adapter.dbt_clone import fixtures
from dbt.tests.adapter.dbt_clone import test_dbt_clone as dbt_clone
from dbt.tests.util import run_dbt

from .not_here import left_out


class _SeedForSnapshot:
    """A second seed where the suite has a snapshot, of which there are none yet."""

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"seed.csv": fixtures.seed_csv, "my_cool_seed.csv": fixtures.seed_csv}

    def run_and_save_state(self, project_root: Any, with_snapshot: bool = False) -> None:
        assert len(run_dbt(["seed"])) == 2
        assert len(run_dbt(["run"])) == 2
        assert len(run_dbt(["test"])) == 2
        self.copy_state(project_root)  # type: ignore[attr-defined]

    @pytest.fixture(autouse=True)
    def clean_up(self, project: Any) -> Iterator[None]:
        yield
        for schema in (f"{project.test_schema}_seeds", project.test_schema):
            with project.adapter.connection_named("__test"):
                project.adapter.drop_schema(project.adapter.Relation.create(database=project.database, schema=schema))


class TestClonePossible(_SeedForSnapshot, dbt_clone.BaseClonePossible):
    test_can_clone_true = left_out("dbt_clone.test_dbt_clone.BaseClonePossible.test_can_clone_true")


class TestCloneNotPossible(_SeedForSnapshot, dbt_clone.TestPostgresCloneNotPossible):
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        """The suite's, without the one that says in place of the adapter that tables can not be cloned."""
        return {
            "macros.sql": fixtures.macros_sql,
            "infinite_macros.sql": fixtures.infinite_macros_sql,
            "get_schema_name.sql": fixtures.get_schema_name_sql,
        }


class TestCloneSameSourceAndTarget(dbt_clone.BaseCloneSameSourceAndTarget):
    pass


class TestCloneSameTargetAndState(dbt_clone.TestCloneSameTargetAndState):
    pass
