"""dbt: its overhead over the statements that it runs, docs without Spark, and the time to a first model."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

from .harness import Bench, Figure

MODELS = 100
LARGE_RUN = 500
TABLES = 1_000


def run(bench: Bench) -> list[Figure]:
    suites = (_many_models, _published, _memory_of_a_run, _reused, _docs_generate, _one_model)
    return [figure for suite in suites for figure in suite(bench)]


class Project:
    """A dbt project and its lake in a folder."""

    def __init__(self, folder: Path, models: dict[str, str], spark: dict[str, str] | None = None) -> None:
        self.folder = folder
        (folder / "models").mkdir(parents=True)
        (folder / "dbt_project.yml").write_text("name: bench\nversion: '1.0'\nprofile: bench\n")
        target = {
            "type": "ducklake",
            "catalog": f"sqlite:{folder}/metadata.sqlite",
            "data_path": f"{folder}/data/",
            "spark": spark or {},
        }
        (folder / "profiles.yml").write_text(json.dumps({"bench": {"target": "dev", "outputs": {"dev": target}}}))
        for name, sql in models.items():
            (folder / "models" / f"{name}.sql").write_text(sql)

    def dbt(self, *command: str, wrapper: str | None = None) -> tuple[float, str]:
        """Runs a command in a new process. Returns its seconds and its output."""
        program = ["-m", "dbt.cli.main"] if wrapper is None else ["-c", wrapper]
        flags = ["--no-use-colors", "--no-send-anonymous-usage-stats"]
        start = time.perf_counter()
        completed = subprocess.run(
            [sys.executable, *program, *flags, *command, "--project-dir", ".", "--profiles-dir", "."],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        return time.perf_counter() - start, completed.stdout


def _many_models(bench: Bench) -> list[Figure]:
    """Models of one row, compared with the same statements in a LakeSession."""
    lake = bench.lake
    sql = "{{ config(materialized='table') }} select 1 as id"
    project = Project(bench.folder / "runs", {f"m{number}": sql for number in range(MODELS)})
    lake.execute("create schema bare")
    for number in range(10):
        lake.execute(f"create or replace table bare.m{number} as select 1 as id")
    start = time.perf_counter()
    for number in range(MODELS):
        lake.execute(f"create or replace table bare.m{number} as select 1 as id")
    bare = (time.perf_counter() - start) / MODELS
    figures = [Figure("one statement, create table as", bare * 1000, "ms")]
    for threads in (1, 4):
        _, log = project.dbt("run", "--threads", str(threads))
        # The first model of each thread waits for Spark to start.
        seconds = [float(match) for match in re.findall(r"OK created .* in ([\d.]+)s\]", log)]
        assert len(seconds) == MODELS
        warm = sorted(seconds)[: -threads or None]
        each = sum(warm) / len(warm) / threads
        figures.append(
            Figure(
                f"dbt run, a model of one row, {threads} thread{'s' * (threads > 1)}",
                each * 1000,
                "ms",
                bare * 1000,
                "bare",
            )
        )
    return figures


def _published(bench: Bench) -> list[Figure]:
    """The same models as one snapshot, compared with one for each."""
    sql = "{{ config(materialized='table') }} select 1 as id"
    project = Project(bench.folder / "published", {f"m{number}": sql for number in range(MODELS)})
    figures = []
    for threads in (1, 4):
        run = ["run", "--threads", str(threads), "--vars"]
        as_one, by_node = bench.median_seconds(
            lambda _, run=run: project.dbt(*run, "ducklake_publish: run"),  # type: ignore[misc]
            lambda _, run=run: project.dbt(*run, "ducklake_publish: node"),  # type: ignore[misc]
        )
        name = f"dbt run, {MODELS} models of one row, publish: run, {threads} thread{'s' * (threads > 1)}"
        figures.append(Figure(name, as_one, "s", by_node, "publish: node"))
    return figures


_WITH_PEAK = """
import resource, sys
from dbt.cli.main import dbtRunner
done = dbtRunner().invoke(sys.argv[1:]).success
print("peak", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
sys.exit(not done)
"""


def _memory_of_a_run(bench: Bench) -> list[Figure]:
    """The memory of the process of dbt, without Spark's, where all models are one snapshot, and where each is one."""
    sql = "{{ config(materialized='table') }} select id, id as a, id as b, id as c, id as d from range(1000)"
    project = Project(bench.folder / "memory", {f"m{number}": sql for number in range(LARGE_RUN)})
    peaks = []
    for publish in ("run", "node"):
        _, output = project.dbt("run", "--threads", "4", "--vars", f"ducklake_publish: {publish}", wrapper=_WITH_PEAK)
        peaks.append(int(re.findall(r"peak (\d+)", output)[-1]) / 1024)
    return [Figure(f"memory of dbt run, {LARGE_RUN} models, publish: run", peaks[0], "MiB", peaks[1], "publish: node")]


def _reused(bench: Bench) -> list[Figure]:
    """A build of an unchanged project, and of one in which one source of a hundred has changed."""
    config = "{{ config(materialized='table') }} "
    sources = {f"source{n}": f"{config} select {n} as id, 0 as version" for n in range(MODELS // 2)}
    marts = {f"mart{n}": f"{config} select id, version from {{{{ ref('source{n}') }}}}" for n in range(MODELS // 2)}
    project = Project(bench.folder / "reused", {**sources, **marts})
    tests = [
        {"name": name, "columns": [{"name": "id", "data_tests": ["unique", "not_null"]}]} for name in (*sources, *marts)
    ]
    (project.folder / "models" / "tests.yml").write_text(json.dumps({"models": tests}))
    settings = "models: {+reuse: true}\ndata_tests: {+reuse: true}\n"
    with (project.folder / "dbt_project.yml").open("a") as file:
        file.write(settings)
    first, _ = project.dbt("build", "--threads", "4")
    project.dbt("build", "--threads", "4")

    def change_one(number: int) -> None:
        text = f"{config} select 0 as id, {number + 2} as version"
        (project.folder / "models" / "source0.sql").write_text(text)
        project.dbt("build", "--threads", "4")

    unchanged, one_changed, parse = bench.median_seconds(
        lambda _: project.dbt("build", "--threads", "4"), change_one, lambda _: project.dbt("parse")
    )
    what = f"dbt build, {MODELS} models and {2 * MODELS} tests"
    return [
        Figure(f"{what}, nothing changed", unchanged, "s", parse, "dbt parse", goal="1.3"),
        Figure(f"{what}, one of {MODELS // 2} sources changed", one_changed, "s", first, "the first build"),
    ]


def _docs_generate(bench: Bench) -> list[Figure]:
    sql = "{{ config(materialized='table') }} select 1 as id"
    project = Project(bench.folder / "docs", {f"t{number}": sql for number in range(TABLES)})
    from dbt.adapters.ducklake import LakeSession

    columns = ", ".join(f"c{number} bigint" for number in range(20))
    with LakeSession(f"sqlite:{project.folder}/metadata.sqlite", f"{project.folder}/data/") as lake, lake.transaction():
        for number in range(TABLES):
            lake.execute(f"create table t{number} ({columns})")
    project.dbt("parse")
    parse, _ = project.dbt("parse", "--no-partial-parse")
    docs, _ = project.dbt("docs", "generate", "--no-compile", "--no-partial-parse")
    return [Figure(f"dbt docs generate, {TABLES:,} tables", docs, "s", parse, "dbt parse", goal="3 s more")]


def _one_model(bench: Bench) -> list[Figure]:
    """A run of one model with the start of its process: with a Spark of its own, and with one that is kept warm."""
    sql = "{{ config(materialized='table') }} select 1 as id"
    project = Project(bench.folder / "first", {"first": sql})
    project.dbt("run")
    with_dbt, _ = project.dbt("run")
    program = (
        "from dbt.adapters.ducklake import LakeSession\n"
        f"lake = LakeSession('sqlite:{project.folder}/metadata.sqlite')\n"
        "lake.execute('create or replace table first as select 1 as id')\n"
        "lake.close()\n"
    )
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    return [Figure("dbt run of one model, from the start", with_dbt, "s", seconds, "LakeSession"), _warm(bench)]


def _warm(bench: Bench) -> Figure:
    """A run of one model on a warm Spark, compared with reading the project and the bare statement."""
    sql = "{{ config(materialized='table') }} select 1 as id"
    project = Project(bench.folder / "warm", {"first": sql}, {"keep_alive": "10m"})
    try:
        for _ in range(5):  # the first starts Spark; the others warm it up
            project.dbt("run")
        warm, parse, statement = bench.median_seconds(
            lambda _: project.dbt("run", "-s", "first"),
            lambda _: project.dbt("parse"),
            lambda _: bench.lake.execute("create or replace table bare.warm as select 1 as id"),
        )
    finally:
        project.dbt("run-operation", "ducklake_stop_spark")
    return Figure("dbt run of one model, warm Spark", warm, "s", parse + statement, "dbt parse, statement", "1.5")
