"""Names and paths of every kind, made by one engine and used by the other."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from .engines import Both, each

NAMES = (
    'a "quoted" one',
    "dots.in.it",
    "with space",
    "日本語 é",
    "UPPER",
    "select",
    "tick`s",
    "per%cent",
    "it's",
    "-",
    "a/b",
)


def _duck(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _spark(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def test_any_name_is_one(lake: Both, writer: str) -> None:
    # No ' in a field of a struct: DuckDB can not read its own inlined rows then.
    steps = []
    for i, name in enumerate(NAMES):
        s, d = _spark(name), _duck(name)
        f, g = s.replace("'", "_"), d.replace("'", "_")
        steps += [
            each(f"create schema {s}", f"create schema {d}"),
            each(
                f"create table {s}.{s} ({s} int, s struct<{f}: int>)",
                f"create table {d}.{d} ({d} int, s struct({g} int))",
            ),
            each(
                f"insert into {s}.{s} values ({i}, named_struct('x', {i}))",
                f"insert into {d}.{d} values ({i}, row({i}))",
            ),
        ]
    lake.write(writer, *steps)
    last = lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0][0]
    lake.compare(first=last)
    for i, name in enumerate(NAMES[:4]):
        s, d = _spark(name), _duck(name)
        for engine, n in ((lake.spark, s), (lake.duckdb, d)):
            engine(f"alter table {n}.{n} rename column {n} to c", f"alter table {n}.{n} rename to t{i}")
            engine(f"alter table {n}.t{i} rename to {n}", f"alter table {n}.{n} rename column c to {n}")
        lake.agree(f"select {s} from {s}.{s} where {s} = {i}", f"select {d} from {d}.{d} where {d} = {i}")


PLACES = (
    "plain/",
    "with space/",
    "per%20cent 100%/",
    "日本 é/",
    "plus+and&more/",
    "br[ack]et{s}*/",
    "no_slash_at_the_end",
)


@pytest.mark.parametrize("place", PLACES)
def test_the_data_can_be_at_any_path(
    spark: SparkSession, new_lake: Callable[[str], Any], tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = new_lake("sqlite")
    lake = Both(spark, replace(address, data_path=f"{tmp_path}/{place}"))
    _write_and_read(lake)
    lake.close()


def test_the_data_path_can_be_relative(
    spark: SparkSession, new_lake: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address = new_lake("sqlite")
    lake = Both(spark, replace(address, data_path="relative data/"))
    _write_and_read(lake)
    lake.close()
    assert os.path.isdir(tmp_path / "relative data" / "main")


def _write_and_read(lake: Both) -> None:
    lake.spark(
        "create table t (id int, r string) partitioned by (r)",
        "insert into t select id, concat('r %', id % 3) from range(9)",
    )
    lake.duckdb(
        "insert into t select i, 'r %' || (i % 3) from range(100, 130) x(i)", "delete from t where id in (1, 101)"
    )
    lake.spark("insert into t values (1000, 'a b')")
    lake.compare()
    lake.agree("select * from t where r = 'r %1'")


def test_a_keyword_is_the_name_of_a_column(open_lake: Callable[..., Both]) -> None:
    """A table with a column called `nothing` could not be read on SQLite once it had inlined rows.

    The unit tests try every keyword of every catalog database.
    """
    lake = open_lake("sqlite")
    with lake.connection() as connection:
        reserved = "select keyword_name from duckdb_keywords() where keyword_category = 'reserved'"
        words = [*(word for (word,) in connection.execute(reserved).fetchall()), "nothing", "regexp", "raise"]
    definitions = [", ".join(f"{quote(word)} int" for word in words) for quote in (_spark, _duck)]
    values = ", ".join(str(i) for i in range(len(words)))
    lake.spark(f"create table ours ({definitions[0]})", f"insert into ours values ({values})")
    lake.duckdb(
        f"create table theirs ({definitions[1]})",
        f"insert into theirs values ({values})",
        f"insert into ours values ({values})",
    )
    for table in ("ours", "theirs"):
        lake.spark(f"update {table} set `nothing` = -1 where `select` > 0")
        lake.agree(f"select * from {table}")
        assert lake.spark_rows(f"select distinct `nothing` from {table}") == [(-1,)]
