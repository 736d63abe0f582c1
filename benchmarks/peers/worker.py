"""The process of one system: runs the steps, and writes the seconds and answers of each.

`python -m benchmarks.peers.worker ARGUMENTS.json` is how run.py starts it.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from . import data
from .answers import answer
from .processes import cpu_seconds
from .systems import BY_NAME, Limits, System

PROJECT = Path(__file__).parent / "project"
QUERIES = tuple(f"q{number:02d}" for number in range(1, 23))
CHANGING = ("orders", "lineitem")

# The sums of the tables that refresh sets change, and of the snapshot.
_SUMS = {
    "orders": "select count(*), sum(o_totalprice), sum(o_orderkey), sum(length(o_comment)) from {}",
    "lineitem": "select count(*), sum(l_extendedprice), sum(l_orderkey), sum(length(l_comment)) from {}",
}
_HISTORY_SUM = "select count(*), count(dbt_valid_to), sum(o_totalprice), sum(o_orderkey) from {}"
_PAST_SUM = "select orders, total from {}"


@dataclass(frozen=True)
class Arguments:
    system: str
    scale: float
    data: str
    folder: str
    results: str
    catalog: str
    limits: Limits
    wear: int

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Arguments:
        values = json.loads(path.read_text())
        return cls(**{**values, "limits": Limits(**values["limits"])})


class Results:
    """Writes what is measured, a line of JSON each, as soon as it is known."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w")

    def write(self, **values: Any) -> None:
        self._file.write(json.dumps(values) + "\n")
        self._file.flush()


class Worker:
    """The parts that a system with dbt and one without have in common."""

    def __init__(self, arguments: Arguments) -> None:
        self.arguments = arguments
        self.system: System = BY_NAME[arguments.system]
        self.folder = Path(arguments.folder)
        self.lake = self.folder / "lake"
        (self.lake / "data").mkdir(parents=True)
        self.results = Results(Path(arguments.results))

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measures the block. CPU time is the better figure where other processes use the machine."""
        start, cpu_start = time.perf_counter(), cpu_seconds()
        yield
        seconds, cpu = time.perf_counter() - start, cpu_seconds()
        self.results.write(
            step=name, seconds=seconds, cpu=None if cpu is None or cpu_start is None else cpu - cpu_start
        )

    def start_spark(self, packages: tuple[str, ...] = ()) -> Any:
        from pyspark.sql import SparkSession

        limits = self.arguments.limits
        config = {**limits.spark_config(), **self.system.format_config(self.folder)}
        if packages:
            config["spark.jars.packages"] = ",".join(packages)
        builder = SparkSession.builder.master(limits.master)
        for key, value in config.items():
            builder = builder.config(key, value)
        return builder.getOrCreate()

    def disk(self, name: str, tables: tuple[str, ...] = ()) -> None:
        """What the lake takes on disk: its data and, if it is a file, its catalog; or the folders of tables."""
        files = [path for path in self.lake.rglob("*") if path.is_file() and not path.name.endswith(".crc")]
        if tables:
            files = [path for path in files if set(tables) & set(path.parts)]
        # Data files and delete files, without the metadata of a format.
        data_files = [path for path in files if path.suffix in (".parquet", ".puffin", ".bin")]
        self.results.write(disk=name, bytes=sum(path.stat().st_size for path in files), files=len(data_files))


class DbtWorker(Worker):
    """Runs the project by dbt."""

    def __init__(self, arguments: Arguments) -> None:
        super().__init__(arguments)
        self.project = self.folder / "project"
        shutil.copytree(PROJECT, self.project)
        profile = self.system.profile(self.folder, arguments.limits, arguments.catalog)
        self._write("profiles.yml", {"peers": {"target": "dev", "outputs": {"dev": profile}}})
        models = {f"+{key}": value for key, value in self.system.model_config.items()}
        load = {f"+{key}": value for key, value in self.system.load_config.items()}
        past = {"+enabled": "{{ env_var('PEERS_BEFORE') != '' }}"}
        self._write(
            "dbt_project.yml",
            {
                "name": "peers",
                "profile": "peers",
                "models": {"+materialized": "table", **models, "peers": {"load": load, "past": past}},
                "snapshots": models,
                "data_tests": {f"+{key}": value for key, value in self.system.test_config.items()},
                "flags": {"send_anonymous_usage_stats": False, "use_colors": False},
            },
        )
        os.environ |= {
            "PEERS_SYSTEM": self.system.macros,
            "PEERS_DATA": arguments.data,
            "PEERS_SCALE": f"{arguments.scale:g}",
            "PEERS_KEYS_PER_BATCH": str(data.keys_per_batch(arguments.scale)),
            "PEERS_BEFORE": "",
        }
        self.batch(1, 1)
        if self.system.macros == "duckdb":
            self._install_extensions()

    def _write(self, name: str, content: object) -> None:
        (self.project / name).write_text(json.dumps(content, indent=2))

    def _install_extensions(self) -> None:
        """Puts the extensions where DuckDB looks for them, so that it downloads none."""
        import duckdb

        with duckdb.connect() as connection:
            platform = connection.execute("PRAGMA platform").fetchall()[0][0]
        target = self.folder / "extensions" / f"v{duckdb.__version__}" / platform
        target.mkdir(parents=True)
        for name in ("ducklake", "sqlite_scanner"):
            shutil.copy(data.extension(name), target)

    def batch(self, orders: int | str, lineitem: int) -> None:
        """Sets which refresh sets the two tables that change read."""
        number = orders if isinstance(orders, int) else 0
        os.environ |= {
            "PEERS_ORDERS_BATCH": data.refresh_set(orders) if isinstance(orders, int) else orders,
            "PEERS_LINEITEM_BATCH": data.refresh_set(lineitem),
            "PEERS_DELETE_BATCH": str(number or lineitem),
        }

    def dbt(self, *command: str) -> Any:
        from dbt.cli.main import dbtRunner

        places = ["--project-dir", str(self.project), "--profiles-dir", str(self.project)]
        result = dbtRunner().invoke(["--quiet", *command, *places])
        if not result.success:
            raise RuntimeError(f"dbt {' '.join(command)} failed in {self.project}: {result.exception}")
        return result

    def rows(self, sql: str) -> list[list[Any]]:
        """The rows of a query, on the adapter of the last command."""
        from dbt.adapters.factory import FACTORY

        adapter: Any = next(iter(FACTORY.adapters.values()))
        with adapter.connection_named("answers"):
            _, table = adapter.execute(sql, fetch=True)
        return [list(row) for row in table.rows]

    def answers(self, step: str, tables: dict[str, str]) -> None:
        found = {name: answer(self.rows(sql.format(self.system.table_name(name)))) for name, sql in tables.items()}
        self.results.write(answers=step, tables=found)

    def run(self) -> None:
        with self.step("start"):
            if self.system.macros in ("iceberg", "delta"):
                self.start_spark(self.system.packages)
            self.dbt("show", "--inline", "select 1 as one", "--output", "json")
        with self.step("load"):
            self.dbt("run", "-s", "path:models/load")
        self.answers("load", _SUMS)
        with self.step("queries"):
            self.dbt("run", "-s", "path:models/queries")
        self.answers("queries", dict.fromkeys(QUERIES, "select * from {}"))
        with self.step("snapshot, first"):
            self.dbt("snapshot")
        time.sleep(1.1)  # Moments of a second are what all systems tell apart.
        before = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
        time.sleep(1.1)
        with self.step("merge a refresh set"):
            self.dbt("run", "-s", *CHANGING)
        self.answers("merge a refresh set", _SUMS)
        with self.step("snapshot, changed"):
            self.dbt("snapshot")
        self.answers("snapshot, changed", {"orders_history": _HISTORY_SUM})
        with self.step("tests"):
            self.dbt("test")
        with self.step("docs generate"):
            self.dbt("docs", "generate")
        os.environ["PEERS_BEFORE"] = before
        with self.step("read the past"):
            self.dbt("run", "-s", "orders_before")
        self.answers("read the past", {"orders_before": _PAST_SUM})
        os.environ["PEERS_BEFORE"] = ""
        if self.system.model_config.get("reuse"):
            self.dbt("build")  # The others would do the same again. Nodes must have been built as they are now.
        with self.step("build, unchanged"):
            self.dbt("build")
        self.batch(data.CHANGED, 1)
        with self.step("build, 1 % changed"):
            self.dbt("build")
        self.answers(
            "build, 1 % changed",
            {**dict.fromkeys(QUERIES, "select * from {}"), **_SUMS, "orders_history": _HISTORY_SUM},
        )
        self.disk("all builds")
        if self.system.wear and self.arguments.wear:
            self.wear()

    def wear(self) -> None:
        """The queries after many small changes, before and after the system's maintenance."""
        with self.step("refresh sets"):
            for number in range(2, self.arguments.wear + 2):
                self.batch(number, number)
                self.dbt("run", "-s", *CHANGING)
        self.answers("refresh sets", _SUMS)
        self.disk("worn tables", CHANGING)
        with self.step("queries, worn"):
            self.dbt("run", "-s", "path:models/queries")
        self.answers("queries, worn", dict.fromkeys(QUERIES, "select * from {}"))
        with self.step("maintenance"):
            self.dbt("run-operation", "maintain")
        self.answers("maintenance", _SUMS)
        self.disk("maintained tables", CHANGING)
        with self.step("queries, maintained"):
            self.dbt("run", "-s", "path:models/queries")
        self.answers("queries, maintained", dict.fromkeys(QUERIES, "select * from {}"))


class ParquetWorker(Worker):
    """Spark alone, which writes Parquet files: the floor for what a table format and dbt may take."""

    def run(self) -> None:
        with self.step("start"):
            self.spark = self.start_spark()
            self.spark.sql("select 1 as one").collect()
        with self.step("load"):
            for table in data.TABLES:
                self.table(table, self.spark.read.parquet(f"{self.arguments.data}/base/{table}.parquet"))
        self.answers("load", _SUMS)
        with self.step("queries"):
            for query in QUERIES:
                self.table(query, self.spark.sql(self.render(query)))
        self.answers("queries", dict.fromkeys(QUERIES, "select * from {}"))
        self.disk("all builds")

    def table(self, name: str, frame: Any) -> None:
        path = f"{self.lake}/data/{name}"
        frame.write.parquet(path)
        self.spark.read.parquet(path).createOrReplaceTempView(name)

    def render(self, query: str) -> str:
        from jinja2 import Template

        functions: dict[str, Callable[[str], str]] = {
            "ref": lambda name: name,
            "env_var": lambda name: f"{self.arguments.scale:g}",
        }
        return Template((PROJECT / "models" / "queries" / f"{query}.sql").read_text()).render(functions)

    def answers(self, step: str, tables: dict[str, str]) -> None:
        found = {name: answer(self.spark.sql(sql.format(name)).collect()) for name, sql in tables.items()}
        self.results.write(answers=step, tables=found)


def main() -> None:
    arguments = Arguments.read(Path(sys.argv[1]))
    worker = DbtWorker if BY_NAME[arguments.system].has_dbt else ParquetWorker
    worker(arguments).run()


if __name__ == "__main__":
    main()
