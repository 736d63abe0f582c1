"""The official suite: store test failures tests."""

from __future__ import annotations

from dbt.tests.adapter.store_test_failures_tests import basic as basic
from dbt.tests.adapter.store_test_failures_tests import test_store_test_failures as store_test_failures


class TestStoreTestFailuresAsExceptions(basic.StoreTestFailuresAsExceptions):
    pass


class TestStoreTestFailuresAsGeneric(basic.StoreTestFailuresAsGeneric):
    pass


class TestStoreTestFailuresAsInteractions(basic.StoreTestFailuresAsInteractions):
    pass


class TestStoreTestFailuresAsProjectLevelEphemeral(basic.StoreTestFailuresAsProjectLevelEphemeral):
    pass


class TestStoreTestFailuresAsProjectLevelOff(basic.StoreTestFailuresAsProjectLevelOff):
    pass


class TestStoreTestFailuresAsProjectLevelView(basic.StoreTestFailuresAsProjectLevelView):
    pass


class TestStoreTestFailures(store_test_failures.TestStoreTestFailures):
    pass


class TestStoreTestFailuresLimit(store_test_failures.TestStoreTestFailuresLimit):
    pass
