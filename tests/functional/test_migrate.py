"""The operation ducklake_migrate, on a lake that dbt cannot open before."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def dbt(folder: Path, *command: str) -> tuple[bool, str]:
    """Runs dbt in a process of its own. Returns whether it succeeded, and its log."""
    done = subprocess.run(
        [sys.executable, "-m", "dbt.cli.main", "--no-use-colors", *command, "--profiles-dir", "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode == 0, done.stdout


def test_an_old_lake_is_migrated_by_an_operation(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "tests" / "data" / "lakes_0_3", tmp_path / "lake")
    target = {"type": "ducklake", "catalog": "sqlite:lake/metadata.sqlite"}
    (tmp_path / "profiles.yml").write_text(json.dumps({"old": {"target": "dev", "outputs": {"dev": target}}}))
    (tmp_path / "dbt_project.yml").write_text("name: old\nprofile: old\n")
    succeeded, log = dbt(tmp_path, "run-operation", "ducklake_stale")
    assert not succeeded
    assert "has format version 0.3, and this package works with 1.0 and 1.1; bring the lake up to date with" in log
    migrate = ("run-operation", "ducklake_migrate")
    succeeded, log = dbt(tmp_path, *migrate, "--args", "{version: 1.0, dry_run: true}")
    assert succeeded, log
    assert "sqlite:lake/metadata.sqlite would be migrated from 0.3 to 1.0:\n  create the table ducklake_macro\n" in log
    succeeded, log = dbt(tmp_path, *migrate)
    assert succeeded, log
    assert "was migrated from 0.3 to 1.1:" in log
    succeeded, log = dbt(tmp_path, *migrate)
    assert succeeded, log
    assert "has format version 1.1 already" in log
    succeeded, log = dbt(tmp_path, "run-operation", "ducklake_stale")
    assert succeeded, log
