"""Spark writes data files where they stay, and only those of tasks that counted are the table's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.engine.java_classes import COMMIT_PROTOCOL_SETTING, _sessions
from dbt.adapters.ducklake.spark.sql.quoting import string_literal

from .helpers import content, run
from .test_modes import cluster

VALUES = ["EU/x y", "", "~", "~a", "ä%41", "a,b=c", "__HIVE_DEFAULT_PARTITION__", "x\ty\nz", None]
HADOOPS = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"


@pytest.fixture
def hadoops_committer(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, lake: LakeSession) -> Iterator[None]:
    """The session as it is where Spark does not have our jar."""
    before = lake.spark.conf.get(COMMIT_PROTOCOL_SETTING)
    monkeypatch.setitem(_sessions, lake.spark, False)
    spark.conf.set(COMMIT_PROTOCOL_SETTING, HADOOPS)
    yield
    spark.conf.set(COMMIT_PROTOCOL_SETTING, before)


def _on_disk(lake: LakeSession) -> list[str]:
    data = Path(lake.lake().catalog.data_path)
    return sorted(str(path.relative_to(data)) for path in data.rglob("*") if path.is_file())


def _known(lake: LakeSession, *tables: str) -> list[str]:
    data = lake.lake().catalog.data_path
    files = [f for table in tables for f in lake.sql(f"select * from ducklake_list_files('{table}')").collect()]
    paths = [p for f in files for p in (f.data_file, f.delete_file) if p is not None]
    return sorted(path.removeprefix("file://").removeprefix(data) for path in paths)


def _make(lake: LakeSession) -> None:
    values = ", ".join("null" if v is None else string_literal(v) for v in VALUES)
    run(
        lake,
        "call ducklake_set_option('data_inlining_row_limit', 0)",
        "create table t as select id from range(0, 1000, 1, 3)",
        "create table p (id bigint, v string, n int) partitioned by (v, bucket(2, n))",
        f"insert into p select pos, col, n from (select posexplode(array({values}))), values (0), (1) as v(n)",
        "create table empty as select id from range(10) where id > 10",
        "delete from t where id % 7 = 0",
        "delete from p where n = 1",
    )


def _check(lake: LakeSession) -> None:
    kept = [(number, value, 0) for number, value in enumerate(VALUES)]
    assert content(lake, "p") == sorted(kept, key=repr)
    assert lake.sql("select count(*), sum(rowid) from t").collect() == [(857, sum(i for i in range(1000) if i % 7))]
    assert _on_disk(lake) == _known(lake, "main.t", "main.p")


def test_files_stay_where_spark_writes_them(lake: LakeSession) -> None:
    _make(lake)
    _check(lake)
    folders = {path.split("/")[-3] for path in _known(lake, "main.p") if "delete" not in path}
    assert folders == {f"v={'__HIVE_DEFAULT_PARTITION__' if v is None else quote(v, safe='')}" for v in VALUES}
    assert not any("bucket" not in path for path in _known(lake, "main.p") if "delete" not in path)


@pytest.mark.usefixtures("hadoops_committer")
def test_without_the_commit_protocol_files_are_moved(lake: LakeSession) -> None:
    _make(lake)
    _check(lake)
    assert any(path.startswith("main/p/v=EU%2Fx%20y/bucket=") for path in _known(lake, "main.p"))


def test_other_writes_of_the_session_go_as_ever(lake: LakeSession, tmp_path: Path) -> None:
    run(lake, "create table t as select id, id % 2 as g from range(10)")
    for _ in range(2):
        lake.sql("select * from t").write.mode("overwrite").partitionBy("g").parquet(f"{tmp_path}/out")
    assert lake.spark.read.parquet(f"{tmp_path}/out").count() == 10
    assert (tmp_path / "out" / "_SUCCESS").exists()


FOREIGN = """
from pyspark.sql import SparkSession
from dbt.adapters.ducklake import LakeSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
with LakeSession("sqlite:catalog.sqlite", data_path="data/") as lake:
    lake.execute("create table p partitioned by (g) as select id, id % 2 as g from range(10)")
    spark.range(3).write.parquet("other")
    print(lake.sql("select count(*), sum(id) from p").first()[:], spark.read.parquet("other").count())
"""


def test_a_session_that_was_there_before_lacks_the_jar_and_works(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FOREIGN]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == ["(10, 45) 3"]


UNSTEADY = """
import os, sys, time
from pathlib import Path
from pyspark.sql import functions as F
from dbt.adapters.ducklake import LakeSession

marks = Path("marks").absolute()
marks.mkdir()
config = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "300ms",
    "spark.executor.memory": "512m",
}

def unsteady(number):
    # At the end of their first attempts, one task fails, one is slow, and one kills the process of its executor.
    mark = marks / str(number)
    if number % 1000 < 999 or mark.exists():
        return number
    mark.touch()
    if number == 999:
        raise ValueError("the first attempt fails")
    if number == 1999:
        time.sleep(20)
    if number == 2999:
        daemon = Path(f"/proc/{os.getppid()}/status").read_text()
        os.kill(int(daemon.split("PPid:")[1].split()[0]), 9)
        time.sleep(20)
    return number

def rest(table):
    named = {Path(r.data_file).name for r in lake.sql(f"select * from ducklake_list_files('{table}')").collect()}
    return {path.name for path in Path(f"data/main/{table}").rglob("*") if path.is_file()} - named

with LakeSession("sqlite:catalog.sqlite", data_path="data/", spark={"master": sys.argv[1], "config": config}) as lake:
    lake.spark.range(0, 4000, 1, 4).select(F.udf(unsteady, "bigint")("id").alias("id")).createTempView("numbers")
    lake.execute("create table t partitioned by (g) as select id, 1 as g from numbers")
    print(tuple(lake.sql("select count(*), count(distinct id), sum(id) from t").first()), len(list(marks.iterdir())))
    until = time.monotonic() + 30  # the slow attempt deletes its file when it notices that it lost
    while rest("t") and time.monotonic() < until:
        time.sleep(0.2)
    print(sorted(rest("t")))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the standalone cluster is started with a shell script")
def test_attempts_of_tasks_that_fail_are_slow_or_lose_their_executor_leave_nothing(tmp_path: Path) -> None:
    with cluster(tmp_path, workers=2) as url:
        environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
        command = [sys.executable, "-c", UNSTEADY, url]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f"(4000, 4000, {sum(range(4000))}) 4", "[]"]
