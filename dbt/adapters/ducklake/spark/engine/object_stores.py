"""S3 for Spark: the connector, which Spark does not bring along, and its settings."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyspark

from ...lake.errors import LakeError

_S3A = "s3a"
_S3A_SETTINGS = {
    "endpoint": "fs.s3a.endpoint",
    "region": "fs.s3a.endpoint.region",
    "key": "fs.s3a.access.key",
    "secret": "fs.s3a.secret.key",
    "session_token": "fs.s3a.session.token",
}
_DEFAULT_SETTINGS = {
    # Files of a lake have names of their own, so it need not be asked whether one is there already.
    "spark.hadoop.fs.s3a.create.performance": "true",
}
_CREDENTIALS_PROVIDER = "spark.hadoop.fs.s3a.aws.credentials.provider"
_DEFAULT_CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""The usual chain: environment, profiles, the container's or the machine's role. Hadoop's own reads no profiles."""

_PACKAGES = "spark.jars.packages"
_PLACES_OF_JARS = (_PACKAGES, "spark.jars", "spark.driver.extraClassPath")
_CONNECTOR = re.compile(r"hadoop-(aws|cloud)")
_HADOOP = re.compile(r"hadoop-client-api-(\d[\w.-]*)\.jar")


def storage_settings(storage: Mapping[str, str]) -> dict[str, str]:
    """The settings with which Spark accesses the object store that the driver accesses with `storage`."""
    unknown = sorted(set(storage) - set(_S3A_SETTINGS))
    if unknown:
        raise LakeError(f"storage has the entry {unknown[0]}, which is not known; known are {', '.join(_S3A_SETTINGS)}")
    settings = {f"spark.hadoop.{_S3A_SETTINGS[name]}": value for name, value in storage.items()}
    if "endpoint" in storage:  # a self-hosted store has no host name for each bucket
        settings["spark.hadoop.fs.s3a.path.style.access"] = "true"
    return settings


def start_settings(schemes: Collection[str | None], config: Mapping[str, Any]) -> dict[str, str]:
    """What a Spark that is started here needs besides, to access stores of these schemes."""
    if _S3A not in schemes:
        return {}
    settings = dict(_DEFAULT_SETTINGS)
    if not any(name.startswith("spark.hadoop.fs.s3a.") and name.endswith("access.key") for name in config):
        settings[_CREDENTIALS_PROVIDER] = _DEFAULT_CREDENTIALS
    package = _connector_package(config)
    if package is not None:
        settings[_PACKAGES] = ",".join(filter(None, (config.get(_PACKAGES), package)))
    return {name: value for name, value in settings.items() if name == _PACKAGES or name not in config}


def _connector_package(config: Mapping[str, Any]) -> str | None:
    """The package of the connector for the Hadoop that Spark has; None if there is one already."""
    folder = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    jars = os.listdir(folder) if folder.is_dir() else []
    if any(_CONNECTOR.search(text) for text in (*jars, *(str(config.get(place, "")) for place in _PLACES_OF_JARS))):
        return None
    version = next((match[1] for match in map(_HADOOP.fullmatch, jars) if match), None)
    return None if version is None else f"org.apache.hadoop:hadoop-aws:{version}"
