"""What of the official suite does not run here, each with its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dbt.cli.main import seed

_PYTHON = "rows never pass through Python workers one by one; a lake keeps functions in SQL"
_AGGREGATE = "SQL functions of Spark's aggregate nothing"
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
    "functions.test_udafs.BasicSQLUDAF": _AGGREGATE,
    "functions.test_udafs.PythonUDAFDefaultArgSupport": _PYTHON,
    "functions.test_udfs.PythonUDFDefaultArgSupport": _PYTHON,
    "functions.test_udfs.PythonUDFVolatilitySupport": _PYTHON,
    "functions.test_udfs.PythonUDFWithPackagesSupported": _PYTHON,
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

PARTS: dict[str, str] = {
    "dbt_clone.test_dbt_clone.BaseClonePossible.test_can_clone_true": _CLONED_TABLE,
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
