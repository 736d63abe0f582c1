"""The official suite: incremental."""

from __future__ import annotations

from typing import Any

import pytest
from dbt.tests.adapter.incremental import test_incremental_merge_exclude_columns as merge_exclude_columns
from dbt.tests.adapter.incremental import test_incremental_microbatch as incremental_microbatch
from dbt.tests.adapter.incremental import test_incremental_on_schema_change as incremental_on_schema_change
from dbt.tests.adapter.incremental import test_incremental_predicates as incremental_predicates
from dbt.tests.adapter.incremental import test_incremental_unique_id as incremental_unique_id


class TestIncrementalOnSchemaChange(incremental_on_schema_change.TestIncrementalOnSchemaChange):
    pass


class TestIncrementalUniqueKey(incremental_unique_id.TestIncrementalUniqueKey):
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        """The suite's, with days as days: a text is not stored into a column of another type."""
        return {
            "seed.csv": incremental_unique_id.seeds__seed_csv,
            "duplicate_insert.sql": incremental_unique_id.seeds__duplicate_insert_sql.replace("'2022", "date'2022"),
            "add_new_rows.sql": incremental_unique_id.seeds__add_new_rows_sql.replace("'2022", "date'2022"),
        }


class TestMergeExcludeColumns(merge_exclude_columns.BaseMergeExcludeColumns):
    pass


class TestMicrobatch(incremental_microbatch.BaseMicrobatch):
    pass


class TestIncrementalPredicatesDeleteInsert(incremental_predicates.TestIncrementalPredicatesDeleteInsert):
    pass


class TestPredicatesDeleteInsert(incremental_predicates.TestPredicatesDeleteInsert):
    pass


class TestIncrementalPredicatesMerge(incremental_predicates.BaseIncrementalPredicates):
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+incremental_predicates": ["dbt_internal_dest.id != 2"], "+incremental_strategy": "merge"}}
