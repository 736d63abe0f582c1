"""The loader of docs/streaming.md loads every row once, also after a crash."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession

from .blocks import run_blocks
from .conftest import BUCKET

(RECIPE,) = [block for block in run_blocks("python") if block.page == "docs/streaming.md"]


@pytest.fixture
def loader(spark: SparkSession, lake_copy: Callable[[str], str], tmp_path: Path) -> Iterator[dict[str, Any]]:
    _arrive(tmp_path, 1)
    with LakeSession(lake_copy("metadata.sqlite"), spark=spark) as lake:
        names: dict[str, Any] = {"lake": lake}
        exec(compile(RECIPE.text.replace(BUCKET, str(tmp_path)), RECIPE.id, "exec"), names)
        yield names


def _arrive(folder: Path, number: int) -> None:
    (folder / "incoming").mkdir(exist_ok=True)
    (folder / "incoming" / f"{number}.json").write_text(f'{{"id": {number}, "page": "/"}}')


def test_a_batch_that_was_committed_before_a_crash_is_not_loaded_again(loader: dict[str, Any], tmp_path: Path) -> None:
    lake, load = loader["lake"], loader["load_clicks"]
    _arrive(tmp_path, 2)
    load()
    # Spark had committed the batch to the lake, and did not come to note that it had.
    for name in ("1", ".1.crc"):
        (tmp_path / "checkpoints" / "clicks" / "commits" / name).unlink()
    _arrive(tmp_path, 3)
    load()
    assert [row.id for row in lake.sql("select id from clicks order by id").collect()] == [1, 2, 3]
    messages = lake.sql("select commit_message from ducklake_snapshots() where commit_message like 'clicks%'").collect()
    assert [row.commit_message for row in messages] == [f"clicks, batch {n}" for n in range(3)]
