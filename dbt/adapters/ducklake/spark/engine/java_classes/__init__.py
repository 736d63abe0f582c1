"""Classes in Java that Spark calls, in a jar. A Spark that is started here has it.

`encryption/` reads and writes encrypted files. The jar is checked in, so that installing the project needs no Java
compiler; `make jar` builds it.
"""

from __future__ import annotations

from pathlib import Path

JAR = Path(__file__).parent / "ducklake-spark.jar"
