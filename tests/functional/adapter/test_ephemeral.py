"""The official suite: ephemeral."""

from __future__ import annotations

import re
from typing import Any

from dbt.tests.adapter.ephemeral import test_ephemeral as ephemeral
from dbt.tests.util import check_relations_equal, read_file, run_dbt


def _written(model: str) -> str:
    """The statement that built a model, without the numbers in its schema's name."""
    return _bare(re.sub(r"\d+", "", read_file("target", "run", "test", "models", f"{model}.sql")))


def _bare(sql: str) -> str:
    return "".join(sql.split())


class TestEphemeralMulti(ephemeral.TestEphemeralMulti):
    def test_ephemeral_multi(self, project: Any) -> None:
        run_dbt(["seed"])
        assert len(run_dbt(["run"])) == 3

        check_relations_equal(project.adapter, ["seed", "dependent"])
        check_relations_equal(project.adapter, ["seed", "double_dependent"])
        check_relations_equal(project.adapter, ["seed", "super_dependent"])
        assert _written("double_dependent") == _bare(
            """
            create or replace view `lake`.`test_test_ephemeral`.`double_dependent` as
            with __dbt__cte__base as (
                select * from test_test_ephemeral.seed
            ), __dbt__cte__base_copy as (
                select * from __dbt__cte__base
            )
            -- base_copy just pulls from base. Make sure the listed
            -- graph of CTEs all share the same dbt_cte__base cte
            select * from __dbt__cte__base where gender = 'Male'
            union all
            select * from __dbt__cte__base_copy where gender = 'Female'
            """
        )


class TestEphemeralNested(ephemeral.TestEphemeralNested):
    def test_ephemeral_nested(self, project: Any) -> None:
        assert len(run_dbt(["run"])) == 2
        assert _written("root_view") == _bare(
            """
            create or replace view `lake`.`test_test_ephemeral`.`root_view` as
            with __dbt__cte__ephemeral_level_two as (
                select * from `lake`.`test_test_ephemeral`.`source_table`
            ), __dbt__cte__ephemeral as (
                select * from __dbt__cte__ephemeral_level_two
            )
            select * from __dbt__cte__ephemeral
            """
        )


class TestEphemeralErrorHandling(ephemeral.TestEphemeralErrorHandling):
    pass
