"""The official suite: aliases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.aliases import fixtures
from dbt.tests.adapter.aliases import test_aliases as aliases
from dbt.tests.util import get_connection

from .dialect import STRING_LITERAL


class _Macros:
    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {
            "cast.sql": fixtures.MACROS__CAST_SQL,
            "cast_in_spark.sql": STRING_LITERAL,
            "expect_value.sql": fixtures.MACROS__EXPECT_VALUE_SQL,
        }


class TestAliases(_Macros, aliases.TestAliases):
    pass


class TestAliasErrors(_Macros, aliases.TestAliasErrors):
    pass


class TestSameAliasDifferentSchemas(_Macros, aliases.TestSameAliasDifferentSchemas):
    pass


class TestSameAliasDifferentDatabases(_Macros, aliases.TestSameAliasDifferentDatabases):
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, lake_target: dict[str, Any], lake_folder: Path) -> dict[str, Any]:
        other = {"name": "other", "catalog": f"sqlite:{lake_folder}/other.sqlite", "data_path": f"{lake_folder}/other/"}
        return {**lake_target, "attach": [other]}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"test": {"alias": "duped_alias", "model_b": {"database": "other"}}}}

    def test_alias_model_name_diff_database(self, project: Any) -> None:
        super().test_alias_model_name_diff_database(project)
        for database in ("lake", "other"):
            schema = project.adapter.Relation.create(database=database, schema=project.test_schema)
            with get_connection(project.adapter):
                found = project.adapter.list_relations_without_caching(schema)
            assert [r.identifier for r in found] == ["duped_alias"]
