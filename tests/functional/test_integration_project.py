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
    assert (folder / ".gitignore").read_text() == "*\n"
    lake = reference.connect(f"sqlite:{folder}/metadata.sqlite", f"{folder}/data/")
    try:
        assert lake.execute("select count(*) from lake.main.orders").fetchall() == [(108,)]
        assert (
            lake.execute("select sum(visits) from lake.main.daily").fetchall()
            == lake.execute("select count(*) from lake.main_raw.events where kind = 'visit'").fetchall()
        )
        assert lake.execute("select count(*) from lake.main_staging.stg_customers").fetchall() == [(12,)]
        # The second build updated what was merged, replaced the year's batch, and ended versions.
        events = "select customer_id, min(e.at), max(e.at) from lake.main_raw.events e group by customer_id order by 1"
        seen = "select customer_id, first_seen, last_seen from lake.main.last_seen order by 1"
        assert lake.execute(seen).fetchall() == lake.execute(events).fetchall()
        doing = "select last_event, count(*) from lake.main.last_seen group by 1 order by 1"
        kept = "select last_event, customers from lake.main.last_events where customers > 0 order by 1"
        assert lake.execute(kept).fetchall() == lake.execute(doing).fetchall()
        years = "select year(happened_at), count(*) from lake.main.activity group by 1 order by 1"
        assert lake.execute(years).fetchall() == [(2025, 12), (2026, 108)]
        snapshots = (
            "select snapshot_id, commit_message, unnest(from_json(nodes, '[\"json\"]'))->>'message' as node from"
        )
        snapshots += " (select *, commit_extra_info->'nodes' as nodes from ducklake_snapshots('lake'))"
        batches = f"select count(*) from ({snapshots}) where node like '%: activity (%'"
        assert lake.execute(batches).fetchall() == [(3,)]
        builds = f"select distinct snapshot_id, commit_message like 'dbt build: %' from ({snapshots}) order by 1"
        assert [is_build for _, is_build in lake.execute(builds).fetchall()] == [True, True]
        versions = (
            "select count(*) filter (dbt_valid_to is null), count(dbt_valid_to) > 0 from lake.main.customers_history"
        )
        assert lake.execute(versions).fetchall() == [(12, True)]
        large = "select count(*) from lake.main.orders where lake.main.order_size(amount) = 'large'"
        assert (
            lake.execute("select sum(large_orders) from lake.main.customers").fetchall()
            == lake.execute(large).fetchall()
        )
    finally:
        lake.close()
    lineage = json.loads((folder / "target" / "snapshot_lineage.json").read_text())
    assert {"lake.main_raw.events", "lake.main.last_events"} <= {r["name"] for r in lineage["relations"]}
    catalog = json.loads((folder / "target" / "catalog.json").read_text())
    assert catalog["nodes"]["model.shop.orders"]["stats"]["partitioned_by"]["value"] == "month(ordered_at)"
