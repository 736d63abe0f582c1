"""Errors of Python models name the line of the model's file."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from dbt.tests.util import run_dbt

IN_A_FUNCTION = """

# dbt strips the two empty lines above.
def total(row):
    return row["amuont"]


def model(dbt, session):
    rows = session.sql("select 1 as amount").collect()
    return session.createDataFrame([(total(row.asDict()),) for row in rows], "total int")
"""

IN_SQL = """
def model(dbt, session):
    frame = session.sql("select id from range(3)")
    return frame.filter("nope > 1")
"""

MISSING_TABLE = """
def model(dbt, session):
    return session.table("main.not_there")
"""

TO_PANDAS = """
def model(dbt, session):
    return session.sql("select 1 as id").toPandas()
"""

IMPORTS_PANDAS = """
import pandas as pd

def model(dbt, session):
    return pd.DataFrame()
"""

FROM_PANDAS = """
import pandas as pd

def model(dbt, session):
    return session.createDataFrame(pd.DataFrame({"id": [1, 2]}))
"""

RETURNS_TEXT = """
def model(dbt, session):
    return "rows"
"""


class TestErrorsOfPythonModels:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "in_a_function.py": IN_A_FUNCTION,
            "in_sql.py": IN_SQL,
            "missing_table.py": MISSING_TABLE,
            "to_pandas.py": TO_PANDAS,
            "imports_pandas.py": IMPORTS_PANDAS,
            "from_pandas.py": FROM_PANDAS,
            "returns_text.py": RETURNS_TEXT,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"models": {"+materialized": "table"}}

    def message(self, model: str) -> str:
        return str(run_dbt(["run", "-s", model], expect_pass=False).results[0].message)

    def test_the_lines_of_the_model_that_led_to_the_error(self, project: Any) -> None:
        message = self.message("in_a_function")
        assert (
            """  models/in_a_function.py, line 10, in model
      return session.createDataFrame([(total(row.asDict()),) for row in rows], "total int")
"""
            in message
        )
        assert (
            """  models/in_a_function.py, line 5, in total
      return row["amuont"]
  KeyError: 'amuont'"""
            in message
        )
        assert "python_models.py" not in message

    def test_an_error_of_spark_names_the_line_and_keeps_its_message(self, project: Any) -> None:
        message = self.message("in_sql")
        assert 'models/in_sql.py, line 4, in model\n      return frame.filter("nope > 1")\n  [UNRESOLVED_COL' in message
        assert "site-packages" not in message

    def test_a_missing_table(self, project: Any) -> None:
        message = self.message("missing_table")
        assert 'models/missing_table.py, line 3, in model\n      return session.table("main.not_there")\n' in message
        assert "not_there" in message.splitlines()[-1]

    def test_a_result_that_is_no_dataframe(self, project: Any) -> None:
        assert "the Python model returns_text returned a value of type builtins.str" in self.message("returns_text")

    @pytest.mark.parametrize("model", ["to_pandas", "imports_pandas", "from_pandas"])
    def test_without_pandas_the_error_says_how_to_install_it(
        self, model: str, project: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "pandas", None)
        assert "pip install 'dbt-ducklake[pandas]'" in self.message(model)

    def test_with_pandas_they_run(self, project: Any) -> None:
        assert len(run_dbt(["run", "-s", "to_pandas", "from_pandas"]).results) == 2
