"""The official suite: concurrency."""

from __future__ import annotations

from dbt.tests.adapter.concurrency import test_concurrency as concurrency


class TestConcurrency(concurrency.TestConcurenncy):
    pass
