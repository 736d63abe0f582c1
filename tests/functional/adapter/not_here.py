"""What of the official suite does not run here, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dbt.cli.main import seed

_MERGE = "the incremental strategy needs row-level MERGE, which is not there yet"
_SNAPSHOT = "dbt snapshots need row-level MERGE, which is not there yet"
_FUNCTION = "dbt functions can not be created in a lake yet"
_GRANT = "a lake has no users to grant to; the adapter warns that grants are ignored"
_MATERIALIZED_VIEW = "the format has no materialized views"
_JAVASCRIPT = "Spark runs no JavaScript functions"
_CLONED_TABLE = "a clone is a view: two tables on one set of files would lose them to each other's clean-up"
_SEED_EMPTY = "this dbt-core has no `dbt seed --empty`; `dbt build --empty` is tested"

NEVER: dict[str, str] = {
    "functions.test_js_udfs.BasicJSAggregateUDF": _JAVASCRIPT,
    "functions.test_js_udfs.BasicJSUDF": _JAVASCRIPT,
    "functions.test_js_udfs.JSAggregateUDFVolatilityIgnored": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFDefaultArgSupport": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFDeterministicVolatility": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFMultiLineBody": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFNonDeterministicVolatility": _JAVASCRIPT,
    "functions.test_js_udfs.JSUDFStableVolatilityWarns": _JAVASCRIPT,
    "grants.test_incremental_grants.TestIncrementalGrants": _GRANT,
    "grants.test_invalid_grants.TestInvalidGrants": _GRANT,
    "grants.test_model_grants.TestModelGrants": _GRANT,
    "grants.test_seed_grants.TestSeedGrants": _GRANT,
    "grants.test_snapshot_grants.TestSnapshotGrants": _GRANT,
    "materialized_view.basic.MaterializedViewBasic": _MATERIALIZED_VIEW,
    "materialized_view.changes.MaterializedViewChanges": _MATERIALIZED_VIEW,
    "materialized_view.changes.MaterializedViewChangesApplyMixin": _MATERIALIZED_VIEW,
    "materialized_view.changes.MaterializedViewChangesContinueMixin": _MATERIALIZED_VIEW,
    "materialized_view.changes.MaterializedViewChangesFailMixin": _MATERIALIZED_VIEW,
    "utils.test_current_timestamp.BaseCurrentTimestampNaive": "current_timestamp of Spark has a zone; it is one or the"
    " other, and BaseCurrentTimestampAware runs",
}
"""Classes that can not apply to a lake."""

NOT_YET: dict[str, str] = {
    "basic.test_snapshot_check_cols.TestSnapshotCheckCols": _SNAPSHOT,
    "basic.test_snapshot_timestamp.TestSnapshotTimestamp": _SNAPSHOT,
    "functions.test_udafs.BasicSQLUDAF": _FUNCTION,
    "functions.test_udafs.PythonUDAFDefaultArgSupport": _FUNCTION,
    "functions.test_udfs.CanFindScalarFunctionRelation": _FUNCTION,
    "functions.test_udfs.DeterministicUDF": _FUNCTION,
    "functions.test_udfs.ErrorForUnsupportedType": _FUNCTION,
    "functions.test_udfs.NonDeterministicUDF": _FUNCTION,
    "functions.test_udfs.PythonUDFDefaultArgSupport": _FUNCTION,
    "functions.test_udfs.PythonUDFEntryPointRequired": _FUNCTION,
    "functions.test_udfs.PythonUDFVolatilitySupport": _FUNCTION,
    "functions.test_udfs.PythonUDFWithPackagesSupported": _FUNCTION,
    "functions.test_udfs.StableUDF": _FUNCTION,
    "hooks.test_model_hooks.TestPrePostModelHooksOnSnapshots": _SNAPSHOT,
    "hooks.test_model_hooks.TestPrePostSnapshotHooksInConfigKwargs": _SNAPSHOT,
    "incremental.test_incremental_merge_exclude_columns.BaseMergeExcludeColumns": _MERGE,
    "incremental.test_incremental_microbatch.BaseMicrobatch": _MERGE,
    "incremental.test_incremental_predicates.TestIncrementalPredicatesDeleteInsert": _MERGE,
    "incremental.test_incremental_predicates.TestPredicatesDeleteInsert": _MERGE,
    "simple_snapshot.new_record_check_mode.BaseSnapshotNewRecordCheckMode": _SNAPSHOT,
    "simple_snapshot.new_record_dbt_valid_to_current.BaseSnapshotNewRecordDbtValidToCurrent": _SNAPSHOT,
    "simple_snapshot.test_ephemeral_snapshot_hard_deletes.BaseSnapshotEphemeralHardDeletes": _SNAPSHOT,
    "simple_snapshot.test_ephemeral_snapshot_hard_deletes.BaseSnapshotNewColumnSpecificCheckCols": _SNAPSHOT,
    "simple_snapshot.test_ephemeral_snapshot_hard_deletes.BaseSnapshotNewColumnTimestampStrategy": _SNAPSHOT,
    "simple_snapshot.test_ephemeral_snapshot_hard_deletes.BaseSnapshotNewColumnWithDeletes": _SNAPSHOT,
    "simple_snapshot.test_snapshot.TestSnapshot": _SNAPSHOT,
    "simple_snapshot.test_snapshot.TestSnapshotCheck": _SNAPSHOT,
    "simple_snapshot.test_various_configs.BaseSnapshotColumnNames": _SNAPSHOT,
    "simple_snapshot.test_various_configs.BaseSnapshotColumnNamesFromDbtProject": _SNAPSHOT,
    "simple_snapshot.test_various_configs.BaseSnapshotDbtValidToCurrent": _SNAPSHOT,
    "simple_snapshot.test_various_configs.BaseSnapshotInvalidColumnNames": _SNAPSHOT,
    "simple_snapshot.test_various_configs.BaseSnapshotMultiUniqueKey": _SNAPSHOT,
}
"""Classes that need what the adapter is still to learn."""

_UNIQUE_KEY = "incremental.test_incremental_unique_id.BaseIncrementalUniqueKey"

PARTS: dict[str, str] = {
    "dbt_clone.test_dbt_clone.BaseClonePossible.test_can_clone_true": _CLONED_TABLE,
    f"{_UNIQUE_KEY}.test__bad_unique_key": _MERGE,
    f"{_UNIQUE_KEY}.test__bad_unique_key_list": _MERGE,
    f"{_UNIQUE_KEY}.test__duplicated_unary_unique_key_list": _MERGE,
    f"{_UNIQUE_KEY}.test__one_unique_key": _MERGE,
    f"{_UNIQUE_KEY}.test__trinary_unique_key_list": _MERGE,
    f"{_UNIQUE_KEY}.test__trinary_unique_key_list_no_update": _MERGE,
    f"{_UNIQUE_KEY}.test__unary_unique_key_list": _MERGE,
    "simple_copy.test_simple_copy.SimpleCopyBase.test_simple_copy_with_materialized_views": _MATERIALIZED_VIEW,
}
"""Single tests of classes that run otherwise."""

SEED_TAKES_EMPTY = "empty" in {option.name for option in seed.params}

if not SEED_TAKES_EMPTY:
    PARTS |= {
        "empty.test_empty.BaseTestEmptySeedFlag.test_seed_empty_creates_table_with_zero_rows": _SEED_EMPTY,
        "empty.test_empty.BaseTestEmptySeedFlag.test_seed_empty_preserves_column_types": _SEED_EMPTY,
    }


def left_out(test: str) -> Callable[[Any], None]:
    """A test that is skipped with the reason that `PARTS` has for it."""

    @pytest.mark.skip(reason=PARTS[test])
    def skipped(self: Any) -> None: ...

    skipped.left_out = test  # type: ignore[attr-defined]
    return skipped
