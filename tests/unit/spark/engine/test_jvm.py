"""What the JVM prints: noise of the start is left out, and an error of the start becomes the message."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark import SparkContext

from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.spark.engine import jvm
from dbt.adapters.ducklake.spark.engine.java import REQUIRED_MODULES, VECTOR_MODULE

WARNING = b"WARNING: Using incubator modules: jdk.incubator.vector\n"
WARNING_OF_JAVA_25 = b"WARNING: package sun.security.action not in java.base\n"
IVY = b""":: loading settings :: url = jar:file:ivysettings.xml
Ivy Default Cache set to: /root/.ivy2.5.2/cache
org.postgresql#postgresql added as a dependency
\tconfs: [default]
downloading https://repo1.maven.org/a.jar ...
\t[SUCCESSFUL ] org.postgresql#postgresql;42.7.4!postgresql.jar (148ms)
\t2 artifacts copied, 0 already retrieved (1286kB/9ms)
"""


class Output:
    """A JVM's standard error, and what of it is printed."""

    def __init__(self) -> None:
        reader, self._writer = os.pipe()
        self.printed = b""
        self.thread = jvm.ErrorOutput(reader, self._print)
        self.thread.start()

    def _print(self, data: bytes) -> None:
        self.printed += data

    def write(self, data: bytes, done: Callable[[], bool]) -> None:
        """Writes, and waits until it has arrived."""
        os.write(self._writer, data)
        deadline = time.monotonic() + 10
        while not done() and time.monotonic() < deadline:
            time.sleep(0.001)

    def close(self) -> None:
        os.close(self._writer)
        self.thread.join()


def test_warnings_about_options_of_spark_are_left_out() -> None:
    output = Output()
    output.write(WARNING + WARNING_OF_JAVA_25 + b"10:00:00 ERROR Spark: oh\n", lambda: "oh" in output.thread.text)
    output.thread.pass_on()
    assert output.printed == b"10:00:00 ERROR Spark: oh\n"
    output.write(b"and [Stage 1:>", lambda: output.printed.endswith(b":>"))
    assert output.printed == b"10:00:00 ERROR Spark: oh\nand [Stage 1:>"
    output.close()


def test_of_the_packages_only_downloads_are_shown_and_at_once() -> None:
    output = Output()
    output.write(IVY, lambda: output.printed != b"")
    assert output.printed == b"downloading https://repo1.maven.org/a.jar ...\n"
    output.thread.pass_on()
    assert output.printed == b"downloading https://repo1.maven.org/a.jar ...\n"
    output.close()


def test_the_output_of_a_jvm_that_did_not_start_is_not_printed() -> None:
    output = Output()
    os.write(output._writer, b"Invalid maximum heap size: -Xmx4x\n")
    output.close()
    assert output.thread.text == "Invalid maximum heap size: -Xmx4x\n"
    assert output.printed == b""


@pytest.mark.processes
@pytest.mark.skipif(os.name != "posix", reason="the Java here is a shell script")
def test_a_jvm_that_does_not_start_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "bin").mkdir()
    executable = tmp_path / "bin" / "java"
    executable.write_text("#!/bin/sh\necho 'Invalid maximum heap size: -Xmx4x' >&2; exit 1\n")
    executable.chmod(0o755)
    modules = " ".join((*REQUIRED_MODULES, VECTOR_MODULE))
    (tmp_path / "release").write_text(f'JAVA_VERSION="17.0.1"\nMODULES="{modules}"\n')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(SparkContext, "_gateway", None)
    with pytest.raises(LakeError, match="^Spark can not be started: Invalid maximum heap size: -Xmx4x$"):
        jvm.start_jvm({"spark.driver.memory": "4x"})
    assert capfd.readouterr().err == ""
