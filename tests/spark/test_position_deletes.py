"""Position deletes: how they are stored, and how deletion masks hide the rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.change import row_positions
from dbt.adapters.ducklake.spark.read import deletion_masks

from .helpers import content, files, parquet_files, rows, run, snapshots, value


@pytest.mark.parametrize("blocks", [2**20, 20, 0])
def test_deletes_of_files_of_equal_size_are_kept_apart(
    lake: LakeSession, monkeypatch: pytest.MonkeyPatch, blocks: int
) -> None:
    monkeypatch.setattr(deletion_masks, "MAX_BLOCKS", blocks)
    run(
        lake,
        "call ducklake_set_option('data_inlining_row_limit', 0)",
        "create table t (part int, id bigint) partitioned by (part)",
        "insert into t select id % 8, id div 8 from range(0, 1600, 1, 1)",
        "delete from t where id = part or id = 191 - part",
    )
    sizes = [row[0] for row in rows(lake, "select data_file_size_bytes from ducklake_list_files('t')")]
    assert len(set(sizes)) < len(sizes) == 8
    assert content(lake) == sorted(
        ((part, i) for part in range(8) for i in range(200) if i not in (part, 191 - part)), key=repr
    )
    assert value(lake, "select count(*) from t where id = 3 and part <> 3") == 7


def test_deletes_of_one_file_add_up(lake: LakeSession, way: str) -> None:
    lake.execute("create table t as select id, id % 10 as g from range(0, 100, 1, 1)")
    first = snapshots(lake)
    for condition, count in (("g = 1", 10), ("g = 2", 10), ("id in (3, 13)", 2), ("id >= 90", 8)):
        assert lake.execute(f"delete from t where {condition}").rows_affected == count
    assert [value(lake, f"select count(*) from t version as of {first + n}") for n in range(5)] == [100, 90, 80, 78, 70]
    assert value(lake, "select sum(id) from t") == sum(
        i for i in range(90) if i % 10 not in (1, 2) and i not in (3, 13)
    )
    ((_, delete_file),) = files(lake)
    assert (delete_file is None) == (way == "in the catalog")


def test_a_file_that_loses_all_its_rows_is_removed_without_a_delete_file(
    lake: LakeSession, way: str, tmp_path: Path
) -> None:
    run(
        lake,
        "create table t as select id from range(0, 5, 1, 1)",
        "insert into t select id + 10 from range(0, 5, 1, 1)",
    )
    (_, (kept, _)) = files(lake)
    if way == "in the catalog":
        run(lake, "delete from t where id < 5")
    else:
        run(lake, "delete from t where id < 2", "delete from t where id in (2, 3, 4)")
    assert files(lake) == [(kept, None)]
    assert len(parquet_files(tmp_path)) == (2 if way == "in the catalog" else 3)
    assert lake.execute("update t set id = id + 100").rows_affected == 5
    assert [f for f in files(lake) if f[0] == kept or f[1]] == []
    assert content(lake) == [(110,), (111,), (112,), (113,), (114,)]


def test_rows_that_change_again_and_again_keep_their_row_ids(lake: LakeSession, way: str) -> None:
    run(
        lake,
        "create table t as select id, 0 as n from range(0, 6, 1, 1)",
        "update t set n = n + 1 where id < 4",
        "update t set n = n + 1 where id < 3",
        "merge into t using (select 1 as id) as s on t.id = s.id when matched then update set n = t.n + 1",
        "delete from t where id = 0",
        "update t set n = n + 10 where n = 3",
        "insert into t values (9, 9)",
    )
    found = rows(lake, "select rowid, id, n from t order by id")
    assert found[:5] == [(1, 1, 13), (2, 2, 2), (3, 3, 1), (4, 4, 0), (5, 5, 0)]
    assert found[5][1:] == (9, 9)
    assert found[5][0] > 5


@pytest.mark.parametrize("last", [100, 107])
def test_deletes_of_files_of_equal_and_of_different_sizes_are_kept_apart(lake: LakeSession, last: int) -> None:
    lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.execute("create table t (id bigint)")
    for end in (100, last):
        lake.execute(f"insert into t select id from range(0, {end}, 1, 1)")
    files = rows(lake, "select data_file_size_bytes from ducklake_list_files('t')")
    assert len(set(files)) == (1 if last == 100 else 2)
    gone = {3, 63, 64, 130}
    lake.execute(f"delete from t where rowid in ({', '.join(map(str, gone))})")
    left = [(i,) for i in range(100 + last) if i not in gone]
    assert rows(lake, "select rowid from t order by 1") == left
    lake.execute("delete from t where rowid in (5, 105)")
    assert rows(lake, "select rowid from t order by 1") == [r for r in left if r[0] not in (5, 105)]
    assert rows(lake, "select count(*) from t version as of 4") == [(len(left),)]


def test_equal_deletes_of_similar_tables_are_kept_apart(lake: LakeSession, way: str) -> None:
    def rows_of(number: int) -> list[range]:
        """Returns the ids in both files of a table. Sometimes the first file is larger, sometimes the second."""
        return [range(first, first + 10 + (number * 17 + first) % 47) for first in (0, 100)]

    for number in range(6):
        lake.execute(f"create table t{number} (id int)")
        for ids in rows_of(number):
            lake.execute(f"insert into t{number} select id from range({ids.start}, {ids.stop}, 1, 1)")
        lake.execute(f"delete from t{number} where id in (3, 104)")
    for number in range(6):
        expected = [(id,) for ids in rows_of(number) for id in ids if id not in (3, 104)]
        assert rows(lake, f"select id from t{number} order by id") == expected


def test_exists_works_on_a_table_that_is_read_as_a_union(lake: LakeSession, way: str) -> None:
    """A table with deletes in some of its files is read as a union. Spark cannot move an EXISTS into a union."""
    run(
        lake,
        "create table t as select id, 0 as v from range(0, 40, 1, 1)",
        "insert into t select id, 0 from range(40, 60, 1, 1)",
        "delete from t where id in (1, 3)",
        "create table o as select id from range(5)",
        "create view w as select * from t",
    )
    for relation in ("t", "w", "(select id from w)"):
        query = f"select id, exists(select 1 from o where o.id = x.id) from {relation} x where id < 6 order by id"
        assert rows(lake, query) == [(0, True), (2, True), (4, True), (5, False)]
    changes = f"ducklake_table_changes('t', 1, {snapshots(lake)})"
    feed = f"select id, EXISTS(select 1 from o where o.id = c.id) as e from {changes} c"
    assert {id for (id,) in rows(lake, f"select id from ({feed}) where e")} == {0, 1, 2, 3, 4}
    run(
        lake,
        "update t set v = case when exists (select 1 from o where o.id = t.id) then 1 else 2 end where id < 6",
        """merge into t using (select 2 as id) s on t.id = s.id
        when matched and exists (select 1 from o where o.id = t.id) then update set v = 3
        when not matched by source and exists (select 1 from o where o.id = t.id and o.id > 2) then delete""",
    )
    assert rows(lake, "select id, v from t where id < 7 order by id") == [(0, 1), (2, 3), (5, 2), (6, 0)]


def test_a_large_change_of_many_files_goes_through_spark(lake: LakeSession, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MAX_DRIVER_ROWS", "MAX_DRIVER_POSITIONS"):
        monkeypatch.setattr(row_positions, name, 0)
    lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.execute("create table t (id bigint, p int, v string) partitioned by (p)")
    lake.execute("insert into t select id, id % 5, 'old' from range(500)")
    row_ids = dict(rows(lake, "select id, rowid from t"))
    for step in range(3):
        left = [i for i in range(step, 500, 7) if i % 11 >= step]
        done = lake.execute(f"update t set v = concat('new', {step}), p = (p + 1) % 5 where id % 7 = {step}")
        assert done.rows_affected == len(left)
        assert lake.execute(f"delete from t where id % 11 = {step}").rows_affected > 0
    expected = []
    for i in range(500):
        if i % 11 > 2:
            touched = i % 7 <= 2
            expected.append((i, (i % 5 + 1) % 5 if touched else i % 5, f"new{i % 7}" if touched else "old"))
    assert sorted(rows(lake, "select * from t")) == sorted(expected)
    assert dict(rows(lake, "select id, rowid from t")) == {i: row_ids[i] for i, *_ in expected}
