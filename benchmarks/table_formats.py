"""Delta Lake and Iceberg in the same Spark session, if both have a release for its version."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyspark

DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
PACKAGES: Mapping[str, str] = {"4.1": f"{DELTA_PACKAGE},{ICEBERG_PACKAGE}"}
"""The packages by Spark's minor version. 4.1 is the newest that both support."""

SPARK_VERSION = ".".join(pyspark.__version__.split(".")[:2])
AVAILABLE = SPARK_VERSION in PACKAGES


def spark_config(folder: Path) -> dict[str, str]:
    """Spark's configuration for both formats. Empty if they are not available."""
    if not AVAILABLE:
        versions = ", ".join(PACKAGES)
        print(f"Delta and Iceberg are left out: no release of both for Spark {SPARK_VERSION}, only for {versions}")
        return {}
    return {
        "spark.jars.packages": PACKAGES[SPARK_VERSION],
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # The default of 50 tasks for Delta's log suits a cluster, not one machine.
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": f"{folder}/iceberg",
    }
