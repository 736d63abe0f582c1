"""Python models: runs the user's `model(dbt, session)` in this process, on the lake's SparkSession."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError
from pyspark.sql import DataFrame

from .spark.read.local_rows import arrow_dataframe
from .spark.session import LakeSession


class PythonModelSession:
    """The SparkSession that a model gets: `sql` and `table` resolve the lake's names too."""

    def __init__(self, lake: LakeSession) -> None:
        self._lake = lake

    def sql(self, text: str, *args: Any, **kwargs: Any) -> Any:
        return self._lake.spark.sql(text, *args, **kwargs) if args or kwargs else self._lake.sql(text)

    def table(self, name: str) -> Any:
        return self._lake.sql(f"select * from {name}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lake.spark, name)


def run_python_model(name: str, code: str, lake: LakeSession) -> DataFrame:
    """The Spark DataFrame that a model's compiled code returns."""
    session = PythonModelSession(lake)
    namespace: dict[str, Any] = {"__name__": f"dbt_model_{name}", "spark": session}
    exec(compile(code, f"<python model {name}>", "exec"), namespace)  # the user's own program
    dbt = namespace["dbtObj"](session.table)
    return _spark_dataframe(namespace["model"](dbt, session), name, lake)


def _spark_dataframe(result: Any, model: str, lake: LakeSession) -> DataFrame:
    if isinstance(result, DataFrame):
        return result
    if isinstance(result, pa.Table):
        return arrow_dataframe(lake.spark, result)
    # By their names, since pandas is optional and slow to import.
    module, class_name = type(result).__module__, type(result).__name__
    if module.startswith("pyspark.pandas"):
        return cast(DataFrame, result.to_spark())
    if module.startswith("pandas.") and class_name == "DataFrame":
        return lake.spark.createDataFrame(result)
    raise DbtRuntimeError(
        f"the Python model {model} returned a value of type {module}.{class_name}; it has to return a"
        " DataFrame of Spark or pandas, or an Arrow table"
    )
