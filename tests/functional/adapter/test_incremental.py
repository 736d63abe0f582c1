"""The official suite: incremental."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental import test_incremental_on_schema_change as incremental_on_schema_change
from dbt.tests.adapter.incremental import test_incremental_unique_id as incremental_unique_id

from .dialect import APPEND
from .not_here import left_out

_UNIQUE_KEY = "incremental.test_incremental_unique_id.BaseIncrementalUniqueKey"


class TestIncrementalOnSchemaChange(incremental_on_schema_change.TestIncrementalOnSchemaChange):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": APPEND}


class TestIncrementalUniqueKey(incremental_unique_id.TestIncrementalUniqueKey):
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        """The suite's, with days as days: a text is not stored into a column of another type."""
        return {
            "seed.csv": incremental_unique_id.seeds__seed_csv,
            "duplicate_insert.sql": incremental_unique_id.seeds__duplicate_insert_sql.replace("'2022", "date'2022"),
            "add_new_rows.sql": incremental_unique_id.seeds__add_new_rows_sql.replace("'2022", "date'2022"),
        }

    test__bad_unique_key = left_out(f"{_UNIQUE_KEY}.test__bad_unique_key")
    test__bad_unique_key_list = left_out(f"{_UNIQUE_KEY}.test__bad_unique_key_list")
    test__duplicated_unary_unique_key_list = left_out(f"{_UNIQUE_KEY}.test__duplicated_unary_unique_key_list")
    test__one_unique_key = left_out(f"{_UNIQUE_KEY}.test__one_unique_key")
    test__trinary_unique_key_list = left_out(f"{_UNIQUE_KEY}.test__trinary_unique_key_list")
    test__trinary_unique_key_list_no_update = left_out(f"{_UNIQUE_KEY}.test__trinary_unique_key_list_no_update")
    test__unary_unique_key_list = left_out(f"{_UNIQUE_KEY}.test__unary_unique_key_list")
