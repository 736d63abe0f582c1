"""Summaries of whole tables: row counts as the reference has them, the last write and the last change."""

from __future__ import annotations

from dbt.adapters.ducklake.lake.table_summary import TableSummary, table_summaries
from dbt.adapters.ducklake.lake.transaction import ChangeCounts

from ...lakes import Lake
from .catalogs import NewLake, every_reference_catalog


def summaries(lake: Lake, at: int | None = None, *names: str) -> dict[str, TableSummary]:
    ids = [lake.table(name).id for name in names] or None
    with lake.catalog.read() as connection:
        found = table_summaries(connection, lake.catalog, lake.latest if at is None else at, ids)
    tables = {table.id: table.name for table in lake.state.tables.values()}
    return {tables[id]: summary for id, summary in found.items()}


@every_reference_catalog
def test_row_counts_equal_those_of_the_reference(kind: str, new_lake: NewLake) -> None:
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
        assert count == (summaries(lake)["t"].row_count,), change


@every_reference_catalog
def test_the_last_write_is_the_newest_snapshot_of_a_delete_file(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.duckdb() as duckdb:
        duckdb.execute("create table t (id int)")  # snapshot 1
        duckdb.execute("insert into t select i from range(500) r(i)")  # 2
        duckdb.execute("delete from t where id < 100")  # 3
        duckdb.execute("delete from t where id < 200")  # 4
        duckdb.execute("create table other (id int)")  # 5
    assert [summaries(lake, at)["t"].last_write_snapshot for at in (2, 3, 4, 5)] == [2, 3, 4, 4]


@every_reference_catalog
def test_the_last_write_and_the_last_change_of_a_table_are_known(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.duckdb() as duckdb:
        duckdb.execute("create table t (id int)")  # snapshot 1
        duckdb.execute("insert into t select i from range(100) r(i)")  # 2
        duckdb.execute("create table other (id int)")  # 3
        duckdb.execute("alter table t add column name varchar")  # 4
        duckdb.execute("delete from t where id = 7")  # 5
        duckdb.execute("insert into other values (1)")  # 6
    moments = {
        at: (summaries(lake, at)["t"].last_write_snapshot, summaries(lake, at)["t"].last_change_snapshot)
        for at in range(1, 7)
    }
    assert moments == {1: (None, 1), 2: (2, 2), 3: (2, 2), 4: (2, 4), 5: (5, 5), 6: (5, 5)}
    assert summaries(lake)["other"].last_write_snapshot == 6


def test_a_table_without_rows_has_no_last_write(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    assert summaries(lake)["t"] == TableSummary(last_change_snapshot=1)


def test_summaries_are_read_of_the_named_tables_only(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create("a")
    lake.create("b")
    assert set(summaries(lake, None, "b")) == {"b"}


def test_the_volume_of_a_transaction_counts_rows_and_files(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    lake.append({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    with lake.transaction() as tx:
        table = tx.state.table("main", "t")
        assert tx.change_counts() == ChangeCounts()
        tx.truncate(table)
        assert tx.change_counts() == ChangeCounts(rows_removed=3)
        tx.append(table, [lake.file(tx, table, {"id": [9], "name": ["z"]})])
        assert tx.change_counts() == ChangeCounts(rows_added=1, rows_removed=3, files_added=1)


def test_an_expired_snapshot_has_the_time_of_the_next_one(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    with lake.duckdb() as duckdb:
        for number in range(4):
            duckdb.execute(f"create table t{number} (id int)")
        duckdb.execute("call ducklake_expire_snapshots('lake', versions => [2])")
    with lake.catalog.read() as connection:
        times = lake.catalog.commit_times(connection, {1, 2, 3, 99})
    assert times[2] == times[3] > times[1]
    assert 99 not in times
