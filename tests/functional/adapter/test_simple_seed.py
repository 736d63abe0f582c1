"""The official suite: simple seed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.adapter.simple_seed import fixtures
from dbt.tests.adapter.simple_seed import test_seed as seed
from dbt.tests.adapter.simple_seed import test_seed_type_override as seed_type_override
from dbt.tests.util import copy_file, run_dbt

from .dialect import SEED_EXPECTED


class _Expected:
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(SEED_EXPECTED)


class _NoCascade(_Expected):
    """A view stays when the table that it reads is made anew."""

    def _check_relation_end_state(self, run_result: Any, project: Any, exists: bool) -> None:
        super()._check_relation_end_state(run_result, project, exists=True)  # type: ignore[misc]


class TestBasicSeedTests(_NoCascade, seed.TestBasicSeedTests):
    pass


class TestSeedConfigFullRefreshOn(_NoCascade, seed.TestSeedConfigFullRefreshOn):
    pass


class TestSeedConfigFullRefreshOff(_Expected, seed.TestSeedConfigFullRefreshOff):
    pass


class TestSeedCustomSchema(_Expected, seed.TestSeedCustomSchema):
    pass


class TestSeedWithUniqueDelimiter(_Expected, seed.TestSeedWithUniqueDelimiter):
    pass


class TestSeedWithWrongDelimiter(_Expected, seed.TestSeedWithWrongDelimiter):
    def test_seed_with_wrong_delimiter(self, project: Any) -> None:
        """The suite's, with the words that the adapter has for a syntax error."""
        results = run_dbt(["seed"], expect_pass=False)
        assert "expected the type of column seed_id, found |" in results.results[0].message


class TestSeedWithEmptyDelimiter(_Expected, seed.TestSeedWithEmptyDelimiter):
    pass


class TestEmptySeed(seed.TestEmptySeed):
    pass


class TestSimpleSeedEnabledViaConfig(seed.TestSimpleSeedEnabledViaConfig):
    pass


class TestSeedParsing(_Expected, seed.TestSeedParsing):
    pass


class TestSimpleSeedWithBOM(seed.TestSimpleSeedWithBOM):
    @pytest.fixture(scope="class", autouse=True)
    def setUp(self, project: Any) -> None:
        project.run_sql(SEED_EXPECTED)
        suite = Path(seed.__file__).parent
        copy_file(suite, "seed_bom.csv", project.project_root / Path("seeds") / "seed_bom.csv", "")


class TestSeedSpecificFormats(seed.TestSeedSpecificFormats):
    pass


class TestSimpleSeedColumnOverride(seed_type_override.TestSimpleSeedColumnOverride):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        properties = fixtures.properties__schema_yml
        for of_postgres, of_spark in (
            ("type: text", "type: string"),
            ("type: integer", "type: bigint"),
            ("type: timestamp without time zone", "type: timestamp"),
        ):
            properties = properties.replace(of_postgres, of_spark)
        return {"schema.yml": properties}

    @staticmethod
    def seed_enabled_types() -> dict[str, str]:
        return {"seed_id": "string", "birthday": "date"}

    @staticmethod
    def seed_tricky_types() -> dict[str, str]:
        return {"seed_id_str": "string", "looks_like_a_bool": "string", "looks_like_a_date": "string"}
