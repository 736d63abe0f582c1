"""dbt snapshots of people who come, change and go; what DuckDB sees of them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from .. import reference

Ask = Callable[[str], list[tuple[Any, ...]]]

SNAPSHOTS = """
sources:
  - name: shop
    schema: "{{ target.schema }}"
    tables: [{name: people}]
snapshots:
  - name: ignored
    relation: source('shop', 'people')
    config:
      unique_key: id
      strategy: timestamp
      updated_at: updated_at
      hard_deletes: ignore
      sorted_by: "{{ var('order', 'id') }}"
      pre_hook: {sql: select 1, transaction: false}
  - name: invalidated
    relation: source('shop', 'people')
    config:
      unique_key: id
      strategy: timestamp
      updated_at: updated_at
      hard_deletes: invalidate
      dbt_valid_to_current: "timestamp'9999-12-31'"
  - name: recorded
    relation: source('shop', 'people')
    config: {unique_key: [id], strategy: check, check_cols: [name], hard_deletes: new_record}
"""

# A snapshot's versions: id, name, whether it holds, whether it says that the row is deleted.
CHANGED = {
    "ignored": "1 Ada -, 1 Ada L. +, 2 Grace +, 3 Alan +, 4 Radia +",
    "invalidated": "1 Ada -, 1 Ada L. +, 2 Grace +, 3 Alan -, 4 Radia +",
    "recorded": "1 Ada -, 1 Ada L. +, 2 Grace -, 2 Grace H. +, 3 Alan -, 3 Alan deleted +, 4 Radia +",
}
BACK = {
    "ignored": "1 Ada -, 1 Ada L. +, 2 Grace +, 3 Alan -, 3 Alan +, 4 Radia +",
    "invalidated": "1 Ada -, 1 Ada L. +, 2 Grace +, 3 Alan -, 3 Alan +, 4 Radia +",
    "recorded": "1 Ada -, 1 Ada L. +, 2 Grace -, 2 Grace H. +, 3 Alan -, 3 Alan deleted -, 3 Alan +, 4 Radia +",
}
ENDED = {"ignored": [1], "invalidated": [1, 3], "recorded": [1, 2, 3]}
"""Whose version each snapshot ends when people change."""


@dataclass(frozen=True)
class Run:
    """What `dbt snapshot` did."""

    first: int
    """The newest snapshot of the lake before it."""
    last: int
    messages: list[str]
    """The messages of the lake's snapshots."""
    results: dict[str, Any]


@dataclass(frozen=True)
class History:
    ask: Ask
    schema: str
    changed: Run
    """After a name changed, another one without its time, one left and one came."""
    still: Run
    back: Run
    """After the one who left came back."""

    def versions(self, name: str, run: Run) -> str:
        deleted = "if(dbt_is_deleted = 'True', ' deleted', '')" if name == "recorded" else "''"
        holds = "dbt_valid_to = '9999-12-31'" if name == "invalidated" else "dbt_valid_to is null"
        rows = f"select *, concat(id, ' ', name, {deleted}, if({holds}, ' +', ' -')) as version"
        rows += f" from lake.{self.schema}.{name} at (version => {run.last})"
        return self.ask(f"select string_agg(version, ', ' order by id, dbt_valid_from) from ({rows})")[0][0]


@pytest.fixture(scope="class")
def history(project: Any, lake_folder: Path) -> Iterator[History]:
    connection = reference.connect(f"sqlite:{lake_folder}/metadata.sqlite", f"{lake_folder}/data/")

    def ask(query: str) -> list[tuple[Any, ...]]:
        return connection.execute(query).fetchall()

    def run(*flags: str) -> Run:
        query = "select snapshot_id, commit_message from ducklake_snapshots('lake') order by snapshot_id"
        first = ask(query)[-1][0]
        results = {result.node.name: result for result in run_dbt(["snapshot", *flags])}
        found = ask(query)
        return Run(first, found[-1][0], [text for id, text in found if id > first], results)

    def change(*statements: str) -> None:
        for statement in statements:
            project.run_sql(statement.replace("people", f"{project.test_schema}.people"))

    change(
        "create table people (id bigint, name string, updated_at timestamp)",
        "insert into people select *, timestamp'2026-01-01' from values (1, 'Ada'), (2, 'Grace'), (3, 'Alan')",
    )
    run()
    by_name = ("--vars", "order: name")
    change(
        "update people set name = 'Ada L.', updated_at = timestamp'2026-01-02' where id = 1",
        "update people set name = 'Grace H.' where id = 2",
        "delete from people where id = 3",
        "insert into people values (4, 'Radia', timestamp'2026-01-02')",
    )
    changed, still = run(*by_name), run(*by_name)
    change("insert into people values (3, 'Alan', timestamp'2026-01-03')")
    yield History(ask, project.test_schema, changed, still, run(*by_name))
    connection.close()


class TestSnapshots:
    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"snapshots.yml": SNAPSHOTS}

    @pytest.mark.parametrize("name", CHANGED)
    def test_versions_end_and_begin(self, history: History, name: str) -> None:
        assert history.versions(name, history.changed) == CHANGED[name]
        assert history.versions(name, history.back) == BACK[name]

    def test_a_version_ends_when_the_next_one_begins(self, history: History) -> None:
        ends = f"select id, dbt_valid_to::date::text from lake.{history.schema}.ignored where dbt_valid_to is not null"
        assert history.ask(f"{ends} order by id") == [(1, "2026-01-02"), (3, "2026-01-03")]

    def test_a_run_is_one_snapshot_of_the_lake_for_each(self, history: History) -> None:
        # Also of the one that has a hook outside of the transaction, and another order in its files.
        assert sorted(history.changed.messages) == [
            "dbt snapshot: ignored (snapshot, timestamp)",
            "dbt snapshot: invalidated (snapshot, timestamp)",
            "dbt snapshot: recorded (snapshot, check)",
        ]

    def test_a_run_that_finds_nothing_is_no_snapshot(self, history: History) -> None:
        assert history.still.messages == []
        assert {result.message for result in history.still.results.values()} == {"no change"}

    @pytest.mark.parametrize("name", ENDED)
    def test_a_version_that_ends_is_an_updated_row(self, history: History, name: str) -> None:
        snapshot = history.changed.results[name].adapter_response["snapshot_id"]
        changes = f"ducklake_table_changes('lake', '{history.schema}', '{name}', {snapshot}, {snapshot})"
        found = dict(history.ask(f"select change_type, list(id order by id) from {changes} group by 1"))
        assert found.pop("update_preimage") == found.pop("update_postimage") == ENDED[name]
        assert list(found) == ["insert"]


SAME = """
{% macro ducklake__snapshot_staging_table(strategy, source_sql, target_relation) %}
  {% set whose = 'default__' if model.name.startswith('theirs') else 'ducklake__' %}
  {{ return(dbt[whose ~ 'snapshot_staging_table'](strategy, source_sql, target_relation)) }}
{% endmacro %}
"""

TIMES = "strategy: timestamp, updated_at: updated_at"
CHECK = "strategy: check, check_cols: all"
CONFIGS = {
    "invalidate": f"unique_key: id, {TIMES}, hard_deletes: invalidate, dbt_valid_to_current: \"timestamp'9999-12-31'\"",
    "numbered": "unique_key: id, strategy: timestamp, updated_at: version",
    "record": f"unique_key: id, {TIMES}, hard_deletes: new_record",
    "check": f"unique_key: id, {CHECK}, hard_deletes: ignore",
    "check_record": (
        f"unique_key: [id, name], {CHECK}, updated_at: updated_at, hard_deletes: new_record,"
        " dbt_valid_to_current: \"timestamp'9999-12-31'\","
        " snapshot_meta_column_names: {dbt_valid_to: until, dbt_scd_id: version_id, dbt_is_deleted: gone}"
    ),
}


class TestTheComparisonIsDbts:
    """Random rows that come, change and go, some without a key: what dbt's own macro finds, in one comparison."""

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"same.sql": SAME}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        names = [
            f"  - {{name: {who}_{name}, relation: \"source('shop', 'people')\", config: {{{config}}}}}"
            for name, config in CONFIGS.items()
            for who in ("ours", "theirs")
        ]
        sources = SNAPSHOTS[: SNAPSHOTS.index("snapshots:")]
        return {"snapshots.yml": sources + "snapshots:\n" + "\n".join(names)}

    def test_any_change_makes_the_same_versions(self, project: Any, lake_folder: Path) -> None:
        chance = random.Random(7)
        people: dict[int | None, tuple[str, int]] = {}
        columns = "id bigint, name string, updated_at timestamp, version int"
        project.run_sql(f"create table {project.test_schema}.people ({columns})")
        for day in range(1, 5):
            for id in (*range(12), None):
                if chance.random() < 0.4:
                    people[id] = (chance.choice("abc"), chance.choice((day, day, 1)))
                elif chance.random() < 0.3:
                    people.pop(id, None)
            values = ", ".join(
                f"({'null' if id is None else id}, '{name}', timestamp'2026-01-{moment:02d}', {moment})"
                for id, (name, moment) in people.items()
            )
            project.run_sql(f"insert overwrite {project.test_schema}.people values {values}")
            run_dbt(["snapshot"])
            for name, config in CONFIGS.items():
                ours, theirs = (
                    self.versions(project, lake_folder, f"{who}_{name}", config) for who in ("ours", "theirs")
                )
                assert ours == theirs, f"{name} on day {day}"
                assert len(ours) > 0

    @staticmethod
    def versions(project: Any, lake_folder: Path, name: str, config: str) -> list[tuple[Any, ...]]:
        until, gone = ("until", "gone") if "until" in config else ("dbt_valid_to", "dbt_is_deleted")
        deleted = gone if "new_record" in config else "'-'"
        with reference.connect(f"sqlite:{lake_folder}/metadata.sqlite", f"{lake_folder}/data/") as connection:
            return connection.execute(
                f"select id, name, updated_at, {deleted}, {until} is null or {until}::varchar > '9',"
                f" row_number() over (partition by id, name order by dbt_valid_from, {until} nulls last)"
                f" from lake.{project.test_schema}.{name} order by all"
            ).fetchall()
