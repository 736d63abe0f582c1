"""Fixtures for every layer of tests: catalogs, servers, and one SparkSession a process."""

from __future__ import annotations

import fcntl
import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.spark.engine.java_classes import JAR
from dbt.adapters.ducklake.spark.engine.spark_session import LISTING_SETTINGS, SESSION_SETTINGS, START_SETTINGS

from . import servers
from .lakes import LakeAddress

settings.register_profile("quick", max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("full", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))

# Tests run each thing once or twice: compiling it well takes longer than running it. But then Java has room for less
# code unless it is told otherwise, and all that Spark compiles in a long run needs more. Processes inherit it.
os.environ.setdefault("JAVA_TOOL_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=512m")

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one SparkSession of a test process, as a lake starts it."""
    builder = SparkSession.builder.master("local[2]")
    for key, value in {**START_SETTINGS, **SESSION_SETTINGS, **LISTING_SETTINGS}.items():
        builder = builder.config(key, value)
    session = (
        builder.config("spark.jars", str(JAR))
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.log.level", "OFF")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture
def interpreting_spark(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark for large plans over few rows: compiling them, and planning them again on the way, takes longer."""
    before = {key: spark.conf.get(key) for key in _INTERPRETED}
    for key, value in _INTERPRETED.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.fixture
def connect_port() -> Iterator[None]:
    """One server of Spark Connect at a time, as each listens at the same port, in whichever process the test is."""
    with open(Path(tempfile.gettempdir()) / "ducklake-tests-connect.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


LoseAnswer = Callable[..., None]
"""Makes the next write transaction of a catalog end with an error: `lose_answer(catalog, commits=True)`."""


@pytest.fixture
def lose_answer(monkeypatch: pytest.MonkeyPatch) -> LoseAnswer:
    """Takes the answer from the next COMMIT of a change, as if the connection broke before or after it."""

    def lose(catalog: Catalog, commits: bool) -> None:
        engine, commit_itself, state = catalog._engine, catalog._engine.dialect.do_commit, {"lost": False}

        def note(connection: sa.Connection) -> None:
            state["now"] = not state["lost"] and connection.get_execution_options()["lake_write"]

        def commit(connection: Any) -> None:
            if not state["now"]:
                commit_itself(connection)
                return
            state["lost"] = True
            if commits:
                commit_itself(connection)
            driver: Any = engine.dialect.loaded_dbapi
            raise getattr(driver, "OperationalError", driver.Error)("server closed the connection unexpectedly")

        sa.event.listen(engine, "commit", note)
        monkeypatch.setattr(engine.dialect, "do_commit", commit)

    return lose


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    try:
        with servers.postgres() as words:
            yield words
    except servers.NotHere as reason:
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def mysql_server() -> Iterator[str]:
    try:
        with servers.mysql() as words:
            yield words
    except servers.NotHere as reason:
        pytest.skip(str(reason))


@pytest.fixture
def new_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], LakeAddress]:
    """Makes the address of a lake that does not exist yet, on the catalog database of that kind."""
    return lambda kind: _new_address(kind, request, tmp_path)


@pytest.fixture(scope="module")
def new_module_lake(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], LakeAddress]:
    """The same for a lake that the tests of a module share."""
    return lambda kind: _new_address(kind, request, tmp_path_factory.mktemp("module"))


def _new_address(kind: str, request: pytest.FixtureRequest, folder: Path) -> LakeAddress:
    number = next(_numbers)
    data = f"{folder}/data{number}/"
    if kind == "sqlite":
        return LakeAddress(kind, f"sqlite:{folder}/catalog{number}.sqlite", data)
    if kind == "duckdb":
        return LakeAddress(kind, f"duckdb:{folder}/catalog{number}.ducklake", data)
    if kind == "postgres":
        import psycopg

        words = request.getfixturevalue("postgres_server")
        name = f"lake_{os.getpid()}_{number}"
        with psycopg.connect(words, dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return LakeAddress(kind, f"postgres:{words} dbname={name}", data)
    if kind == "mysql":
        import pymysql

        words = request.getfixturevalue("mysql_server")
        name = f"lake_{os.getpid()}_{number}"
        given = dict(word.split("=") for word in words.split())
        with pymysql.connect(host=given["host"], port=int(given["port"]), user=given["user"]) as connection:
            connection.cursor().execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_bin")
        return LakeAddress(kind, f"mysql:{words} db={name}", data)
    raise ValueError(kind)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs a server or a catalog other than SQLite, for quick runs to leave out."""
    for item in items:
        given = getattr(getattr(item, "callspec", None), "params", {}).values()
        others = any(value in ("postgres", "duckdb", "mysql") for value in given if isinstance(value, str))
        if others or {"postgres_server", "mysql_server"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.catalogs)
