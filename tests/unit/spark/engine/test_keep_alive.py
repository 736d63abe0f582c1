"""Settings of spark.keep_alive."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.spark.engine.keep_alive import WarmServer, parse_duration
from dbt.adapters.ducklake.spark.engine.spark_session import Engine


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), (" 2 h ", 7200)])
def test_a_duration_has_a_unit(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "30", "0m", "-1m", "1.5h", "m", "30 days", 30, None])
def test_anything_else_is_no_duration(text: object) -> None:
    with pytest.raises(LakeError, match="keep_alive takes a time such as 90s, 30m or 2h"):
        parse_duration(text)


def test_servers_of_other_projects_masters_and_settings_are_others(tmp_path: Path) -> None:
    def key(project: str = "a", master: str = "local[*]", **settings: str) -> str:
        return WarmServer(project, master, settings, tmp_path).key

    keys = [key(), key("b"), key(master="local[2]"), key(x="1"), key(x="2")]
    assert len(set(keys)) == len(keys)
    assert key() == key()


@pytest.mark.parametrize("other", [{"remote": "sc://host:15002"}, {"master": "spark://host:7077"}])
def test_only_a_local_spark_is_kept(other: dict[str, str]) -> None:
    with pytest.raises(LakeError, match="keeps a local Spark"):
        Engine(keep_alive="30m", **other)
