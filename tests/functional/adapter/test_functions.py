"""The official suite: functions."""

from __future__ import annotations

from dbt.tests.adapter.functions import test_udfs as udfs


class TestErrorForUnsupportedType(udfs.ErrorForUnsupportedType):
    pass


class TestPythonUDFEntryPointRequired(udfs.PythonUDFEntryPointRequired):
    pass
