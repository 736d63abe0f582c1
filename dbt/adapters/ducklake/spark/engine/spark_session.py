"""The SparkSession of a lake: one that the caller provides, or one that is started when it is first needed."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ...lake.errors import LakeError
from .connect_requirements import check_packages, check_reachable
from .java_classes import COMMIT_PROTOCOL, COMMIT_PROTOCOL_SETTING, JAR
from .jvm import check_java, start_jvm
from .keep_alive import WarmServer, parse_duration
from .object_stores import start_settings, storage_settings
from .progress import ConnectProgress, Progress, is_connect, progress_of_group, web_page

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

_DOUBLE_QUOTED_NAMES = {"spark.sql.ansi.doubleQuotedIdentifiers": "false", "spark.sql.ansi.enabled": "true"}
"""The settings with which `"..."` is a name, and their defaults. Both have to be true."""

_COMMIT_PROTOCOL = {COMMIT_PROTOCOL_SETTING: COMMIT_PROTOCOL}
"""The setting of a server that has our jar. A session in this process gets it when it has started."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
_JARS = "spark.jars"
_LOG_CONFIG = (Path(__file__).parent / "log4j2.properties").as_uri()


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
    description: str | None = None
    group: str | None = None
    """The tag that is the job group of the thread's jobs."""


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
        schemes: Collection[str | None] = (None,),
        keep_alive: str | None = None,
        project: str = "",
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
        self._config = {**storage_settings(storage or {}), **(config or {})}
        self._schemes = schemes
        self._keep_alive = None if keep_alive is None else parse_duration(keep_alive)
        self._project = project
        self._warm_server: WarmServer | None = None
        if keep_alive is not None:
            if spark is not None or remote:
                raise LakeError("spark.keep_alive keeps a local Spark; leave it or spark.remote out")
            self.warm_server()  # raises where none can be kept
        self._lock = threading.Lock()
        self._starting: threading.Thread | None = None
        self._start_failure: Exception | None = None
        """Why Spark did not start in the background. It is not tried again, since each attempt takes seconds."""
        self._tag = _ThreadTag()
        self._connect_progress = ConnectProgress()
        self._warm_server_page: str | None = None

    @property
    def started(self) -> bool:
        return self._spark is not None

    def start_in_background(self) -> None:
        """Starts Spark in a thread; `spark` waits until it is started. Raises at once for what cannot start at all."""
        if self._spark is None and (self._starting is None or self._start_failure is not None):
            self._check_requirements()
            self._start_failure = None
            self._starting = threading.Thread(target=self._try_start, name="start-spark", daemon=True)
            self._starting.start()

    def _try_start(self) -> None:
        try:
            self.spark()
        except Exception as error:
            self._spark = None
            self._start_failure = error

    def raise_start_failure(self) -> None:
        """Raises if Spark did not start in the background."""
        if self._start_failure is not None:
            raise LakeError(str(self._start_failure)) from self._start_failure

    def _check_requirements(self) -> None:
        """Raises if there is no Java, or not the packages for Spark Connect. Takes milliseconds."""
        if self._remote is not None or self._keep_alive is not None:
            check_packages()
        if self._provided is None and (self._remote is None or self._remote.startswith("local")):
            check_java()

    def spark(self) -> SparkSession:
        """Returns the session with the settings that a lake needs, unless the configuration sets them."""
        if self._starting is not None and self._starting is not threading.current_thread():
            self._starting.join()
        with self._lock:
            self.raise_start_failure()
            if self._spark is None:
                spark = self._provided or self._start()
                for key, value in self._settings().items():
                    if key not in self._config:
                        spark.conf.set(key, value)
                _set_commit_protocol(spark)
                self._connect_progress.register(spark)
                self._spark = spark
            spark = self._spark
        if self._tag.name is not None and not self._tag.is_set:
            self._tag_functions(spark).add(self._tag.name)
            self._tag.is_set = True
            self._set_job_group(spark, self._tag.name, self._tag.description)
        return spark

    @contextmanager
    def tagged(self, tag: str, description: str | None = None) -> Iterator[None]:
        """Tags the Spark jobs of this thread in the block, also if Spark is only started there.

        With a description, the tag is also their job group, and Spark's web page shows them by the description.
        """
        before = self._tag.name, self._tag.is_set, self._tag.description
        self._tag.name, self._tag.is_set, self._tag.description = tag, False, description
        try:
            yield
        finally:
            if self._tag.is_set and self._spark is not None:
                self._tag_functions(self._spark).remove(tag)
            self._tag.name, self._tag.is_set, self._tag.description = before

    def _set_job_group(self, spark: SparkSession, group: str, description: str | None) -> None:
        """Sets the job group of the thread's jobs. It stays: the next tag replaces it."""
        if description is None or self._tag.group == group:
            return
        if self.is_connect():  # there the tag is all that a client can set
            self._connect_progress.set_group(group)
        else:
            spark.sparkContext.setJobGroup(group, description)
        self._tag.group = group

    def progress(self, tag: str) -> Progress:
        """How far the jobs are that have the tag as their job group. May be called in any thread."""
        if self._spark is None:
            return Progress()
        if self.is_connect():
            return self._connect_progress.of_group(tag)
        return progress_of_group(self._spark.sparkContext, tag)

    def web_page(self) -> str | None:
        """The address of Spark's web page, if it is on."""
        if self._spark is None:
            return None
        return self._warm_server_page or web_page(self._spark)

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
        return is_connect(self._spark or self.spark())

    def double_quotes_names(self) -> bool:
        """Whether `"..."` is a name in this session, and not a string. Starts no Spark to find out."""
        spark = self._spark or self._provided
        settings: Any = self._config if spark is None else spark.conf
        flags = [settings.get(key, default) for key, default in _DOUBLE_QUOTED_NAMES.items()]
        return all(_setting_text(flag) == "true" for flag in flags)

    def _settings(self) -> dict[str, str]:
        return {**SESSION_SETTINGS, **(LISTING_SETTINGS if set(self._schemes) <= {None, "file"} else {})}

    def _start(self) -> SparkSession:
        # PySpark not only raises errors, but logs each with its Java stack trace.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
        builder: Any = SparkSession.builder.appName("dbt-ducklake")
        settings: dict[str, Any] = {**self._settings(), **self._config}
        self._check_requirements()
        if self._keep_alive is not None:
            return self._connect_to_warm_server(self._keep_alive)
        if self._remote:
            check_reachable(self._remote)
            builder = builder.remote(self._remote)
            if self._remote.startswith("local"):  # PySpark starts the server
                settings = {**_COMMIT_PROTOCOL, **self._with_own_classes(settings)}
        else:
            builder = builder.master(self._master or "local[*]")
            settings = self._start_settings()
        for key, value in settings.items():
            builder = builder.config(key, _setting_text(value))
        if not self._remote:
            start_jvm({key: _setting_text(value) for key, value in settings.items()})
        try:
            with warnings.catch_warnings():  # the server has been started with the jars, and its session need not have
                warnings.filterwarnings("ignore", message="Failed to set spark.jars")
                spark: SparkSession = builder.getOrCreate()
        except Exception as error:
            raise LakeError(f"Spark can not be started: {_failure_text(error)}") from error
        return spark

    def _start_settings(self) -> dict[str, Any]:
        """The settings of a Spark that is started here."""
        settings = self._with_own_classes({**START_SETTINGS, **self._settings(), **self._config})
        java_options = settings.get(_JAVA_OPTIONS, "")
        settings[_JAVA_OPTIONS] = f"-Dlog4j2.configurationFile={_LOG_CONFIG} {java_options}".strip()
        return settings

    def _with_own_classes(self, settings: dict[str, Any]) -> dict[str, Any]:
        """The settings of a Spark that is started here, with our jar beside the user's, and connectors of stores."""
        jars = ",".join(filter(None, (self._config.get(_JARS), str(JAR))))
        connectors = start_settings(self._schemes, self._config)
        return {**settings, **connectors, _JARS: jars}

    def warm_server(self) -> WarmServer:
        """The server that `keep_alive` keeps, whether or not it runs."""
        if self._warm_server is None:
            settings = {key: _setting_text(value) for key, value in self._start_settings().items()}
            settings = {**_COMMIT_PROTOCOL, **settings}
            self._warm_server = WarmServer(self._project, self._master or "local[*]", settings)
        return self._warm_server

    def _connect_to_warm_server(self, idle_seconds: float) -> SparkSession:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        address = self.warm_server().connect(idle_seconds)
        self._warm_server_page = address.web_ui
        builder: Any = SparkSession.builder.remote(address.remote)
        spark: Any = builder.create()
        # A server on loopback that does not answer within seconds is gone; the default policy waits ten minutes.
        spark.client.set_retry_policies([DefaultPolicy(max_retries=5, max_backoff=1000, jitter=100)])
        started: SparkSession = spark
        return started

    def stop(self) -> None:
        """Stops a SparkSession that was started here, but not one that the caller provides."""
        with self._lock:
            if self._spark is not None and self._provided is None:
                self._spark.stop()
            elif self._spark is not None:
                self._connect_progress.unregister(self._spark)
            self._spark = None
            if self._warm_server is not None:
                self._warm_server.release()


def _set_commit_protocol(spark: SparkSession) -> None:
    """Sets our commit protocol where the JVM has it, and the session has no other one.

    The session may be the caller's, or one that was there before one was to be started, and lack the jar.
    """
    if is_connect(spark) or spark.conf.get(COMMIT_PROTOCOL_SETTING, None) is not None:
        return
    jvm: Any = spark._jvm
    with suppress(Py4JJavaError):
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(COMMIT_PROTOCOL)
        spark.conf.set(COMMIT_PROTOCOL_SETTING, COMMIT_PROTOCOL)


def _setting_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _failure_text(error: Exception) -> str:
    """What Java said, or the first line of the error."""
    java_exception = getattr(error, "java_exception", None)
    text = str(java_exception.getMessage() if java_exception is not None else error).strip()
    return text.splitlines()[0] if text else type(error).__name__
