"""The official suite: dbt debug."""

from __future__ import annotations

from dbt.tests.adapter.dbt_debug import test_dbt_debug as dbt_debug


class TestDebug(dbt_debug.TestDebugPostgres):
    pass


class TestDebugInvalidProject(dbt_debug.TestDebugInvalidProjectPostgres):
    pass
