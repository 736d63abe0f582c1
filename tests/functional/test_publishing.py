"""`publish: run`: a command is one snapshot, after its tests passed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from dbt.cli.main import dbtRunner
from dbt.tests.util import rm_file, run_dbt, run_dbt_and_capture, write_file

from dbt.adapters.ducklake import LakeSession

from ..lakes import LakeAddress
from .conftest import Ask

NUMBERS = "id,n\n1,10\n2,20\n"
ORDERS = """{{ config(materialized='table', post_hook="insert into {{ target.schema }}.audit values ('orders')") }}
select id, n * {{ var('factor', 1) }} as n from {{ ref('numbers') }}
"""
LINES = """{{ config(materialized='incremental', unique_key='id') }}
select id, n + 1 as n from {{ ref('orders') }}
"""
ASIDE = """{{ config(materialized='table', post_hook="insert into {{ target.schema }}.audit values ('aside')") }}
select 1 as id
"""
TOTALS = "select sum(n) as n from {{ ref('lines') }}"
SCHEMA = """
models:
  - name: orders
    columns:
      - name: n
        data_tests:
          - accepted_values:
              arguments: {values: [10, 20, 30, 40], quote: false}
  - name: lines
    columns:
      - name: id
        data_tests: [unique]
"""


class PublishedRuns:
    @pytest.fixture(scope="class")
    def dbt_profile_target(self, lake_target: dict[str, Any]) -> dict[str, Any]:
        return {**lake_target, "publish": "run"}

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"numbers.csv": NUMBERS}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": ORDERS,
            "lines.sql": LINES,
            "aside.sql": ASIDE,
            "totals.sql": TOTALS,
            "schema.yml": SCHEMA,
        }

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {"on-run-start": "create table if not exists {{ target.schema }}.audit (node string)"}


def results(project: Any) -> dict[str, dict[str, Any]]:
    found = json.loads(Path(project.project_root, "target", "run_results.json").read_text())["results"]
    return {r["unique_id"].split(".")[2]: r for r in found}


def failing(project: Any, *command: str) -> str:
    """The error with which dbt itself ends."""
    where = ["--project-dir", project.project_root, "--profiles-dir", project.profiles_dir]
    result = dbtRunner().invoke([*command, *map(str, where)])
    assert not result.success
    return str(result.exception)


SNAPSHOTS = "select snapshot_id, commit_message, commit_extra_info from lake.snapshots() order by snapshot_id"


class TestPublishedRun(PublishedRuns):
    def test_a_build_is_one_snapshot_after_its_tests(self, project: Any, ask: Ask) -> None:
        before = len(ask(SNAPSHOTS))
        _, log = run_dbt_and_capture(["build"])
        assert "Published 5 nodes as snapshot" in log
        snapshots = ask(SNAPSHOTS)
        assert len(snapshots) == before + 1
        snapshot, message, text = snapshots[-1]
        assert message == "dbt build: 5 nodes"
        schema = project.test_schema
        assert ask(f"select n from lake.{schema}.totals") == [(32,)]
        assert sorted(ask(f"from lake.{schema}.audit")) == [("aside",), ("orders",)]
        info = json.loads(text)
        nodes = {node["node_id"].split(".")[-1]: node for node in info["nodes"]}
        assert set(nodes) == {"numbers", "orders", "lines", "aside", "totals"}
        assert info["invocation_id"]
        assert "invocation_id" not in nodes["orders"]
        assert nodes["lines"]["rows"] == {"inserted": 2, "updated": 0, "deleted": 0}
        ids = dict(ask("select table_name, table_id from __ducklake_metadata_lake.ducklake_table"))
        assert nodes["lines"]["inputs"] == [
            {"relation": f"lake.{schema}.orders", "table_id": ids["orders"], "snapshot": snapshot}
        ]
        assert nodes["lines"]["changed"] == [ids["lines"]]
        assert nodes["orders"]["changed"] == sorted((ids["orders"], ids["audit"]))
        assert results(project)["orders"]["adapter_response"]["snapshot_id"] == snapshot
        assert results(project)["orders"]["message"].startswith(f"snapshot {snapshot}, ")

    def test_a_failed_test_leaves_the_lake_as_it_was(self, project: Any, ask: Ask, lake_folder: Path) -> None:
        run_dbt(["build"])
        before, files = ask(SNAPSHOTS), set(lake_folder.rglob("*.parquet"))
        _, log = run_dbt_and_capture(["build", "--vars", "factor: 3"], expect_pass=False)
        assert "Nothing is published, since accepted_values_orders" in log
        assert ask(SNAPSHOTS) == before
        assert set(lake_folder.rglob("*.parquet")) == files
        found = results(project)
        assert {name: found[name]["status"] for name in ("numbers", "orders", "aside", "lines")} == dict.fromkeys(
            ("numbers", "orders", "aside", "lines"), "skipped"
        )

    def test_retry_builds_all_that_was_not_published(self, project: Any, ask: Ask) -> None:
        run_dbt(["build", "--vars", "factor: 3"], expect_pass=False)
        before = len(ask(SNAPSHOTS))
        _, log = run_dbt_and_capture(["retry", "--vars", "factor: 2"])
        assert "Published 4 nodes" in log  # the view is what it was
        assert len(ask(SNAPSHOTS)) == before + 1
        assert ask(f"select sum(n) from lake.{project.test_schema}.orders") == [(60,)]

    def test_what_passed_is_published_with_all_that_it_stands_on(self, project: Any, ask: Ask) -> None:
        run_dbt(["build"])
        write_file(ASIDE.replace("1 as id", "7 as id"), project.project_root, "models", "aside.sql")
        audited = len(ask(f"from lake.{project.test_schema}.audit"))
        _, log = run_dbt_and_capture(
            ["build", "--vars", "{factor: 3, ducklake_publish_on_failure: passed}"], expect_pass=False
        )
        assert "Not published: orders, since the test accepted_values_orders" in log
        assert "Published 2 nodes as snapshot" in log
        assert ask(f"select id from lake.{project.test_schema}.aside") == [(7,)]
        assert ask(f"select sum(n) from lake.{project.test_schema}.orders") == [(30,)]
        assert len(ask(f"from lake.{project.test_schema}.audit")) == audited + 1
        found = results(project)
        assert found["orders"]["status"] == "skipped"
        assert found["aside"]["status"] == "success"


class TestPreview(PublishedRuns):
    def test_what_would_change_is_told_and_nothing_is_published(
        self, project: Any, ask: Ask, lake_folder: Path
    ) -> None:
        run_dbt(["build"])
        _, log = run_dbt_and_capture(["run-operation", "ducklake_preview"])
        assert f"Published as snapshot {ask(SNAPSHOTS)[-1][0]}:" in log
        before, files = ask(SNAPSHOTS), set(lake_folder.rglob("*.parquet"))
        write_file(
            LINES.replace("n + 1", "n + 2") + "union all select 7, 7", project.project_root, "models", "lines.sql"
        )
        write_file("select 1 as one", project.project_root, "models", "extra.sql")
        _, log = run_dbt_and_capture(["build", "--vars", "ducklake_preview: only"])
        assert "Nothing is published, since it was a preview" in log
        assert ask(SNAPSHOTS) == before
        assert set(lake_folder.rglob("*.parquet")) == files
        content = json.loads(Path(project.project_root, "target", "ducklake_preview.json").read_text())
        relations = {r["relation"].split(".")[-1]: r for r in content["relations"]}
        assert {name: [r[k] for k in ("change", "added", "removed", "changed")] for name, r in relations.items()} == {
            "audit": ["changed", 2, 0, 0],
            "numbers": ["changed", 0, 0, 0],
            "orders": ["changed", 0, 0, 0],
            "lines": ["changed", 1, 0, 2],
            "aside": ["changed", 0, 0, 0],
            "extra": ["created", None, None, None],
        }
        assert (relations["lines"]["rows_before"], relations["lines"]["rows_after"]) == (2, 3)
        assert relations["lines"]["node_id"] == "model.test.lines"
        _, log = run_dbt_and_capture(["run-operation", "ducklake_preview"])
        assert "Not published:" in log
        assert "it was a preview" in log

    def test_a_refused_run_tells_what_it_would_have_changed(self, project: Any) -> None:
        run_dbt(["build", "--vars", "factor: 3"], expect_pass=False)
        _, log = run_dbt_and_capture(["run-operation", "ducklake_preview"])
        assert "not published" in log
        assert f"{project.test_schema}.orders" in log


class TestNewChangesOfTheSameRun(PublishedRuns):
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "orders.sql": "{{ config(materialized='incremental', unique_key='id') }}\n"
            "select id, {{ var('n', 1) }} as n from range({{ var('start', 0) }}, {{ var('start', 0) }} + 3)",
            "events.sql": "{{ config(materialized='incremental') }}\n"
            "select id, n, change_type from {{ ducklake_new_changes(ref('orders')) }}",
        }

    def test_staged_changes_are_consumed_with_the_run_that_makes_them(self, project: Any, ask: Ask) -> None:
        orders, events = (f"lake.{project.test_schema}.{name}" for name in ("orders", "events"))
        run_dbt(["run"])
        assert ask(f"from {events} order by all") == [(i, 1, "insert") for i in range(3)]
        project.run_sql(f"insert into {orders} values (9, 9)")
        run_dbt(["run", "--vars", "{start: 2, n: 2}"])
        new = ask(f"from {events} where n > 1 or id = 2 order by all")
        assert new == [
            (2, 1, "insert"),
            (2, 1, "update_preimage"),
            (2, 2, "update_postimage"),
            (3, 2, "insert"),
            (4, 2, "insert"),
            (9, 9, "insert"),
        ]
        project.run_sql(f"delete from {orders} where id = 9")
        run_dbt(["run", "-s", "events"])
        assert ask(f"select change_type from {events} where id = 9 order by all") == [("delete",), ("insert",)]
        before = ask(SNAPSHOTS)
        run_dbt(["run", "-s", "events"])
        assert ask(SNAPSHOTS) == before


FIGURES = """{{ config(materialized='table') }}
select id, {{ var('factor', 1) }} as factor from {{ ref('numbers') }}
"""
COPY = "{{ config(materialized='table') }} select id, factor from {{ ref('%s') }}"
HOOKED = """{{ config(materialized='table', post_hook=[
  "delete from {{ target.schema }}.audit where node = '{{ this.name }}'",
  "insert into {{ target.schema }}.audit values ('{{ this.name }}')"]) }}
select 1 as id
"""

ASLEEP = """{{ config(materialized='table') }}
select a.id from {{ ref('again') }} as a, range(10000) where java_method('java.lang.Thread', 'sleep', 50L) is not null
"""

WATCHER = """
import json, select, sys
from tests import reference
lake = reference.connect(*sys.argv[1:3])
print("ready", flush=True)
while True:
    done = bool(select.select([sys.stdin], [], [], 0.01)[0])
    print(json.dumps(lake.execute(sys.argv[3]).fetchone()), flush=True)
    if done:
        break
"""
"""Prints what DuckDB answers, over and over, until it is told to stop."""


class TestFailures(PublishedRuns):
    """Whatever happens at whichever step: the lake is as before, or as after."""

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "figures.sql": FIGURES,
            "same.sql": COPY % "figures",
            "again.sql": COPY % "same",
            "schema.yml": "models: [{name: again, columns: [{name: id, data_tests: [not_null]}]}]",
            **{f"hooked_{n}.sql": HOOKED for n in range(6)},
        }

    @pytest.fixture(scope="class")
    def built(self, project: Any) -> Any:
        run_dbt(["build", "--vars", "factor: 0"])
        return project

    @pytest.mark.parametrize("threads", ["1", "4"])
    def test_a_reader_never_sees_a_mixture(
        self, built: Any, ask: Ask, threads: str, lake_catalog: str, lake_folder: Path
    ) -> None:
        if lake_catalog.startswith("duckdb:"):
            pytest.skip("a catalog that is a DuckDB file has one process at a time")
        schema = f"lake.{built.test_schema}"
        query = f"select (select max(factor) from {schema}.figures), (select max(factor) from {schema}.again)"
        # A process of its own: two libraries of SQLite in one process drop each other's locks.
        watcher = subprocess.Popen(
            [sys.executable, "-c", WATCHER, lake_catalog, f"{lake_folder}/data/", query],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        assert watcher.stdout
        assert watcher.stdout.readline() == "ready\n"
        run_dbt(["build", "--vars", f"factor: {threads}", "--threads", threads])
        seen = [json.loads(line) for line in watcher.communicate("stop\n")[0].splitlines()]
        assert seen[0] != seen[-1]
        assert all(one == other for one, other in seen)
        assert ask(query) == [(int(threads), int(threads))]
        # The nodes that ran side by side changed one table; each did so on what the others had done.
        assert ask(f"select count(*), count(distinct node) from {schema}.audit") == [(6, 6)]

    def test_a_conflict_at_the_end_changes_nothing_and_can_be_retried(
        self, built: Any, ask: Ask, lake_folder: Path, lake_catalog: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish, name = LakeSession.publish, f"lake.{built.test_schema}.same"

        def after_another(session: LakeSession, *arguments: Any) -> Any:
            with LakeSession(lake_catalog) as other:
                other.execute(f"alter table {name} add column more int")
            return publish(session, *arguments)

        monkeypatch.setattr(LakeSession, "publish", after_another)
        files = set(lake_folder.rglob("*.parquet"))
        error = failing(built, "build", "--vars", "factor: 8")
        assert "the run is not published: " in error
        assert f"{built.test_schema}.same" in error
        assert " by " in error
        assert set(lake_folder.rglob("*.parquet")) == files
        assert ask(f"select count(*) from lake.{built.test_schema}.figures where factor = 8") == [(0,)]
        assert {r["status"] for name, r in results(built).items() if "on-run-start" not in name} == {"skipped"}
        monkeypatch.setattr(LakeSession, "publish", publish)
        run_dbt(["retry"])
        assert ask(f"select count(*) from {name} where factor = 8") == [(2,)]

    def test_a_lost_answer_to_the_commit_publishes_once(
        self, built: Any, ask: Ask, lose_answer: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish, before = LakeSession.publish, len(ask(SNAPSHOTS))

        def losing(session: LakeSession, *arguments: Any) -> Any:
            lose_answer(session.lake().catalog, commits=True)
            return publish(session, *arguments)

        monkeypatch.setattr(LakeSession, "publish", losing)
        _, log = run_dbt_and_capture(["build", "-s", "figures", "same", "--vars", "factor: 20"])
        assert len(ask(SNAPSHOTS)) == before + 1
        assert f"Published 2 nodes as snapshot {ask(SNAPSHOTS)[-1][0]}" in log
        assert ask(f"select max(factor) from lake.{built.test_schema}.same") == [(20,)]

    def test_a_catalog_that_is_away_fails_the_run_and_leaves_no_file(
        self, built: Any, ask: Ask, lake_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish, before, files = LakeSession.publish, ask(SNAPSHOTS), set(lake_folder.rglob("*.parquet"))

        def away(session: LakeSession, *arguments: Any) -> Any:
            def no_answer() -> Any:
                raise sa.exc.OperationalError("BEGIN", {}, Exception("the server is away"))

            catalog = session.lake().catalog
            with monkeypatch.context() as patch:
                patch.setattr(type(catalog), "write", lambda self, in_line=False: no_answer())
                return publish(session, *arguments)

        monkeypatch.setattr(LakeSession, "publish", away)
        assert "the server is away; nothing was changed" in failing(built, "build", "--vars", "factor: 9")
        assert ask(SNAPSHOTS) == before
        assert set(lake_folder.rglob("*.parquet")) == files

    def test_a_failing_hook_at_the_end_publishes_nothing(self, built: Any, ask: Ask) -> None:
        before = ask(SNAPSHOTS)
        project = Path(built.project_root, "dbt_project.yml")
        text = project.read_text()
        project.write_text(text + "\non-run-end: \"select raise_error('no')\"\n")
        _, log = run_dbt_and_capture(["build", "--vars", "factor: 10"], expect_pass=False)
        project.write_text(text)
        assert "Nothing is published, since" in log
        assert "on-run-end" in log
        assert ask(SNAPSHOTS) == before

    @pytest.mark.parametrize(("on_failure", "published"), [("nothing", False), ("passed", True)])
    def test_failing_fast_publishes_nothing_or_what_was_done_until_then(
        self, built: Any, ask: Ask, on_failure: str, published: bool
    ) -> None:
        factor = 30 + published
        text = "{{ config(materialized='table') }} select raise_error('no') as id from {{ ref('same') }}"
        write_file(text, built.project_root, "models", "failing.sql")
        variables = json.dumps({"factor": factor, "ducklake_publish_on_failure": on_failure})
        nodes = ("figures", "same", "failing")
        run_dbt(["run", "--fail-fast", "-s", *nodes, "--vars", variables], expect_pass=False)
        rm_file(built.project_root, "models", "failing.sql")
        for table in ("figures", "same"):
            found = ask(f"select max(factor) from lake.{built.test_schema}.{table}")
            assert (found == [(factor,)]) == published
            assert (results(built)[table]["status"] == "success") == published

    @pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL], ids=lambda sent: sent.name)
    def test_a_run_that_is_stopped_publishes_nothing(
        self, built: Any, ask: Ask, lake_folder: Path, sent: signal.Signals
    ) -> None:
        before, files = ask(SNAPSHOTS), set(lake_folder.rglob("*.parquet"))
        write_file(ASLEEP, built.project_root, "models", "asleep.sql")
        command = [sys.executable, "-m", "dbt.cli.main", "build", "-s", "figures+", "--vars", "factor: 12"]
        folders = ["--project-dir", built.project_root, "--profiles-dir", built.profiles_dir]
        # Where tests run in the background, signals to interrupt are ignored, and processes inherit that.
        heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
        dbt = subprocess.Popen([*command, *folders], stdout=subprocess.PIPE, text=True, preexec_fn=heed)
        assert dbt.stdout
        lines = iter(dbt.stdout.readline, "")
        # One model waits, and the others are staged.
        assert any("START sql table model" in line and "asleep" in line for line in lines)
        _, meanwhile = run_dbt_and_capture(["run-operation", "ducklake_preview"])
        assert "Not published yet:" in meanwhile
        assert f"{built.test_schema}.figures" in meanwhile
        dbt.send_signal(sent)
        log = "".join(lines)
        assert dbt.wait() != 0
        rm_file(built.project_root, "models", "asleep.sql")
        assert ask(SNAPSHOTS) == before
        if sent == signal.SIGINT:
            assert "ublished" not in log
        else:
            run_dbt(["run-operation", "ducklake_delete_orphaned_files", "--args", "{cleanup_all: true}"])
        assert set(lake_folder.rglob("*.parquet")) == files


class OnAnotherCatalog(TestFailures):
    kind = "postgres"

    @pytest.fixture(scope="class")
    def address(self, new_module_lake: Callable[[str], LakeAddress]) -> LakeAddress:
        return new_module_lake(self.kind)

    @pytest.fixture(scope="class")
    def lake_catalog(self, address: LakeAddress) -> str:
        return address.catalog

    @pytest.fixture(scope="class")
    def lake_folder(self, address: LakeAddress) -> Path:
        return Path(address.data_path)


@pytest.mark.catalogs
class TestFailuresOnPostgres(OnAnotherCatalog):
    kind = "postgres"


@pytest.mark.catalogs
@pytest.mark.long
class TestFailuresOnDuckDB(OnAnotherCatalog):
    kind = "duckdb"
