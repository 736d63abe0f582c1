"""The systems that run the project: what dbt and Spark are told for each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.table_formats import DELTA_PACKAGE, ICEBERG_PACKAGE

SCHEMA = "main"
SQLITE_DRIVER = "org.xerial:sqlite-jdbc:3.50.3.0"
"""For Iceberg's JDBC catalog, so that its catalog is in the same kind of database as DuckLake's."""


@dataclass(frozen=True)
class Limits:
    """What every system may use of the machine."""

    cores: int
    memory: str
    threads: int

    def spark_config(self) -> dict[str, str]:
        return {
            "spark.driver.memory": self.memory,
            "spark.sql.shuffle.partitions": str(2 * self.cores),
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }

    @property
    def master(self) -> str:
        return f"local[{self.cores}]"


@dataclass(frozen=True)
class System:
    """A system, by the name that the command line takes."""

    name: str
    label: str
    macros: str
    """The name by which the project's macros know it."""
    wear: bool = True
    """Whether it takes part in the rounds of refresh sets."""
    model_config: Mapping[str, Any] = field(default_factory=dict)
    load_config: Mapping[str, Any] = field(default_factory=dict)
    test_config: Mapping[str, Any] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    needs_postgres: bool = False

    @property
    def has_dbt(self) -> bool:
        return self.macros != "parquet"

    def table_name(self, name: str) -> str:
        """A table's name in a statement."""
        return f"lake.{SCHEMA}.{name}" if self.macros in ("ducklake", "duckdb") else f"{SCHEMA}.{name}"

    def profile(self, folder: Path, limits: Limits, catalog: str) -> dict[str, Any]:
        """The target in profiles.yml. `catalog` is where a DuckLake has its metadata."""
        if self.macros == "ducklake":
            return {
                "type": "ducklake",
                "catalog": catalog,
                "data_path": f"{folder}/lake/data/",
                "schema": SCHEMA,
                "threads": limits.threads,
                "spark": {"master": limits.master, "config": limits.spark_config()},
            }
        if self.macros == "duckdb":
            return {
                "type": "duckdb",
                "path": ":memory:",
                "database": "lake",
                "schema": SCHEMA,
                "threads": limits.threads,
                "config_options": {
                    "allow_unsigned_extensions": True,
                    "extension_directory": f"{folder}/extensions",
                },
                "settings": {"memory_limit": f"{limits.memory}b", "threads": limits.cores, "TimeZone": "UTC"},
                "attach": [
                    {
                        "path": f"ducklake:{catalog}",
                        "alias": "lake",
                        "is_ducklake": True,
                        "options": {"data_path": f"{folder}/lake/data/"},
                    }
                ],
            }
        return {"type": "spark", "method": "session", "host": "-", "schema": SCHEMA, "threads": limits.threads}

    def format_config(self, folder: Path) -> dict[str, str]:
        """Spark's settings for a table format that is not ours."""
        if self.macros == "iceberg":
            return {
                "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
                "spark.sql.defaultCatalog": "iceberg",
                "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
                "spark.sql.catalog.iceberg.type": "jdbc",
                "spark.sql.catalog.iceberg.uri": f"jdbc:sqlite:{folder}/lake/iceberg.sqlite",
                "spark.sql.catalog.iceberg.jdbc.schema-version": "V1",
                "spark.sql.catalog.iceberg.warehouse": f"{folder}/lake/data",
                "spark.sql.catalog.iceberg.default-namespace": SCHEMA,
            }
        if self.macros == "delta":
            return {
                "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
                "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
                "spark.sql.warehouse.dir": f"{folder}/lake/data",
                # The default of 50 tasks for Delta's log suits a cluster, not one machine.
                "spark.databricks.delta.snapshotPartitions": "2",
                # VACUUM has as many tasks as this, and 10,000 by default.
                "spark.sql.sources.parallelPartitionDiscovery.parallelism": "4",
                "spark.databricks.delta.retentionDurationCheck.enabled": "false",
            }
        return {}


_MERGE_ON_READ = {f"write.{kind}.mode": "merge-on-read" for kind in ("delete", "update", "merge")}
SYSTEMS = (
    System("ducklake", "dbt-ducklake", "ducklake"),
    System(
        "ducklake-reuse",
        "dbt-ducklake, reuse",
        "ducklake",
        wear=False,
        model_config={"reuse": True},
        # The files that they load from are not in the lake, so the models have to say that the files stay the same.
        load_config={"reuse": "deterministic"},
        test_config={"reuse": True},
    ),
    System("ducklake-postgres", "dbt-ducklake, PostgreSQL", "ducklake", wear=False, needs_postgres=True),
    System(
        "iceberg",
        "dbt-spark, Iceberg",
        "iceberg",
        model_config={"file_format": "iceberg", "tblproperties": {"format-version": "3", **_MERGE_ON_READ}},
        packages=(ICEBERG_PACKAGE, SQLITE_DRIVER),
    ),
    System(
        "delta",
        "dbt-spark, Delta Lake",
        "delta",
        model_config={"file_format": "delta", "tblproperties": {"delta.enableDeletionVectors": "true"}},
        packages=(DELTA_PACKAGE,),
    ),
    System("duckdb", "dbt-duckdb, DuckLake", "duckdb"),
    System("parquet", "Spark, Parquet files", "parquet", wear=False),
)
BASELINE = SYSTEMS[0]
BY_NAME = {system.name: system for system in SYSTEMS}
