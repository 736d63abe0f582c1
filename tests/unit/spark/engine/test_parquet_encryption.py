"""Paths of encrypted files, and the jar that Spark needs for them."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.lake.encryption import FileKey
from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.spark.engine.java_classes import JAR
from dbt.adapters.ducklake.spark.engine.parquet_encryption import encrypted_path, encrypted_paths_in


@pytest.mark.parametrize(
    ("path", "tail"),
    [
        ("file:///tmp/a b/t.parquet", "file/-/tmp/a b/t.parquet"),
        ("s3a://bucket/lake/x=1/t.parquet", "s3a/bucket/lake/x=1/t.parquet"),
        ("hdfs://host:9000/lake/t.parquet", "hdfs/host:9000/lake/t.parquet"),
        ("abfss://c@account.dfs.core.windows.net/t.parquet", "abfss/c@account.dfs.core.windows.net/t.parquet"),
    ],
)
def test_a_path_says_where_the_file_is_and_does_not_show_its_key(path: str, tail: str) -> None:
    key = FileKey.new()
    scheme, _, rest = encrypted_path(path, key).partition(":///")
    sealed, _, found = rest.partition("/")
    assert (scheme, found) == ("ducklake", tail)
    assert key.catalog_text().rstrip("=") not in sealed
    assert key.value.hex() not in sealed
    assert "=" not in sealed  # Spark would take the folder for a partition


def test_a_file_has_the_same_path_in_each_query() -> None:
    key = FileKey.new()
    assert encrypted_path("file:///t", key) == encrypted_path("file:///t", FileKey(key.value))
    assert encrypted_path("file:///t", key) != encrypted_path("file:///t", FileKey.new())


class _Session:
    """Stands for a SparkSession, of which only the settings are used."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.conf = self

    def get(self, name: str, default: str | None) -> str | None:
        return self.settings.get(name, default)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value


def test_a_session_gets_settings_only_for_encrypted_paths() -> None:
    session = _Session()
    with encrypted_paths_in(session, "file:///t"):  # type: ignore[arg-type]
        assert session.settings == {}
    with encrypted_paths_in(session, "file:///t", encrypted_path("file:///t", FileKey.new())):  # type: ignore[arg-type]
        pass
    secrets = [name for name in session.settings if "secret" in name]
    assert len(secrets) == 1  # Spark shows no values of such settings
    assert all(
        value in ("true", "dbt.ducklake.encryption.EncryptedFileSystem") or name in secrets
        for name, value in session.settings.items()
    )


def test_a_spark_without_the_jar_is_an_error_that_says_how_to_start_it() -> None:
    path = encrypted_path("file:///t", FileKey.new())
    with (
        pytest.raises(LakeError, match=f"without the jar .* spark.jars={JAR}"),
        encrypted_paths_in(_Session(), path),  # type: ignore[arg-type]
    ):
        raise RuntimeError("ClassNotFoundException: Class dbt.ducklake.encryption.EncryptedFileSystem not found")
    with pytest.raises(RuntimeError, match="another"), encrypted_paths_in(_Session(), path):  # type: ignore[arg-type]
        raise RuntimeError("another")
