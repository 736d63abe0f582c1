"""DELETE, UPDATE and MERGE by either engine: rows, row ids and change feed at every snapshot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConflictError
from dbt.adapters.ducklake.spark.change import row_positions
from dbt.adapters.ducklake.spark.read import deletion_masks

from .engines import CATALOGS, Both, Step, both, by_duckdb, by_spark, each, rows_of

pytestmark = pytest.mark.usefixtures("interpreting_spark")

INLINING = ("inlined", "in files", "by Spark")


@pytest.fixture(params=INLINING)
def how(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where deletes are kept: in the catalog if they are few, or in files by the driver or by Spark."""
    if request.param == "by Spark":
        for name in ("MAX_DRIVER_ROWS", "MAX_DRIVER_POSITIONS"):
            monkeypatch.setattr(row_positions, name, 0)
        monkeypatch.setattr(deletion_masks, "MAX_FILES", 0)
    return str(request.param)


def start(lake: Both, how: str) -> None:
    if how != "inlined":
        lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)")


def newest(lake: Both) -> int:
    return int(lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0][0])


def feed(connection: duckdb.DuckDBPyConnection, first: int, last: int) -> list[tuple[Any, ...]]:
    """The change feed of t: snapshot, kind of change, and the row."""
    return connection.execute(
        "select snapshot_id, change_type, id, v"
        f" from ducklake_table_changes('lake', 'main', 't', {first}, {last}) order by all"
    ).fetchall()


def changes(lake: Both, first: int, last: int) -> list[tuple[Any, ...]]:
    with lake.connection() as connection:
        return feed(connection, first, last)


def each_feed(lake: Both, first: int) -> list[list[tuple[Any, ...]]]:
    """The change feed of each snapshot from one on."""
    with lake.connection() as connection:
        return [feed(connection, at, at) for at in range(first, first + 10)]


def every_feed(lake: Both) -> dict[tuple[int, int], list[tuple[Any, ...]]]:
    """The change feed of t: of every snapshot since it is there, of every few in a row, and of all."""
    last = newest(lake)
    first = lake.catalog_rows("select min(begin_snapshot) from {m}.ducklake_table where table_name = 't'")[0][0]
    feeds = {}
    with lake.connection() as connection:
        for begin in range(first, last + 1):
            for end in sorted({begin, min(begin + 3, last), last}):
                query = f"select * exclude (rowid) from ducklake_table_changes('lake', 'main', 't', {begin}, {end})"
                feeds[begin, end] = sorted(connection.execute(query).fetchall(), key=repr)
    return feeds


def every_version(lake: Both) -> dict[int, list[tuple[Any, ...]]]:
    """The rows of t at every snapshot since it is there, as DuckDB reads them."""
    first = lake.catalog_rows("select min(begin_snapshot) from {m}.ducklake_table where table_name = 't'")[0][0]
    versions = range(first, newest(lake) + 1)
    with lake.connection() as connection:
        return {at: sorted(connection.execute(f"from t at (version => {at})").fetchall(), key=repr) for at in versions}


MERGE = "merge into t using (select {} as id, '{}' as v) as s on t.id = s.id"

STORY = [
    each(
        "create table t as select id, concat('v', id) as v, cast(id % 4 as int) as g from range(60)",
        "create table t as select i as id, 'v' || i as v, (i % 4)::int as g from range(60) r(i)",
    ),
    both("delete from t where id = 3"),
    both("delete from t where id < 3 or id > 56"),
    both("update t set v = 'up' where g = 1"),
    both("update t set v = v || '!', g = g + 1 where id between 4 and 6"),
    both("delete from t where v = 'up'"),
    both("insert into t values (100, 'new', 0), (101, null, null)"),
    both(MERGE.format(100, "m") + " when matched then update set v = s.v"),
    both(
        "merge into t using (select 8 as id, 'm8' as v union all select 200, 'm200') as s on t.id = s.id"
        " when matched then update set v = s.v when not matched then insert (id, v, g) values (s.id, s.v, 9)"
    ),
    both("merge into t using (select 8 as id union all select 10) as s on t.id = s.id when matched then delete"),
    each("alter table t add column n int default 7", "alter table t add column n int default 7"),
    both("update t set n = n + g where g = 2"),
    both("alter table t rename column v to w"),
    both(
        "merge into t using (select 12 as id) as s on t.id = s.id"
        " when not matched by source and t.g = 3 then update set w = 'alone'"
    ),
    both("update t set id = id + 1000 where id in (12, 16, 200)"),
    each("alter table t alter column g type bigint", "alter table t alter column g set data type bigint"),
    both("update t set g = 5000000000 where id in (101, 16, 1016)"),
    both("delete from t where g is null or g = 0"),
    both("alter table t drop column w"),
    both("update t set n = null"),
    both("delete from t where id % 2 = 0"),
    both("delete from t"),
    both("insert into t (id, g) values (1, 1)"),
    both("update t set g = 2 where id = 1"),
]


@pytest.mark.parametrize(
    ("kind", "limit"),
    [
        ("sqlite", 10),
        ("postgres", 0),
        ("duckdb", 10),
        *(pytest.param(*pair, marks=pytest.mark.long) for pair in (("sqlite", 0), ("postgres", 10), ("duckdb", 0))),
    ],
)
def test_the_same_story_by_either_engine_is_the_same_table_and_the_same_changes(
    open_lake: Callable[..., Both], kind: str, limit: int
) -> None:
    ours, theirs = open_lake(kind), open_lake(kind)
    for lake in (ours, theirs):
        lake.duckdb(f"call lake.set_option('data_inlining_row_limit', {limit})")
    ours.write("spark", *STORY)
    theirs.write("duckdb", *STORY)
    assert newest(ours) == newest(theirs)
    assert every_version(ours) == every_version(theirs)
    ours.compare()
    found, expected = every_feed(ours), every_feed(theirs)
    for pair in expected:
        assert found[pair] == expected[pair], f"changes between snapshots {pair}"
    ours.agree("select rowid, id from t")


@pytest.mark.parametrize("first", ["spark", "duckdb"])
def test_the_same_story_in_turns_is_read_alike_at_every_snapshot(lake: Both, how: str, first: str) -> None:
    start(lake, how)
    turns: list[Step] = [] if first == "spark" else [by_duckdb("create table other (id int)")]
    lake.write("turns", *turns, *STORY)
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")


# -- one file, many deletes


def test_deletes_of_one_file_in_several_snapshots_are_told_apart(lake: Both, how: str, writer: str) -> None:
    start(lake, how)
    lake.spark("create table t as select id, concat('v', id) as v from range(0, 100, 1, 1)")
    first = newest(lake)
    expected = []
    steps, begin = (3, 12, 1, 15, 2), 0
    for number, count in enumerate(steps, start=1):
        lake.write(
            "spark" if writer == "turns" and number % 2 else "duckdb" if writer == "turns" else writer,
            both(f"delete from t where id >= {begin} and id < {begin + count}"),
        )
        expected += [(first + number, "delete", i, f"v{i}") for i in range(begin, begin + count)]
        begin += count
    lake.compare()
    with lake.connection() as connection:
        for start_at in range(1, len(steps) + 1):
            for end_at in range(start_at, len(steps) + 1):
                wanted = [e for e in expected if first + start_at <= e[0] <= first + end_at]
                assert feed(connection, first + start_at, first + end_at) == wanted
        for number in range(len(steps) + 1):
            count = connection.execute(f"select count(*) from t at (version => {first + number})").fetchall()
            assert count == [(100 - sum(steps[:number]),)]


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("delete from t where id > 2", [("delete", i) for i in range(3, 20)]),
        ("delete from t", [("delete", i) for i in range(3, 20)]),
        ("truncate table t", [("delete", i) for i in range(3, 20)]),
        ("insert overwrite t values (99, 'v')", [("delete", i) for i in range(3, 20)] + [("insert", 99)]),
        (
            "update t set v = 'up'",
            [*(("update_postimage", i) for i in range(3, 20)), *(("update_preimage", i) for i in range(3, 20))],
        ),
    ],
)
@pytest.mark.parametrize("deleter", ["spark", "duckdb"])
def test_the_last_rows_of_a_file_go_without_those_that_went_before(
    open_lake: Callable[..., Both], how: str, deleter: str, statement: str, told: list[tuple[str, int]]
) -> None:
    lake = open_lake("sqlite")
    start(lake, how)
    lake.spark("create table t as select id, 'v' as v from range(0, 20, 1, 1)")
    lake.write(deleter, both("delete from t where id < 3"))
    lake.spark(statement)
    last = newest(lake)
    assert [(kind, i) for _, kind, i, _ in changes(lake, last, last)] == told
    assert [(kind, i) for _, kind, i, _ in changes(lake, last - 1, last - 1)] == [("delete", i) for i in range(3)]
    lake.compare()


@pytest.mark.parametrize("nested", ["array", "map"])
def test_duckdb_changes_rows_with_lists_and_maps_that_spark_updated(lake: Both, how: str, nested: str) -> None:
    start(lake, how)
    value = "array(id)" if nested == "array" else "map('k', id)"
    lake.spark(
        f"create table t as select id, 'a' as v, {value} as l from range(0, 20, 1, 1)",
        "update t set v = 'b' where id in (3, 5, 7, 15)",
    )
    first = newest(lake)
    lake.agree("select rowid, id from t")
    lake.duckdb("update t set v = 'c' where id in (5, 9)", "delete from t where id = 7")
    lake.spark("delete from t where id = 3", "update t set v = 'd' where id in (5, 15)")
    lake.compare()
    lake.agree("select rowid, id, v from t")
    assert changes(lake, first, newest(lake)) == [
        *((first, "update_postimage", i, "b") for i in (3, 5, 7, 15)),
        *((first, "update_preimage", i, "a") for i in (3, 5, 7, 15)),
        *((first + 1, "update_postimage", i, "c") for i in (5, 9)),
        (first + 1, "update_preimage", 5, "b"),
        (first + 1, "update_preimage", 9, "a"),
        (first + 2, "delete", 7, "b"),
        (first + 3, "delete", 3, "b"),
        *((first + 4, "update_postimage", i, "d") for i in (5, 15)),
        (first + 4, "update_preimage", 5, "c"),
        (first + 4, "update_preimage", 15, "b"),
    ]


def test_an_update_is_told_as_the_old_row_and_the_new(lake: Both, how: str) -> None:
    start(lake, how)
    lake.spark("create table t as select id, concat('v', id) as v from range(0, 40, 1, 1)")
    first = newest(lake)
    lake.spark("update t set v = 'a' where id in (1, 2)")
    lake.spark("update t set v = 'b' where id = 1")
    lake.spark(
        "merge into t using (select * from values (1, 'c'), (99, 'd') as x(id, v)) s on t.id = s.id"
        " when matched then update set v = s.v when not matched then insert *"
    )
    lake.spark("delete from t where id in (1, 3)")
    assert changes(lake, first + 1, newest(lake)) == [
        (first + 1, "update_postimage", 1, "a"),
        (first + 1, "update_postimage", 2, "a"),
        (first + 1, "update_preimage", 1, "v1"),
        (first + 1, "update_preimage", 2, "v2"),
        (first + 2, "update_postimage", 1, "b"),
        (first + 2, "update_preimage", 1, "a"),
        (first + 3, "insert", 99, "d"),
        (first + 3, "update_postimage", 1, "c"),
        (first + 3, "update_preimage", 1, "b"),
        (first + 4, "delete", 1, "c"),
        (first + 4, "delete", 3, "v3"),
    ]
    lake.compare()


def test_a_transaction_is_told_by_what_it_came_to(lake: Both, how: str) -> None:
    start(lake, how)
    lake.spark("create table t as select id, concat('v', id) as v from range(0, 40, 1, 1)")
    lake.spark("delete from t where id = 0")
    first = newest(lake)
    lake.spark(
        "begin",
        "insert into t select id, 'new' from range(100, 103)",
        "update t set v = 'once' where id in (1, 2, 100)",
        "update t set v = 'twice' where id in (1, 101)",
        "delete from t where id in (2, 3, 102)",
        "merge into t using (select explode(array(1, 4, 5, 103)) as id) s on t.id = s.id"
        " when matched and s.id = 5 then delete when matched then update set v = 'merged'"
        " when not matched then insert (id, v) values (s.id, 'merged')",
        "commit",
    )
    assert changes(lake, first + 1, first + 1) == [
        (first + 1, "delete", 2, "v2"),
        (first + 1, "delete", 3, "v3"),
        (first + 1, "delete", 5, "v5"),
        (first + 1, "insert", 100, "once"),
        (first + 1, "insert", 101, "twice"),
        (first + 1, "insert", 103, "merged"),
        (first + 1, "update_postimage", 1, "merged"),
        (first + 1, "update_postimage", 4, "merged"),
        (first + 1, "update_preimage", 1, "v1"),
        (first + 1, "update_preimage", 4, "v4"),
    ]
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")


# -- on what the other engine left


def test_spark_goes_on_where_duckdb_masked_rows(lake: Both, how: str) -> None:
    start(lake, how)
    lake.duckdb(
        "create table t as select i as id, 'v' || i as v, i % 4 as g from range(100) r(i)",
        "insert into t values (200, 'few', 0), (201, 'few', 1), (202, 'few', 2)",
        "delete from t where id = 0",
        "delete from t where id in (1, 200)",
        "update t set v = 'duck' where id in (2, 3, 201)",
        "delete from t where g = 3",
    )
    lake.spark(
        "delete from t where id = 4",
        "update t set v = 'spark' where id in (2, 5, 201)",
        "delete from t where g = 2 and id < 200",
        "merge into t using (select explode(array(5, 202, 300)) as id) s on t.id = s.id when matched then update"
        " set v = concat(t.v, '!') when not matched then insert (id, v, g) values (s.id, 'm', 0)",
    )
    lake.compare()
    lake.duckdb(
        "update t set v = v || '?' where id in (5, 8, 202, 300)",
        "delete from t where id in (9, 201)",
        "delete from t where id between 12 and 40",
    )
    lake.spark("update t set g = 100 where id in (5, 41, 44, 300)", "delete from t where id > 80")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    lake.agree("select count(*) as n, min(id) as a, max(id) as b, min(v) as c, max(v) as d, max(g) as e from t")
    for call in (
        "ducklake_flush_inlined_data('lake')",
        "ducklake_merge_adjacent_files('lake')",
        "ducklake_rewrite_data_files('lake', delete_threshold => 0.0)",
    ):
        lake.duckdb(f"call {call}")
        lake.compare()
        lake.spark("update t set v = concat(v, '.') where id in (5, 44, 45)", "delete from t where id % 16 = 0")
        lake.duckdb("delete from t where id = (select max(id) from t)")
        lake.compare()
    lake.agree("select rowid, snapshot_id, id, v, g from t")


def test_rows_that_duckdb_inlined_are_changed_by_spark_and_back(lake: Both) -> None:
    lake.duckdb(
        "create table t (id int, s struct(a int, b varchar), l int[])",
        "insert into t values (1, {'a': 1, 'b': 'x'}, [1]), (2, null, null), (3, {'a': 3, 'b': 'z'}, [])",
    )
    lake.spark("update t set l = array(7) where id = 2", "delete from t where id = 1")
    lake.duckdb(
        "alter table t add column n varchar default 'dflt'",
        "insert into t values (4, null, null, 'four'), (5, {'a': 5, 'b': 'v'}, [5, null], null)",
        "update t set n = 'up' where id = 3",
    )
    lake.spark(
        "update t set n = concat(n, '+') where id in (2, 3, 4)",
        "alter table t rename column n to m",
        "delete from t where id = 5",
    )
    lake.duckdb("insert into t values (6, null, [6], 'six')", "update t set m = m || '-' where id in (3, 6)")
    lake.spark(
        "merge into t using (select explode(array(3, 6, 7)) as id) s on t.id = s.id when matched then update"
        " set m = concat(t.m, '=') when not matched then insert (id) values (s.id)"
    )
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    lake.duckdb("call ducklake_flush_inlined_data('lake')")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    lake.spark("update t set m = 'end' where id in (3, 7)")
    lake.compare()


def test_deletes_that_the_catalog_keeps_and_delete_files_of_one_file_add_up(lake: Both) -> None:
    lake.spark("create table t as select id, concat('v', id) as v from range(0, 200, 1, 1)")
    first = newest(lake)
    lake.write(
        "turns",
        both("delete from t where id = 0"),
        both("delete from t where id = 1"),
        both("delete from t where id between 10 and 39"),
        both("delete from t where id = 2"),
        both("delete from t where id = 3"),
        both("delete from t where id between 40 and 69"),
        by_duckdb("delete from t where id between 70 and 99"),
        by_spark("delete from t where id between 100 and 129"),
        by_spark("delete from t where id = 4"),
        by_duckdb("delete from t where id = 5"),
    )
    lake.compare()
    counts = [1, 1, 30, 1, 1, 30, 30, 30, 1, 1]
    assert [len(found) for found in each_feed(lake, first + 1)] == counts
    lake.duckdb("call ducklake_flush_inlined_data('lake')")
    lake.compare()
    assert [len(found) for found in each_feed(lake, first + 1)] == counts
    lake.spark("delete from t where id between 130 and 159", "delete from t where id = 6")
    lake.compare()


def test_a_file_that_duckdb_flushed_a_second_delete_file_for_is_read_once(lake: Both) -> None:
    """It does so for deletes that the catalog kept of a file that is rewritten by then, and reads it twice itself."""
    lake.duckdb(
        "create table t as select range as id from range(44)",
        "delete from t where id < 30",
        "delete from t where id < 37",
    )
    version = newest(lake)
    lake.duckdb("call ducklake_rewrite_data_files('lake', delete_threshold => 0.0)")
    lake.duckdb("call ducklake_flush_inlined_data('lake')")
    for at, first in ((version - 1, 30), (version, 37), (newest(lake), 37)):
        found = lake.spark_rows(f"select id from t version as of {at}")
        assert sorted(found) == [(i,) for i in range(first, 44)]


def test_both_engines_change_partitioned_and_sorted_tables(lake: Both, how: str) -> None:
    start(lake, how)
    lake.spark(
        "create table t (id bigint, region string, at timestamp_ntz, n decimal(10,2))"
        " partitioned by (region, month(at)) sorted by (id desc)",
        "insert into t select id, concat('r', id % 3), timestamp_ntz '2024-01-31 23:00:00' + make_dt_interval(id), id"
        " from range(60)",
    )
    lake.duckdb("update t set region = 'moved' where id in (1, 2, 3)", "delete from t where region = 'r2'")
    lake.spark(
        "update t set region = 'spark', n = n * 2 where id < 7",
        "delete from t where month(at) = 3 and id > 50",
        "merge into t using (select id, 'merged' as region from range(55, 65)) s on t.id = s.id when matched then"
        " update set region = s.region when not matched then insert (id, region) values (s.id, s.region)",
        "alter table t set partitioned by (bucket(4, id))",
        "update t set n = -1 where id in (6, 9, 64)",
    )
    lake.duckdb("update t set n = n - 1 where id in (6, 9, 12)", "delete from t where region = 'merged' and id = 64")
    lake.compare()
    lake.agree("select rowid, snapshot_id, id from t")
    lake.agree("select id, n from t where id = 9")
    lake.agree("select count(*) as n from t where region = 'merged'")


def test_registered_files_of_one_name_are_changed(lake: Both, tmp_path: Path) -> None:
    paths = []
    for number, folder in enumerate(("a b", "c%20d", "e")):
        place = tmp_path / folder
        place.mkdir()
        paths.append(f"{place}/the file+1%.parquet")
        rows = {"id": pa.array([number * 10 + i for i in range(5)], pa.int64()), "v": [folder] * 5}
        pq.write_table(pa.table(rows), paths[-1])
    lake.duckdb("create table t (id bigint, v varchar)")
    lake.duckdb(*(f"call ducklake_add_data_files('lake', 't', '{path}')" for path in paths))
    lake.duckdb("delete from t where id = 11")
    lake.spark(
        "delete from t where id in (0, 12, 20)",
        "update t set v = upper(v) where id in (1, 13, 21)",
        "merge into t using (select explode(array(2, 14, 22, 30)) as id) s on t.id = s.id"
        " when matched then update set v = 'm' when not matched then insert (id, v) values (s.id, 'i')",
        "delete from t where id in (1, 3, 30)",
    )
    lake.duckdb("update t set v = v || '!' where id in (4, 14, 21)")
    lake.compare()
    with lake.connection() as connection:
        theirs = connection.execute("select rowid, id from t order by all").fetchall()
    assert len({r for r, _ in theirs}) == len(theirs)


def test_bounds_stay_right_when_the_greatest_row_goes(lake: Both, how: str) -> None:
    start(lake, how)
    lake.spark("create table t as select id, concat('v', lpad(id, 3, '0')) as v from range(0, 50, 1, 1)")
    lake.spark("delete from t where id in (0, 49)", "update t set id = 1000, v = 'zzz' where id = 48")
    facts = "select min(id) as a, max(id) as b, min(v) as c, max(v) as d, count(*) as n from t"
    lake.agree(facts, expected=[(1, 1000, "v001", "zzz", 48)])
    lake.spark("update t set id = 48, v = 'v048' where id = 1000", "delete from t where id < 20")
    lake.agree(facts, expected=[(20, 48, "v020", "v048", 29)])
    lake.agree("select id from t where id = 48", expected=[(48,)])
    lake.agree("select id from t where v >= 'v048'", expected=[(48,)])


def test_expired_snapshots_leave_the_living_rows(lake: Both, how: str) -> None:
    start(lake, how)
    lake.spark(
        "create table t as select id, concat('v', id) as v from range(0, 60, 1, 1)",
        "delete from t where id = 1",
        "delete from t where id between 2 and 20",
        "update t set v = 'up' where id between 21 and 40",
        "delete from t where id = 41",
    )
    expected = lake.spark_rows("select * from t")
    lake.duckdb(
        "call ducklake_expire_snapshots('lake', older_than => now())",
        "call ducklake_cleanup_old_files('lake', cleanup_all => true)",
    )
    lake.agree("select * from t", expected=expected)
    lake.spark("delete from t where id = 42")
    lake.agree("select * from t", expected=[r for r in expected if r[0] != 42])


def test_cleanup_takes_the_delete_files_that_gave_way(lake: Both) -> None:
    start(lake, "in files")
    lake.spark("create table t as select id from range(0, 60, 1, 1)")
    for i in range(4):
        lake.spark(f"delete from t where id = {i}")
    lake.duckdb("call ducklake_cleanup_old_files('lake', cleanup_all => true)")
    lake.compare()
    there = {p.name for p in Path(lake.data_path).rglob("*-delete.parquet")}
    known = {Path(r[0]).name for r in lake.catalog_rows("select path from {m}.ducklake_delete_file")}
    assert there == known


# -- others at work


def session(lake: Both) -> LakeSession:
    return lake.lake


MERGE_SEVEN = (
    "merge into t using (select explode(array(3, 7)) as id) s on t.id = s.id when matched then update set v = 'm'"
    " when not matched then insert (id, v) values (s.id, 'm')"
)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.long)])
def shared(request: pytest.FixtureRequest, open_lake: Callable[..., Both]) -> Both:
    """A lake that both engines may have open at once, with a table of two files."""
    lake = open_lake(request.param)
    lake.spark(
        "create table t as select id, concat('v', id) as v from range(0, 6, 1, 1)",
        "call ducklake_flush_inlined_data('main.t')",
        "insert into t select id + 100, 'far' from range(0, 30, 1, 1)",
        "create table elsewhere (id int)",
    )
    return lake


@pytest.mark.parametrize("limit", [10, 0])
def test_a_merge_loses_to_an_insert_of_its_key(shared: Both, limit: int) -> None:
    shared.duckdb(f"call lake.set_option('data_inlining_row_limit', {limit})")
    with pytest.raises(ConflictError), session(shared).transaction():
        shared.spark(MERGE_SEVEN)
        shared.duckdb("insert into t values (7, 'duck')")
    shared.agree("select v from t where id in (3, 7)", expected=[("v3",), ("duck",)])
    shared.spark(MERGE_SEVEN)
    shared.agree("select v from t where id in (3, 7)", expected=[("m",), ("m",)])
    shared.compare()


def test_a_merge_passes_an_insert_of_other_keys(shared: Both) -> None:
    shared.duckdb("call lake.set_option('data_inlining_row_limit', 0)")
    with session(shared).transaction():
        shared.spark(MERGE_SEVEN)
        shared.duckdb("insert into t values (50, 'duck')")
    shared.agree("select v from t where id in (3, 7, 50)", expected=[("m",), ("m",), ("duck",)])
    shared.compare()


@pytest.mark.parametrize("shared", ["sqlite"], indirect=True)
@pytest.mark.parametrize("limit", [10, pytest.param(0, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "theirs",
    [
        "delete from t where id = 5",
        "update t set v = 'duck' where id = 3",
        "delete from t where id < 100",
        "call ducklake_merge_adjacent_files('lake')",
        "alter table t add column n int",
        "drop table t",
    ],
)
@pytest.mark.parametrize("ours", ["delete from t where id = 3", "update t set v = 'spark' where id = 3", MERGE_SEVEN])
def test_what_duckdb_does_to_the_same_file_is_not_passed(shared: Both, limit: int, theirs: str, ours: str) -> None:
    shared.duckdb(f"call lake.set_option('data_inlining_row_limit', {limit})")
    with pytest.raises(ConflictError), session(shared).transaction():
        shared.spark(ours)
        shared.duckdb(theirs)
    shared.compare()


def test_what_duckdb_does_to_other_files_is_passed(shared: Both) -> None:
    for ours, theirs in (
        ("delete from t where id = 3", "delete from t where id = 110"),
        ("update t set v = 'spark' where id = 4", "update t set v = 'duck' where id = 111"),
        ("delete from t where id = 5", "insert into t values (500, 'duck')"),
        ("update t set v = 'spark' where id < 3", "delete from elsewhere"),
    ):
        with session(shared).transaction():
            shared.spark(ours)
            shared.duckdb(theirs)
    shared.compare()
    shared.agree("select count(*) as n from t where v in ('spark', 'duck')", expected=[(6,)])


@pytest.mark.parametrize("last", [129, 106])
def test_deletes_that_duckdb_moves_to_a_file_meanwhile_stay(shared: Both, last: int) -> None:
    shared.duckdb("delete from t where id in (100, 101)")
    statement = f"delete from t where id between 105 and {last}"
    try:
        with session(shared).transaction():
            shared.spark(statement)
            shared.duckdb("call ducklake_flush_inlined_data('lake')")
    except ConflictError:
        shared.spark(statement)
    left = [*range(6), 102, 103, 104, *range(last + 1, 130)]
    assert sorted(shared.spark_rows("select id from t")) == [(i,) for i in left]
    assert sorted(shared.duckdb_rows("select id from t")) == [(i,) for i in left]
    shared.compare()


@pytest.mark.parametrize(
    ("statement", "left"),
    [
        ("update t set v = 'up' where id = 200", [(200, "up"), (201, "in"), (202, "in")]),
        ("delete from t where id = 201", [(200, "in"), (202, "in")]),
    ],
)
def test_inlined_rows_that_duckdb_moves_to_a_file_meanwhile_change_once(
    shared: Both, statement: str, left: list[tuple[int, str]]
) -> None:
    shared.duckdb("insert into t values (200, 'in'), (201, 'in'), (202, 'in')")
    with pytest.raises(ConflictError, match="deleted or flushed the same rows"), session(shared).transaction():
        shared.spark(statement)
        shared.duckdb("call ducklake_flush_inlined_data('lake')")
    shared.spark(statement)
    shared.agree("select id, v from t where id between 200 and 202", expected=left)
    shared.compare()


@pytest.mark.parametrize("lake", CATALOGS, indirect=True)
@pytest.mark.parametrize("others", [1, 3])
def test_a_commit_elsewhere_moves_a_delete_to_its_own_snapshot(lake: Both, how: str, others: int) -> None:
    start(lake, "in files")
    lake.spark(
        "create table t as select id, concat('v', id) as v from range(0, 30, 1, 1)",
        "create table elsewhere (id int)",
        "delete from t where id = 0",
        "delete from t where id = 1",
    )
    base = newest(lake)
    other = LakeSession(lake.address.catalog, spark=lake.lake.spark)
    with session(lake).transaction():
        lake.spark("delete from t where id in (2, 3)", "update t set v = 'up' where id = 4")
        for i in range(others):
            other.execute(f"insert into elsewhere values ({i})")
    other.close()
    last = newest(lake)
    assert last == base + others + 1
    for version in range(base, last):
        lake.agree(
            f"select count(*) as n, count(distinct v) as d from t version as of {version}",
            f"select count(*) as n, count(distinct v) as d from t at (version => {version})",
            [(28, 28)],
        )
    lake.agree("select count(*) as n from t", expected=[(26,)])
    lake.compare()
    assert changes(lake, base - 1, last - 1) == [(base - 1, "delete", 0, "v0"), (base, "delete", 1, "v1")]
    assert changes(lake, last, last) == [
        (last, "delete", 2, "v2"),
        (last, "delete", 3, "v3"),
        (last, "update_postimage", 4, "up"),
        (last, "update_preimage", 4, "v4"),
    ]
    on_disk = {p.name for p in Path(lake.data_path).rglob("*-delete.parquet")}
    kept = {Path(r[0]).name for r in lake.catalog_rows("select path from {m}.ducklake_delete_file")}
    scheduled = {
        Path(r[0]).name for r in lake.catalog_rows("select path from {m}.ducklake_files_scheduled_for_deletion")
    }
    assert kept | scheduled <= on_disk
    assert len(on_disk - kept - scheduled) <= 1  # what the first statement wrote and the second wrote anew


def test_duckdb_loses_to_a_delete_by_spark_in_the_same_file(shared: Both) -> None:
    with shared.connection() as connection:
        connection.execute("begin")
        connection.execute("delete from t where id = 3")
        shared.spark("delete from t where id = 4")
        with pytest.raises(duckdb.Error, match=r"(?i)conflict"):
            connection.execute("commit")
    shared.agree("select count(*) as n from t where id < 100", expected=[(5,)])
    shared.compare()


def test_rows_are_read_by_spark_in_the_types_of_a_merge(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            "create table t (id bigint, d decimal(10,2), y date, ts timestamp_ntz, tz timestamp, b binary, f double,"
            " o boolean, l array<int>, s struct<x: int, y: string>)",
            "create table t (id bigint, d decimal(10,2), y date, ts timestamp, tz timestamptz, b blob, f double,"
            " o boolean, l int[], s struct(x int, y varchar))",
        ),
        each(
            "insert into t select id, id * 1.25, date_add(date'2024-01-01', cast(id as int)), timestamp_ntz'2024-01-01"
            " 10:00:00.123456', timestamp'2024-06-01 12:00:00+00', X'00ff', id / 3D, id % 2 = 0, array(id, null),"
            " named_struct('x', id, 'y', 'its') from range(30)",
            "insert into t select i, i * 1.25, date '2024-01-01' + i::int, timestamp '2024-01-01 10:00:00.123456',"
            " timestamptz '2024-06-01 12:00:00+00', '\\x00\\xFF'::blob, i / 3, i % 2 = 0, [i, null],"
            " {'x': i, 'y': 'its'} from range(30) r(i)",
        ),
        both("update t set d = d + 1, f = null, o = not o where id < 5"),
        each(
            "merge into t using (select 3L as id, array(9) as l union all select 99, array(1)) m on t.id = m.id"
            " when matched then update set l = m.l, y = date'2000-02-29'"
            " when not matched then insert (id, l) values (m.id, m.l)",
            "merge into t using (select 3 as id, [9] as l union all select 99, [1]) m on t.id = m.id"
            " when matched then update set l = m.l, y = date '2000-02-29'"
            " when not matched then insert (id, l) values (m.id, m.l)",
        ),
        each(
            "update t set s = named_struct('x', 1, 'y', null) where id = 7",
            "update t set s = {'x': 1, 'y': null} where id = 7",
        ),
        both("delete from t where y > date '2024-01-20'"),
        both("update t set ts = null, tz = null where id in (0, 99)"),
    )
    lake.compare()
    lake.agree("select rowid, id from t")


def test_duckdb_reads_each_snapshot_as_soon_as_spark_wrote_it(lake: Both, how: str) -> None:
    start(lake, how)
    seen: dict[int, list[tuple[Any, ...]]] = {}
    for step in STORY:
        assert step.spark is not None
        lake.spark(step.spark)
        seen[newest(lake)] = sorted(lake.duckdb_rows("from t"), key=repr)
        assert sorted(rows_of(lake.lake.sql("select * from t").toArrow()), key=repr) == seen[newest(lake)]
    for version, expected in seen.items():
        assert sorted(lake.duckdb_rows(f"from t at (version => {version})"), key=repr) == expected


def test_files_of_which_most_is_deleted_are_rewritten_where_the_table_asks_for_it(lake: Both, how: str) -> None:
    start(lake, how)
    lake.spark(
        "create table t (id bigint, v string) tblproperties ('rewrite_delete_threshold' = '0.5')",
        "insert into t select id, 'a' from range(0, 100, 1, 1)",
        "insert into t select id, 'b' from range(100, 200, 1, 1)",
        "delete from t where id in (3, 103)",
    )
    row_ids = dict(lake.spark_rows("select id, rowid from t"))
    before = newest(lake)
    done = lake.lake.execute(
        "merge into t using (select id from range(0, 120, 1, 1)) as s on t.id = s.id"
        " when matched and s.id % 2 = 0 then update set v = 'm' when matched and s.id < 60 then delete"
    )
    assert done.rows_affected == 60 + 29
    ended = lake.catalog_rows(f"select count(*) from {{m}}.ducklake_data_file where end_snapshot = {before + 1}")
    assert ended == [(1,)], "of the first file 79 rows are gone, of the second one 11"
    left = [i for i in range(200) if i != 103 and (i % 2 == 0 or i >= 60)]
    assert dict(lake.spark_rows("select id, rowid from t")) == {i: row_ids[i] for i in left}
    expected = [(i, "m" if i < 120 and i % 2 == 0 else "a" if i < 100 else "b") for i in left]
    lake.agree("select * from t", "from t", expected)
    lake.compare()
    feed = "select change_type, count(*) from ducklake_table_changes({}) group by 1"
    lake.agree(
        feed.format(f"'t', {before + 1}, {before + 1}"), feed.format(f"'lake', 'main', 't', {before + 1}, {before + 1}")
    )
