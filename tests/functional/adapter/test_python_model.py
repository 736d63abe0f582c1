"""The official suite: python model."""

from __future__ import annotations

import pytest
from dbt.tests.adapter.python_model import test_python_model as python_model
from dbt.tests.adapter.python_model import test_spark as spark


class TestPythonEmpty(python_model.BasePythonEmptyTests):
    pass


class TestPythonIncremental(python_model.BasePythonIncrementalTests):
    pass


class TestPythonMetaGet(python_model.BasePythonMetaGetTests):
    pass


class TestPythonModel(python_model.BasePythonModelTests):
    pass


class TestPythonSample(python_model.BasePythonSampleTests):
    pass


class TestPySpark(spark.BasePySparkTests):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        """The suite's, with what became of Koalas: it is a part of PySpark now."""
        return {
            "pandas_df.py": spark.PANDAS_MODEL,
            "pyspark_df.py": spark.PYSPARK_MODEL,
            "pandas_on_spark_df.py": spark.PANDAS_ON_SPARK_MODEL,
            "koalas_df.py": spark.KOALAS_MODEL.replace("databricks.koalas", "pyspark.pandas"),
        }
