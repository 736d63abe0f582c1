"""Maintenance by dbt: after a node, at the end of a run, and as operations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.ducklake.maintenance import RunBudget

from .conftest import Ask

EVENTS = """{{ config(materialized='incremental', maintenance={'small_files': 2, 'max_share': 1}) }}
select id, 1 as n from range(50)
"""
TOTALS = "{{ config(materialized='table') }} select count(*) as n from {{ ref('events') }}"
SEEN = """{{ config(materialized='incremental', maintenance='off') }}
select id, change_type from {{ ducklake_new_changes(ref('events')) }}
"""


class TestMaintenance:
    @pytest.fixture(scope="class")
    def lake_folder(self, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """A lake of its own: others would miss the snapshots that expire."""
        return tmp_path_factory.mktemp("maintained")

    @pytest.fixture(scope="class")
    def lake_catalog(self, lake_folder: Path) -> str:
        return f"sqlite:{lake_folder}/metadata.sqlite"

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": EVENTS, "totals.sql": TOTALS, "seen.sql": SEEN}

    @pytest.fixture(scope="class")
    def dbt_profile_target(self, dbt_profile_target: dict[str, Any]) -> dict[str, Any]:
        return {**dbt_profile_target, "maintenance": False}

    def test_a_table_is_maintained_after_its_node_and_nothing_takes_it_for_a_change(
        self, project: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(RunBudget, "remaining_seconds", lambda self, settings: settings.max_seconds)
        files = (
            "select count(*) from __ducklake_metadata_lake.ducklake_data_file f"
            " join __ducklake_metadata_lake.ducklake_table t using (table_id)"
            " where f.end_snapshot is null and t.end_snapshot is null and t.table_name = 'events'"
        )
        for count in (1, 2):
            run_dbt(["run"])
            assert ask(files) == [(count,)]
        _, log = run_dbt_and_capture(["run", "-s", "events"])
        assert "Maintained" in log
        assert "events: merged 3 files into 1 in" in log
        assert ask(files) == [(1,)]
        run_dbt(["run", "-s", "totals", "seen"])
        assert ask(f"select n from lake.{project.test_schema}.totals") == [(150,)]
        assert ask(f"select count(*) from lake.{project.test_schema}.seen") == [(150,)]

        _, log = run_dbt_and_capture(["run-operation", "ducklake_merge_adjacent_files"])
        assert "files_processed" in log
        run_dbt(["run-operation", "ducklake_rewrite_data_files", "--args", "{delete_threshold: 0}"])
        _, log = run_dbt_and_capture(["run-operation", "ducklake_stale"])
        assert "Nothing is stale" in log
        run_dbt(["run", "-s", "seen"])
        assert ask(f"select count(*) from lake.{project.test_schema}.seen") == [(150,)]

    def test_health_names_the_command_that_mends(self, project: Any, ask: Ask) -> None:
        schema = project.test_schema
        project.run_sql(f"create table {schema}.worn as select id from range(100)")
        project.run_sql(f"delete from {schema}.worn where id < 40")
        operation = ["run-operation", "ducklake_health", "--args"]
        _, log = run_dbt_and_capture([*operation, f"{{table_name: {schema}.worn, as_json: true}}"])
        (found,) = json.loads(log[log.index("[\n") : log.rindex("]") + 1])
        assert found["deleted_share"] == 0.4
        assert found["command"] == f"call ducklake_rewrite_data_files('{schema}.worn', delete_threshold => 0.2)"
        assert found["saves"] == "40 deleted rows"
        project.run_sql(found["command"])
        _, log = run_dbt_and_capture([*operation, f"{{table_name: {schema}.worn}}"])
        assert "rewrite_data_files" not in log
        assert ask(f"select count(*) from lake.{schema}.worn") == [(60,)]

    def test_a_checkpoint_deletes_what_nobody_needs(self, project: Any, ask: Ask) -> None:
        schema = project.test_schema
        project.run_sql("call ducklake_set_option('expire_older_than', '0 seconds')")
        project.run_sql("call ducklake_set_option('delete_older_than', '0 seconds')")
        _, log = run_dbt_and_capture(["run-operation", "ducklake_checkpoint", "--args", "{dry_run: true}"])
        assert "snapshots would be expired" in log
        before = ask("select count(*) from ducklake_snapshots('lake')")[0][0]
        run_dbt(["run-operation", "ducklake_checkpoint"])
        assert ask("select count(*) from ducklake_snapshots('lake')")[0][0] < before
        assert ask(f"select count(*) from lake.{schema}.events") == [(150,)]
        _, log = run_dbt_and_capture(["run-operation", "ducklake_delete_orphaned_files", "--args", "{dry_run: true}"])
        assert "nothing to do" in log

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ("{'small_file': 3}", "maintenance has no setting small_file; it has deleted_share, inlined_rows"),
            ("{'deleted_share': 2}", "maintenance: deleted_share takes a number between 0 and 1, and it is 2"),
            ("'yes'", "maintenance takes auto, off, or settings, and it is 'yes'"),
        ],
    )
    def test_wrong_settings_are_told_before_the_model_runs(self, project: Any, settings: str, message: str) -> None:
        text = f"{{{{ config(maintenance={settings}) }}}} select 1 as id"
        write_file(text, project.project_root, "models", "wrong.sql")
        _, log = run_dbt_and_capture(["run", "-s", "wrong"], expect_pass=False)
        assert message in log
