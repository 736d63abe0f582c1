"""Small results are one file each, and a write that fails or writes nothing leaves no folder."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.spark.write.small_results import gather_if_small

from .helpers import content, files, rows, run

LITERALS = "select 1 as id, 'a' as v union all select 2, 'b'"


def folders(lake: LakeSession) -> list[str]:
    """The folders below the lake's data path, as paths relative to it."""
    data = Path(lake.lake().catalog.data_path)
    return sorted(str(path.relative_to(data)) for path in data.rglob("*") if path.is_dir())


@pytest.mark.parametrize(
    "query",
    [
        LITERALS,
        "select * from values (1, array('a')), (2, array()) as v(id, l)",
        "select id, id * 2 as twice from range(0, 1000, 1, 8)",
        "select * from a union all select id + 2, v from a where id in (select id from a)",
        "select a.id, b.v from a join a as b on a.id = b.id union all select 3, 'c'",
    ],
)
def test_a_small_result_is_one_file(lake: LakeSession, query: str) -> None:
    run(lake, "call ducklake_set_option('data_inlining_row_limit', 0)")
    run(lake, f"create table a as {LITERALS}", f"create table t as {query}")
    assert len(files(lake, "a")) == len(files(lake)) == 1
    assert len(content(lake)) >= 2


def test_a_small_insert_is_one_file(lake: LakeSession) -> None:
    run(lake, f"create table t as {LITERALS}", "insert into t select id, 'c' from range(0, 100, 1, 4)")
    assert len(files(lake)) == 1
    assert len(content(lake)) == 102


def test_few_rows_may_be_large(tmp_path: Path) -> None:
    """More than Spark sends to the driver."""
    script = """
from dbt.adapters.ducklake import LakeSession

config = {"spark.driver.maxResultSize": "1m", "spark.ui.enabled": "false"}
with LakeSession("sqlite:catalog.sqlite", data_path="data/", spark={"master": "local[1]", "config": config}) as lake:
    lake.execute("create table t as select id, repeat(md5(string(id)), 30000) as v from range(8)")
    print(lake.sql("select sum(length(v)) from t").collect()[0][0])
"""
    found = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert found.stdout.split() == ["7680000"], found.stderr
    assert len(list(tmp_path.rglob("*.parquet"))) == 1


@pytest.mark.parametrize(
    "query",
    [
        "select id from range(0, 100000, 1, 4)",
        "select explode(sequence(1, 100)) as id from range(0, 100, 1, 4)",
        "select l.id from range(0, 100, 1, 4) as l left semi join range(1000000) as r on l.id = r.id",
    ],
)
def test_work_that_is_not_small_stays_divided(lake: LakeSession, query: str) -> None:
    result = lake.sql(query)
    assert gather_if_small(result) is result


def test_a_statement_that_fails_leaves_no_folder(lake: LakeSession) -> None:
    with pytest.raises(PySparkException, match="no such row"):
        lake.execute("create table t as select id, cast(raise_error('no such row') as string) as v from range(10)")
    assert folders(lake) == []
    run(lake, "create table t (id int not null, v string)")
    with pytest.raises(LakeError, match="NOT NULL"):
        lake.execute("insert into t select null, 'a'")
    assert folders(lake) == []
    run(lake, "insert into t select id, 'a' from range(100000)")
    with pytest.raises(LakeError, match="NOT NULL"):
        lake.execute("insert into t select nullif(id, 7), 'a' from range(100000)")
    assert len(files(lake)) == 2  # one of each task
    assert len(folders(lake)) == 3  # the schema's, the table's, and that of the one write


def test_an_empty_result_leaves_no_folder(lake: LakeSession) -> None:
    run(lake, "create table t as select id from range(10) where id > 10", "insert into t select id from t")
    assert (rows(lake, "select * from t"), folders(lake)) == ([], [])


def test_a_write_that_is_cancelled_leaves_no_folder(lake: LakeSession) -> None:
    endless = "select sha2(repeat(cast(id as string), 100), 512) as v from range(0, 1000000000000, 1, 2)"

    def write() -> None:
        with lake.job_tag("cancelled"), pytest.raises((PySparkException, Py4JError)):
            lake.execute(f"create table t as {endless}")

    thread = threading.Thread(target=write)
    thread.start()
    data = Path(lake.lake().catalog.data_path)
    while thread.is_alive() and not list(data.rglob("*.parquet")):
        time.sleep(0.05)
    while thread.is_alive():
        lake.cancel("cancelled")
        time.sleep(0.1)
    assert folders(lake) == []
