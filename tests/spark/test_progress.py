"""Spark's jobs carry the names of the nodes that started them, and tell how far they are."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.engine.progress import Progress

SLOW = "select sum(id) from range(0, 60, 1, 6) where java_method('java.lang.Thread', 'sleep', 20L) is not null"


def run(lake: LakeSession, tag: str, description: str | None, statement: str) -> None:
    with lake.job_tag(tag, description):
        lake.sql(statement).collect()


def test_the_progress_of_each_thread_is_its_own(lake: LakeSession) -> None:
    seen: dict[str, list[Progress]] = {"slow": [], "quick": []}
    threads = [
        threading.Thread(target=run, args=(lake, "slow", "model.shop.slow", SLOW)),
        threading.Thread(target=run, args=(lake, "quick", "model.shop.quick", "select 1 from range(1)")),
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + 60
    while any(thread.is_alive() for thread in threads) and time.monotonic() < deadline:
        for tag, states in seen.items():
            states.append(lake.spark_progress(tag))
        time.sleep(0.05)
    assert any(0 < state.tasks_done < state.tasks for state in seen["slow"])
    slow, quick = lake.spark_progress("slow"), lake.spark_progress("quick")
    assert slow.stages_done == slow.stages > 0
    assert slow.tasks_done == slow.tasks > quick.tasks
    assert slow.rows_read == 60
    assert quick.tasks_done == quick.tasks > 0
    assert not lake.spark_progress("neither")


def test_progress_tells_what_scans_read(lake: LakeSession) -> None:
    lake.execute("create table t as select id from range(50)")
    run(lake, "reading", "model.shop.reading", "select sum(id) from t")
    progress = lake.spark_progress("reading")
    assert progress.rows_read == 50
    assert progress.bytes_read > 0


def test_jobs_have_the_name_of_their_node(lake: LakeSession) -> None:
    jobs: Any = lake.spark.sparkContext
    known = set(jobs.statusTracker().getJobIdsForGroup("node-1"))
    run(lake, "node-1", "model.shop.`odd\n name`", "select count(*) from range(3)")
    store = jobs._jsc.sc().statusStore()
    new = set(jobs.statusTracker().getJobIdsForGroup("node-1")) - known
    assert {store.job(id).description().get() for id in new} == {"model.shop.`odd\n name`"}


def test_a_tag_without_a_description_leaves_the_job_group_alone(lake: LakeSession) -> None:
    lake.spark.sparkContext.setJobGroup("of the notebook", "mine")
    try:
        run(lake, "only a tag", None, "select count(*) from range(3)")
        assert lake.spark.sparkContext.getLocalProperty("spark.jobGroup.id") == "of the notebook"
    finally:
        lake.spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        lake.spark.sparkContext.setLocalProperty("spark.job.description", None)


CONNECT = """
import sys, threading, time
from dbt.adapters.ducklake import LakeSession

config = {"spark.connect.progress.reportInterval": "100ms", "spark.sql.shuffle.partitions": "2"}
with LakeSession("sqlite:catalog.sqlite", data_path="data/", spark={"remote": "local[2]", "config": config}) as lake:
    def run():
        with lake.job_tag("model.shop.orders-1", "model.shop.orders"):
            lake.sql(sys.argv[1]).collect()
    thread = threading.Thread(target=run)
    thread.start()
    states = set()
    while thread.is_alive():
        states.add(lake.spark_progress("model.shop.orders-1"))
        time.sleep(0.05)
    assert any(0 < state.tasks_done < state.tasks for state in states), states
    assert not lake.spark_progress("another")
    print("progress over Spark Connect")
"""


@pytest.mark.usefixtures("connect_port")
def test_progress_over_spark_connect(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, SLOW], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert "progress over Spark Connect" in done.stdout, done.stderr[-3000:]
