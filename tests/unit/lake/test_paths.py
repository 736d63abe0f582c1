"""Paths: their forms in the catalog, in the storage and in Spark."""

from __future__ import annotations

import os
import re
import uuid
from pathlib import Path

import pyarrow.fs as pafs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbt.adapters.ducklake.lake.paths import (
    as_folder,
    filesystem_for,
    folder_for_name,
    local_path,
    new_data_file_name,
    new_uuid7,
    path_from_spark,
    relative_to,
    resolve,
    same_folder,
    spark_path,
    without_globs,
)


def test_a_folder_ends_with_one_slash() -> None:
    assert as_folder("data") == as_folder("data/") == "data/"


@given(st.text(min_size=1), st.text())
def test_a_relative_path_resolves_to_itself(base: str, path: str) -> None:
    base = as_folder(base)
    assert relative_to(base + path, base) == (path, True)
    assert resolve(base, path, True) == base + path


def test_a_path_elsewhere_stays_whole() -> None:
    assert relative_to("s3://other/f.parquet", "s3://bucket/lake/") == ("s3://other/f.parquet", False)
    assert relative_to("/data/lake2/f", "/data/lake") == ("/data/lake2/f", False)
    assert resolve("/data/", "/elsewhere/f", False) == "/elsewhere/f"
    assert resolve("", "main/", True) == "main/"


def test_one_folder_may_be_written_in_several_ways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert same_folder("data", f"{tmp_path}/data/")
    assert same_folder(f"file://{tmp_path}/data", "data/")
    assert same_folder("s3://bucket/lake", "s3a://bucket/lake/")
    assert not same_folder("data", "data2")
    assert not same_folder("s3://bucket/lake", "s3://bucket/lake2")


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("t", "t/"),
        ("T-x_1", "T-x_1/"),
        ("é", "UUID/"),
        ("a b", "UUID/"),
        ("a.b", "UUID/"),
        ("", "UUID/"),
        ("t\n", "UUID/"),
    ],
)
def test_a_plain_name_is_its_own_folder(name: str, folder: str) -> None:
    assert folder_for_name(name, "UUID") == folder


def test_new_uuids_are_of_version_seven_and_differ() -> None:
    many = [new_uuid7() for _ in range(1000)]
    assert len(set(many)) == 1000
    assert all(uuid.UUID(one).version == 7 and uuid.UUID(one).variant == uuid.RFC_4122 for one in many)
    assert [one[:13] for one in many] == sorted(one[:13] for one in many)
    assert re.fullmatch(r"ducklake-[0-9a-f-]{36}\.parquet", new_data_file_name())


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_local_files_are_where_the_path_says(tmp_path: Path, scheme: str) -> None:
    folder = tmp_path / "a b%20c#d[1]é"
    folder.mkdir()
    (folder / "f").write_bytes(b"12345")
    path = f"{scheme}{folder}/f"
    filesystem, to_filesystem = filesystem_for(f"{scheme}{folder}/")
    assert filesystem.get_file_info(to_filesystem(path)).size == 5


def test_a_relative_data_path_is_below_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert local_path("data/main/") == f"{tmp_path}/data/main/"
    assert spark_path("data/x") == f"file://{tmp_path}/data/x"


def test_object_stores_have_their_own_paths() -> None:
    options = {"endpoint": "http://localhost:9000/", "key": "k", "secret": "s", "region": "eu-central-1"}
    for scheme in ("s3", "s3a"):
        filesystem, to_filesystem = filesystem_for(f"{scheme}://bucket/lake/", options)
        assert isinstance(filesystem, pafs.S3FileSystem)
        assert filesystem.region == "eu-central-1"
        assert to_filesystem(f"{scheme}://bucket/lake/main/t/f.parquet") == "bucket/lake/main/t/f.parquet"


def test_an_unknown_store_is_named() -> None:
    with pytest.raises(ValueError, match="of the scheme ftp"):
        filesystem_for("ftp://host/lake/")


@pytest.mark.parametrize(
    ("path", "for_spark"),
    [
        ("/data/a b/f%20.parquet", "file:///data/a b/f%20.parquet"),
        ("/data/x[1]{2}*?\\.parquet", r"file:///data/x\[1\]\{2\}\*\?\\.parquet"),
        ("file:///data/f", "file:///data/f"),
        ("file:/data/f", "file:///data/f"),
        ("file://localhost/data/f", "file:///data/f"),
        ("s3://bucket/f", "s3a://bucket/f"),
        ("S3://bucket/f", "s3a://bucket/f"),
        ("abfss://c@account.dfs.core.windows.net/f", "abfss://c@account.dfs.core.windows.net/f"),
        ("hdfs://host:8020/f", "hdfs://host:8020/f"),
    ],
)
def test_a_path_for_spark_is_escaped_and_not_expanded(path: str, for_spark: str) -> None:
    assert without_globs(spark_path(path)) == for_spark


def test_schemes_of_a_path_for_spark_can_be_kept() -> None:
    assert spark_path("s3://bucket/f", schemes={}) == "s3://bucket/f"


def test_a_path_from_spark_is_decoded(tmp_path: Path) -> None:
    assert path_from_spark("file:/data/a%20b/x=EU%252Fx/f.parquet") == "file:///data/a b/x=EU%2Fx/f.parquet"
    assert path_from_spark("file:///data/f") == "file:///data/f"
    assert local_path(path_from_spark(f"file://{tmp_path}/a%23b")) == os.path.join(tmp_path, "a#b")
