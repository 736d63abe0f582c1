"""Deletion vectors, with the lake that the reference's development branch for DuckLake 1.1 made."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.spark.change import position_deletes, row_positions
from dbt.adapters.ducklake.spark.read import delete_files, deletion_masks

from .helpers import content, files, rows, run, snapshots, value

LAKE_1_1 = Path(__file__).parents[1] / "data" / "lakes_1_1" / "vectors"


@pytest.fixture(params=["on the driver", "joined", "by Spark"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How deletes are read."""
    if request.param != "on the driver":
        monkeypatch.setattr(deletion_masks, "MAX_BLOCKS", 0)
    if request.param == "by Spark":
        monkeypatch.setattr(deletion_masks, "MAX_FILES", 0)
        monkeypatch.setattr(row_positions, "MAX_DRIVER_ROWS", 0)
        monkeypatch.setattr(row_positions, "MAX_DRIVER_POSITIONS", 0)
    return str(request.param)


@pytest.fixture
def lake_1_1(spark: SparkSession, tmp_path: Path) -> Iterator[LakeSession]:
    """A lake with containers of vectors of several snapshots. It becomes one of 1.1, so that it may be written."""
    shutil.copytree(LAKE_1_1, tmp_path, dirs_exist_ok=True)
    with sqlite3.connect(tmp_path / "metadata.sqlite") as catalog:
        catalog.execute("update ducklake_metadata set value = '1.1' where key = 'version'")
        catalog.execute("update ducklake_metadata set value = ? where key = 'data_path'", [f"{tmp_path}/data/"])
    catalog.close()
    with LakeSession(f"sqlite:{tmp_path}/metadata.sqlite", spark=spark) as lake:
        yield lake


def as_text(found: list[Any]) -> list[str]:
    return sorted("{" + ", ".join(f"'{name}': {v}" for name, v in row.asDict().items()) + "}" for row in found)


def test_vectors_of_several_snapshots_are_read_at_each_snapshot(lake_1_1: LakeSession, reader: str) -> None:
    answers = json.loads((LAKE_1_1 / "answers.json").read_text())
    for answer in answers["relations"]:
        query = f"select * from {answer['schema']}.{answer['relation']} version as of {answer['version']}"
        assert as_text(lake_1_1.sql(query).collect()) == answer["rows"], query
    for answer in answers["changes"]:
        name, start, end = f"{answer['schema']}.{answer['table']}", answer["from"], answer["to"]
        query = f"select * from ducklake_table_changes('{name}', {start}, {end})"
        assert as_text(lake_1_1.sql(query).collect()) == answer["rows"], query


def test_deletes_from_a_file_with_several_vectors_keep_its_history(lake_1_1: LakeSession, reader: str) -> None:
    run(
        lake_1_1, "call ducklake_set_option('write_deletion_vectors', true)", "delete from t where id between 20 and 29"
    )
    newest = snapshots(lake_1_1)
    counts = [value(lake_1_1, f"select count(*) from t version as of {at}") for at in (1, 2, 3, 4, 7, newest)]
    assert counts == [1000, 900, 800, 799, 890, 882]
    changes = rows(lake_1_1, f"select snapshot_id from ducklake_table_deletions('t', 2, {newest}) where id < 1000")
    assert sorted({(at, len([c for c in changes if c == (at,)])) for (at,) in changes}) == [
        (2, 100),
        (3, 100),
        (4, 1),
        (6, 1),
        (newest, 8),
    ]


@pytest.fixture
def partitioned(lake: LakeSession) -> LakeSession:
    """A table of 12 files with a vector each."""
    run(
        lake,
        "call ducklake_set_option('write_deletion_vectors', true)",
        "call ducklake_set_option('data_inlining_row_limit', 0)",
        "create table t (part int, id bigint) partitioned by (part)",
        "insert into t select id % 12, id div 12 from range(0, 12 * 200, 1, 1)",
        "delete from t where id % 10 = 3 or id between 64 and 130",
    )
    return lake


LEFT = [i for i in range(200) if i % 10 != 3 and not 64 <= i <= 130]


def vectors(lake: LakeSession) -> list[Path]:
    found = [Path(path) for _, path in files(lake) if path is not None]
    assert {path.suffix for path in found} == {".puffin"}
    return found


def test_vectors_are_written_and_read_in_parts(
    partitioned: LakeSession, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delete_files, "_MAX_VECTORS", 5)
    monkeypatch.setattr(delete_files, "_MAX_BLOCKS", 9)
    monkeypatch.setattr(position_deletes, "_MAX_VECTOR_ROWS", 500)
    run(
        partitioned,
        "create table u (part int, id bigint) partitioned by (part)",
        "begin",
        "insert into u from t version as of 2",
    )
    run(partitioned, "delete from u where id % 10 = 3", "delete from u where id between 64 and 130", "commit")
    expected = sorted(((part, i) for part in range(12) for i in LEFT), key=repr)
    assert content(partitioned, "t") == content(partitioned, "u") == expected
    assert len(vectors(partitioned)) == 12
    assert {Path(str(path)).suffix for _, path in files(partitioned, "u")} == {".puffin"}
    deleted = f"select count(*) from ducklake_table_deletions('t', 1, {snapshots(partitioned)})"
    assert value(partitioned, deleted) == 12 * (200 - len(LEFT))


def test_a_query_reads_the_vectors_of_the_files_that_it_reads(partitioned: LakeSession, reader: str) -> None:
    wanted = [f for f, _ in files(partitioned) if "part=7/" in f]
    for data_file, vector in files(partitioned):
        if data_file not in wanted:
            Path(str(vector)).unlink()
    assert rows(partitioned, "select id from t where part = 7 order by id") == [(i,) for i in LEFT]
    with pytest.raises(Exception, match=r"delete\.puffin"):
        content(partitioned)


def test_the_error_for_a_damaged_vector_names_it(partitioned: LakeSession, reader: str) -> None:
    path = vectors(partitioned)[0]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(LakeError, match=f"the deletion vector {path} is damaged: its length is given"):
        content(partitioned)


def test_a_position_beyond_the_end_of_the_file_is_an_error(partitioned: LakeSession) -> None:
    first, second = (next(v for f, v in files(partitioned) if f"part={part}/" in f) for part in (1, 2))
    run(partitioned, "create table one as select id from range(0, 5, 1, 1)", "delete from one where id = 1")
    ((_, small),) = files(partitioned, "one")
    shutil.copy(str(second), str(small))
    assert first != second
    with pytest.raises(LakeError, match=r"has the position \d+, and the file has 5 rows: .*puffin"):
        content(partitioned, "one")
