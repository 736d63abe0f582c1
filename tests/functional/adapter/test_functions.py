"""The official suite: functions."""

from __future__ import annotations

from dbt.tests.adapter.functions import test_udfs as udfs


class TestCanFindScalarFunctionRelation(udfs.CanFindScalarFunctionRelation):
    pass


class TestDeterministicUDF(udfs.DeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "\n  DETERMINISTIC" in sql


class TestErrorForUnsupportedType(udfs.ErrorForUnsupportedType):
    pass


class TestNonDeterministicUDF(udfs.NonDeterministicUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "\n  NOT DETERMINISTIC" in sql


class TestPythonUDFEntryPointRequired(udfs.PythonUDFEntryPointRequired):
    pass


class TestSqlUDFDefaultArgSupport(udfs.SqlUDFDefaultArgSupport):
    expect_default_arg_support = True


class TestStableUDF(udfs.StableUDF):
    def check_function_volatility(self, sql: str) -> None:
        assert "DETERMINISTIC" not in sql
        assert "STABLE" not in sql
