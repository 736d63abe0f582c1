"""`make bench-peers`: one dbt project, run on dbt-ducklake and on what one would take instead.

`build/peers/venv/bin/python -m benchmarks.peers --scale 0.01 ducklake duckdb` runs two systems on little data.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from tests.servers import NotHere, postgres

from . import data
from .answers import compare
from .chart import MEASURES, write_chart
from .processes import PeakMemory
from .systems import BASELINE, BY_NAME, SYSTEMS, Limits, System
from .tables import ratio_table, seconds_table
from .worker import Arguments

BUILD = Path("build/peers")

Answers = dict[str, tuple[str, dict[str, list[Any]]]]
"""By step: the system that answered first, and its answers by table."""


@dataclass
class Measurements:
    """What one system took, a value for each round."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    peak_bytes: list[int] = field(default_factory=list)
    disk_bytes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    files: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    def medians(self) -> dict[str, float]:
        """By the name of the row in the table of results."""
        found = {name: median(values) for name, values in self.seconds.items()}
        found |= {f"CPU, {name}": median(values) for name, values in self.cpu.items()}
        if self.peak_bytes:
            found["peak memory"] = median(self.peak_bytes) / 2**20
        for name, values in self.disk_bytes.items():
            found[f"on disk, {name}"] = median(values) / 2**20
        for name, values in self.files.items():
            found[f"files, {name}"] = median(values)
        return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers", description=__doc__)
    names = [system.name for system in SYSTEMS]
    parser.add_argument("systems", nargs="*", choices=[[], *names], help="without any, all that are installed")
    parser.add_argument("--scale", type=float, default=0.1, help="TPC-H's scale factor")
    parser.add_argument("--rounds", type=int, default=1, help="how many times each system runs; the median counts")
    parser.add_argument("--wear", type=int, default=20, help="how many refresh sets the worn tables get; 0 for none")
    parser.add_argument("--minutes", type=float, default=60, help="how long a system may take in a round")
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--memory", default="3g", help="Spark's driver memory, and DuckDB's limit")
    parser.add_argument("--threads", type=int, default=1, help="dbt's threads")
    parser.add_argument("--chart", type=Path, help="where to write the bar chart, an SVG file")
    parser.add_argument("--measure", choices=list(MEASURES), default="time", help="what the chart shows")
    parser.add_argument("--keep", action="store_true", help="keep the lakes and logs")
    options = parser.parse_args()
    if options.wear > data.MAX_REFRESH_SETS - 1:
        parser.error(f"--wear is at most {data.MAX_REFRESH_SETS - 1}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    print(f"Making TPC-H data of scale {options.scale:g}", flush=True)
    files = data.make((BUILD / "data").absolute(), options.scale, options.wear + 1)
    conditions = describe(options)

    def save(measured: dict[str, Measurements]) -> None:
        results = {name: measurements.medians() for name, measurements in measured.items()}
        (BUILD / "results.json").write_text(json.dumps({"conditions": conditions, "results": results}, indent=2))

    measured = run_all(
        [BY_NAME[name] for name in options.systems or names],
        Settings(files, options.scale, options.rounds, options.wear, options.minutes, options.keep),
        Limits(options.cores, options.memory, options.threads),
        save,
    )
    results = {name: measurements.medians() for name, measurements in measured.items()}
    print(f"\n{conditions}\n\n{seconds_table(results)}")
    if BASELINE.name in results:
        print(f"\nRatios, {BASELINE.label} = 1\n\n{ratio_table(results)}")
        if options.chart:
            write_chart(options.chart, results, conditions, options.measure)
    missing = [name for name in options.systems or names if name not in results]
    if missing:
        sys.exit(f"left out, as said above: {', '.join(missing)}")


def describe(options: argparse.Namespace) -> str:
    packages = ", ".join(
        f"{label} {version(package)}"
        for label, package in (
            ("Spark", "pyspark"),
            ("dbt-core", "dbt-core"),
            ("dbt-spark", "dbt-spark"),
            ("dbt-duckdb", "dbt-duckdb"),
            ("DuckDB", "duckdb"),
        )
    )
    return (
        f"TPC-H scale {options.scale:g}, local[{options.cores}], {options.memory}, dbt threads: {options.threads}, "
        f"rounds: {options.rounds}, {packages}"
    )


@dataclass(frozen=True)
class Settings:
    """What is run, apart from the systems."""

    data: Path
    scale: float
    rounds: int
    wear: int
    minutes: float
    keep: bool


class Failed(Exception):
    """The process of a system ended with an error; the message has the end of its log."""


def run_all(
    systems: Sequence[System], settings: Settings, limits: Limits, save: Callable[[dict[str, Measurements]], None]
) -> dict[str, Measurements]:
    """Runs the systems in turns, a round after the other, and compares their answers.

    A system that fails or is not installed is left out. Answers that differ are an error at once. What is measured is
    saved after each system.
    """
    measured: dict[str, Measurements] = {}
    answers: Answers = {}
    left_out: set[str] = set()
    for number in range(settings.rounds):
        for system in systems:
            if system.name in left_out:
                continue
            try:
                measurements = measured.setdefault(system.name, Measurements())
                run_one(system, settings, limits, number, measurements, answers)
            except (Failed, NotHere) as error:
                print(f"{system.label} is left out: {error}", flush=True)
                left_out.add(system.name)
                del measured[system.name]
            save(measured)
    return measured


def run_one(
    system: System,
    settings: Settings,
    limits: Limits,
    number: int,
    measurements: Measurements,
    answers: Answers,
) -> None:
    """Runs a system in a process of its own. `answers` are the first ones of each step, with the system's name."""
    folder = (BUILD / "work" / f"{system.name}-{number}").absolute()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    results = folder / "results.jsonl"
    with catalog_of(system, folder) as catalog:
        given = folder / "arguments.json"
        Arguments(
            system=system.name,
            scale=settings.scale,
            data=str(settings.data),
            folder=str(folder),
            results=str(results),
            catalog=catalog,
            limits=limits,
            wear=settings.wear,
        ).write(given)
        start = time.perf_counter()
        with (folder / "log.txt").open("w") as log:
            command = [sys.executable, "-m", "benchmarks.peers.worker", str(given)]
            environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
            process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                with PeakMemory(process.pid) as peak:
                    code = process.wait(60 * settings.minutes)
            except subprocess.TimeoutExpired:
                print(f"{system.label} is ended after {settings.minutes:g} minutes; its later steps are left out")
                code = 0
            finally:
                _end_group(process)
    if code:
        end = "\n".join((folder / "log.txt").read_text().splitlines()[-40:])
        raise Failed(f"its process failed. Its log is {folder}/log.txt, which ends with:\n{end}")
    print(f"{system.label}, round {number + 1}: {time.perf_counter() - start:.0f} s", flush=True)
    if peak.bytes is not None:
        measurements.peak_bytes.append(peak.bytes)
    for line in results.read_text().splitlines():
        values = json.loads(line)
        if "step" in values:
            measurements.seconds[values["step"]].append(values["seconds"])
            if values["cpu"] is not None:
                measurements.cpu[values["step"]].append(values["cpu"])
        elif "disk" in values:
            measurements.disk_bytes[values["disk"]].append(values["bytes"])
            measurements.files[values["disk"]].append(values["files"])
        else:
            first, expected = answers.setdefault(values["answers"], (system.label, values["tables"]))
            compare(values["answers"], expected, values["tables"], (first, system.label))
    if not settings.keep:
        shutil.rmtree(folder)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends what a worker started, if this process is interrupted, or if the worker died before its Spark."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@contextmanager
def catalog_of(system: System, folder: Path) -> Iterator[str]:
    """Where a DuckLake has its metadata. A PostgreSQL server runs for as long as the block."""
    if not system.needs_postgres:
        yield f"sqlite:{folder}/lake/metadata.sqlite"
        return
    import psycopg

    with postgres() as words:
        with psycopg.connect(f"{words} dbname=postgres", autocommit=True) as connection:
            connection.execute("drop database if exists peers")
            connection.execute("create database peers")
        yield f"postgres:dbname=peers {words}"
