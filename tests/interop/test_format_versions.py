"""Lakes of other format versions: each row, each change and each comment as the reference answered."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import sqlalchemy as sa
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.errors import LakeError

DATA = Path(__file__).parents[1] / "data"
OLD_LAKES = ("0_2", "0_3", "0_4")


@pytest.fixture
def copied(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., LakeSession]]:
    """Opens a copy of a lake that another version of the reference made."""
    opened: list[LakeSession] = []

    def copy(name: str, migrate_to: str | None = None) -> LakeSession:
        shutil.copytree(DATA / name, tmp_path / name)
        catalog = f"sqlite:{tmp_path / name}/metadata.sqlite"
        if migrate_to:
            LakeSession.migrate(catalog, migrate_to)
        opened.append(LakeSession(catalog, f"{tmp_path / name}/data/", spark=spark, override_data_path=True))
        return opened[-1]

    yield copy
    for lake in opened:
        lake.close()


def answers(name: str) -> dict[str, Any]:
    return dict(json.loads((DATA / name / "answers.json").read_text()))


def texts(rows: pa.Table) -> list[str]:
    """Rows as DuckDB writes a struct as text, sorted."""
    with duckdb.connect() as connection:
        connection.execute("set TimeZone = 'UTC'")
        found = connection.execute("select cast(r as varchar) from rows as r").fetchall()
    return sorted(row for (row,) in found)


def in_microseconds(rows: list[str]) -> list[str]:
    """Spark's timestamps have no nanoseconds."""
    return [re.sub(r"(:\d\d\.\d{6})\d{3}\b", lambda m: m[1].rstrip("0").rstrip("."), row) for row in rows]


def assert_relations_are_as_answered(lake: LakeSession, name: str) -> None:
    for answer in answers(name)["relations"]:
        relation = f"{answer['schema']}.{answer['relation']}"
        rows = lake.sql(f"select * from {relation} version as of {answer['version']}").toArrow()
        assert texts(rows) == sorted(in_microseconds(answer["rows"])), (relation, answer["version"])


@pytest.mark.parametrize("name", ["inlined", "epochs", "views", "vectors"])
def test_lakes_of_the_development_version_are_read(name: str, copied: Callable[..., LakeSession]) -> None:
    lake, folder = copied(f"lakes_1_1/{name}"), f"lakes_1_1/{name}"
    assert_relations_are_as_answered(lake, folder)
    for answer in answers(folder)["changes"]:
        call = f"ducklake_table_changes('{answer['schema']}.{answer['table']}', {answer['from']}, {answer['to']})"
        assert texts(lake.sql(f"select * from {call}").toArrow()) == sorted(in_microseconds(answer["rows"])), call
    comments = lake.sql(
        "select table_name, column_name, comment from information_schema.columns where comment is not null"
    )
    assert comments.toArrow().to_pylist() == answers(folder)["column_comments"]


@pytest.mark.parametrize("to", ["1.0", "1.1"])
@pytest.mark.parametrize("version", OLD_LAKES)
def test_migrated_lakes_are_read_and_written(version: str, to: str, copied: Callable[..., LakeSession]) -> None:
    lake = copied(f"lakes_{version}", to)
    assert_relations_are_as_answered(lake, f"lakes_{version}")
    rows = lake.sql("select count(*) from orders").first()[0]
    lake.execute("insert into orders (id, label) values (500, 'new')")
    lake.execute("update orders set amount = 1 where id = 100")
    assert lake.sql("select count(*) from orders").first()[0] == rows + 1
    assert lake.sql("select more from orders where id = 500").first()[0] == "d"


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb", "mysql"])
def test_a_lake_of_1_1_does_all_that_one_of_1_0_does(kind: str, spark: SparkSession, new_lake: Any) -> None:
    address = new_lake(kind)
    with LakeSession(address.catalog, address.data_path, spark=spark, format_version="1.1") as lake:
        lake.execute("create table t (id bigint, row_id string, at timestamp_ntz) partitioned by (epoch_day(at))")
        for day in ("1969-12-31", "2026-01-01", "2026-01-02"):
            lake.execute(f"insert into t values (1, 'x', timestamp_ntz'{day} 12:00:00')")
        lake.execute("insert into t select id, 'many', timestamp_ntz'2026-01-02 00:00:00' from range(100)")
        lake.execute("delete from t where id = 7")
        lake.execute("update t set row_id = 'seven' where id = 8")
        assert lake.sql("select count(*), count(distinct row_id) from t").first() == (102, 3)
        assert lake.sql("select count(*) from t version as of 2").first()[0] == 1
        kinds = lake.sql("select change_type, count(*) from ducklake_table_changes('t', 6, 7) group by 1 order by 1")
        assert [tuple(r) for r in kinds.collect()] == [("delete", 1), ("update_postimage", 1), ("update_preimage", 1)]
        lake.execute("create view v as select id, row_id from t")
        lake.execute("comment on column v.row_id is 'a name'")
        lake.execute("create or replace view w as select 1 as a")
        described = lake.sql("select column_name, comment from information_schema.columns where table_name = 'v'")
        assert {r[0]: r[1] for r in described.collect()} == {"id": None, "row_id": "a name"}
        lake.execute("comment on column v.row_id is null")
        assert (
            lake.sql("select comment from information_schema.columns where column_name = 'row_id'").first()[0] is None
        )


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_vectors_name_snapshots_since_1_1(version: str, spark: SparkSession, new_lake: Any) -> None:
    address = new_lake("sqlite")
    with LakeSession(address.catalog, address.data_path, spark=spark, format_version=version) as lake:
        lake.execute("create table t tblproperties ('write_deletion_vectors' = 'true') as select id from range(1000)")
        for remainder in (1, 2, 3):
            lake.execute(f"delete from t where id % 5 = {remainder}")
        counts = [lake.sql(f"select count(*) from t version as of {n}").first()[0] for n in (1, 2, 3, 4)]
        assert counts == [1000, 800, 600, 400]
        changes = lake.sql(
            "select snapshot_id, count(*) from ducklake_table_deletions('t', 2, 4) group by 1 order by 1"
        )
        assert [tuple(r) for r in changes.collect()] == [(2, 200), (3, 200), (4, 200)]
        with lake.lake().catalog.read() as connection:
            formats = connection.execute(sa.select(t.delete_file.c.format)).scalars().all()
        assert formats == (["puffin"] if version == "1.1" else ["parquet"])


def test_a_session_migrates_its_lake_and_goes_on(spark: SparkSession, new_lake: Any) -> None:
    address = new_lake("postgres")
    with LakeSession(address.catalog, address.data_path, spark=spark) as lake:
        lake.execute("create table t (id bigint, at timestamp)")
        lake.execute("insert into t values (1, timestamp'2026-01-01 00:30:00Z')")
        with pytest.raises(LakeError, match=r"format version 1\.0, and only later ones have epoch_hour"):
            lake.execute("alter table t set partitioned by (epoch_hour(at))")
        with lake.transaction(), pytest.raises(LakeError, match="can not be part of a transaction"):
            lake.execute("call ducklake_migrate()")
        planned = lake.sql("call ducklake_migrate(dry_run => true)").collect()
        assert [tuple(r) for r in lake.sql("call ducklake_migrate(version => '1.1')").collect()] == planned
        assert {(r.from_version, r.to_version) for r in planned} == {("1.0", "1.1")}
        lake.execute("alter table t set partitioned by (epoch_hour(at))")
        lake.execute(
            "insert into t select id, timestamp'2026-01-01 00:00:00Z' + make_dt_interval(0, id) from range(48)"
        )
        assert lake.sql("select count(*) from t").first()[0] == 49
        files = lake.sql("select count(distinct data_file) from ducklake_list_files('t')").first()[0]
        assert files == 48  # the first row is inlined, and of no hour
