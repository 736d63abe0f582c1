"""Models that read the lake as it was, and models that consume what changed since they last ran."""

from __future__ import annotations

import datetime
import itertools
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import rm_file, run_dbt, run_dbt_and_capture, write_file
from dbt_common.exceptions import CompilationError

from dbt.adapters.ducklake.history import consumed_changes
from dbt.adapters.ducklake.lake.databases.base import Database

from .. import reference

Ask = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(scope="class")
def ask(lake_folder: Path) -> Iterator[Ask]:
    """What DuckDB answers."""
    connection = reference.connect(f"sqlite:{lake_folder}/metadata.sqlite", f"{lake_folder}/data/")
    yield lambda query: connection.execute(query).fetchall()
    connection.close()


def newest(ask: Ask) -> int:
    return ask("select max(snapshot_id) from ducklake_snapshots('lake')")[0][0]


def rows(ask: Ask, project: Any, name: str, at: str = "") -> list[tuple[Any, ...]]:
    return ask(f"from lake.{project.test_schema}.{name} {at} order by all")


SOURCES = """
version: 2
sources:
  - name: raw
    schema: "{{ target.schema }}"
    tables:
      - name: items
      - name: pinned
        identifier: items
        config: {meta: {ducklake_as_of: PINNED}}
"""


class TestTimeTravel:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "sources.yml": SOURCES.replace("PINNED", "0"),
            "copied.sql": "{{ config(materialized='table') }} select * from {{ source('raw', 'items') }}",
            "copied_by_python.py": "def model(dbt, session):\n    return dbt.source('raw', 'items')\n",
        }

    @pytest.fixture(scope="class")
    def versions(self, project: Any, ask: Ask) -> list[int]:
        """A table of items that grows, and the snapshots of it."""
        name = f"{project.test_schema}.items"
        in_files = "tblproperties ('data_inlining_row_limit' = '0')"
        project.run_sql(f"create table {name} {in_files} as select 1 as id")
        versions = [newest(ask)]
        for number in (2, 3):
            project.run_sql(f"insert into {name} values ({number})")
            versions.append(newest(ask))
        return versions

    def test_a_run_as_of_a_version_is_the_run_of_then(self, project: Any, ask: Ask, versions: list[int]) -> None:
        write_file(SOURCES.replace("PINNED", str(versions[0])), project.project_root, "models", "sources.yml")
        for name in ("copied", "copied_by_python"):
            run_dbt(["run", "-s", name, "--vars", json.dumps({"ducklake_as_of": versions[1]})])
            assert rows(ask, project, name) == [(1,), (2,)]
        said = ask("select commit_extra_info from ducklake_snapshots('lake') order by snapshot_id desc limit 1")[0][0]
        assert [i["snapshot"] for i in json.loads(said)["inputs"]] == [versions[1]]
        run_dbt(["run", "-s", "copied"])
        assert rows(ask, project, "copied") == [(1,), (2,), (3,)]

    def test_a_run_as_of_a_moment_is_the_run_of_then(self, project: Any, ask: Ask, versions: list[int]) -> None:
        query = f"select snapshot_time::varchar from ducklake_snapshots('lake') where snapshot_id = {versions[1]}"
        run_dbt(["run", "-s", "copied", "--vars", json.dumps({"ducklake_as_of": ask(query)[0][0]})])
        assert rows(ask, project, "copied") == [(1,), (2,)]

    def test_what_is_read_may_be_pinned_anywhere(self, project: Any, ask: Ask, versions: list[int]) -> None:
        write_file(SOURCES.replace("PINNED", str(versions[0])), project.project_root, "models", "sources.yml")
        first, second, third = versions
        for text, expected in (
            ("{{ source('raw', 'pinned') }}", 1),
            (f"{{{{ ducklake_at(source('raw', 'items'), version={second}) }}}}", 2),
            (f"{{{{ ducklake_at(source('raw', 'pinned'), version={third}) }}}}", 3),
            (f"{{{{ ducklake_at(source('raw', 'items'), '{second}') }}}} as i where i.id > 0", 2),
            (f"{{{{ source('raw', 'items') }}}} version as of {first}", 1),
        ):
            model = f"{{{{ config(materialized='table') }}}} select count(*) as n from {text}"
            write_file(model, project.project_root, "models", "counted.sql")
            run_dbt(["run", "-s", "counted"])
            assert rows(ask, project, "counted") == [(expected,)], text
        write_file(
            "{{ config(materialized='table') }} select count(*) as n from {{ source('raw', 'pinned') }}",
            project.project_root,
            "models",
            "counted.sql",
        )
        run_dbt(["run", "-s", "counted", "--vars", json.dumps({"ducklake_as_of": second})])
        assert rows(ask, project, "counted") == [(1,)], "a source's own version goes before the run's"
        run_dbt(["run", "-s", "counted", "--empty"])
        assert rows(ask, project, "counted") == [(0,)]

    def test_a_version_that_is_not_there_is_an_error_that_names_the_nearest(
        self, project: Any, ask: Ask, versions: list[int]
    ) -> None:
        first, latest = ask("select min(snapshot_id), max(snapshot_id) from ducklake_snapshots('lake')")[0]
        for as_of, words in (
            (latest + 100, f"there is no snapshot {latest + 100}: the lake never had it; nearest to it there is"),
            ("1999-12-31", f"there is no snapshot at 1999-12-31T00:00:00+00:00: the lake's first is {first} of"),
            (versions[0] - 1, f"at snapshot {versions[0] - 1} of"),
            ({"lago": 3}, "ducklake_as_of names lago, which is none of the lakes ['lake']"),
            ([3], "a timestamp is a text such as '2026-01-31 12:00:00', and it is [3]"),
        ):
            _, log = run_dbt_and_capture(
                ["run", "-s", "copied", "--vars", json.dumps({"ducklake_as_of": as_of})], expect_pass=False
            )
            assert words in log

    def test_wrong_calls_say_what_is_right(self, project: Any) -> None:
        for call, words in (
            ("ducklake_at(source('raw', 'items'))", "give one of the two"),
            ("ducklake_at(source('raw', 'items'), version='x')", "a version is the number of a snapshot"),
            ("ducklake_at('items', version=1)", "ducklake_at takes a relation, such as ref('orders')"),
            (
                "ducklake_table_changes(source('raw', 'items'), none, 3)",
                "start of ducklake_table_changes is the number",
            ),
        ):
            write_file(f"select * from {{{{ {call} }}}}", project.project_root, "models", "wrong.sql")
            with pytest.raises(CompilationError, match=re.escape(words)):
                run_dbt(["parse"])
        rm_file(project.project_root, "models", "wrong.sql")

    def test_macros_give_what_the_lake_tells(self, project: Any, versions: list[int]) -> None:
        first, _, third = versions
        items = "source('raw', 'items')"
        for call, expected in (
            (f"ducklake_table_changes({items}, {first}, {third})", 3),
            (f"ducklake_table_insertions({items}, {first + 1}, {third})", 2),
            (f"ducklake_table_deletions({items}, {first}, '{third}')", 0),
            (f"ducklake_table_changes({items}, '1999-01-01', '2100-01-01')", 3),
            (f"ducklake_list_files({items}, version={first})", 1),
            (f"ducklake_list_files({items})", 3),
            ("ducklake_current_snapshot()", 1),
            ("ducklake_last_committed_snapshot()", 1),
            ("ducklake_settings()", 1),
            ("ducklake_options()", None),
            ("ducklake_table_info()", None),
            ("ducklake_snapshots()", None),
        ):
            text = f"select count(*) as n from {{{{ {call} }}}}"
            results = run_dbt(["show", "--inline", text, "--output", "json"])
            found = results.results[0].agate_table.rows[0]["n"]
            assert found == expected if expected is not None else found > 0, call


ORDERS = """{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge',
    merge_with_delete_condition="DBT_INTERNAL_SOURCE.change_type = 'delete'") }}
select id, amount, change_type from (
    select *, row_number() over (partition by id order by snapshot_id desc, change_type = 'delete' desc) as newest
    from {{ ducklake_new_changes(source('raw', 'orders')) }}
    where change_type <> 'update_preimage'
) where newest = 1
"""
EVENTS = """{{ config(materialized='incremental', incremental_strategy='append', post_hook=HOOK) }}
select snapshot_id, change_type, id from {{ ducklake_new_changes(source('raw', 'orders')) }}
"""
FAIL = "{{ 'select raise_error(1)' if var('fails', false) else 'select 1' }}"
RAW = """
version: 2
sources:
  - {name: raw, schema: "{{ target.schema }}", tables: [{name: orders}]}
"""


class TestNewChanges:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "sources.yml": RAW,
            "orders_now.sql": ORDERS,
            "events.sql": EVENTS.replace("HOOK", f'"{FAIL}"'),
            "totals.sql": "{{ config(materialized='incremental', unique_key='part') }}\n"
            "select id % 2 as part, sum(amount) as amount from {{ ref('orders_now') }}\n"
            "{% if is_incremental() %} where id % 2 in\n"
            "(select id % 2 from {{ ducklake_new_changes(ref('orders_now')) }}) {% endif %} group by 1",
        }

    @pytest.fixture(scope="class", autouse=True)
    def orders(self, project: Any) -> str:
        name = f"{project.test_schema}.orders"
        project.run_sql(f"create table {name} as select id, id * 10 as amount from range(1, 5)")
        return name

    def test_each_change_is_consumed_once(self, project: Any, ask: Ask, orders: str) -> None:
        run_dbt(["run", "-s", "events"])
        assert [r[1:] for r in rows(ask, project, "events")] == [("insert", i) for i in range(1, 5)]

        before = newest(ask)
        run_dbt(["run", "-s", "events"])
        assert newest(ask) == before, "nothing changed, so nothing is committed"

        project.run_sql(f"update {orders} set amount = 0 where id = 2")
        project.run_sql(f"delete from {orders} where id = 3")
        run_dbt(["run", "-s", "events", "--vars", "fails: true"], expect_pass=False)
        project.run_sql(f"insert into {orders} values (9, 90)")
        expected = ["delete", "insert", "update_postimage", "update_preimage"]
        for _ in range(2):
            run_dbt(["run", "-s", "events"])
            assert sorted(r[1] for r in rows(ask, project, "events") if r[0] > before) == expected
        said = json.loads(
            ask(
                "select commit_extra_info from ducklake_snapshots('lake')"
                " where commit_message like '%events%' order by snapshot_id desc limit 1"
            )[0][0]
        )
        (read,) = said["inputs"]
        assert read["changes"]["since"] < read["snapshot"] <= read["changes"]["until"]

        run_dbt(["run", "-s", "events", "--full-refresh"])
        assert sorted(r[2] for r in rows(ask, project, "events")) == [1, 2, 4, 9]
        run_dbt(["run", "-s", "events"])
        assert sorted(r[2] for r in rows(ask, project, "events")) == [1, 2, 4, 9]

    def test_progress_without_changes_is_recorded_so_that_expiry_does_not_overtake_it(
        self, project: Any, ask: Ask, orders: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = newest(ask)  # other tests need the earlier snapshots of the lake
        run_dbt(["run", "-s", "events"])
        project.run_sql(f"create or replace table {project.test_schema}.other as select 1 as id")
        before = newest(ask)
        run_dbt(["run", "-s", "events"])
        assert newest(ask) == before, "it was recorded less than a day ago"
        monkeypatch.setattr(consumed_changes, "_NOTED_EVERY", datetime.timedelta(0))
        run_dbt(["run", "-s", "events"])
        assert newest(ask) == before + 1
        project.run_sql(f"insert into {orders} values (500, 1)")
        run_dbt(["run-operation", "ducklake_expire_snapshots", "--args", f"{{versions: {list(range(first, before))}}}"])
        count = len(rows(ask, project, "events"))
        run_dbt(["run", "-s", "events"])
        assert [r[2] for r in rows(ask, project, "events") if r[0] > before + 1] == [500]
        assert len(rows(ask, project, "events")) == count + 1

    def test_a_failure_between_any_two_steps_of_a_commit_loses_and_repeats_nothing(
        self, project: Any, ask: Ask, orders: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        run_dbt(["run", "-s", "events"])
        before, real = newest(ask), Database.insert
        for step in range(1, 100):
            project.run_sql(f"insert into {orders} values ({1000 + step}, 0)")
            calls = itertools.count(1)

            def insert(*given: Any, step: int = step, calls: Iterator[int] = calls) -> None:
                if next(calls) == step:
                    raise OSError("the plug was pulled")
                real(*given)

            with monkeypatch.context() as patch:
                patch.setattr(Database, "insert", insert)
                (result,) = run_dbt(["run", "-s", "events"], expect_pass=None)
            if result.status == "success":
                break
        assert step > 3
        consumed = [r[2] for r in rows(ask, project, "events") if r[0] > before]
        assert consumed == [1000 + number for number in range(1, step + 1)]

    def test_a_chain_of_models_follows_what_changed(self, project: Any, ask: Ask, orders: str) -> None:
        for step in (None, f"update {orders} set amount = 7 where id = 1", f"delete from {orders} where id = 4"):
            if step:
                project.run_sql(step)
            run_dbt(["run", "-s", "orders_now", "totals"])
            mirror = ask(f"select id, amount from lake.{project.test_schema}.orders_now order by id")
            assert mirror == ask(f"select id, amount from lake.{orders} order by id")
            assert rows(ask, project, "totals") == ask(
                f"select id % 2, sum(amount)::bigint from lake.{orders} group by 1 order by 1"
            )

    def test_a_table_that_was_written_otherwise_says_so(self, project: Any, ask: Ask, orders: str) -> None:
        model = "{{ config(materialized='incremental') }} select id from "
        write_file(model + "{{ source('raw', 'orders') }}", project.project_root, "models", "late.sql")
        for _ in range(2):  # the first builds it of all rows, and then everything is consumed
            run_dbt(["run", "-s", "late"])
        changes = "ducklake_new_changes(source('raw', 'orders')%s)"
        write_file(model + f"{{{{ {changes % ''} }}}}", project.project_root, "models", "late.sql")
        _, log = run_dbt_and_capture(["run", "-s", "late"], expect_pass=False)
        assert "does not say up to where it consumed" in log
        assert "--full-refresh" in log
        full = changes % ", if_expired='full'"
        write_file(model + f"{{{{ {full} }}}} where false", project.project_root, "models", "late.sql")
        run_dbt(["run", "-s", "late"])
        write_file(model + f"{{{{ {changes % ''} }}}}", project.project_root, "models", "late.sql")
        run_dbt(["run", "-s", "late", "--full-refresh"])
        run_dbt(["run", "-s", "late"])
        assert rows(ask, project, "late") == ask(f"select id from lake.{orders} order by id")

    def test_a_view_tells_no_changes(self, project: Any) -> None:
        project.run_sql(f"create or replace view {project.test_schema}.seen as select 1 as id")
        text = "select * from {{ ducklake_new_changes(api.Relation.create(database='lake', schema=target.schema,"
        text += " identifier='seen')) }}"
        write_file(f"{{{{ config(materialized='table') }}}} {text}", project.project_root, "models", "of_view.sql")
        _, log = run_dbt_and_capture(["run", "-s", "of_view"], expect_pass=False)
        assert "it is a view, whose changes no snapshot tells" in log

    def test_whoever_changes_the_table_meanwhile_is_met(self, project: Any, ask: Ask, orders: str) -> None:
        """Somebody else writes the model's table while it runs: neither is lost, and nothing is consumed twice."""
        run_dbt(["run", "-s", "events"])
        project.run_sql(f"insert into {orders} values (77, 1)")
        other = f"insert into lake.{project.test_schema}.events values (0, 'other', 0)"
        hook = f"{{{{ config(pre_hook=[{{'sql': \"{other}\", 'transaction': false}}]) }}}}\n"
        write_file(hook + EVENTS.replace("HOOK", "'select 1'"), project.project_root, "models", "events.sql")
        _, log = run_dbt_and_capture(["run", "-s", "events"], expect_pass=False)
        assert "after it was asked what there is to consume for it; run it again" in log
        write_file(EVENTS.replace("HOOK", "'select 1'"), project.project_root, "models", "events.sql")
        run_dbt(["run", "-s", "events"])
        run_dbt(["run", "-s", "events"])
        ids = [r[2] for r in rows(ask, project, "events")]
        assert ids.count(77) == 1
        assert ids.count(0) == 1


class TestLineage:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "base.sql": "{{ config(materialized='table') }} select 1 as id",
            "on_top.sql": "{{ config(materialized='table') }} select * from {{ ref('base') }}",
        }

    def test_docs_tell_which_version_was_built_from_which(self, project: Any, ask: Ask) -> None:
        run_dbt(["run"])
        run_dbt(["run", "-s", "base"])
        _, log = run_dbt_and_capture(["docs", "generate"])
        assert log.count("Snapshot lineage written to target/snapshot_lineage.html") == 1, "a user cannot guess it"
        _, log = run_dbt_and_capture(["--quiet", "docs", "generate"])
        assert "snapshot_lineage" not in log
        target = Path(project.project_root) / "target"
        content = json.loads((target / "snapshot_lineage.json").read_text())
        assert content["format"] == 1
        by_id = {s["id"]: s for s in content["snapshots"] if s["lake"] == "lake"}
        last = content["lakes"][0]["snapshot"]
        assert by_id[last]["changed"] == [f"lake.{project.test_schema}.base"]
        (read,) = by_id[last - 1]["inputs"]
        assert read == {"relation": f"lake.{project.test_schema}.base", "snapshot": last - 2}
        assert by_id[last - 1]["node_id"] == "model.test.on_top"
        known = {r["name"]: r for r in content["relations"]}
        assert known[f"lake.{project.test_schema}.base"]["macro"] == "ref('base')"
        assert known[f"lake.{project.test_schema}.base"]["rows"] == 1
        page = (target / "snapshot_lineage.html").read_text()
        assert "/*LINEAGE*/" not in page
        assert f"lake.{project.test_schema}.on_top" in page

        _, log = run_dbt_and_capture(["run-operation", "ducklake_lineage", "--args", "{relation: on_top}"])
        assert f"lake.{project.test_schema}.base@{last - 2} (now {last})" in log
        _, log = run_dbt_and_capture(["run-operation", "ducklake_stale"])
        stale = next(line.split() for line in log.splitlines() if f"{project.test_schema}.on_top" in line)
        assert stale == [
            f"lake.{project.test_schema}.on_top",
            str(last - 1),
            f"lake.{project.test_schema}.base",
            str(last - 2),
            str(last),
        ]
        run_dbt(["run", "-s", "on_top"])
        _, log = run_dbt_and_capture(["run-operation", "ducklake_stale"])
        assert f"{project.test_schema}.on_top" not in log
        _, log = run_dbt_and_capture(["run-operation", "ducklake_lineage", "--args", "{relation: nothing}"])
        assert f"There is no lake.{project.test_schema}.nothing in the lineage of lake." in log


class TestTheWayBack:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "sources.yml": RAW,
            "numbers.sql": "{{ config(materialized='incremental', unique_key='id') }}\n"
            "select id, '{{ var('v', 'a') }}' as v from range({{ var('n', 3) }})",
            "events.sql": EVENTS.replace("HOOK", "'select 1'"),
            "compared.sql": "{{ config(materialized='table') }} select diff, id\n"
            "from {{ ducklake_diff(ref('numbers'), var('from', 0), var('to', 0), key='id') }}",
        }

    def test_a_model_is_taken_back_and_compared(self, project: Any, ask: Ask) -> None:
        run_dbt(["run", "-s", "numbers"])
        first = newest(ask)
        run_dbt(["run", "-s", "numbers", "--vars", "{v: b, n: 5}"])
        second = newest(ask)
        run_dbt(["run", "-s", "compared", "--vars", f"{{from: {first}, to: {second}}}"])
        assert rows(ask, project, "compared") == [("added", 3), ("added", 4)] + [("changed", i) for i in range(3)]

        args = f"{{relation: numbers, from: {first}, to: {second}, key: id}}"
        _, log = run_dbt_and_capture(["run-operation", "ducklake_diff", "--args", args])
        assert f"from {first} to {second}: 2 added, 0 removed, 3 changed" in log
        assert 'diff: added, id: 4, before: None, after: {"id":4,"v":"b"}' in log

        args = f"{{relation: numbers, version: {first}}}"
        _, log = run_dbt_and_capture(["run-operation", "ducklake_rollback", "--args", args])
        assert f"Done: snapshot {newest(ask)}, 8 rows" in log
        assert rows(ask, project, "numbers") == [(i, "a") for i in range(3)]
        query = "select commit_message from ducklake_snapshots('lake') order by snapshot_id desc limit 1"
        assert ask(query)[0][0] == f"rollback of lake.{project.test_schema}.numbers to {first}"

        args = f"{{schema: {project.test_schema}, version: {second}}}"
        run_dbt(["run-operation", "ducklake_rollback", "--args", args])
        assert [v for _, v in rows(ask, project, "numbers")] == ["b"] * 5
        for args, words in (
            ("{relation: [numbers, nothing], version: 1}", "no table"),
            ("{version: 1}", "whole_lake => true: one of them"),
            ("{relation: numbers}", "give one of the two"),
        ):
            _, log = run_dbt_and_capture(["run-operation", "ducklake_rollback", "--args", args], expect_pass=False)
            assert words in log

    def test_a_model_that_was_taken_back_consumes_again_what_it_lost(self, project: Any, ask: Ask) -> None:
        orders = f"{project.test_schema}.orders"
        project.run_sql(f"create table {orders} as select 1 as id, 10 as amount")
        run_dbt(["run", "-s", "events"])
        first = newest(ask)
        project.run_sql(f"insert into {orders} values (2, 20)")
        run_dbt(["run", "-s", "events"])
        assert [r[2] for r in rows(ask, project, "events")] == [1, 2]
        args = f"{{relation: events, version: {first}}}"
        run_dbt(["run-operation", "ducklake_rollback", "--args", args])
        assert [r[2] for r in rows(ask, project, "events")] == [1]
        for _ in range(2):
            run_dbt(["run", "-s", "events"])
            assert [r[2] for r in rows(ask, project, "events")] == [1, 2]
