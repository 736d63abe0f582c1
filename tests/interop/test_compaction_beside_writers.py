"""Compaction beside writers: it stops nobody, and no delete that arrives meanwhile is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConflictError
from dbt.adapters.ducklake.lake.transaction import Transaction

from .engines import Both

Meanwhile = Callable[[Callable[[], object]], None]


@pytest.fixture
def lake(open_lake: Callable[..., Both]) -> Both:
    lake = open_lake("sqlite")
    lake.duckdb(
        "create table t (id int, v varchar)",
        "alter table t set partitioned by (v)",
        *[f"insert into t select i + {k}, ['a', 'b'][1 + i % 2] from range(40) r(i)" for k in (0, 100, 200)],
    )
    return lake


@pytest.fixture
def other(lake: Both, spark: SparkSession) -> Iterator[LakeSession]:
    with LakeSession(lake.address.catalog, data_path=lake.data_path, spark=spark) as session:
        yield session


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Something to do once, when the files are written and before they are committed."""

    def once(work: Callable[[], object]) -> None:
        commit = Transaction.commit

        def after_work(transaction: Transaction) -> Any:
            monkeypatch.setattr(Transaction, "commit", commit)
            work()
            return commit(transaction)

        monkeypatch.setattr(Transaction, "commit", after_work)

    return once


def ids(lake: Both) -> list[int]:
    return [row[0] for row in lake.agree("select id from t")]


def data_files(lake: Both) -> set[str]:
    return {path.name for path in Path(lake.data_path).rglob("*.parquet")}


def known_files(lake: Both) -> set[str]:
    query = " union all ".join(
        f"select path from {{m}}.ducklake_{table}"
        for table in ("data_file", "delete_file", "files_scheduled_for_deletion")
    )
    return {row[0].rsplit("/", 1)[-1] for row in lake.catalog_rows(query)}


def test_rows_that_are_inserted_meanwhile_stop_nothing(lake: Both, other: LakeSession, meanwhile: Meanwhile) -> None:
    meanwhile(lambda: other.execute("insert into t values (1000, 'a')"))
    assert lake.lake.call("ducklake_merge_adjacent_files").to_pylist()[0]["files_processed"] == 6
    assert len(ids(lake)) == 121


@pytest.mark.parametrize("by", ["spark", "duckdb"])
@pytest.mark.parametrize("inlined", [True, False])
def test_a_merge_leaves_the_files_that_lose_rows_meanwhile(
    lake: Both, other: LakeSession, meanwhile: Meanwhile, by: str, inlined: bool
) -> None:
    lake.spark(f"call ducklake_set_option('data_inlining_row_limit', {10 if inlined else 0})")
    delete = "delete from t where id in (4, 104)"
    meanwhile(lambda: other.execute(delete) if by == "spark" else lake.duckdb(delete))
    # Partition b merges as planned. Of a, the only file without deletes is merged with no other.
    assert lake.lake.call("ducklake_merge_adjacent_files").to_pylist()[0] == {
        "schema_name": "main",
        "table_name": "t",
        "files_processed": 3,
        "files_created": 1,
    }
    assert len(ids(lake)) == 118
    assert data_files(lake) == known_files(lake)


def test_a_rewrite_keeps_deletes_that_arrive_meanwhile(lake: Both, other: LakeSession, meanwhile: Meanwhile) -> None:
    lake.spark("delete from t where id between 0 and 29 and v = 'a'", "delete from t where id < 20 and v = 'b'")
    meanwhile(lambda: other.execute("delete from t where id in (32, 33)"))
    rewritten = lake.lake.call("ducklake_rewrite_data_files", "t", delete_threshold=0.1).to_pylist()
    assert rewritten[0]["files_processed"] == 2
    assert sorted(i for i in ids(lake) if i < 100) == sorted({*range(30, 40), *range(21, 30, 2)} - {32, 33})
    left_over = data_files(lake) - known_files(lake)
    assert all(name.endswith("-delete.parquet") for name in left_over)  # those of the commit that failed


def test_two_compactions_at_once_do_the_work_once(lake: Both, other: LakeSession, meanwhile: Meanwhile) -> None:
    meanwhile(lambda: other.call("ducklake_merge_adjacent_files"))
    assert lake.lake.call("ducklake_merge_adjacent_files").num_rows == 0
    assert len(ids(lake)) == 120
    assert data_files(lake) == known_files(lake)


def test_a_table_may_change_or_go_meanwhile(lake: Both, other: LakeSession, meanwhile: Meanwhile) -> None:
    lake.spark("delete from t where id < 20")
    meanwhile(lambda: other.execute("alter table t add column w int default 7"))
    assert lake.lake.call("ducklake_rewrite_data_files", "t", delete_threshold=0).num_rows == 1
    assert lake.agree("select distinct w from t", expected=[(7,)])
    meanwhile(lambda: other.execute("drop table t"))
    assert lake.lake.call("ducklake_merge_adjacent_files", "t").num_rows == 0
    assert data_files(lake) == known_files(lake)


def test_a_delete_that_began_before_a_merge_is_planned_again(lake: Both, other: LakeSession) -> None:
    with pytest.raises(ConflictError, match="changed rows of the same files"), lake.lake.transaction():
        lake.spark("delete from t where id = 7")
        other.call("ducklake_merge_adjacent_files")
    lake.spark("delete from t where id = 7")
    assert len(ids(lake)) == 119


def test_a_merge_statement_goes_on_when_other_files_are_compacted(lake: Both, other: LakeSession) -> None:
    """It read the table to find out what to insert, and compaction changes no row."""
    lake.spark("create table u as select id from t")
    with lake.lake.transaction():
        lake.spark(
            "merge into u using (select 5000 as id) s on u.id = s.id when not matched then insert (id) values (s.id)",
            "insert into u select id + 6000 from t where id < 2",
        )
        other.call("ducklake_merge_adjacent_files")
        other.call("ducklake_rewrite_data_files", "t", delete_threshold=0)
    assert lake.agree("select count(*) from u", expected=[(123,)])


@pytest.mark.parametrize("by", ["spark", "duckdb"])
def test_a_flush_keeps_deletes_that_arrive_meanwhile(
    lake: Both, other: LakeSession, meanwhile: Meanwhile, by: str
) -> None:
    lake.duckdb("insert into t values (900, 'a'), (901, 'b')", "insert into t values (902, 'a')")
    lake.duckdb("delete from t where id = 3")
    delete = "delete from t where id in (901, 5)"
    meanwhile(lambda: other.execute(delete) if by == "spark" else lake.duckdb(delete))
    lake.lake.call("ducklake_flush_inlined_data")
    found = set(ids(lake))
    assert {900, 902, 3, 5, 901} & found == {900, 902}
    assert len(found) == 120
    late = lake.catalog_rows("select count(*) from {m}.ducklake_inlined_delete_1")
    assert late == [(2,)], "they are the deletes of a row in a new file and of one in an old file"
    assert data_files(lake) == known_files(lake)
    lake.compare()
    lake.lake.call("ducklake_flush_inlined_data")
    assert lake.catalog_rows("select count(*) from {m}.ducklake_inlined_delete_1") == [(0,)]
    lake.compare()


def test_rows_that_are_inlined_during_a_flush_stay_inlined(lake: Both, meanwhile: Meanwhile) -> None:
    lake.duckdb("insert into t values (900, 'a')")
    meanwhile(lambda: lake.duckdb("insert into t values (901, 'b')"))
    assert lake.lake.call("ducklake_flush_inlined_data").to_pylist()[0]["rows_flushed"] == 1
    assert {900, 901} <= set(ids(lake))
    assert lake.lake.call("ducklake_flush_inlined_data").to_pylist()[0]["rows_flushed"] == 1
    lake.compare()
