"""Classes in Java that Spark calls, in a jar. A Spark that is started here has it.

`encryption/` reads and writes encrypted files, `read/` is a source of Parquet files whose sizes are known, `write/` the
commit protocol of data files. The jar is checked in, so that installing the project needs no Java compiler; `make jar`
builds it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

JAR = Path(__file__).parent / "ducklake-spark.jar"

COMMIT_PROTOCOL_SETTING = "spark.sql.sources.commitProtocolClass"
COMMIT_PROTOCOL = "dbt.ducklake.write.DataFileCommitProtocol"
WRITTEN_FILES = "dbt.ducklake.write.WrittenFiles"
DATA_FILES = "dbt.ducklake.read.DataFiles"

_sessions: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()


def has_own_classes(spark: Any) -> bool:
    """Whether a Spark session has the jar, which its commit protocol tells."""
    if spark not in _sessions:
        _sessions[spark] = spark.conf.get(COMMIT_PROTOCOL_SETTING, None) == COMMIT_PROTOCOL
    return _sessions[spark]
