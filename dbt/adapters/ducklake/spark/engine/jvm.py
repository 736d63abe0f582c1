"""Starts the JVM of this process, and passes on what it prints, apart from noise."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway

from ...lake.errors import LakeError
from .java import first_error_line, use_java

_NOISE = re.compile(
    # Java warns of options that Spark's launcher gives it, and no option turns that off.
    rb"^WARNING: (?:Using incubator modules: |package \S+ not in |Unknown module: )[^\n]*\n"
    # What Ivy says of the packages in spark.jars.packages, on every start.
    rb"|^:: loading settings ::.*?^\t\d+ artifacts copied, [^\n]*\n",
    re.DOTALL | re.MULTILINE,
)
_DOWNLOAD = re.compile(rb"^downloading [^\n]*\n", re.MULTILINE)


def check_java() -> None:
    """Sets JAVA_HOME for the JVM that is still to be started. Raises if there is no Java that Spark can use."""
    if not _is_running():
        use_java()


def start_jvm(settings: Mapping[str, str]) -> None:
    """Starts the JVM that PySpark uses, unless there is one. Raises with Java's own first line of error."""
    with SparkContext._lock:
        if _is_running():
            return
        conf = SparkConf(loadDefaults=False)
        conf.setAll(list(settings.items()))
        reader, writer = os.pipe()
        errors = ErrorOutput(reader)
        errors.start()
        try:
            gateway = launch_gateway(conf, {"stderr": writer})  # type: ignore[no-untyped-call]
        except Exception as error:
            os.close(writer)
            errors.join(timeout=10)
            raise LakeError(f"Spark can not be started: {first_error_line(errors.text)}") from error
        os.close(writer)
        errors.pass_on()
        SparkContext._ensure_initialized(gateway=gateway)


def _is_running() -> bool:
    return SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ


class ErrorOutput(threading.Thread):
    """Copies what the JVM prints to the standard error of this process.

    What it prints while it starts is held back. If it starts, that is printed without noise; if not, the first line
    is the message of the error.
    """

    def __init__(self, reader: int, write: Callable[[bytes], Any] | None = None) -> None:
        super().__init__(name="jvm-errors", daemon=True)
        self._reader = reader
        self._write = write or (lambda data: os.write(2, data))
        self._held = b""
        self._downloads = 0
        self._passes_on = False
        self._lock = threading.Lock()

    @property
    def text(self) -> str:
        """What the JVM printed, if it did not start."""
        with self._lock:
            return self._held.decode(errors="replace")

    def pass_on(self) -> None:
        """Ends the start: prints what is held, and everything that comes."""
        with self._lock:
            self._print(_DOWNLOAD.sub(b"", _NOISE.sub(b"", self._held)))
            self._held = b""
            self._passes_on = True

    def run(self) -> None:
        with open(self._reader, "rb", buffering=0) as reader:
            while data := reader.read(8192):
                with self._lock:
                    if self._passes_on:
                        self._print(_NOISE.sub(b"", data))
                    else:
                        self._held += data
                        self._print_new_downloads()

    def _print_new_downloads(self) -> None:
        """Prints at once which packages are downloaded: that can take minutes."""
        downloads = _DOWNLOAD.findall(self._held)
        self._print(b"".join(downloads[self._downloads :]))
        self._downloads = len(downloads)

    def _print(self, data: bytes) -> None:
        if data:
            with contextlib.suppress(OSError):  # the standard error is closed
                self._write(data)
