"""Runs the files in which DuckDB and its extensions keep their tests (sqllogictest), to make the lakes that they make.

The values that a query must return are not compared: DuckDB did that before it was released. Whether a statement
succeeds or fails as the file says is, since the lake is another one if it does not.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import duckdb

from .. import reference

BUILT_IN = {"parquet", "json", "icu", "core_functions"}

REQUIREMENTS = {"notwindows", "64bit", "skip_reload", "no_extension_autoloading", "no_alternative_verify"}
"""Words of `require` that hold here and load nothing."""

MAX_SECONDS = 120
"""After so long a statement is interrupted."""

_SORTS = {"nosort", "rowsort", "valuesort"}
_LOOPS = {"loop", "foreach", "concurrentloop", "concurrentforeach"}
_EXPECTATIONS = {"ok", "error", "maybe"}


class CannotRun(Exception):
    """The test needs something that is not here."""


@dataclass(frozen=True)
class Command:
    """One command of a test file, with the lines that belong to it. A loop has the commands in its body."""

    words: tuple[str, ...]
    line: int
    text: str = ""
    conditions: tuple[tuple[str, str], ...] = ()
    body: tuple[Command, ...] = ()


@dataclass
class Course:
    """How a test went."""

    executed: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    """The commands that were not carried out as the file says, by the reason."""
    surprises: list[str] = field(default_factory=list)
    """Statements that succeeded or failed unlike the file says."""
    stopped: str | None = None
    """Why the test did not run, or not to its end."""


def parse(text: str) -> list[Command]:
    """The commands of a test file."""
    lines = text.splitlines()
    commands, end = _parse_block(lines, 0, nested=False)
    assert end == len(lines)
    return commands


def _parse_block(lines: Sequence[str], at: int, *, nested: bool) -> tuple[list[Command], int]:
    commands: list[Command] = []
    conditions: list[tuple[str, str]] = []
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        if not line or line.startswith("#"):
            continue
        words = tuple(line.split())
        if words[0] == "endloop" and nested:
            return commands, at
        if words[0] in ("skipif", "onlyif"):
            conditions.append((words[0], words[1]))
            continue
        command = Command(words, at, conditions=tuple(conditions))
        conditions = []
        if words[0] in ("statement", "query"):
            text, at = _parse_sql(lines, at)
            command = replace(command, text=text)
        elif words[0] in _LOOPS:
            body, at = _parse_block(lines, at, nested=True)
            command = replace(command, body=tuple(body))
        commands.append(command)
    return commands, at


def _parse_sql(lines: Sequence[str], at: int) -> tuple[str, int]:
    """The SQL text up to an empty line or `----`. What follows the latter is skipped."""
    sql: list[str] = []
    while at < len(lines) and lines[at].strip() and lines[at].strip() != "----":
        sql.append(lines[at])
        at += 1
    while at < len(lines) and lines[at].strip():
        at += 1
    return "\n".join(sql), at


class Runner:
    """Runs one test file on a DuckDB in memory, in a folder of its own. `environment` overrides the file's own."""

    def __init__(self, path: Path, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._path = path
        self._overrides = dict(environment or {})
        self._names = {
            "TEST_DIR": str(folder),
            "UUID": str(uuid.uuid4()),
            "BASE_TEST_NAME": path.stem,
            "TEST_NAME": path.stem,
        }
        self._folder = folder
        self._course = Course()
        self._database = ":memory:"
        self._connections: dict[str, duckdb.DuckDBPyConnection] = {}
        self._extensions = ["sqlite_scanner", "postgres_scanner", "ducklake"]
        self._skipping = False

    def run(self) -> Course:
        try:
            self._connect()
            self._run_all(parse(self._path.read_text()), {})
        except CannotRun as reason:
            self._course.stopped = str(reason)
        finally:
            self._close()
        return self._course

    # -- connections

    def _connect(self) -> None:
        connection = duckdb.connect(self._database, config={"allow_unsigned_extensions": "true"})
        for name in self._extensions:
            connection.execute(f"LOAD '{reference.extension(name, name)}'")
        self._connections = {"": connection}

    def _close(self) -> None:
        for connection in reversed(self._connections.values()):
            connection.close()
        self._connections = {}

    def _connection(self, name: str) -> duckdb.DuckDBPyConnection:
        if name not in self._connections:
            self._connections[name] = self._connections[""].cursor()
        return self._connections[name]

    # -- commands

    def _run_all(self, commands: Sequence[Command], variables: Mapping[str, str]) -> None:
        for command in commands:
            if command.words[0] == "mode":
                self._mode(command)
            elif self._skipping:
                self._course.left_out["after `mode skip`"] += 1
            elif _wanted(command, variables):
                self._run(command, variables)

    def _mode(self, command: Command) -> None:
        if command.words[1] in ("skip", "unskip"):
            self._skipping = command.words[1] == "skip"
        else:
            self._course.left_out[f"mode {command.words[1]}"] += 1

    def _run(self, command: Command, variables: Mapping[str, str]) -> None:
        kind = command.words[0]
        if kind in ("statement", "query"):
            self._statement(command, variables)
        elif kind in _LOOPS:
            for value in _values_of(command, self._fill(" ".join(command.words[2:]), variables).split()):
                self._run_all(command.body, {**variables, command.words[1].split(",")[0]: value})
            if kind.startswith("concurrent"):
                self._course.left_out[f"{kind}: its turns run one after the other"] += 1
        elif (handler := self._HANDLERS.get(kind)) is not None:
            handler(self, command, [self._fill(word, variables) for word in command.words[1:]])
        else:
            self._course.left_out[f"unknown command {kind!r}"] += 1

    def _statement(self, command: Command, variables: Mapping[str, str]) -> None:
        expectation, name = _expectation(command)
        sql = self._fill(command.text, variables)
        connection = self._connection(name)
        watch = threading.Timer(MAX_SECONDS, connection.interrupt)
        watch.start()
        try:
            connection.execute(sql).fetchall()
            failure = None
        except (duckdb.Error, UnicodeDecodeError) as error:
            failure = str(error)
        finally:
            watch.cancel()
        self._course.executed += 1
        where = f"line {command.line}: {' '.join(sql.split())[:200]}"
        if failure is not None and expectation == "ok":
            self._course.surprises.append(f"{where}: {failure.splitlines()[0]}")
        elif failure is None and expectation == "error":
            self._course.surprises.append(f"{where}: it was to fail")

    def _require(self, command: Command, words: Sequence[str]) -> None:
        name = words[0].lower()
        if name in BUILT_IN | REQUIREMENTS or name in self._extensions:
            return
        try:
            file = reference.extension(name, name)
        except ModuleNotFoundError as error:
            raise CannotRun(f"require {name}: pip install duckdb-extension-{name}=={duckdb.__version__}") from error
        self._extensions.append(name)
        self._connections[""].execute(f"LOAD '{file}'")

    def _require_env(self, command: Command, words: Sequence[str]) -> None:
        found = os.environ.get(words[0])
        if found is None or (len(words) > 1 and found != words[1]):
            raise CannotRun(f"require-env {' '.join(words)}: not set")
        self._names[words[0]] = found

    def _test_env(self, command: Command, words: Sequence[str]) -> None:
        self._names[words[0]] = self._overrides.get(words[0], words[1])

    def _load(self, command: Command, words: Sequence[str]) -> None:
        self._close()
        self._database = words[0] if words else ":memory:"
        self._connect()

    def _restart(self, command: Command, words: Sequence[str]) -> None:
        self._close()
        self._connect()

    def _unzip(self, command: Command, words: Sequence[str]) -> None:
        target = Path(words[1]) if len(words) > 1 else self._folder / Path(words[0]).stem
        with gzip.open(words[0]) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)

    def _sleep(self, command: Command, words: Sequence[str]) -> None:
        units = {"second": 1.0, "millisecond": 1e-3, "microsecond": 1e-6, "nanosecond": 1e-9}
        time.sleep(float(words[0]) * units[words[1].rstrip("s")])

    def _ignore(self, command: Command, words: Sequence[str]) -> None:
        """What changes nothing about the lake."""

    _HANDLERS: Mapping[str, Callable[[Runner, Command, Sequence[str]], None]] = {
        "require": _require,
        "require-env": _require_env,
        "test-env": _test_env,
        "load": _load,
        "restart": _restart,
        "reconnect": _restart,
        "unzip": _unzip,
        "sleep": _sleep,
        "hash-threshold": _ignore,
        "tags": _ignore,
    }

    def _fill(self, text: str, variables: Mapping[str, str]) -> str:
        """The text with the values of variables and of the environment in it."""
        text = text.replace("__TEST_DIR__", self._names["TEST_DIR"])
        for _ in range(3):  # values hold names themselves
            for name, value in {**self._names, **variables}.items():
                text = text.replace("${" + name + "}", value)
                text = text.replace("{" + name + "}", value)
            text = text.replace("__TEST_DIR__", self._names["TEST_DIR"])
        return text


def _expectation(command: Command) -> tuple[str, str]:
    """What is expected of a statement, `ok`, `error` or `maybe`, and the name of its connection."""
    if command.words[0] == "query":
        named = [word for word in command.words[2:] if word not in _SORTS]
        # After a word for the order comes a label.
        return "ok", named[0] if named and not _SORTS & set(command.words[2:]) else ""
    expectation = command.words[1]
    if expectation not in _EXPECTATIONS:
        raise CannotRun(f"line {command.line}: statement {expectation}")
    return expectation, command.words[2] if len(command.words) > 2 else ""


def _values_of(command: Command, words: Sequence[str]) -> Iterator[str]:
    """The values that a loop's variable takes."""
    if command.words[0].endswith("foreach"):
        yield from words
    else:
        yield from map(str, range(int(words[0]), int(words[1])))


_COMPARISON = re.compile(r"(\w+)(>=|<=|<>|!=|=|>|<)(.*)")
_COMPARISONS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda a, b: a == b,
    "<>": lambda a, b: a != b,
    "!=": lambda a, b: a != b,
    ">": lambda a, b: int(a) > int(b),
    "<": lambda a, b: int(a) < int(b),
    ">=": lambda a, b: int(a) >= int(b),
    "<=": lambda a, b: int(a) <= int(b),
}


def _wanted(command: Command, variables: Mapping[str, str]) -> bool:
    """Whether `skipif` and `onlyif` before the command let it run. Other conditions name a database: DuckDB."""
    for word, condition in command.conditions:
        match = _COMPARISON.fullmatch(condition)
        holds = (
            _COMPARISONS[match[2]](variables[match[1]], match[3])
            if match and match[1] in variables
            else condition == "duckdb"
        )
        if holds == (word == "skipif"):
            return False
    return True
