"""One script on Spark Connect, a local master and a cluster, each in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from ..servers import free_port

SCRIPT = """
import sys
from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.snapshot import MacroImpl, Parameter

settings = {"config": {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}}
key, _, where = sys.argv[1].partition("=")
settings[key] = where
other = {"name": "secret", "catalog": "sqlite:other.sqlite", "data_path": "c [d]/", "encrypted": True}
with LakeSession("sqlite:catalog.sqlite", data_path="a %41 b/", spark=settings, attach=[other]) as lake:
    lake.execute("create table t (a int not null, s string, l array<string>) partitioned by (s)")
    lake.execute("insert into t select id, concat('k', id % 2), array('q', null) from range(100)")
    lake.execute("create view v as select a, l from t where a >= 90")
    lake.execute("create function main.next(x int default 0) returns int return x + (select max(a) from main.t)")
    with lake.transaction() as transaction:  # a macro of DuckDB's
        body = MacroImpl("duckdb", "(x * 3)", "scalar", (Parameter("x"),))
        transaction.create_macro(transaction.state.schema("main"), "thrice", (body,), {})
    with lake.transaction(message="two"):
        lake.execute("insert into t values (100, null, null)")
        lake.execute("create or replace table u as select count(*) as n, min(rowid) as r from t")
    lake.execute("create or replace temp view tv as select * from v version as of 3")
    lake.execute("create or replace temp view fv as select main.next() as n")
    print(lake.sql("select n, r from u").toArrow().to_pylist())
    print(lake.sql("select count(*) as n, sum(size(l)) as l from v").toArrow().to_pylist())
    later = lake.sql("select count(*) as n from t where s = 'k1' and a < main.next(1)")
    for _ in range(3):
        lake.sql("select 1 from t limit 1").toArrow()
    print(later.toArrow().to_pylist(), lake.sql("select count(*) as n from ducklake_snapshots()").toArrow().to_pylist())
    print(lake.sql("select n, main.next(n), main.thrice(n) from fv").toArrow().to_pylist())
    at = lake.execute("delete from t where a < 3").snapshot_id
    feed = lake.sql(f"select change_type as c, count(*) as n from ducklake_table_changes('t', {at}, {at}) group by 1")
    lake.execute(f"call ducklake_rollback('t', version => {at - 1})")
    diff = lake.sql(f"select diff, count(*) as n from ducklake_diff('t', {at}, {at + 1}, 'a') group by 1")
    print(feed.toArrow().to_pylist(), diff.toArrow().to_pylist())
    none = lake.sql("select * from ducklake_options() where false").count()
    print([{"n": lake.sql("select * from t where a < 3").count()}], none)
    lake.execute("create table two as select id, 'a' as v from range(0, 20, 1, 4)")
    lake.execute("create table many as select id from range(0, 100000, 1, 4)")
    files = [lake.sql(f"select * from ducklake_list_files('{name}')").count() for name in ("two", "many")]
    lake.execute("create table secret.main.t as select * from t")
    lake.execute("delete from secret.main.t where a < 50")
    print(lake.sql("select count(*) as n, sum(size(l)) as l from secret.main.t").toArrow().to_pylist())
    lake.spark.sql("set spark.sql.ansi.doubleQuotedIdentifiers=true")
    print([{"files": files}], lake.sql('select count(*) as n from "two" where "id" = 2').toArrow().to_pylist())
"""

EXPECTED = [
    "[{'n': 101, 'r': 0}]",
    "[{'n': 11, 'l': 20}]",
    "[{'n': 50}] [{'n': 7}]",
    "[{'n': 100, 'next(n)': 200, 'thrice(n)': 300}]",
    "[{'c': 'delete', 'n': 3}] [{'diff': 'added', 'n': 3}]",
    "[{'n': 3}] 0",
    "[{'n': 51, 'l': 100}]",
    "[{'files': [1, 4]}] [{'n': 1}]",
]


def work(folder: Path, how: str) -> list[str]:
    """Runs the script with this setting of Spark and returns the lines it prints."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, how], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return [line for line in done.stdout.splitlines() if line.startswith("[{")]


@contextmanager
def cluster(folder: Path, workers: int = 1) -> Iterator[str]:
    """Starts a standalone cluster on the loopback interface."""
    home = os.path.dirname(pyspark.__file__)
    environment = {**os.environ, "SPARK_HOME": home, "SPARK_NO_DAEMONIZE": "1"}
    url = f"spark://127.0.0.1:{(port := free_port())}"
    run = [os.path.join(home, "bin", "spark-class")]
    master = [*run, "org.apache.spark.deploy.master.Master", "-h", "127.0.0.1", "-p", str(port), "--webui-port", "0"]
    worker = [*run, "org.apache.spark.deploy.worker.Worker", url, "-c", "1", "-m", "1g", "-h", "127.0.0.1"]
    processes = []
    try:
        commands = [[*worker, "-d", str(folder / f"work{i}"), "--webui-port", "0"] for i in range(workers)]
        for command in (master, *commands):
            with open(folder / f"{len(processes)}.log", "wb") as log:
                processes.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            time.sleep(6)
        yield url
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


@pytest.mark.usefixtures("connect_port")
def test_spark_connect(tmp_path: Path) -> None:
    assert work(tmp_path, "remote=local[2]") == EXPECTED


def test_a_local_master(tmp_path: Path) -> None:
    assert work(tmp_path, "master=local[2]") == EXPECTED


@pytest.mark.skipif(sys.platform == "win32", reason="the standalone cluster is started with a shell script")
def test_a_cluster(tmp_path: Path) -> None:
    with cluster(tmp_path) as url:
        assert work(tmp_path, f"master={url}") == EXPECTED
