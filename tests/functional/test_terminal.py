"""What a person at a terminal sees: progress of long nodes, no noise of Java, and errors of the profile at once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

pty = pytest.importorskip("pty")

PROGRAM = """
import sys
from pyspark import SparkContext
from dbt.cli.main import dbtRunner
from dbt.adapters.ducklake import progress
progress.INTERVAL_SECONDS = 0.5
success = dbtRunner().invoke(sys.argv[1:]).success
if SparkContext._gateway is None:
    print("no Java process was started")
sys.exit(0 if success else 1)
"""

SLOW = """
select sum(id) as total from range(0, 60, 1, 6) where java_method('java.lang.Thread', 'sleep', 50L) is not null
"""


def at_terminal(folder: Path, *command: str) -> str:
    """What dbt prints at a terminal, on both streams."""
    terminal, program = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k != "JAVA_TOOL_OPTIONS"}  # of which Java speaks
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "--no-use-colors", *command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=program,
        stderr=program,
    )
    os.close(program)
    printed = b""
    while True:
        try:
            data = os.read(terminal, 4096)
        except OSError:  # Linux says so when the last program has closed the terminal
            break
        if not data:
            break
        printed += data
    os.close(terminal)
    process.wait(timeout=60)
    return printed.decode().replace("\r\n", "\n")


@pytest.mark.processes
class TestALongModel:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"slow.sql": SLOW, "config.yml": "models: [{name: slow, config: {materialized: table}}]"}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, lake_target: dict[str, Any]) -> dict[str, Any]:
        spark = lake_target["spark"]
        return {**lake_target, "spark": {**spark, "config": {**spark["config"], "spark.ui.enabled": True}}}

    def run(self, project: Any, *options: str) -> str:
        where = ["--project-dir", str(project.project_root), "--profiles-dir", str(project.profiles_dir)]
        return at_terminal(Path(project.project_root), *options, "run", *where)

    def test_progress_is_shown_among_the_lines_of_dbt(self, project: Any) -> None:
        printed = self.run(project)
        progress = re.findall(r"^\d\d:\d\d:\d\d  slow: (.*) \[\d+s\](.*)$", printed, re.MULTILINE)
        assert any(re.match(r"\d of \d stages, \d of \d+ tasks", state) for state, _ in progress), printed
        assert sum("; Spark's page: http://" in page for _, page in progress) == 1, printed
        assert "OK created sql table model" in printed
        of_others = [line for line in printed.splitlines() if not re.match(r"\d\d:\d\d:\d\d  ?", line)]
        assert not of_others, "every line is one of dbt"

    def test_quiet_prints_nothing(self, project: Any) -> None:
        assert self.run(project, "--quiet") == ""


@pytest.mark.processes
@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param(
            {"attach": [{"name": "raw", "catalog": "sqlite:not_there.sqlite", "read_only": True}]},
            "there is no lake in sqlite:not_there.sqlite",
            id="an attached lake that does not exist",
        ),
        pytest.param({"catalog": "postgres:host=127.0.0.1 port=1"}, "127.0.0.1", id="a catalog that does not answer"),
        pytest.param(
            {"spark": {"remote": "sc://127.0.0.1:1"}}, "no server answers at 127.0.0.1, port 1", id="a Spark likewise"
        ),
    ],
)
def test_an_error_in_the_profile_comes_before_spark_is_started(
    target: dict[str, Any], message: str, tmp_path: Path
) -> None:
    lake = {"type": "ducklake", "catalog": "sqlite:metadata.sqlite", "data_path": "data/", "threads": 1}
    profile = {"shop": {"target": "dev", "outputs": {"dev": {**lake, **target}}}}
    (tmp_path / "profiles.yml").write_text(yaml.safe_dump(profile))
    (tmp_path / "dbt_project.yml").write_text("{name: shop, profile: shop, version: 1.0.0, config-version: 2}")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "one.sql").write_text("select 1 as id")
    printed = at_terminal(tmp_path, "run")
    assert message in printed
    assert "no Java process was started" in printed
    assert "START" not in printed, "it is no error of a model"
