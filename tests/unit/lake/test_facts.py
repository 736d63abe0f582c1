"""What the catalog tells of whole tables: the rows that the reference counts, and when they changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dbt.adapters.ducklake.lake.facts import TableFacts, table_facts
from dbt.adapters.ducklake.lake.transaction import Volume

from ...conftest import LakeAddress
from ...lakes import Lake

NewLake = Callable[[str], LakeAddress]
every_reference_catalog = pytest.mark.parametrize("kind", ["sqlite", "postgres", "duckdb"])


def facts(lake: Lake, at: int | None = None, *names: str) -> dict[str, TableFacts]:
    ids = [lake.table(name).id for name in names] or None
    with lake.catalog.read() as connection:
        found = table_facts(connection, lake.catalog, lake.latest if at is None else at, ids)
    tables = {table.id: table.name for table in lake.state.tables.values()}
    return {tables[i]: f for i, f in found.items()}


@every_reference_catalog
def test_rows_are_those_that_the_reference_counts(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    for change in (
        "create table t (id int, name varchar)",
        "insert into t select i, 'row ' || i from range(500) r(i)",
        "insert into t values (1000, 'inlined'), (1001, 'too')",
        "delete from t where id < 3",
        "delete from t where id between 100 and 300",
        "delete from t where id = 1000",
        "update t set name = 'x' where id in (400, 401)",
        "call ducklake_flush_inlined_data('lake')",
        "call ducklake_merge_adjacent_files('lake')",
        "insert into t select i, 'more' from range(50) r(i)",
        "delete from t",
    ):
        with lake.duckdb() as duckdb:
            duckdb.execute(change)
            count = duckdb.execute("select count(*) from t").fetchone()
        assert count == (facts(lake)["t"].rows,), change


@every_reference_catalog
def test_a_delete_file_of_several_snapshots_tells_the_last_of_them(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.duckdb() as duckdb:
        duckdb.execute("create table t (id int)")  # snapshot 1
        duckdb.execute("insert into t select i from range(500) r(i)")  # 2
        duckdb.execute("delete from t where id < 100")  # 3
        duckdb.execute("delete from t where id < 200")  # 4
        duckdb.execute("create table other (id int)")  # 5
    assert [facts(lake, at)["t"].last_write for at in (2, 3, 4, 5)] == [2, 3, 4, 4]


@every_reference_catalog
def test_a_table_tells_when_its_rows_and_its_definition_changed(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.duckdb() as duckdb:
        duckdb.execute("create table t (id int)")  # snapshot 1
        duckdb.execute("insert into t select i from range(100) r(i)")  # 2
        duckdb.execute("create table other (id int)")  # 3
        duckdb.execute("alter table t add column name varchar")  # 4
        duckdb.execute("delete from t where id = 7")  # 5
        duckdb.execute("insert into other values (1)")  # 6
    moments = {at: (facts(lake, at)["t"].last_write, facts(lake, at)["t"].last_change) for at in range(1, 7)}
    assert moments == {1: (None, 1), 2: (2, 2), 3: (2, 2), 4: (2, 4), 5: (5, 5), 6: (5, 5)}
    assert facts(lake)["other"].last_write == 6


def test_a_table_without_rows_has_no_last_write(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    assert facts(lake)["t"] == TableFacts(last_change=1)


def test_asking_for_some_tables_leaves_out_the_others(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create("a")
    lake.create("b")
    assert set(facts(lake, None, "b")) == {"b"}


def test_a_transaction_tells_how_much_it_changes(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    lake.append({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    with lake.transaction() as tx:
        table = tx.state.table("main", "t")
        assert tx.volume() == Volume()
        tx.truncate(table)
        assert tx.volume() == Volume(rows_removed=3)
        tx.append(table, [lake.file(tx, table, {"id": [9], "name": ["z"]})])
        assert tx.volume() == Volume(rows_added=1, rows_removed=3, files_added=1)


def test_an_expired_snapshot_has_the_time_of_the_next_one(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    with lake.duckdb() as duckdb:
        for number in range(4):
            duckdb.execute(f"create table t{number} (id int)")
        duckdb.execute("call ducklake_expire_snapshots('lake', versions => [2])")
    with lake.catalog.read() as connection:
        times = lake.catalog.times(connection, {1, 2, 3, 99})
    assert times[2] == times[3] > times[1]
    assert 99 not in times
