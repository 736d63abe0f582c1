"""Author, message and extra info of the snapshot that a dbt node commits."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dbt.adapters.ducklake.history.node_commit import NodeCommit, git_commit
from dbt.adapters.ducklake.lake.transaction import ChangeCounts
from dbt.adapters.ducklake.spark.inputs import Input


def committed(folder: Path, command: str = "run", **config: Any) -> Any:
    node = SimpleNamespace(name="orders", unique_id="model.shop.orders", resource_type="model", config=config)
    project = SimpleNamespace(
        args=SimpleNamespace(which=command, full_refresh=False), target_name="prod", project_root=str(folder)
    )
    return NodeCommit(node, project)([Input("lake.main.raw", 3, 7)], ChangeCounts(10, 2, 1))


def test_the_message_names_command_node_and_materialization(tmp_path: Path) -> None:
    info = committed(tmp_path, "build", materialized="incremental", unique_key="id")
    assert info.message == "dbt build: orders (incremental, merge)"
    assert committed(tmp_path, materialized="table").message == "dbt run: orders (table)"
    assert info.author is None  # the author of the session applies


def test_extra_info_records_what_the_node_read_and_wrote(tmp_path: Path) -> None:
    extra = committed(tmp_path, materialized="table").extra_info
    assert extra["node_id"] == "model.shop.orders"
    assert extra["target"] == "prod"
    assert extra["inputs"] == [{"relation": "lake.main.raw", "table_id": 3, "snapshot": 7}]
    assert extra["rows"] == {"inserted": 10, "updated": 0, "deleted": 2}
    assert {"invocation_id", "dbt_version", "adapter_version", "full_refresh"} <= set(extra)


def test_a_model_may_configure_author_message_and_extra_info(tmp_path: Path) -> None:
    info = committed(tmp_path, commit_message="load", commit_author="Ada", commit_extra_info={"ticket": 7})
    assert (info.author, info.message) == ("Ada", "load")
    assert info.extra_info["ticket"] == 7
    assert info.extra_info["node_id"] == "model.shop.orders"


def test_the_git_commit_of_the_project_is_found_if_there_is_one(tmp_path: Path) -> None:
    assert git_commit(str(tmp_path / "none")) is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    assert len(git_commit(str(tmp_path)) or "") == 40
