"""Files are found by path, below a folder, and by globs."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from dbt.adapters.ducklake.lake.errors import LakeError, NotFoundError
from dbt.adapters.ducklake.lake.file_globs import find_files

FILES = (
    "a.parquet",
    "b.parquet",
    "c.txt",
    "y=1/a.parquet",
    "y=1/m=2/deep.parquet",
    "y=2/[x].parquet",
    "_temporary/t.parquet",
    "_k=1/k.parquet",
    ".hidden.parquet",
)


@pytest.fixture(scope="module")
def pool() -> Iterator[Executor]:
    with ThreadPoolExecutor(4) as executor:
        yield executor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("a.parquet", ["a.parquet"]),
        ("?.parquet", ["a.parquet", "b.parquet"]),
        ("[!a].parquet", ["b.parquet"]),
        ("[a-b].*", ["a.parquet", "b.parquet"]),
        ("{a,c}.*", ["a.parquet", "c.txt"]),
        ("y=*/*.parquet", ["y=1/a.parquet", "y=2/[x].parquet"]),
        ("y=1/**", ["y=1/a.parquet", "y=1/m=2/deep.parquet"]),
        ("**/a.parquet", ["a.parquet", "y=1/a.parquet"]),
        ("**/m=*/**/d*.parquet", ["y=1/m=2/deep.parquet"]),
        ("y=2/[x].parquet", ["y=2/[x].parquet"]),
        ("y=2/*].parquet", ["y=2/[x].parquet"]),
        ("", ["_k=1/k.parquet", "a.parquet", "b.parquet", "y=1/a.parquet", "y=1/m=2/deep.parquet", "y=2/[x].parquet"]),
    ],
)
def test_files_are_found(folder: Path, pool: Executor, glob: str, expected: list[str]) -> None:
    found = find_files(pafs.LocalFileSystem(), f"{folder}/{glob}", pool)
    assert [file.path.removeprefix(f"{folder}/") for file in found] == expected
    assert {file.size for file in found} == {1}


@pytest.mark.parametrize(("path", "error"), [("no", "there is no file"), ("no*", "no file matches"), ("e", "below")])
def test_no_file_is_an_error(folder: Path, pool: Executor, path: str, error: str) -> None:
    (folder / "e").mkdir()
    with pytest.raises(NotFoundError, match=error):
        find_files(pafs.LocalFileSystem(), f"{folder}/{path}", pool)


@pytest.mark.parametrize(
    ("inside", "kind"),
    [("_delta_log/0.json", "Delta"), ("metadata/v1.metadata.json", "Iceberg"), (".hoodie/x", "Hudi")],
)
def test_a_folder_of_another_table_format_is_refused(folder: Path, pool: Executor, inside: str, kind: str) -> None:
    (folder / inside).parent.mkdir()
    (folder / inside).write_text("{}")
    with pytest.raises(LakeError, match=f"has the files of an? {kind} table"):
        find_files(pafs.LocalFileSystem(), str(folder), pool)
