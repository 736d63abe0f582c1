"""The dbt examples make one project, which dbt parses, builds twice and runs the operations on.

A model without a query gets `select * from {{ source('shop', 'orders') }}`. Names that several examples use are made
unique.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from dbt.cli.main import dbtRunner
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.credentials import DucklakeCredentials

from .blocks import run_blocks

SHOP = {"name": "shop", "schema": "main", "tables": [{"name": "orders"}, {"name": "customers"}]}
ORDERS = """
{{ config(materialized='incremental') }}
select * from {{ source('shop', 'orders') }} {% if is_incremental() %} where false {% endif %}
"""
"""The model of the prepared table, which it leaves as it is: examples name its versions."""
SEEDS = {"raw_orders": "id,ordered_at\n1,2026-01-01 00:00:00\n"}
BATCHES = ["--event-time-start", "2026-01-01", "--event-time-end", "2026-01-03"]
RUN_OPERATION = re.compile(r"^\$ (dbt run-operation .+)$", re.MULTILINE)
IN_PROJECT = re.compile(r"^\$ (dbt (?:list|seed|docs generate|source freshness))$", re.MULTILINE)

MODELS = [b for b in run_blocks("sql") if b.models or b.file]
PYTHON_MODELS = [b for b in run_blocks("python") if "def model(" in b.text]
YAML = [(b, yaml.safe_load(b.text)) for b in run_blocks("yaml")]


PROJECT_KINDS = {"functions", "models", "seeds", "snapshots", "sources", "on-run-end"}


def targets(content: dict[str, Any]) -> list[dict[str, Any]]:
    """The targets in a block of a profile, which is a whole one or some fields of a target."""
    if content.keys() <= PROJECT_KINDS:
        return []
    if any("outputs" not in value for value in content.values()):
        return [{"catalog": "sqlite:lake/metadata.sqlite", **content}]
    return [target for profile in content.values() for target in profile["outputs"].values()]


def _has_query(model: str) -> bool:
    return "select" in re.sub(r"\{\{.*?\}\}", "", model, flags=re.DOTALL)


@dataclass
class Project:
    folder: Path
    spark: SparkSession

    def dbt(self, *command: str) -> Any:
        where = ["--project-dir", str(self.folder), "--profiles-dir", str(self.folder)]
        result = dbtRunner().invoke(["--no-send-anonymous-usage-stats", *command, *where])
        failed = [f"{r.node.name}: {r.message}" for r in getattr(result.result, "results", []) if r.status in FAILURES]
        assert result.success, failed or result.exception or result.result
        return result.result

    def write(self, path: str, content: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)


FAILURES = ("error", "fail", "runtime error")


def _write_models(project: Project) -> None:
    project.write("models/orders.sql", ORDERS)
    for block in MODELS:
        if block.file and not block.file.startswith("models/"):
            project.write(block.file, block.text)
            continue
        for number, model in enumerate(block.models):
            query = "" if _has_query(model) else "\nselect * from {{ source('shop', 'orders') }}"
            project.write(f"models/{block.name}_{number}.sql", model + query)
    for block in PYTHON_MODELS:
        project.write(f"models/{block.name}.py", block.text)


def _write_properties(project: Project) -> None:
    project.write("models/shop.yml", yaml.safe_dump({"sources": [SHOP]}))
    settings: dict[str, Any] = {"models": {"+materialized": "table"}}
    for block, content in YAML:
        if targets(content):
            continue
        (kind, entries), *others = content.items()
        assert not others, block.id
        if isinstance(entries, dict):
            settings[kind] |= entries
            continue
        if isinstance(entries, str):
            settings[kind] = entries
            continue
        for entry in entries:
            if kind == "sources":
                entry.setdefault("schema", "main")
                entry["name"] = f"{block.name}_{entry['name']}"
                for table in entry["tables"]:
                    model = f"select * from {{{{ source('{entry['name']}', '{table['name']}') }}}}"
                    project.write(f"models/{entry['name']}_{table['name']}.sql", model)
            elif kind == "models":
                entry["name"] = f"{block.name}_{entry['name']}"
                columns = ", ".join(column["name"] for column in entry["columns"])
                project.write(
                    f"models/{entry['name']}.sql", f"select {columns} from {{{{ source('shop', 'orders') }}}}"
                )
            elif kind == "seeds":
                project.write(f"seeds/{entry['name']}.csv", SEEDS[entry["name"]])
        folder = {"sources": "models"}.get(kind, kind)
        project.write(f"{folder}/{block.name}.yml", yaml.safe_dump({kind: entries}))
    project.write("dbt_project.yml", yaml.safe_dump({"name": "examples", "profile": "shop", **settings}))


@pytest.fixture(scope="module")
def project(prepared_lake: Path, spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    folder = tmp_path_factory.mktemp("examples")
    (folder / "metadata.sqlite").write_bytes(prepared_lake.read_bytes())
    target = {"type": "ducklake", "catalog": f"sqlite:{folder}/metadata.sqlite", "schema": "main", "threads": 2}
    project = Project(folder, spark)
    project.write("profiles.yml", yaml.safe_dump({"shop": {"target": "dev", "outputs": {"dev": target}}}))
    _write_models(project)
    _write_properties(project)
    outside = "spark_catalog.default.raw_orders"
    spark.sql(f"create table {outside} using parquet location '{folder}/raw_orders' as select 1 as id")
    yield project
    spark.sql(f"drop table {outside}")


def test_every_example_is_built_twice(project: Project) -> None:
    built = project.dbt("build", *BATCHES)
    kinds = {str(r.node.resource_type) for r in built}
    assert kinds == {"model", "seed", "snapshot", "function", "operation"}
    print([(r.node.name, round(r.execution_time, 2)) for r in built])
    project.dbt("run", "--select", "config.materialized:incremental", *BATCHES)


def _found(pattern: re.Pattern[str]) -> list[Any]:
    return [
        pytest.param(command, id=f"{block.page} {command}")
        for block in run_blocks("console")
        for command in pattern.findall(block.text)
    ]


OUTSIDE_OF_THE_LAKES = ["--exclude", "source:*_warehouse"]
"""dbt docs generate fails for sources that are in none of the lakes."""


@pytest.mark.parametrize("command", _found(RUN_OPERATION) + _found(IN_PROJECT))
def test_a_command_runs(command: str, project: Project) -> None:
    arguments = shlex.split(command, comments=True)[1:]
    project.dbt(*arguments, *(OUTSIDE_OF_THE_LAKES if "docs" in arguments else []))


@pytest.mark.parametrize("target", [pytest.param(t, id=b.id) for b, content in YAML for t in targets(content)])
def test_a_profile_is_valid(target: dict[str, Any]) -> None:
    DucklakeCredentials.validate(target)
    DucklakeCredentials.from_dict({k: v for k, v in target.items() if k not in ("type", "threads")})
