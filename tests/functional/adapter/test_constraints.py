"""The official suite: constraints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from dbt.tests.adapter.constraints import fixtures
from dbt.tests.adapter.constraints import test_constraints as constraints

from .dialect import with_string

_SCHEMA = with_string(fixtures.model_schema_yml)
_SCHEMA_WITH_FOREIGN_KEY = with_string(fixtures.model_fk_constraint_schema_yml)

# Of the constraints a lake enforces NOT NULL; it has no others.
_EXPECTED_SQL = """
create or replace table <model_identifier> (
    id integer not null,
    color string,
    date_day string
)
as
select id, color, date_day
from (
    -- depends_on: <foreign_key_model_identifier>
    select
        'blue' as color,
        1 as id,
        '2019-01-01' as date_day
) as model_subq
"""


class _Types:
    @pytest.fixture
    def string_type(self) -> str:
        return "string"

    @pytest.fixture
    def int_type(self) -> str:
        return "int"

    @pytest.fixture
    def data_types(self) -> list[list[str]]:
        """A value, its type in the contract, and its type in an error."""
        return [
            ["1", "int", "int"],
            ["'1'", "string", "string"],
            ["true", "boolean", "boolean"],
            ["timestamp'2013-11-03 00:00:00-07'", "timestamp", "timestamp"],
            ["timestamp_ntz'2013-11-03 00:00:00'", "timestamp_ntz", "timestamp_ntz"],
            ["array('a','b','c')", "array<string>", "array<string>"],
            ["array(1,2,3)", "array<int>", "array<int>"],
            ["cast('1' as numeric)", "numeric", "decimal(10,0)"],
            ["""parse_json('{"bar": "baz", "balance": 7.77, "active": false}')""", "variant", "variant"],
        ]


class TestTableConstraintsColumnsEqual(_Types, constraints.TestTableConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_wrong_name_sql,
            "constraints_schema.yml": _SCHEMA,
        }


class TestViewConstraintsColumnsEqual(_Types, constraints.TestViewConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_view_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_view_wrong_name_sql,
            "constraints_schema.yml": _SCHEMA,
        }


class TestIncrementalConstraintsColumnsEqual(_Types, constraints.TestIncrementalConstraintsColumnsEqual):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_wrong_order.sql": fixtures.my_model_incremental_wrong_order_sql,
            "my_model_wrong_name.sql": fixtures.my_model_incremental_wrong_name_sql,
            "constraints_schema.yml": _SCHEMA,
        }


class TestTableConstraintsRuntimeDdlEnforcement(constraints.TestTableConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": _SCHEMA_WITH_FOREIGN_KEY,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _EXPECTED_SQL


class TestIncrementalConstraintsRuntimeDdlEnforcement(constraints.TestIncrementalConstraintsRuntimeDdlEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_incremental_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": _SCHEMA_WITH_FOREIGN_KEY,
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _EXPECTED_SQL


class TestModelConstraintsRuntimeEnforcement(constraints.TestModelConstraintsRuntimeEnforcement):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_wrong_order_depends_on_fk_sql,
            "foreign_key_model.sql": fixtures.foreign_key_model_sql,
            "constraints_schema.yml": with_string(fixtures.constrained_model_schema_yml),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return _EXPECTED_SQL


class TestConstraintQuotedColumn(constraints.TestConstraintQuotedColumn):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model.sql": fixtures.my_model_with_quoted_column_name_sql,
            "constraints_schema.yml": with_string(fixtures.model_quoted_column_schema_yml).replace('"from"', "`from`"),
        }

    @pytest.fixture(scope="class")
    def expected_sql(self) -> str:
        return """
create or replace table <model_identifier> (
    id integer not null,
    `from` string not null,
    date_day string
)
as
select id, `from`, date_day
from (
    select
        'blue' as `from`,
        1 as id,
        '2019-01-01' as date_day
) as model_subq
"""


class _NullRefused:
    @pytest.fixture(scope="class")
    def expected_error_messages(self) -> list[str]:
        return ["column id of table my_model is NOT NULL, and 1 of the new rows have no value for it"]


class TestTableConstraintsRollback(_NullRefused, constraints.TestTableConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"my_model.sql": fixtures.my_model_sql, "constraints_schema.yml": _SCHEMA}


class TestIncrementalConstraintsRollback(_NullRefused, constraints.TestIncrementalConstraintsRollback):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"my_model.sql": fixtures.my_incremental_model_sql, "constraints_schema.yml": _SCHEMA}


def _in_kolkata(model: str) -> str:
    return model.replace("set session time zone", "set time zone").replace(
        "current_setting('timezone')", "current_timezone()"
    )


class _SqlHeader:
    @pytest.fixture(scope="class", autouse=True)
    def zone(self, project: Any) -> Iterator[None]:
        """The session is every test's."""
        yield
        project.run_sql("set time zone 'UTC'")

    def test__contract_sql_header(self, project: Any) -> None:
        super().test__contract_sql_header(project)  # type: ignore[misc]
        sql = f"select column_name from {project.test_schema}.my_model_contract_sql_header"
        assert project.run_sql(sql, fetch="all") == [("Asia/Kolkata",)]


class TestTableContractSqlHeader(_SqlHeader, constraints.TestTableContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_contract_sql_header.sql": _in_kolkata(fixtures.my_model_contract_sql_header_sql),
            "constraints_schema.yml": with_string(fixtures.model_contract_header_schema_yml),
        }


class TestIncrementalContractSqlHeader(_SqlHeader, constraints.TestIncrementalContractSqlHeader):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "my_model_contract_sql_header.sql": _in_kolkata(fixtures.my_model_incremental_contract_sql_header_sql),
            "constraints_schema.yml": with_string(fixtures.model_contract_header_schema_yml),
        }


class TestIncrementalForeignKeyConstraint(constraints.TestIncrementalForeignKeyConstraint):
    pass
