"""The connector of S3, which Spark does not bring along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.spark.engine.object_stores import start_settings, storage_settings

PACKAGES, PROVIDER = "spark.jars.packages", "spark.hadoop.fs.s3a.aws.credentials.provider"


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder with the jars of a Spark with Hadoop 3.4.9."""
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "hadoop-client-api-3.4.9.jar").touch()
    return folder


@pytest.mark.usefixtures("jars")
def test_the_connector_is_of_the_version_of_sparks_hadoop() -> None:
    assert start_settings({"s3a", None}, {})[PACKAGES] == "org.apache.hadoop:hadoop-aws:3.4.9"
    assert start_settings({None, "file", "gs"}, {}) == {}


@pytest.mark.usefixtures("jars")
def test_other_packages_stay_beside_it() -> None:
    assert start_settings({"s3a"}, {PACKAGES: "a:b:1"})[PACKAGES] == "a:b:1,org.apache.hadoop:hadoop-aws:3.4.9"


@pytest.mark.usefixtures("jars")
@pytest.mark.parametrize(
    "config",
    [
        {PACKAGES: "org.apache.hadoop:hadoop-aws:3.4.1"},
        {PACKAGES: "org.apache.spark:spark-hadoop-cloud_2.13:4.1.0"},
        {"spark.jars": "/opt/hadoop-aws-3.4.1.jar"},
    ],
)
def test_a_connector_that_is_given_is_taken(config: dict[str, Any]) -> None:
    assert PACKAGES not in start_settings({"s3a"}, config)


def test_a_spark_that_has_the_connector_gets_no_other(jars: Path) -> None:
    (jars / "hadoop-aws-3.4.9.jar").touch()
    assert PACKAGES not in start_settings({"s3a"}, {})


def test_a_spark_of_unknown_contents_gets_none(jars: Path) -> None:
    (jars / "hadoop-client-api-3.4.9.jar").unlink()
    assert PACKAGES not in start_settings({"s3a"}, {})


@pytest.mark.usefixtures("jars")
def test_without_keys_the_usual_chain_of_credentials_is_asked() -> None:
    assert start_settings({"s3a"}, {})[PROVIDER].endswith("DefaultCredentialsProvider")
    given = storage_settings({"key": "k", "secret": "s", "endpoint": "http://localhost:9000"})
    assert PROVIDER not in start_settings({"s3a"}, given)
    assert PROVIDER not in start_settings({"s3a"}, {"spark.hadoop.fs.s3a.bucket.b.access.key": "k"})
    assert start_settings({"s3a"}, {PROVIDER: "mine"}).get(PROVIDER) is None


def test_a_misspelt_entry_of_storage_is_refused() -> None:
    with pytest.raises(LakeError, match="storage has the entry acces_key, which is not known; known are endpoint"):
        storage_settings({"acces_key": "k"})
