"""Python models: the user's `model(dbt, session)` in this process, on its SparkSession."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError

from .spark.session import LakeSession


def dataframe_of(name: str, code: str, session: LakeSession) -> Any:
    """The Spark DataFrame that a model's compiled code returns."""
    space: dict[str, Any] = {"__name__": f"dbt_model_{name}", "spark": session.spark}
    exec(compile(code, f"<python model {name}>", "exec"), space)  # it is the user's own program
    load = lambda relation: session.sql(f"select * from {relation}")  # noqa: E731
    result = space["model"](space["dbtObj"](load), session.spark)
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
        return session.spark.createDataFrame(result)
    raise DbtRuntimeError(
        f"the Python model {name} returned a value of type {where}; it has to return a DataFrame of Spark or"
        " pandas, or an Arrow table"
    )
