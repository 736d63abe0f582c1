"""Python models: runs the user's `model(dbt, session)` in this process, on the lake's SparkSession."""

from __future__ import annotations

import ast
import contextlib
import linecache
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any, cast

import pyarrow as pa
from dbt_common.exceptions import DbtRuntimeError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, PySparkImportError
from pyspark.sql import DataFrame

from .lake.errors import LakeError
from .spark.engine.errors import message_of
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


@dataclass(frozen=True)
class ModelSource:
    """The file of a model: its errors show a line of it."""

    name: str
    path: str
    """The path that errors show, relative to the project or package."""
    text: str
    """The file's text; dbt gives the model without the white space around it."""

    @classmethod
    def of(cls, model: Mapping[str, Any], folder: Path | None = None) -> ModelSource:
        """The source of a node whose project or package is in a folder."""
        path = str(model.get("original_file_path") or f"{model['name']}.py")
        text = code = str(model.get("raw_code") or "")
        if folder is not None:
            with contextlib.suppress(OSError, UnicodeDecodeError):
                text = (folder / path).read_text(encoding="utf-8")
        return cls(str(model["name"]), path, text if text.strip() == code.strip() else code)

    def compile(self, code: str) -> CodeType:
        """Compiles the model's code, which dbt has extended, with the line numbers of the file."""
        lines = self.text.splitlines(keepends=True)
        linecache.cache[self.path] = (len(self.text), None, lines, self.path)
        leading = self.text[: len(self.text) - len(self.text.lstrip())]
        tree = ast.increment_lineno(ast.parse(code, self.path), leading.count("\n"))
        return compile(tree, self.path, "exec")


def run_python_model(source: ModelSource, code: str, lake: LakeSession) -> DataFrame:
    """The Spark DataFrame that a model's compiled code returns."""
    session = PythonModelSession(lake)
    namespace: dict[str, Any] = {"__name__": f"dbt_model_{source.name}", "spark": session}
    try:
        exec(source.compile(code), namespace)  # the user's own program
        dbt = namespace["dbtObj"](session.table)
        return _spark_dataframe(namespace["model"](dbt, session), source.name, lake)
    except Exception as error:
        raise DbtRuntimeError(_error_text(error, source)) from error


def _error_text(error: Exception, source: ModelSource) -> str:
    """The lines of the model that the error went through, and its message."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == source.path]
    lines = []
    for frame in frames:
        where = "" if frame.name == "<module>" else f", in {frame.name}"
        lines += [f"{source.path}, line {frame.lineno}{where}", f"    {frame.line}"]
    if isinstance(error, SyntaxError) and error.filename == source.path:
        lines += [f"{source.path}, line {error.lineno}", f"    {(error.text or '').strip()}"]
    return "\n".join([*lines, _message(error)])


def _message(error: Exception) -> str:
    if isinstance(error, LakeError | PySparkException | Py4JError | DbtRuntimeError):
        text = message_of(error)
    else:
        text = "".join(traceback.format_exception_only(error)).strip()
    lacks_pandas = isinstance(error, PySparkImportError) and "pandas" in text.lower()
    if lacks_pandas or (isinstance(error, ImportError) and error.name == "pandas"):
        text += "\nInstall it in the version that PySpark takes: pip install 'dbt-ducklake[pandas]'"
    return text


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
