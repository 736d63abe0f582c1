"""The integration project, as `make quickstart` builds it in an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from .. import reference

ROOT = Path(__file__).parents[2]


@pytest.mark.processes
def test_quickstart_builds_a_lake_that_duckdb_reads(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "integration_project.quickstart"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "What to look at next" in done.stdout
    folder = tmp_path / "quickstart"
    lake = reference.connect(f"sqlite:{folder}/metadata.sqlite", f"{folder}/data/")
    try:
        assert lake.execute("select count(*) from lake.main.orders").fetchall() == [(108,)]
        assert (
            lake.execute("select sum(visits) from lake.main.daily").fetchall()
            == lake.execute("select count(*) from lake.main_raw.events where kind = 'visit'").fetchall()
        )
        assert lake.execute("select count(*) from lake.main_staging.stg_customers").fetchall() == [(12,)]
    finally:
        lake.close()
    catalog = json.loads((folder / "target" / "catalog.json").read_text())
    assert catalog["nodes"]["model.shop.orders"]["stats"]["partitioned_by"]["value"] == "month(ordered_at)"
