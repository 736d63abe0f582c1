"""File keys: the shortest ends of paths that tell the files of a scan apart."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.read.file_keys import FileKeys


@pytest.mark.parametrize(
    ("paths", "keys"),
    [
        (["/d/a.parquet", "/d/b.parquet"], ["a.parquet", "b.parquet"]),
        (["s3://b/x/a", "s3://b/y/a"], ["x/a", "y/a"]),
        (["s3://b/x/a", "s3://c/x/a"], ["b/x/a", "c/x/a"]),
        (["/d/x/1/a", "/d/y/1/a", "/d/y/2/b"], ["x/1/a", "y/1/a", "y/2/b"]),
        (["/x/a", "/d/x/a"], ["/x/a", "d/x/a"]),
        (["s3://b//x/a", "s3://b/y/../z/a"], ["x/a", "z/a"]),
        (["s3://b/x y/a", "s3://b/x%20y/a"], ["x y/a", "x%20y/a"]),
        (["s3://b/x/a", "s3a://b/x/a"], ["a", "a"]),  # one file
        ([], []),
    ],
)
def test_keys_are_the_shortest_ends_that_differ(paths: list[str], keys: list[str]) -> None:
    found = FileKeys.of(paths)
    assert [found.key(path) for path in paths] == keys


@pytest.mark.parametrize(("path", "is_plain"), [("/d/a-1_b.parquet", True), ("/d/a b", False), ("/d/%", False)])
def test_only_odd_names_are_decoded(path: str, is_plain: bool) -> None:
    assert FileKeys.of([path]).is_plain is is_plain
