"""The official suite: column types."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.column_types import fixtures
from dbt.tests.adapter.column_types import test_column_types as column_types

_MODEL = """
select
    cast(1 as smallint) as smallint_col,
    cast(2 as integer) as int_col,
    cast(3 as bigint) as bigint_col,
    cast(4.0 as real) as real_col,
    cast(5.0 as double) as double_col,
    cast(6.0 as numeric) as numeric_col,
    cast('7' as string) as text_col,
    cast('8' as varchar(20)) as varchar_col
"""


class TestColumnTypes(column_types.BasePostgresColumnTypes):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"model.sql": _MODEL, "schema.yml": fixtures.schema_yml}
