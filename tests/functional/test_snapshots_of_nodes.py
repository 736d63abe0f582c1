"""A node is a snapshot: with its message and its inputs, whole or not at all, seen through DuckDB."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt, run_dbt_and_capture

from .. import reference
from ..conftest import LoseAnswer

Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture
def ask(lake_folder: Path) -> Ask:
    """What DuckDB answers."""

    def answer(query: str) -> list[tuple[Any, ...]]:
        connection = reference.connect(f"sqlite:{lake_folder}/metadata.sqlite", f"{lake_folder}/data/")
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    return answer


def commits(ask: Ask, after: int) -> list[tuple[Any, ...]]:
    return ask(
        "select snapshot_id, author, commit_message, commit_extra_info, changes"
        f" from ducklake_snapshots('lake') where snapshot_id > {after} order by snapshot_id"
    )


def newest(ask: Ask) -> int:
    return ask("select max(snapshot_id) from ducklake_snapshots('lake')")[0][0]


NUMBERS = "{{ config(materialized='table', partition_by='part', persist_docs={'relation': true, 'columns': true}) }}\n"
NUMBERS += "select id, id % 2 as part from range(10)"
SCHEMA = """
version: 2
models:
  - name: numbers
    description: It's ten numbers
    columns:
      - name: id
        description: "a 'quoted' \\\\ one"
"""


class TestOneNodeOneSnapshot:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "numbers.sql": NUMBERS,
            "schema.yml": SCHEMA,
            "doubles.sql": "{{ config(materialized='table', post_hook=\"insert into {{ this }} values (-1)\") }}\n"
            "select id * 2 as id from {{ ref('through') }}",
            "through.sql": "select * from {{ ref('numbers') }}",
        }

    def test_each_tells_what_it_was_made_from(self, project: Any, ask: Ask) -> None:
        before = newest(ask)
        _, log = run_dbt_and_capture(["run"])
        found = commits(ask, before)
        assert [c[2] for c in found] == [
            "dbt run: numbers (table)",
            "dbt run: through (view)",
            "dbt run: doubles (table)",
        ]
        assert {c[1] for c in found} == {"tester"}
        extra = [json.loads(c[3]) for c in found]
        schema = project.test_schema
        assert [i["relation"] for i in extra[2]["inputs"]] == [f"lake.{schema}.numbers", f"lake.{schema}.through"]
        assert [i["snapshot"] for i in extra[2]["inputs"]] == [found[0][0], found[1][0]]
        assert extra[2]["rows"] == {"inserted": 11, "updated": 0, "deleted": 0}
        assert f"snapshot {found[2][0]}, 11 rows" in log

        assert ask(f"select count(*), min(id) from lake.{schema}.doubles") == [(11, -1)]
        comments = f"where database_name = 'lake' and schema_name = '{schema}' and table_name = 'numbers'"
        assert ask(f"select comment from duckdb_tables() {comments}") == [("It's ten numbers",)]
        assert ask(f"select comment from duckdb_columns() {comments} and column_name = 'id'") == [
            ("a 'quoted' \\ one",)
        ]

    def test_a_replaced_table_keeps_its_past(self, project: Any, ask: Ask) -> None:
        table = f"lake.{project.test_schema}.numbers"
        run_dbt(["run", "-s", "numbers"])
        before = newest(ask)
        run_dbt(["run", "-s", "numbers"])
        assert newest(ask) == before + 1
        assert ask(f"select count(*) from {table} at (version => {before})") == [(10,)]
        metadata = "__ducklake_metadata_lake"
        ids = (
            f"select count(distinct table_id) from {metadata}.ducklake_table"
            f" join {metadata}.ducklake_schema using (schema_id)"
            f" where table_name = 'numbers' and schema_name = '{project.test_schema}'"
        )
        assert ask(ids) == [(1,)]

    def test_a_view_that_is_the_same_is_no_snapshot(self, project: Any, ask: Ask) -> None:
        run_dbt(["run"])
        before = newest(ask)
        _, log = run_dbt_and_capture(["run", "-s", "through"])
        assert newest(ask) == before
        assert "no change" in log


class TestFailuresLeaveNothing:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "good.sql": "{{ config(materialized='table') }} select 1 as id",
            "bad_rows.sql": "{{ config(materialized='table') }} select 1 / (id - 5) as x from range(10)",
            "bad_hook.sql": "{{ config(materialized='table', post_hook='insert into {{ this }} select raise_error(1)')"
            " }} select 1 as id",
            "bad_name.sql": "{{ config(materialized='table') }} select nothing from range(3)",
            "bad_null.sql": "{{ config(materialized='table') }} select cast(null as int) as id",
            "schema.yml": "version: 2\nmodels:\n  - name: bad_null\n    config: {contract: {enforced: true}}\n"
            "    columns:\n      - {name: id, data_type: int, constraints: [{type: not_null}]}\n",
        }

    @pytest.mark.parametrize(
        ("model", "words"),
        [
            ("bad_rows", "[DIVIDE_BY_ZERO]"),
            ("bad_hook", "[USER_RAISED_EXCEPTION]"),
            ("bad_name", "[UNRESOLVED_COLUMN"),
            ("bad_null", "column id of table bad_null is NOT NULL"),
        ],
    )
    def test_a_failing_node_commits_nothing_and_says_why(self, project: Any, ask: Ask, model: str, words: str) -> None:
        before = newest(ask)
        results, log = run_dbt_and_capture(["run", "-s", model], expect_pass=False)
        assert newest(ask) == before
        message = results[0].message
        assert words in message
        assert f"target/run/test/models/{model}.sql" in log
        assert "\tat " not in log
        assert "java." not in log

    def test_what_was_there_stays_when_its_replacement_fails(self, project: Any, ask: Ask) -> None:
        run_dbt(["run", "-s", "good"])
        path = Path(project.project_root) / "models" / "good.sql"
        text = path.read_text()
        path.write_text("{{ config(materialized='table') }} select raise_error('no') as id")
        try:
            run_dbt(["run", "-s", "good"], expect_pass=False)
        finally:
            path.write_text(text)
        assert ask(f"select id from lake.{project.test_schema}.good") == [(1,)]


class TestHooks:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "hooked.sql": """
                {{ config(
                    materialized='table',
                    pre_hook=[before_begin("create table if not exists {{ schema }}.log (what string)"),
                              "insert into {{ schema }}.log values ('inside')"],
                    post_hook=["insert into {{ schema }}.log select count(*) from {{ this }}",
                               after_commit("insert into {{ schema }}.log values ('outside'); delete from missing")],
                ) }} select 1 as id""",
        }

    def test_hooks_outside_are_snapshots_of_their_own(self, project: Any, ask: Ask) -> None:
        before = newest(ask)
        results = run_dbt(["run"], expect_pass=False)
        assert "missing" in results[0].message
        found = commits(ask, before)
        assert [c[2] for c in found] == [
            "dbt run: model.test.hooked",
            "dbt run: hooked (table)",
            "dbt run: model.test.hooked",
        ]
        assert ask(f"select what from lake.{project.test_schema}.log order by 1") == [("1",), ("inside",), ("outside",)]


LAYERS = """
{{ config(materialized='incremental', **var('layout')) }}
select id, id % 3 as part from range({{ 10 if is_incremental() else 5 }})
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
"""


class TestLayoutsThatChange:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"layers.sql": LAYERS}

    def run(self, **layout: Any) -> None:
        run_dbt(["run", "--vars", json.dumps({"layout": layout})])

    def test_they_are_evolved_in_the_snapshot_of_the_rows(self, project: Any, ask: Ask) -> None:
        table = f"lake.{project.test_schema}.layers"
        self.run(partition_by=["part"])
        before = newest(ask)
        self.run(sorted_by="id desc", table_options={"parquet_compression": "zstd"})
        assert newest(ask) == before + 1
        assert ask(f"select count(*) from {table}") == [(10,)]
        described = dict(
            row[:2] for row in project.run_sql(f"describe extended {project.test_schema}.layers", fetch="all")
        )
        assert described["Key 0"] == "id DESC NULLS LAST"
        assert described["Table Properties"] == "parquet_compression=zstd"
        assert "Part 0" not in described


class TestSeveralRunsAtOnce:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {f"m{i}.sql": f"{{{{ config(materialized='table') }}}} select {i} as id" for i in range(8)}

    def test_many_threads_commit_side_by_side(self, project: Any, ask: Ask) -> None:
        before = newest(ask)
        results = run_dbt(["run", "--threads", "8"])
        assert {r.status for r in results} == {"success"}
        assert len(commits(ask, before)) == 8
        snapshots = {r.adapter_response["snapshot_id"] for r in results}
        assert snapshots == {c[0] for c in commits(ask, before)}


SLOW = """
{{ config(materialized='table') }}
select id from range(3) where java_method('java.lang.Thread', 'sleep', 3000L) is not null
"""


@pytest.mark.processes
class TestTwoRunsAtOnce:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"left.sql": SLOW, "right.sql": SLOW, "same.sql": SLOW}

    def runs(self, project: Any, *models: str) -> list[str]:
        """The logs of runs in processes of their own, one a model, all at once."""
        processes = []
        for number, model in enumerate(models):
            where = Path(project.project_root) / f"run{number}"
            command = [sys.executable, "-m", "dbt.cli.main", "run", "-s", model, "--no-use-colors"]
            command += ["--target-path", str(where / "target"), "--log-path", str(where / "logs")]
            command += ["--profiles-dir", str(project.profiles_dir), "--project-dir", str(project.project_root)]
            processes.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return [process.communicate(timeout=300)[0] for process in processes]

    def test_on_different_models_both_commit(self, project: Any, ask: Ask) -> None:
        before = newest(ask)
        logs = self.runs(project, "left", "right")
        assert all("PASS=1" in log for log in logs), logs
        assert {c[2] for c in commits(ask, before)} == {"dbt run: left (table)", "dbt run: right (table)"}

    def test_on_one_model_one_commits_and_the_other_says_who_was_first(self, project: Any, ask: Ask) -> None:
        run_dbt(["run", "-s", "same"])
        before = newest(ask)
        logs = self.runs(project, "same", "same")
        done = [log for log in logs if "PASS=1" in log]
        assert len(commits(ask, before)) == len(done) >= 1
        for log in logs:
            if log not in done:
                assert "same" in log
                assert f"snapshot {before + 1} by tester" in log
        assert ask(f"select count(*) from lake.{project.test_schema}.same") == [(3,)]


class TestAnAnswerToCommitIsLost:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "log.sql": "{{ config(materialized='incremental', incremental_strategy='append') }}\nselect 1 as id",
        }

    def test_the_node_succeeds_if_its_snapshot_is_there(self, project: Any, ask: Ask, lose_answer: LoseAnswer) -> None:
        run_dbt(["run"])
        catalog = project.adapter.connections.session.lake().catalog
        before = newest(ask)
        lose_answer(catalog, commits=True)
        _, log = run_dbt_and_capture(["run"])
        assert f"snapshot {before + 1}, 1 row" in log
        lose_answer(catalog, commits=False)
        results = run_dbt(["run"], expect_pass=False)
        assert "nothing was changed" in results[0].message
        assert ask(f"select count(*) from {project.test_schema}.log") == [(2,)]
        run_dbt(["run"])
        assert ask(f"select count(*) from {project.test_schema}.log") == [(3,)]
