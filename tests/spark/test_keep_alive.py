"""spark.keep_alive: commands, each a process, that find Spark as the command before them left it."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dbt.adapters.ducklake.spark.engine.keep_alive import ServerAddress

COMMAND = """
import json, sys
from dbt.adapters.ducklake import LakeSession

settings = json.loads(sys.argv[1])
with LakeSession("sqlite:catalog.sqlite", data_path="data/", spark=settings) as lake:
    if "stop" in sys.argv:
        print(json.dumps(lake.stop_warm_spark()))
    else:
        lake.execute("create table if not exists t (id int)")
        lake.execute("insert into t select 1")
        print(json.dumps(lake.sql("select count(*) as n from t").toArrow().to_pylist()))
"""

Command = Callable[..., Any]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "dbt-ducklake" / "spark"


@pytest.fixture
def command(tmp_path: Path, cache: Path) -> Iterator[Command]:
    """Runs one command in a process of its own and returns what it prints."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}

    def run(*words: str, keep_alive: str = "5m", **config: str) -> Any:
        settings = {"keep_alive": keep_alive, "master": "local[1]", "config": config}
        script = [sys.executable, "-c", COMMAND, json.dumps(settings), *words]
        done = subprocess.run(script, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr[-3000:]
        return json.loads(done.stdout.splitlines()[-1])

    yield run
    for address in addresses(cache):
        os.kill(address.pid, signal.SIGTERM)


def addresses(cache: Path) -> list[ServerAddress]:
    return [ServerAddress(**json.loads(path.read_text())) for path in sorted(cache.glob("*.json"))]


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.1)


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_second_command_uses_the_first_ones_spark_until_that_is_stopped_or_dies(
    command: Command, cache: Path
) -> None:
    assert command() == [{"n": 1}]
    (first,) = addresses(cache)
    assert command() == [{"n": 2}]
    assert addresses(cache) == [first]
    assert not [path for path in cache.iterdir() if stat.S_IMODE(path.stat().st_mode) & 0o077], "others may read these"
    assert first.token not in repr(first)

    os.kill(first.pid, signal.SIGKILL)
    assert command() == [{"n": 3}]
    (second,) = addresses(cache)
    assert second.pid != first.pid

    assert command("stop") is True
    wait_until(lambda: is_gone(second.pid))
    assert addresses(cache) == []
    assert command("stop") is False


def test_other_settings_are_another_spark_and_each_ends_when_it_is_idle(command: Command, cache: Path) -> None:
    assert command() == [{"n": 1}]
    (first,) = addresses(cache)
    assert command(keep_alive="4s", **{"spark.sql.shuffle.partitions": "3"}) == [{"n": 2}]
    assert len(list(cache.glob("*.alive"))) == 2
    wait_until(lambda: addresses(cache) == [first])


def test_a_server_refuses_who_does_not_know_its_token(command: Command, cache: Path) -> None:
    command()
    (address,) = addresses(cache)
    script = (
        "import sys\nfrom pyspark.sql import SparkSession\n"
        "from pyspark.sql.connect.client.retries import DefaultPolicy\n"
        "spark = SparkSession.builder.remote(sys.argv[1]).create()\n"
        "spark.client.set_retry_policies([DefaultPolicy(max_retries=1)])\n"
        "print(spark.sql('select 1').collect())\n"
    )
    wrong = address.remote.replace(address.token, "wrong")
    done = subprocess.run([sys.executable, "-c", script, wrong], capture_output=True, text=True, timeout=120)
    assert done.returncode != 0
    assert "authenticat" in done.stderr.lower() or "unauthenticated" in done.stderr.lower(), done.stderr[-2000:]
