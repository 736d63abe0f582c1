"""Delta Lake and Iceberg in the same Spark, where they have a release for it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyspark

PACKAGES: Mapping[str, str] = {
    "4.1": "io.delta:delta-spark_4.1_2.13:4.4.0,org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",
}
"""Their packages, by the minor version of Spark; the newest that both have."""

SPARK = ".".join(pyspark.__version__.split(".")[:2])
THERE = SPARK in PACKAGES


def config(folder: Path) -> dict[str, str]:
    """What a Spark session needs to have both; nothing where they are not to be had."""
    if not THERE:
        print(f"Delta and Iceberg are left out: no release of both for Spark {SPARK}, only for {', '.join(PACKAGES)}")
        return {}
    return {
        "spark.jars.packages": PACKAGES[SPARK],
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        # Delta's default of 50 tasks for its own log is for clusters.
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.catalog.iceberg": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.iceberg.type": "hadoop",
        "spark.sql.catalog.iceberg.warehouse": f"{folder}/iceberg",
    }
