"""Python models: the user's `model(dbt, session)` in this process, on its SparkSession."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError

from .spark.read.local_rows import local_rows
from .spark.session import LakeSession


class ModelSession:
    """The SparkSession of a model, whose `sql` and `table` know the lake's names too."""

    def __init__(self, lake: LakeSession) -> None:
        self._lake = lake

    def sql(self, text: str, *args: Any, **others: Any) -> Any:
        return self._lake.spark.sql(text, *args, **others) if args or others else self._lake.sql(text)

    def table(self, name: str) -> Any:
        return self._lake.sql(f"select * from {name}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lake.spark, name)


def dataframe_of(name: str, code: str, session: LakeSession) -> Any:
    """The Spark DataFrame that a model's compiled code returns."""
    given = ModelSession(session)
    space: dict[str, Any] = {"__name__": f"dbt_model_{name}", "spark": given}
    exec(compile(code, f"<python model {name}>", "exec"), space)  # it is the user's own program
    result = space["model"](space["dbtObj"](lambda relation: given.table(relation)), given)
    return _as_spark(result, name, session)


def _as_spark(result: Any, name: str, session: LakeSession) -> Any:
    kind = type(result)
    where = f"{kind.__module__}.{kind.__name__}"
    if where.startswith("pyspark.sql") and kind.__name__ == "DataFrame":
        return result
    if where.startswith("pyspark.pandas"):
        return result.to_spark()
    if where.startswith("pandas.") and kind.__name__ == "DataFrame":
        return session.spark.createDataFrame(result)
    if isinstance(result, pa.Table):
        return local_rows(session.spark, result)
    raise DbtRuntimeError(
        f"the Python model {name} returned a value of type {where}; it has to return a DataFrame of Spark or"
        " pandas, or an Arrow table"
    )
