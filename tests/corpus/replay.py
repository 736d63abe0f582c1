"""One test of the reference's suite: DuckDB runs it, and both engines read and change the lakes that it leaves."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import CatalogError, LakeError

from .. import reference
from ..interop.engines import _quoted, _ticked
from .comparison import (
    Findings,
    LakeFile,
    Question,
    compare,
    duckdb_answers,
    metadata_of,
    questions,
    spark_answers,
    tables,
)
from .judging import judged
from .sqllogic import Course, Runner

AS_LEFT, CHANGED, COMPACTED = "as DuckDB left it", "changed by Spark", "compacted by DuckDB"
PHASES = (AS_LEFT, CHANGED, COMPACTED)

MAX_QUESTIONS = int(os.environ.get("DUCKLAKE_QUESTIONS", "400"))
"""What a lake is asked in a phase. Some tests leave hundreds of snapshots."""

COMPACTION = (
    "call ducklake_flush_inlined_data('lake')",
    "call ducklake_merge_adjacent_files('lake')",
    "call ducklake_rewrite_data_files('lake', delete_threshold => 0.0)",
)


@dataclass
class Replayed:
    """What came of one test: how it went in DuckDB, and the findings on its lakes in each phase."""

    course: Course
    lakes: int = 0
    findings: dict[str, Findings] = field(default_factory=lambda: {phase: Findings() for phase in PHASES})
    left_out: Counter[str] = field(default_factory=Counter)
    """Lakes, statements and questions that were left out, by the reason."""


def replay(
    test: Path, folder: Path, spark: SparkSession, connection: str | None = None, change: bool = True
) -> Replayed:
    """Replays a test in a folder, with the working directory at the root of the checkout.

    `connection` is the catalog of its lakes in place of a DuckDB file, as in `sqlite:{TEST_DIR}/lake.sqlite`.
    """
    replayed = Replayed(Runner(test, folder, {"DUCKLAKE_CONNECTION": connection} if connection else None).run())
    for lake in lakes_in(folder, replayed.left_out):
        replayed.lakes += 1
        _compare_lake(lake, spark, replayed, change)
    return replayed


def _compare_lake(lake: LakeFile, spark: SparkSession, replayed: Replayed, change: bool) -> None:
    try:
        newest = _ask(lake, spark, replayed, AS_LEFT, 0)
        if change:
            _change(lake, spark, replayed)
            newest = _ask(lake, spark, replayed, CHANGED, newest)
            _compact(lake, replayed)
            _ask(lake, spark, replayed, COMPACTED, 0)
    except NotComparable as reason:
        replayed.left_out[str(reason)] += 1


class NotComparable(Exception):
    """One of the engines does not open the lake."""


def _ask(lake: LakeFile, spark: SparkSession, replayed: Replayed, phase: str, since: int) -> int:
    """Compares the answers of both engines, and returns the newest snapshot."""
    try:
        with lake.connect() as connection:
            asked = questions(connection, lake, since=since)
            if len(asked) > MAX_QUESTIONS:
                replayed.left_out[f"questions beyond {MAX_QUESTIONS} a lake, {phase}"] += len(asked) - MAX_QUESTIONS
                asked = _spread(asked, MAX_QUESTIONS)
            theirs = duckdb_answers(connection, asked)
            metadata = metadata_of(lake)
            newest = connection.execute(f"select max(snapshot_id) from {metadata}.ducklake_snapshot").fetchall()[0][0]
    except duckdb.Error as error:
        raise NotComparable(f"DuckDB does not open the lake: {_kind_of(error)}") from error
    try:
        with _session(lake, spark) as session:
            ours = spark_answers(session, asked)
    except CatalogError as error:
        raise NotComparable(f"Spark does not open the lake: {_kind_of(error)}") from error
    replayed.findings[phase].items += judged(compare(asked, ours, theirs).items, {lake.name: lake})
    return int(newest)


def _spread(asked: Sequence[Question], most: int) -> list[Question]:
    return [asked[i * len(asked) // most] for i in range(most)]


def _kind_of(error: Exception) -> str:
    """The first line of an error without what differs from one lake to another."""
    line = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return re.sub(r"/[^ ,;\"']+", "...", line)[:250]


def _session(lake: LakeFile, spark: SparkSession) -> LakeSession:
    return LakeSession(lake.catalog, spark=spark, author="us", metadata_schema=lake.metadata_schema)


# -- lakes


def lakes_in(folder: Path, left_out: Counter[str]) -> Iterator[LakeFile]:
    """The lakes whose catalogs are files in a folder."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".parquet"):
        with path.open("rb") as file:
            start = file.read(16)
        if start.startswith(b"SQLite format 3"):
            with sqlite3.connect(path) as database:
                if database.execute("select count(*) from sqlite_master where name = 'ducklake_metadata'").fetchone()[
                    0
                ]:
                    yield LakeFile(f"sqlite:{path}")
        elif start[8:12] == b"DUCK":
            try:
                if _is_still_open(path):
                    path = _copied(path)
                schemas = _schemas_with_a_lake(path)
            except duckdb.Error as error:
                left_out[f"the catalog's file does not open: {_kind_of(error)}"] += 1
                continue
            for schema in schemas:
                yield LakeFile(f"duckdb:{path}", metadata_schema=None if schema == "main" else schema)


def _is_still_open(path: Path) -> bool:
    """Whether a DuckDB of this process has the file open. After some failed commits the reference never closes it."""
    try:
        with duckdb.connect() as connection:
            connection.execute(f"attach {reference.literal(str(path))} as catalog_of_a_lake (read_only)")
    except duckdb.BinderException as error:
        if "Unique file handle conflict" not in str(error):
            raise
        return True
    return False


def _copied(path: Path) -> Path:
    """A copy of a DuckDB file, with all that was committed."""
    copy = path.with_name(path.name + ".copy")
    for end in ("", ".wal"):
        if (file := Path(f"{path}{end}")).exists():
            shutil.copyfile(file, f"{copy}{end}")
    return copy


def _schemas_with_a_lake(path: Path) -> list[str]:
    query = "select schema_name from duckdb_tables() where table_name = 'ducklake_metadata' and database_name = ?"
    with duckdb.connect() as connection:
        connection.execute(f"attach {reference.literal(str(path))} as catalog_of_a_lake (read_only)")
        return [schema for (schema,) in connection.execute(query, ["catalog_of_a_lake"]).fetchall()]


# -- changes


def _change(lake: LakeFile, spark: SparkSession, replayed: Replayed) -> None:
    """Deletes, inserts and updates some rows of each table."""
    with lake.connect() as connection:
        found = tables(connection, lake)
        columns = {
            (schema, name): connection.execute(f"describe {_quoted(schema)}.{_quoted(name)}").fetchall()
            for schema, name in found
            if _is_readable(connection, schema, name)
        }
    with _session(lake, spark) as session:
        for (schema, name), described in columns.items():
            if any(column[0].lower() == "rowid" for column in described):
                replayed.left_out["changes of a table with a column rowid"] += 1
                continue
            for statement in _row_changes(f"lake.{_ticked(schema)}.{_ticked(name)}", described):
                try:
                    session.execute(statement)
                except (LakeError, PySparkException) as error:
                    what = statement.split()[0]
                    replayed.left_out[f"{what} by Spark: {_kind_of(error)}"] += 1


def _is_readable(connection: duckdb.DuckDBPyConnection, schema: str, name: str) -> bool:
    try:
        connection.execute(f"describe {_quoted(schema)}.{_quoted(name)}")
    except duckdb.Error:
        return False
    return True


_NUMBERS = {"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "DOUBLE", "FLOAT"}


def _row_changes(table: str, described: Sequence[tuple[str, ...]]) -> Iterator[str]:
    yield f"delete from {table} where rowid % 4 = 1"
    yield f"insert into {table} select * from {table} where rowid % 3 = 0 limit 20"
    numbers = [name for name, kind, *_ in described if kind in _NUMBERS]
    texts = [name for name, kind, *_ in described if kind == "VARCHAR"]
    if numbers:
        column = _ticked(numbers[-1])
        yield f"update {table} set {column} = {column} - 1 where rowid % 4 = 2 and {column} > 0"
    elif texts:
        column = _ticked(texts[-1])
        yield f"update {table} set {column} = concat({column}, '!') where rowid % 4 = 2"
    else:
        column = _ticked(described[-1][0])
        yield f"update {table} set {column} = {column} where rowid % 4 = 2"


def _compact(lake: LakeFile, replayed: Replayed) -> None:
    with lake.connect() as connection:
        for statement in COMPACTION:
            try:
                connection.execute(statement)
            except duckdb.Error as error:
                replayed.left_out[f"{statement[: statement.index('(')]} by DuckDB: {_kind_of(error)}"] += 1
