"""`reuse: true`: what would be the same is not computed again."""

from __future__ import annotations

import json
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from dbt.tests.util import run_dbt_and_capture, write_file

from .conftest import Ask

MODELS = {
    "orders.sql": "{{ config(materialized='table') }} select id, amount from {{ ref('raw') }}",
    "seen.sql": "select * from {{ ref('orders') }} where amount > 0",
    "totals.sql": "{{ config(materialized='table') }} select sum(amount) as total from {{ ref('seen') }}",
    "latest.sql": "{{ config(materialized='incremental', unique_key='id') }} select * from {{ ref('orders') }}",
    "aside.sql": "{{ config(materialized='table') }} select 1 as id",
    "changes.sql": "{{ config(materialized='incremental', table_options={'parquet_compression': 'zstd'}) }}"
    " select id, change_type from {{ ducklake_new_changes(ref('orders')) }}",
    "now.sql": "{{ config(materialized='table') }} select current_timestamp() as at",
    "schema.yml": """
models:
  - name: orders
    columns:
      - name: id
        data_tests: [unique, not_null]
      - name: amount
        data_tests:
          - accepted_values: {arguments: {values: [10, 20, 25], quote: false}}
""",
    "plain.sql": "{{ config(materialized='table', reuse=false) }} select 1 as id",
}
ONE_TEST = "models: [{name: many, columns: [{name: id, data_tests: [unique]}]}]"
SNAPSHOT = """
{% snapshot history %}
{{ config(strategy='check', unique_key='id', check_cols='all') }} select * from {{ ref('orders') }}
{% endsnapshot %}
"""


def outcomes(*command: str, expect_pass: bool = True) -> dict[str, str]:
    """How each node of a command ended: `reused`, `computed` or `unchanged`."""
    _, log = run_dbt_and_capture(["--no-use-colors", "build", *command], expect_pass=None)
    print(log)
    assert ("Completed successfully" in log) == expect_pass
    lines = re.findall(r"OK \w+ .*?\.(\w+) \.* ?\[(.*?) in ", log)
    words = {"reused": "reused", "no change": "unchanged"}
    return {name: next((w for text, w in words.items() if found.startswith(text)), "computed") for name, found in lines}


class TestReuse:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return MODELS

    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {"raw.csv": "id,amount\n1,10\n2,20\n"}

    @pytest.fixture(scope="class")
    def snapshots(self) -> dict[str, str]:
        return {"history.sql": SNAPSHOT}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {kind: {"+reuse": True} for kind in ("models", "seeds", "snapshots", "data_tests")}

    @pytest.fixture(autouse=True)
    def built(self, project: Any) -> dict[str, str]:
        for name, text in MODELS.items():
            write_file(text, project.project_root, "models", name)
        write_file("id,amount\n1,10\n2,20\n", project.project_root, "seeds", "raw.csv")
        return outcomes()

    def test_an_unchanged_project_is_reused(self, project: Any, ask: Ask) -> None:
        before = ask("select max(snapshot_id) from lake.snapshots()")
        found = outcomes()
        assert found.pop("now") == found.pop("plain") == "computed"
        assert found == dict.fromkeys(
            ("raw", "orders", "seen", "totals", "latest", "changes", "aside", "history"), "reused"
        )
        assert ask("select max(snapshot_id) from lake.snapshots()")[0][0] == before[0][0] + 2

    @pytest.mark.parametrize(
        ("change", "computed"),
        [
            ({"seeds/raw.csv": "id,amount\n1,10\n2,25\n"}, {"raw", "orders", "totals", "latest", "changes", "history"}),
            ({"models/aside.sql": MODELS["aside.sql"] + "  -- the same"}, set()),
            ({"models/aside.sql": MODELS["aside.sql"].replace("1 as id", "2 as id")}, {"aside"}),
            ({"models/seen.sql": MODELS["seen.sql"].replace("> 0", "> 10")}, {"seen", "totals"}),
            ({"models/latest.sql": MODELS["latest.sql"].replace("='id'", "=['id', 'amount']")}, {"latest"}),
        ],
    )
    def test_what_changed_and_its_descendants_are_computed(
        self, project: Any, ask: Ask, change: dict[str, str], computed: set[str]
    ) -> None:
        for path, text in change.items():
            write_file(text, project.project_root, path)
        found = outcomes()
        assert {name for name, how in found.items() if how != "reused"} == {*computed, "now", "plain"}
        assert {name for name, how in outcomes().items() if how != "reused"} == {"now", "plain"}

    def test_a_table_that_somebody_else_changed_is_computed(self, project: Any, ask: Ask) -> None:
        project.run_sql(f"delete from {project.test_schema}.totals where true")
        found = outcomes()
        assert found["totals"] == "computed"
        assert found["orders"] == "reused"
        assert ask(f"select total from lake.{project.test_schema}.totals") == [(30,)]

    def test_full_refresh_computes_all(self, project: Any) -> None:
        assert "reused" not in outcomes("--full-refresh").values()

    def test_what_was_built_empty_is_not_reused(self, project: Any, ask: Ask) -> None:
        outcomes("--empty")
        assert outcomes()["raw"] == "computed"
        assert ask(f"select total from lake.{project.test_schema}.totals") == [(30,)]

    def test_compaction_is_no_change(self, project: Any) -> None:
        project.run_sql(f"call ducklake_rewrite_data_files('{project.test_schema}.orders', delete_threshold => 0)")
        assert {name for name, how in outcomes().items() if how != "reused"} == {"now", "plain"}

    def test_tests_that_passed_on_the_same_versions_are_not_run(self, project: Any) -> None:
        def how(*command: str, passes: bool = True) -> dict[str, str]:
            outcomes(*command, expect_pass=passes)
            content = json.loads(Path(project.project_root, "target", "run_results.json").read_text())
            tests = {r["unique_id"].split(".")[2]: r for r in content["results"] if r["unique_id"].startswith("test.")}
            return {name.split("_orders")[0]: r["adapter_response"].get("notes", "run") for name, r in tests.items()}

        kept = Path(project.project_root, "target", "ducklake_passed_tests.json")
        kept.unlink()
        assert how() == {"unique": "run", "accepted_values": "run", "not_null": "proved by statistics"}
        assert how() == {"unique": "reused", "accepted_values": "reused", "not_null": "proved by statistics"}
        write_file("id,amount\n1,10\n2,30\n", project.project_root, "seeds", "raw.csv")
        for _ in range(2):  # the second time orders are not computed, and the test fails again all the same
            assert how(passes=False)["accepted_values"] == "run"
        write_file("id,amount\n1,10\n,20\n", project.project_root, "seeds", "raw.csv")
        assert how(passes=False)["not_null"] == "run"

    def test_the_plan_tells_what_would_be_computed_and_why(self, project: Any) -> None:
        write_file(MODELS["seen.sql"].replace("> 0", "> 10"), project.project_root, "models", "seen.sql")
        _, log = run_dbt_and_capture(["run-operation", "ducklake_plan"])
        rows = {
            line.split()[0]: " ".join(line.split()[1:])
            for line in log.splitlines()
            if "computed" in line or "reused" in line
        }
        assert rows["seen"] == "computed its code or settings changed"
        assert rows["totals"] == "computed it stands on seen"
        assert rows["now"] == "computed it calls current_timestamp"
        assert rows["plain"] == "computed reuse is not set"
        assert rows["orders"] == rows["raw"] == rows["latest"] == "reused"
        assert "4 of 10 nodes would be computed" in log


NODES, STEPS = 7, 5
KINDS = ("table", "view", "incremental")


class TestSessionSettings:
    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {"many.sql": "select id from range(10) as r (id) where id < limit_of_run", "test.yml": ONE_TEST}

    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {
            "models": {"+reuse": "deterministic", "+materialized": "table"},
            "data_tests": {"+reuse": True},
            "on-run-start": ["declare or replace variable limit_of_run int default {{ var('limit') }}"],
        }

    def test_what_hooks_set_before_the_nodes_counts(self, project: Any, ask: Ask) -> None:
        count = f"select count(*) from lake.{project.test_schema}.many"
        for limit, how in ((5, "computed"), (5, "reused"), (6, "computed"), (6, "reused"), (5, "computed")):
            assert outcomes("--vars", f"limit: {limit}") == {"many": how}
            assert ask(count) == [(limit,)]


class RandomProject:
    """A random DAG over two seeds, and what its tables have to hold."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.seeds = {f"raw{n}": [n + 1] * 3 for n in range(2)}
        self.constants = [random.randrange(5) for _ in range(NODES)]
        self.kinds = [random.choice(KINDS) for _ in range(NODES)]
        self.parents = [
            random.sample([*self.seeds, *(f"m{earlier}" for earlier in range(n))], k=random.choice((1, 2)))
            for n in range(NODES)
        ]

    def change(self) -> None:
        which = self.random.randrange(4)
        if which == 0:
            name = self.random.choice(list(self.seeds))
            self.seeds[name] = [self.random.randrange(100) for _ in range(3)]
        elif which == 1:
            self.constants[self.random.randrange(NODES)] += 1
        elif which == 2:
            self.kinds[self.random.randrange(NODES)] = self.random.choice(KINDS)

    def write(self, root: Path) -> None:
        for name, values in self.seeds.items():
            rows = "".join(f"{i},{value}\n" for i, value in enumerate(values))
            write_file(f"id,v\n{rows}", root, "seeds", f"{name}.csv")
        for n in range(NODES):
            first, *others = self.parents[n]
            joins = "".join(f" join {{{{ ref('{other}') }}}} {other} on {other}.id = {first}.id" for other in others)
            total = " + ".join(f"{parent}.v" for parent in self.parents[n])
            config = f"{{{{ config(materialized='{self.kinds[n]}', unique_key='id') }}}}"
            query = (
                f"select {first}.id, {total} + {self.constants[n]} as v from {{{{ ref('{first}') }}}} {first}{joins}"
            )
            write_file(f"{config} {query}", root, "models", f"m{n}.sql")

    def expected(self) -> dict[str, list[int]]:
        found = dict(self.seeds)
        for n in range(NODES):
            columns = [found[parent] for parent in self.parents[n]]
            found[f"m{n}"] = [sum(values) + self.constants[n] for values in zip(*columns, strict=True)]
        return found


class TestRandomProjects:
    @pytest.fixture(scope="class")
    def project_config_update(self) -> dict[str, Any]:
        return {kind: {"+reuse": True} for kind in ("models", "seeds")}

    @pytest.mark.parametrize("publish", ["node", "run"])
    def test_a_build_with_reuse_is_what_a_build_from_nothing_is(self, project: Any, ask: Ask, publish: str) -> None:
        self.check(project, ask, Random(publish), publish)

    @pytest.mark.long
    @pytest.mark.parametrize("seed", range(60))
    def test_many_random_projects(self, project: Any, ask: Ask, seed: int) -> None:
        self.check(project, ask, Random(seed), ("node", "run")[seed % 2])

    def check(self, project: Any, ask: Ask, random: Random, publish: str) -> None:
        shop, how = RandomProject(random), ["--vars", f"ducklake_publish: {publish}"]
        for _ in range(STEPS):
            shop.write(Path(project.project_root))
            outcomes(*how)
            for name, values in shop.expected().items():
                found = ask(f"select v from lake.{project.test_schema}.{name} order by id")
                assert [v for (v,) in found] == values, name
            shop.change()
        shop.write(Path(project.project_root))
        outcomes(*how)
        assert set(outcomes(*how).values()) == {"reused"}
