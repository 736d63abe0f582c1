"""Settings that are meant for other adapters.

In the user's own project they are errors that say what to use instead. Nobody can edit the models of an installed
package, so there they are ignored, and one warning at the end of the run lists them.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dbt_common.exceptions import CompilationError

from .spark.sql.quoting import quoted
from .table_layout import PartitionBy

INSTEAD = {
    "auto_liquid_cluster": "use sorted_by",
    "buckets": "use partition_by: ['bucket(8, column)']",
    "cluster_by": "use sorted_by, or partition_by: ['bucket(8, column)']",
    "clustered_by": "use partition_by: ['bucket(8, column)'], or sorted_by",
    "engine": "leave it out",
    "indexes": "use sorted_by",
    "liquid_clustered_by": "use sorted_by",
    "location_root": "a lake's files are where its data_path says",
    "options": "use table_options",
    "order_by": "use sorted_by",
    "tblproperties": "use table_options",
    "transient": "every table of a lake keeps its versions until snapshots expire; leave it out",
}
"""What to use instead of a setting of dbt-spark, Databricks, BigQuery, Snowflake, Postgres or ClickHouse.

Redshift's `sort` and `dist` are not here: dbt's adapter suite expects other adapters to ignore them.
"""

_FILE_FORMATS = ("parquet", "ducklake")
_PARTITION_SETTINGS = (PartitionBy.setting, PartitionBy.alias)

_GRANULARITIES = ("year", "month", "day", "hour")


def check_own_config(config: Any) -> None:
    """Raises for the first setting of another adapter. Empty values, such as `file_format: ''`, set nothing."""
    for name, instead in INSTEAD.items():
        if config.get(name):
            raise CompilationError(f"{name} has no meaning in a lake: {instead}")
    file_format = config.get("file_format")
    if file_format and file_format not in _FILE_FORMATS:
        raise CompilationError(f"file_format is {file_format!r}, but a lake's files are Parquet; leave it out")
    for name in _PARTITION_SETTINGS:
        value = config.get(name)
        if isinstance(value, Mapping):
            keys = bigquery_partition_keys(value)
            instead = f"; write {name}: {[key.replace('`', '') for key in keys]}" if keys else ""
            raise CompilationError(f"{name} takes a column or a list of them, and it is BigQuery's {value!r}{instead}")


def bigquery_partition_keys(partition_by: Mapping[str, Any]) -> list[str] | None:
    """The partition keys that BigQuery's mapping means; None if no key of a lake means the same.

    A month of BigQuery's is one of a year. The key `month()` of a lake alone is the same for every year, and
    insert_overwrite would replace that month in all of them.
    """
    column = partition_by.get("field")
    data_type = str(partition_by.get("data_type") or "date").lower()
    granularity = str(partition_by.get("granularity") or "day").lower()
    if not isinstance(column, str) or not column or partition_by.get("time_ingestion_partitioning"):
        return None
    if data_type not in ("date", "timestamp", "datetime") or granularity not in _GRANULARITIES:
        return None
    parts = _GRANULARITIES[: _GRANULARITIES.index(granularity) + 1]
    return [f"{part}({quoted(column)})" for part in parts]


@dataclass(frozen=True)
class PackageConfig:
    """The configuration of an installed package's model, without what is meant for other adapters."""

    config: Any
    replaced: Mapping[str, Any]
    """The values that settings have here, where they are not the package's own."""
    ignored: tuple[str, ...]
    """The names of the settings that have no effect."""

    @classmethod
    def read(cls, config: Any) -> PackageConfig:
        ignored = [name for name in INSTEAD if config.get(name)]
        file_format = config.get("file_format")
        if file_format and file_format not in _FILE_FORMATS:
            ignored.append("file_format")
        replaced: dict[str, Any] = dict.fromkeys(ignored)
        for name in _PARTITION_SETTINGS:
            value = config.get(name)
            keys = bigquery_partition_keys(value) if isinstance(value, Mapping) else value
            if value and not _are_partition_keys(keys):
                ignored.append(name)
                replaced[name] = None
            elif keys is not value:
                replaced[name] = keys
        return cls(config, replaced, tuple(sorted(ignored)))

    def get(self, name: str, default: Any = None) -> Any:
        return self.replaced[name] if name in self.replaced else self.config.get(name, default)


def _are_partition_keys(keys: Any) -> bool:
    """Whether a lake can have these keys. Other adapters take keys such as `truncate(4, name)`."""
    if keys is None:
        return False
    try:
        PartitionBy.from_config({PartitionBy.setting: keys}).check_syntax()
    except CompilationError:
        return False
    return True


@dataclass
class IgnoredSettings:
    """The settings of installed packages that a run ignored, from all of its threads."""

    _models: dict[str, dict[str, set[str]]] = field(default_factory=dict)
    """The models, by package and setting."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, package: str, model: str, settings: tuple[str, ...]) -> None:
        with self._lock:
            for setting in settings:
                self._models.setdefault(package, {}).setdefault(setting, set()).add(model)

    def take_warning(self) -> str | None:
        """The warning that lists the settings since the last call; None if there are none."""
        with self._lock:
            found, self._models = self._models, {}
        if not found:
            return None
        lines = ["Installed packages have settings that are meant for other adapters. They were ignored:"]
        for package, settings in sorted(found.items()):
            counts = (f"{s} ({len(m)} model{'' if len(m) == 1 else 's'})" for s, m in sorted(settings.items()))
            lines.append(f"  {package}: {', '.join(counts)}")
        return "\n".join(lines)
