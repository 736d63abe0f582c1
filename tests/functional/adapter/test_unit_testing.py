"""The official suite: unit testing."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.unit_testing import test_case_insensitivity as case_insensitivity
from dbt.tests.adapter.unit_testing import test_invalid_input as invalid_input
from dbt.tests.adapter.unit_testing import test_quoted_reserved_word_column_names as quoted_reserved_word_column_names
from dbt.tests.adapter.unit_testing import test_types as types


class TestUnitTestCaseInsensitivity(case_insensitivity.TestPosgresUnitTestCaseInsensitivity):
    pass


class TestUnitTestInvalidInput(invalid_input.TestPostgresUnitTestInvalidInput):
    pass


class TestUnitTestQuotedReservedWordColumnNames(
    quoted_reserved_word_column_names.BaseUnitTestQuotedReservedWordColumnNames
):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": quoted_reserved_word_column_names.my_model_sql,
            "my_upstream_model.sql": "select 1 as `GROUP`",
            "unit_tests.yml": quoted_reserved_word_column_names.test_my_model_csv_fixtures_yml,
        }


class TestUnitTestingTypes(types.TestPostgresUnitTestingTypes):
    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        """Types as SQL and YAML write them."""
        return [
            ["1", "1"],
            ["'1'", "1"],
            ["true", "true"],
            ["DATE '2020-01-02'", "2020-01-02"],
            ["TIMESTAMP '2013-11-03 00:00:00-0'", "2013-11-03 00:00:00-0"],
            ["TIMESTAMP_NTZ '2013-11-03 00:00:00'", "2013-11-03 00:00:00"],
            ["cast('1' as numeric)", "1"],
            ["cast('1.25' as decimal(10, 2))", "1.25"],
            ["cast(1.5 as double)", "1.5"],
            ["cast(x'6c616b65' as binary)", "lake"],
            ['\'{"bar": "baz", "balance": 7.77}\'', '\'{"bar": "baz", "balance": 7.77}\''],
        ]


class TestUnitTestingVarcharFixtureNoTruncation(types.BaseUnitTestingVarcharFixtureNoTruncation):
    pass
