"""Incremental models: what each strategy makes of the rows, and which runs may meet; seen by DuckDB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

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


def messages(ask: Ask, after: int) -> Counter[str]:
    """How often each message stands at the snapshots after that one."""
    query = f"select commit_message from ducklake_snapshots('lake') where snapshot_id > {after}"
    return Counter(message for (message,) in ask(query))


def model(query: str, config: str) -> str:
    return f"{{{{ config(materialized='incremental', {config}) }}}}\n{query}"


SCORES = """
select * from values
{% if is_incremental() %}
(1, 'A', 9, false), (2, 'B', 21, false), (3, 'C', 31, true), (4, 'D', 40, false), (5, 'E', 50, true)
{% else %}
(0, 'z', 0, false), (1, 'a', 10, false), (2, 'b', 20, false), (3, 'c', 30, false)
{% endif %}
as new (id, name, score, is_gone)
"""

OPTIONS = {
    "merged": ("", "0z0 1A9 2B21 3C31 4D40 5E50"),
    "higher_scores_rename": (
        "merge_update_columns=['name'], merge_update_condition='DBT_INTERNAL_SOURCE.score > DBT_INTERNAL_DEST.score'",
        "0z0 1a10 2B20 3C30 4D40 5E50",
    ),
    "names_stay_and_few_come": (
        "merge_exclude_columns=['NAME'], merge_insert_condition='DBT_INTERNAL_SOURCE.score < 45'",
        "0z0 1a9 2b21 3c31 4D40",
    ),
    "what_is_gone_goes": (
        "merge_with_delete_condition='DBT_INTERNAL_SOURCE.is_gone'",
        "0z0 1A9 2B21 4D40",
    ),
    "what_is_gone_and_was_high_goes": (
        "merge_with_delete_condition='DBT_INTERNAL_SOURCE.is_gone and DBT_INTERNAL_DEST.score > 5'",
        "0z0 1A9 2B21 4D40 5E50",
    ),
    "few_rows_meet": (
        "incremental_predicates=['DBT_INTERNAL_DEST.score > 15', 'DBT_INTERNAL_SOURCE.score < 25']",
        "0z0 1A9 1a10 2B21 3C31 3c30 4D40 5E50",
    ),
}
"""Models that merge `SCORES` by id: their settings, and the rows afterwards."""

PAIRS = """
select * from values
{% if is_incremental() %}
(1, 'x', 11), (2, 'x', 12), (3, 'x', 6), (null, 'x', 31)
{% else %}
(1, 'x', 10), (1, 'y', 20), (3, 'x', 5), (null, 'x', 30)
{% endif %}
as new (id, name, score)
"""

SALES = """
select * from values
{% if is_incremental() %}
('eu', date'2026-01-31', 'd'), ('eu', date'2026-03-01', 'e'), ('eu', date'2026-01-05', 'f')
{% else %}
('eu', date'2026-01-05', 'a'), ('us', date'2026-01-05', 'b'), ('eu', date'2026-02-03', 'c')
{% endif %}
as new (region, day, what)
"""

OVERWRITES = {
    "appended": ("incremental_strategy='append'", "abcdef"),
    "new_months": ("incremental_strategy='insert_overwrite', partition_by=['month(day)']", "cdef"),
    "a_day_of_a_region": (
        "incremental_strategy='insert_overwrite', partition_by=['region', 'day'],"
        " partitions=[{'region': \"'us'\", 'day': \"date'2026-01-05'\"}]",
        "acdef",
    ),
}
"""Models of `SALES`: their settings, and what is left of the rows."""

BUCKETS = "select id, '{{ 'new' if is_incremental() else 'old' }}' as what from range(20)"
BUCKETS += "{% if is_incremental() %} where id = 7 {% endif %}"

NOTHING_NEW = "select id from range(5) {% if is_incremental() %} where id < 0 {% endif %}"
STRATEGIES = {
    "merge": "unique_key='id'",
    "delete_insert": "incremental_strategy='delete+insert', unique_key='id'",
    "insert_overwrite": "incremental_strategy='insert_overwrite', partition_by='id'",
}

ONLY_NEW = """
{% macro get_incremental_only_new_sql(arg_dict) %}
  insert into {{ arg_dict['target_relation'] }} by name
  select new.* from {{ arg_dict['temp_relation'] }} as new
  left anti join {{ arg_dict['target_relation'] }} as old on old.{{ arg_dict['unique_key'] }} = new.id
{% endmacro %}
"""

PLACES = """
{% if is_incremental() %}
select 2 as id, named_struct('street', 'Am Rhein', 'city', 'Bonn') as place, cast(8 as bigint) as size, 'x' as note
{% else %}
select 1 as id, named_struct('city', 'Ulm', 'zip', '89073') as place, 7 as size, 'old' as origin
{% endif %}
"""

LAYOUT = """
{{ config(
    materialized='incremental', partition_by=var('partition_by', ['part']), sorted_by=var('sorted_by', ['id'])
) }}
select id, id % 2 as part, date'2025-12-30' + cast(id as int) as day
from range({{ '4, 8' if is_incremental() else '4' }})
"""
# A key on a column that comes with it, and one whose column goes.
NEW_KEY = """
{{ config(
    materialized='incremental', on_schema_change='sync_all_columns', partition_by=var('new_key', ['old']),
    sorted_by=var('new_key', ['old']), table_options={'data_inlining_row_limit': 0}
) }}
select id, 'x' as {{ 'new' if is_incremental() else 'old' }} from range(2)
"""
NEW_LAYOUT = {"new_key": ["new"], "partition_by": ["year(day)"], "sorted_by": ["day desc"]}

WRONG = {
    "unknown_strategy": (
        model("select 1 as id", "incremental_strategy='upsert'"),
        ["get_incremental_upsert_sql"],
    ),
    "key_of_nothing": (
        model("select 1 as id", "unique_key=['id', 'nothing']"),
        ["unique_key names 'nothing', which is no column of", "it has id"],
    ),
    "emptied": (model(NOTHING_NEW, "incremental_strategy='insert_overwrite'"), ["would empty table emptied"]),
}
"""Models that fail in the second run at the latest, and what they say then."""


@dataclass(frozen=True)
class Runs:
    """A project that ran twice: what dbt and the lake tell of it."""

    ask: Ask
    schema: str
    between: int
    """The last snapshot of the first run."""
    second: dict[str, Any]
    """The results of the second run."""

    def snapshot(self, name: str) -> int:
        """The snapshot of a model's second run."""
        return self.second[name].adapter_response["snapshot_id"]

    def text(self, name: str, columns: str, between: str = " ") -> str:
        """The rows of a model as one text, in their order."""
        query = f"select string_agg(concat({columns}), '{between}' order by {columns}) from {self.table(name)}"
        return self.ask(query)[0][0]

    def table(self, name: str) -> str:
        return f"lake.{self.schema}.{name}"

    def changes(self, name: str) -> str:
        """What DuckDB calls the changes of a model's second run."""
        return (
            f"ducklake_table_changes('lake', '{self.schema}', '{name}', {self.snapshot(name)}, {self.snapshot(name)})"
        )


@pytest.fixture(scope="class")
def runs(project: Any, ask: Ask) -> Runs:
    run_dbt(["run"], expect_pass=False)
    between = newest(ask)
    second = run_dbt(["run", "--vars", json.dumps(NEW_LAYOUT)], expect_pass=False)
    return Runs(ask, project.test_schema, between, {result.node.name: result for result in second})


class TestStrategies:
    """All models run twice, the second time with other rows; each test looks at some of them."""

    @pytest.fixture(scope="class")
    def macros(self) -> dict[str, str]:
        return {"only_new.sql": ONLY_NEW}

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        overlap = "unique_key=['id', 'name'], incremental_predicates='DBT_INTERNAL_DEST.score >= 10'"
        queries = {name: model(SCORES, f"unique_key='id', {options}") for name, (options, _) in OPTIONS.items()}
        queries |= {name: model(SALES, options) for name, (options, _) in OVERWRITES.items()}
        queries |= {f"still_{name}": model(NOTHING_NEW, options) for name, options in STRATEGIES.items()}
        queries |= {name: query for name, (query, _) in WRONG.items()}
        queries |= {
            "pairs_merged": model(PAIRS, overlap),
            "pairs_replaced": model(PAIRS, f"{overlap}, incremental_strategy='delete+insert'"),
            "buckets": model(BUCKETS, "incremental_strategy='insert_overwrite', partition_by=['bucket(4, id)']"),
            "only_new": model(SCORES, "incremental_strategy='only_new', unique_key='id'"),
            "places_append": model(PLACES, "on_schema_change='append_new_columns'"),
            "places_sync": model(PLACES, "on_schema_change='sync_all_columns', unique_key='id'"),
            "layout": LAYOUT,
            "new_key": NEW_KEY,
        }
        return {f"{name}.sql": query for name, query in queries.items()}

    def test_each_model_that_changed_something_is_one_snapshot(self, runs: Runs) -> None:
        strategies = {
            **dict.fromkeys((*OPTIONS, "pairs_merged", "places_sync"), "merge"),
            **dict.fromkeys((*OVERWRITES, "buckets"), "insert_overwrite"),
            **dict.fromkeys(("appended", "places_append", "layout", "new_key"), "append"),
            "pairs_replaced": "delete+insert",
            "only_new": "only_new",
        }
        expected = Counter(f"dbt run: {name} (incremental, {strategy})" for name, strategy in strategies.items())
        assert messages(runs.ask, runs.between) == expected

    @pytest.mark.parametrize("name", OPTIONS)
    def test_a_merge_does_what_its_options_say(self, runs: Runs, name: str) -> None:
        assert runs.text(name, "id, name, score") == OPTIONS[name][1]

    def test_a_merge_updates_rows_in_place(self, runs: Runs) -> None:
        changes = f"select change_type, id from {runs.changes('merged')} order by all"
        assert runs.ask(changes) == [
            *(("insert", id) for id in (4, 5)),
            *(("update_postimage", id) for id in (1, 2, 3)),
            *(("update_preimage", id) for id in (1, 2, 3)),
        ]

    @pytest.mark.parametrize("name", ["pairs_merged", "pairs_replaced"])
    def test_rows_meet_by_all_their_keys_and_never_by_null(self, runs: Runs, name: str) -> None:
        # Of id 3 the old row is one that the predicate leaves out.
        assert runs.ask(f"select * from {runs.table(name)} order by all") == [
            (1, "x", 11),
            (1, "y", 20),
            (2, "x", 12),
            (3, "x", 5),
            (3, "x", 6),
            (None, "x", 30),
            (None, "x", 31),
        ]

    @pytest.mark.parametrize("name", OVERWRITES)
    def test_partitions_give_way_to_new_rows(self, runs: Runs, name: str) -> None:
        assert runs.text(name, "what", "") == OVERWRITES[name][1]

    def test_a_bucket_gives_way_to_its_new_rows(self, runs: Runs) -> None:
        metadata, table = "__ducklake_metadata_lake", runs.table("buckets")
        buckets = (
            f"select b.id, v.partition_value from (select id, filename from {table} at (version => {runs.between})) b"
            f" join {metadata}.ducklake_data_file f on ends_with(b.filename, f.path)"
            f" join {metadata}.ducklake_file_partition_value v using (data_file_id)"
        )
        before = dict(runs.ask(buckets))
        stay = {id for id, bucket in before.items() if bucket != before[7]}
        assert 0 < len(stay) < 19
        after = runs.ask(f"select id, what from {table} order by id")
        assert after == sorted([(7, "new"), *((id, "old") for id in stay)])

    @pytest.mark.parametrize("strategy", STRATEGIES)
    def test_no_new_rows_are_no_snapshot(self, runs: Runs, strategy: str) -> None:
        name = f"still_{strategy}"
        assert runs.second[name].message == "no change"
        assert runs.text(name, "id", "") == "01234"

    def test_a_project_has_strategies_of_its_own(self, runs: Runs) -> None:
        assert runs.text("only_new", "id, name, score") == "0z0 1a10 2b20 3c30 4D40 5E50"

    def test_new_columns_and_fields_come_with_their_rows(self, runs: Runs) -> None:
        assert runs.ask(f"select *, typeof(size) from {runs.table('places_append')} order by id") == [
            (1, {"city": "Ulm", "zip": "89073", "street": None}, 7, "old", None, "INTEGER"),
            (2, {"city": "Bonn", "zip": None, "street": "Am Rhein"}, 8, None, "x", "INTEGER"),
        ]

    def test_columns_and_fields_come_and_go_with_their_rows(self, runs: Runs) -> None:
        table = runs.table("places_sync")
        assert runs.ask(f"select *, typeof(size) from {table} order by id") == [
            (1, {"city": "Ulm", "street": None}, 7, None, "BIGINT"),
            (2, {"city": "Bonn", "street": "Am Rhein"}, 8, "x", "BIGINT"),
        ]
        before = runs.snapshot("places_sync") - 1
        assert runs.ask(f"select * from {table} at (version => {before})") == [
            (1, {"city": "Ulm", "zip": "89073"}, 7, "old")
        ]

    def test_a_new_layout_is_that_of_the_new_files(self, runs: Runs) -> None:
        def living(name: str, columns: str) -> list[tuple[Any, ...]]:
            found = "__ducklake_metadata_lake.ducklake_"
            return runs.ask(
                f"select i.begin_snapshot, {columns} from {found}{name}_info i"
                f" join {found}{'partition_column' if name == 'partition' else 'sort_expression'} using ({name}_id)"
                f" join {found}table t on t.table_id = i.table_id join {found}schema s using (schema_id)"
                f" where i.end_snapshot is null and t.table_name = 'layout' and s.schema_name = '{runs.schema}'"
            )

        snapshot = runs.snapshot("layout")
        assert living("partition", "transform") == [(snapshot, "year")]
        assert living("sort", "sort_direction") == [(snapshot, "DESC")]
        files = f"select count(distinct filename), count(*) from {runs.table('layout')} where snapshot_id = {snapshot}"
        assert runs.ask(files) == [(1, 4)]
        assert runs.text("layout", "id", "") == "01234567"

    def test_a_key_comes_with_its_column_and_goes_with_it(self, runs: Runs) -> None:
        assert runs.ask(f"select id, new from {runs.table('new_key')} order by all") == [
            (0, "x"),
            (0, None),
            (1, "x"),
            (1, None),
        ]
        metadata = "__ducklake_metadata_lake.ducklake_"
        values = (
            f"select partition_value from {metadata}file_partition_value join {metadata}data_file using (data_file_id)"
            f" where begin_snapshot = {runs.snapshot('new_key')}"
        )
        assert runs.ask(values) == [("x",)]

    @pytest.mark.parametrize("name", WRONG)
    def test_what_is_wrong_is_said(self, runs: Runs, name: str) -> None:
        assert runs.second[name].status == "error"
        for words in WRONG[name][1]:
            assert words in runs.second[name].message


EVENTS = """
{{ config(materialized='table', event_time='at') }}
select id, timestamp_ntz'2026-01-01' + make_interval(0, 0, 0, 0, 6 * cast(id as int)) as at, 'old' as what
from range(20)
"""
DAYS = """
{{ config(
    materialized='incremental', incremental_strategy='microbatch', event_time='at', batch_size='day',
    begin='2026-01-01', lookback=0, partition_by='day(at)', commit_message='a day of events'
) }}
select * from {{ ref('events') }}
"""


class TestMicrobatch:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"events.sql": EVENTS, "days.sql": DAYS}

    def test_batches_are_snapshots_and_replace_their_windows(self, project: Any, ask: Ask) -> None:
        table, before = f"lake.{project.test_schema}.days", newest(ask)
        said: list[str] = []
        window = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-06"]
        run_dbt(["run", *window], callbacks=[lambda event: said.append(event.info.msg)])
        # dbt runs the first batch and the last one alone.
        assert sum("is being run concurrently" in text for text in said) == 3
        assert messages(ask, before) == {"dbt run: events (table)": 1, "a day of events": 5}
        assert ask(f"select count(distinct snapshot_id), count(*), count(distinct id) from {table}") == [(5, 20, 20)]

        project.run_sql("update {schema}.events set what = 'new'")
        project.run_sql("delete from {schema}.events where id = 9")
        before = newest(ask)
        window = ["--event-time-start", "2026-01-03", "--event-time-end", "2026-01-04"]
        run_dbt(["run", "-s", "days", *window])
        assert messages(ask, before) == {"a day of events": 1}
        batch = "select commit_extra_info->'batch'->>'start' from ducklake_snapshots('lake') order by snapshot_id"
        assert ask(batch)[-1] == ("2026-01-03T00:00:00+00:00",)
        changes = f"ducklake_table_changes('lake', '{project.test_schema}', 'days', {before + 1}, {before + 1})"
        assert ask(
            f"select change_type, list(id order by id), list(distinct what) from {changes} group by 1 order by 1"
        ) == [
            ("delete", [8, 9, 10, 11], ["old"]),
            ("insert", [8, 10, 11], ["new"]),
        ]


MEET = """
import os, pathlib, time

def meet(name, folder=os.environ.get("MEET"), writer=os.environ.get("WRITER")):
    '''Waits until two runs have begun to change this table, if they are to meet.'''
    if folder is None:
        return True
    pathlib.Path(folder, f"{name}-{writer}").touch()
    end = time.monotonic() + 240
    while len(list(pathlib.Path(folder).glob(f"{name}-*"))) < 2:
        assert time.monotonic() < end, "the other run did not come"
        time.sleep(0.1)
    return True
"""

SAME = f"""{MEET}
def model(dbt, session):
    dbt.config(materialized="incremental", unique_key="id")
    if not dbt.is_incremental:
        return session.sql("select id, 0 as count from range(4)")
    meet("same")
    counts = session.range(5).join(session.sql(f"select * from {{dbt.this}}"), "id", "left")
    return counts.selectExpr("id", "coalesce(count, 0) + 1 as count")
"""

APART = f"""{MEET}
def model(dbt, session):
    dbt.config(
        materialized="incremental", unique_key=["writer", "id"], partition_by="writer",
        table_options={{"data_inlining_row_limit": 0}},
    )
    if not dbt.is_incremental:
        return session.sql("select writer, id, 0 as count from range(4), values ('one'), ('two') as w (writer)")
    meet("apart")
    session.udf.register("meet", meet, "boolean")
    writer = os.environ["WRITER"]
    counts = session.range(5).join(session.table(str(dbt.this)).where(f"writer = '{{writer}}'"), "id", "left")
    return counts.selectExpr(f"'{{writer}}' as writer", "id", "coalesce(count, 0) + 1 as count")
"""

COUNTED = """
-- Waits with a function of {{ ref('apart') }}
{{ config(materialized='incremental', unique_key='id') }}
{% if is_incremental() %}
select id, coalesce(count, 0) + 1 as count from range(5) left join {{ this }} using (id) where meet('counted')
{% else %}
select id, 0 as count from range(4)
{% endif %}
"""


@pytest.mark.processes
class TestTwoRunsUpsertAtOnce:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"same.py": SAME, "apart.py": APART, "counted.sql": COUNTED}

    def test_no_update_is_lost(self, project: Any, ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        run_dbt(["run"])
        command = [sys.executable, "-m", "dbt.cli.main", "run", "--project-dir", str(project.project_root)]
        command += ["--profiles-dir", str(project.profiles_dir), "--log-path", str(tmp_path / "logs")]
        command += ["--target-path", str(tmp_path / "target")]
        monkeypatch.setenv("MEET", str(tmp_path))
        with subprocess.Popen(command, env={**os.environ, "WRITER": "two"}) as other:
            monkeypatch.setenv("WRITER", "one")
            here = {r.node.name: (str(r.status), r.message) for r in run_dbt(["run"], expect_pass=None)}
            other.wait(timeout=240)
        results = json.loads((tmp_path / "target" / "run_results.json").read_text())["results"]
        there = {r["unique_id"].split(".")[-1]: (r["status"], r["message"]) for r in results}

        schema = project.test_schema
        assert (here["apart"][0], there["apart"][0]) == ("success", "success")
        counts = f"select writer, list(id order by id), max(count) from lake.{schema}.apart group by writer order by 1"
        assert ask(counts) == [("one", [0, 1, 2, 3, 4], 1), ("two", [0, 1, 2, 3, 4], 1)]

        # A query that loses the race is planned again; what a Python model gave is not known to be right any more.
        assert (here["counted"][0], there["counted"][0]) == ("success", "success")
        counts = "select list(id order by id), min(count), max(count) from lake."
        assert ask(f"{counts}{schema}.counted") == [([0, 1, 2, 3, 4], 2, 2)]
        (first, why), (second, _) = sorted((here["same"], there["same"]))
        assert (first, second) == ("error", "success")
        for words in (f"{schema}.same, but snapshot ", " by tester (dbt run: same (", "run it again on the new state"):
            assert words in why
        assert ask(f"{counts}{schema}.same") == [([0, 1, 2, 3, 4], 1, 1)]
