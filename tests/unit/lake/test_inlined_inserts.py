"""Rows that a transaction inserts into the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import evolution, inlined
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.errors import ConflictError
from dbt.adapters.ducklake.lake.inlined_inserts import FIRST_STAGED_ROW_ID, NewInlinedRows, staged_inlined_rows
from dbt.adapters.ducklake.lake.predicates import Comparison, ReadPredicate
from dbt.adapters.ducklake.lake.transaction import ChangeCounts, Transaction

from ...lakes import Lake, column
from .catalogs import NewLake, every_reference_catalog


def insert(tx: Transaction, rows: Mapping[str, list[Any]], name: str = "t") -> None:
    table = tx.state.table("main", name)
    tx.insert_inlined(table, NewInlinedRows.of(pa.table(dict(rows)), table.columns))


def insert_and_commit(lake: Lake, rows: Mapping[str, list[Any]]) -> int:
    tx = lake.begin()
    insert(tx, rows)
    return tx.commit().attempts


def stored(lake: Lake, name: str = "t") -> list[dict[str, Any]]:
    with lake.catalog.read() as connection:
        found = inlined.read_inlined_rows(connection, lake.catalog, lake.table(name), lake.latest)
    return [] if found is None else found.rows.to_pylist()


def ids(lake: Lake) -> list[int]:
    return [row["id"] for row in stored(lake)]


@every_reference_catalog
def test_rows_get_row_ids_and_widen_the_statistics_of_the_table(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [5], "name": ["m"]})
    with lake.transaction() as tx:
        insert(tx, {"name": ["a", None], "id": [7, 1]})
        insert(tx, {"id": [9], "name": ["z"]})
    assert [(r["row_id"], r["begin_snapshot"], r["id"]) for r in stored(lake)] == [(1, 3, 7), (2, 3, 1), (3, 3, 9)]
    assert lake.changes[-1] == f"inlined_insert:{lake.table().id}"
    (of_table,) = lake.rows(t.table_stats)
    assert (of_table["record_count"], of_table["next_row_id"]) == (4, 4)
    of_columns = {r["column_id"]: r for r in lake.rows(t.table_column_stats)}
    assert [(c["min_value"], c["max_value"], c["contains_null"]) for c in of_columns.values()] == [
        ("1", "9", False),
        ("a", "z", True),
    ]
    assert lake.seen_by_duckdb("select min(id), max(id), max(name), count(*) from t") == [(1, 9, "z", 4)]


def test_a_duckdb_that_keeps_statistics_notices_new_rows(new_lake: NewLake) -> None:
    """It compresses what it sorts by them: with old ones, a value that is out of their bounds comes out as another."""
    lake = Lake(new_lake("sqlite"))
    lake.create()
    insert_and_commit(lake, {"id": [500], "name": ["a"]})
    with lake.duckdb() as connection:
        assert connection.execute("select id from t order by id").fetchall() == [(500,)]
        insert_and_commit(lake, {"id": [7], "name": ["b"]})
        assert connection.execute("select id from t order by id").fetchall() == [(7,), (500,)]
        with lake.transaction() as tx:
            tx.truncate(lake.table())
            insert(tx, {"id": [90_000], "name": ["c"]})
        assert connection.execute("select id from t order by id").fetchall() == [(90_000,)]


@every_reference_catalog
def test_inserts_of_threads_all_land_once(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()

    def write(writer: int) -> None:
        own = Lake(lake.address)
        for n in range(4):
            insert_and_commit(own, {"id": [writer * 10 + n], "name": ["x"]})

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(write, range(6)))
    rows = stored(lake)
    assert sorted(r["id"] for r in rows) == [w * 10 + n for w in range(6) for n in range(4)]
    assert sorted(r["row_id"] for r in rows) == list(range(24))
    assert len({r["begin_snapshot"] for r in rows}) == 24


def test_what_a_transaction_inserted_it_may_delete_again(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    insert_and_commit(lake, {"id": [1, 2], "name": ["a", "b"]})
    with lake.transaction() as tx:
        insert(tx, {"id": [3, 4], "name": ["c", "d"]})
        insert(tx, {"id": [100], "name": ["e"]})
        insert(tx, {"id": [6], "name": ["f"]})
        tx.delete_inlined_rows(lake.table(), frozenset([0, FIRST_STAGED_ROW_ID + 1, FIRST_STAGED_ROW_ID + 2]))
        assert tx.change_counts() == ChangeCounts(rows_added=2, rows_removed=1)
        left = staged_inlined_rows(tx.data_changes(lake.table()).inlined_inserts, lake.table().columns)
        assert left is not None
        assert left.rows.column("id").to_pylist() == [3, 6]
        assert left.row_ids.to_pylist() == [FIRST_STAGED_ROW_ID, FIRST_STAGED_ROW_ID + 1]
    assert sorted(ids(lake)) == [2, 3, 6]
    # MAX would be answered from the statistics: what was never committed must not be in them.
    assert lake.seen_by_duckdb("select max(id), count(*) from t") == [(6, 3)]


def test_a_table_that_is_emptied_or_dropped_again_gets_nothing(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    lake.create("other")
    with lake.transaction() as tx:
        insert(tx, {"id": [1], "name": ["a"]})
        insert(tx, {"id": [1], "name": ["a"]}, "other")
        tx.truncate(lake.table())
        tx.drop(lake.table("other"))
    assert stored(lake) == []
    assert "inlined_insert" not in lake.changes[-1]


def test_nested_transactions_fold_their_inserts(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    outer = lake.begin()
    one, other, third = outer.nested(), outer.nested(), outer.nested()
    insert(one, {"id": [1], "name": ["a"]})
    insert(other, {"id": [2], "name": ["b"]})
    insert(third, {"id": [3], "name": ["c"]})
    third.delete_inlined_rows(lake.table(), frozenset([FIRST_STAGED_ROW_ID]))
    insert(third, {"id": [4], "name": ["d"]})
    one.merge_into_parent()
    other.merge_into_parent()
    third.merge_into_parent()
    outer.commit()
    assert ids(lake) == [1, 2, 4]


@pytest.mark.parametrize(("value", "conflicts"), [(5, True), (50, False)])
def test_a_write_conflicts_only_with_inlined_rows_that_it_should_have_read(
    value: int, conflicts: bool, new_lake: NewLake
) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    insert_and_commit(lake, {"id": [1], "name": ["a"]})
    merge = lake.begin()
    merge.record_read(lake.table(), ReadPredicate(Comparison(("id",), "<", 10), "UTC"))
    merge.delete_inlined_rows(lake.table(), frozenset([0]))
    insert_and_commit(lake, {"id": [value], "name": ["b"]})
    if conflicts:
        with pytest.raises(ConflictError, match="inserted rows that it should have read"):
            merge.commit()
        return
    merge.commit()
    assert ids(lake) == [50]


@pytest.mark.parametrize(("row_id", "conflicts"), [(0, True), (1, False)])
def test_deletes_of_inlined_rows_conflict_if_the_rows_are_the_same(
    row_id: int, conflicts: bool, new_lake: NewLake
) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    insert_and_commit(lake, {"id": [1, 2], "name": ["a", "b"]})
    late = lake.begin()
    late.delete_inlined_rows(lake.table(), frozenset([0]))
    with lake.transaction() as tx:
        tx.delete_inlined_rows(lake.table(), frozenset([row_id]))
    if conflicts:
        with pytest.raises(ConflictError, match="deleted or flushed the same rows"):
            late.commit()
        return
    late.commit()
    assert ids(lake) == []


def test_inserts_conflict_with_changed_columns(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    late = lake.begin()
    insert(late, {"id": [1], "name": ["a"]})
    with lake.transaction() as tx:
        columns = tx.column_ids(lake.table())
        tx.alter_table(lake.table(), lambda table: evolution.add_column(table, (), column("n", "int32"), columns))
    with pytest.raises(ConflictError, match="altered it"):
        late.commit()


def test_one_schema_version_is_enough_for_all_tables_that_need_one(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"), data_inlining_row_limit=0)
    for name in ("a", "b", "c"):
        lake.create(name)
    with lake.transaction() as tx:
        insert(tx, {"id": [1], "name": ["x"]}, "a")
        insert(tx, {"id": [2], "name": ["y"]}, "b")
    versions = [r["schema_version"] for r in sorted(lake.rows(t.snapshot), key=lambda r: r["snapshot_id"])]
    assert versions == [0, 1, 2, 3, 4]
    assert {r["schema_version"] for r in lake.rows(t.inlined_data_tables)} == {4}
    with lake.transaction() as tx:
        insert(tx, {"id": [3], "name": ["z"]}, "a")
    assert len(lake.rows(t.inlined_data_tables)) == 2
    assert lake.seen_by_duckdb("select (select list(id order by id) from a), (select list(id) from b)") == [
        ([1, 3], [2])
    ]


def test_the_row_of_a_lost_race_is_inserted_once(new_lake: NewLake, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    slow = lake.begin()
    insert(slow, {"id": [2], "name": ["b"]})
    insert_and_commit(lake, {"id": [1], "name": ["a"]})
    slow.commit()
    assert [(r["row_id"], r["id"]) for r in stored(lake)] == [(0, 1), (1, 2)]
    with lake.catalog.read() as connection:
        assert connection.scalar(sa.select(sa.func.max(t.snapshot.c.schema_version))) == 1
