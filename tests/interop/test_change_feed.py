"""The change feed by both engines: the same rows, whoever wrote the lake and whatever was done to its files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConflictError, ExpiredError, LakeError, NotFoundError

from .engines import Both, both, each

FUNCTIONS = ("ducklake_table_insertions", "ducklake_table_deletions")

STORY = [
    each(
        "create table t as select id, concat('v', id) as v, cast(id % 3 as int) as g from range(30)",
        "create table t as select i as id, 'v' || i as v, (i % 3)::int as g from range(30) r(i)",
    ),
    both("insert into t values (100, 'few', 0), (101, null, null)"),
    both("delete from t where id = 3"),
    both("update t set v = 'up' where g = 1"),
    both("delete from t where v = 'up' and id < 10"),
    both("update t set v = v || '!' where id in (0, 100)"),
    both("alter table t add column n int default 7"),
    both("insert into t values (102, 'more', 1, 1)"),
    both("alter table t rename column v to w"),
    each("alter table t alter column g type bigint", "alter table t alter column g set data type bigint"),
    both("update t set n = n + 1 where id in (0, 102, 29)"),
    both("delete from t where id = 100"),
    both("alter table t drop column w"),
    both("delete from t where id % 2 = 0"),
    both("insert into t (id, g) values (200, 5000000000)"),
    both("delete from t"),
    both("insert into t (id, g) values (1, 1)"),
]


def newest(lake: Both) -> int:
    return int(lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0][0])


def first_of(lake: Both, table: str = "t") -> int:
    query = f"select min(begin_snapshot) from {{m}}.ducklake_table where table_name = '{table}'"
    return int(lake.catalog_rows(query)[0][0])


def agree_on_feed(lake: Both, start: int, end: int, table: str = "t") -> list[tuple[Any, ...]]:
    """Asserts that both tell the same of some snapshots, by each of the three functions."""
    for function in FUNCTIONS:
        lake.agree(
            f"select * from {function}('main.{table}', {start}, {end})",
            f"select * from {function}('lake', 'main', '{table}', {start}, {end})",
        )
    return lake.agree(
        f"select * from ducklake_table_changes('main.{table}', {start}, {end})",
        f"select * from ducklake_table_changes('lake', 'main', '{table}', {start}, {end})",
    )


def kinds(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Snapshot, kind and first column of each change."""
    return sorted((row[0], row[2], row[3]) for row in rows)


def test_both_engines_tell_the_same_changes(lake: Both, writer: str) -> None:
    lake.write(writer, *STORY)
    first, last = first_of(lake), newest(lake)
    middle = (first + last) // 2
    assert len(agree_on_feed(lake, first, last)) > 60
    for start, end in ((first, middle), (middle, last), (middle, middle), (last - 1, last - 1)):
        agree_on_feed(lake, start, end)


def test_changes_that_are_kept_in_files_and_in_the_catalog_read_the_same(lake: Both) -> None:
    lake.spark("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.write("turns", *STORY[:6])
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 100)")
    lake.write("duckdb", *STORY[6:])
    agree_on_feed(lake, first_of(lake), newest(lake))


@pytest.mark.parametrize("chunk", [1, 7])
def test_the_feed_of_a_flushed_and_merged_table_is_as_before(lake: Both, chunk: int) -> None:
    lake.duckdb("create table t (id bigint, v varchar)")
    for step in range(4):
        lake.duckdb(f"insert into t select i + {step * 10}, 'v{step}' from range({chunk}) r(i)")
    lake.duckdb("delete from t where id in (0, 10)", "update t set v = 'new' where id = 20")
    first, last = first_of(lake), newest(lake)
    before = agree_on_feed(lake, first, last)
    lake.duckdb("call ducklake_flush_inlined_data('lake')", "call ducklake_merge_adjacent_files('lake')")
    assert agree_on_feed(lake, first, newest(lake)) == before
    agree_on_feed(lake, first + 2, first + 3)


def test_deletes_by_spark_of_merged_files_are_told_in_their_own_snapshot(lake: Both) -> None:
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)", "create table t (id bigint, v varchar)")
    for step in range(3):
        lake.duckdb(f"insert into t select i + {step * 10}, 'v{step}' from range(5) r(i)")
    lake.duckdb("call ducklake_merge_adjacent_files('lake')")
    lake.spark("delete from t where id in (1, 11)")
    at = newest(lake)
    assert kinds(agree_on_feed(lake, at, at)) == [(at, "delete", 1), (at, "delete", 11)]
    lake.spark("update t set v = 'x' where id = 12")
    agree_on_feed(lake, first_of(lake), newest(lake))


def test_rewritten_files_are_told_as_the_reference_tells_them(lake: Both) -> None:
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)")
    lake.write("duckdb", STORY[0], both("delete from t where id < 28"))
    lake.duckdb("call ducklake_rewrite_data_files('lake', delete_threshold => 0.1)")
    first, last = first_of(lake), newest(lake)
    agree_on_feed(lake, first, last)
    agree_on_feed(lake, last, last)


def test_a_replaced_table_tells_of_the_rows_that_gave_way(lake: Both) -> None:
    lake.spark("create table t as select id, 'old' as v from range(3)")
    lake.spark("create or replace table t as select id, 'new' as v from range(2)")
    at = newest(lake)
    told = agree_on_feed(lake, at, at)
    assert [kind for _, kind, _ in kinds(told)] == ["delete"] * 3 + ["insert"] * 2


def test_a_renamed_table_is_followed_under_its_new_name(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create schema s"),
        each("create table t as select id from range(3)", "create table t as select i as id from range(3) r(i)"),
        both("delete from t where id = 1"),
        both("alter table t rename to u"),
        both("insert into u values (7)"),
    )
    first, last = first_of(lake), newest(lake)
    assert len(agree_on_feed(lake, first, last, "u")) == 5
    with pytest.raises(NotFoundError, match="no table main.t at snapshot"):
        lake.spark_rows(f"select * from ducklake_table_changes('main.t', {first}, {last})")


def test_bounds_may_be_moments(lake: Both) -> None:
    lake.spark("create table t (id bigint)")
    lake.spark("insert into t values (1)")
    times = dict(lake.spark_rows("select snapshot_id, cast(snapshot_time as string) from ducklake_snapshots()"))
    last = newest(lake)
    told = lake.agree(
        f"select * from ducklake_table_changes('main.t', timestamp '{times[last]}', timestamp '2100-01-01')",
        f"select * from ducklake_table_changes('lake', 'main', 't', timestamptz '{times[last]}+00',"
        " timestamptz '2100-01-01')",
    )
    assert kinds(told) == [(last, "insert", 1)]
    with pytest.raises(NotFoundError, match=f"since .*: the lake's last is {last} of "):
        lake.spark_rows("select * from ducklake_table_changes('main.t', timestamp '2100-01-01', 1)")
    with pytest.raises(NotFoundError, match="the lake's first is 0 of "):
        lake.spark_rows("select * from ducklake_table_changes('main.t', 0, timestamp '2000-01-01')")


def test_bounds_that_mean_nothing_are_errors(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t (id bigint)", "create view v as select * from t")
    at = newest(lake)
    for call, error, words in (
        ("ducklake_table_changes('main.t', 1, 99)", NotFoundError, f"no snapshot 99: .* nearest to it there is {at}"),
        ("ducklake_table_changes('main.t', null, 1)", LakeError, "needs a start"),
        ("ducklake_table_changes('main.t', 1)", LakeError, "needs a end|needs an end"),
        ("ducklake_table_changes('main.u', 1, 1)", NotFoundError, "no table main.u at snapshot 1"),
        (f"ducklake_table_changes('main.v', 1, {at})", LakeError, "main.v is a view"),
        ("ducklake_table_changes('main.t', 0, 0)", NotFoundError, "is there since snapshot 1"),
        ("ducklake_table_changes()", LakeError, "needs a table's name first"),
        ("ducklake_table_changes('main.t', 1, 1, 1)", LakeError, "does not take the argument 1"),
    ):
        with pytest.raises(error, match=words):
            lake.spark_rows(f"select * from {call}")
    assert lake.spark_rows("select * from ducklake_table_changes('main.t', 2, 1)") == []


def test_row_ids_and_snapshots_come_with_insertions_and_deletions_where_they_are_asked_for(lake: Both) -> None:
    lake.spark("create table t as select id from range(3)", "delete from t where id = 1")
    first, last = first_of(lake), newest(lake)
    lake.agree(
        f"select id, rowid, snapshot_id from ducklake_table_insertions('main.t', {first}, {last})",
        f"select id, rowid, snapshot_id from ducklake_table_insertions('lake', 'main', 't', {first}, {last})",
        [(0, 0, first), (1, 1, first), (2, 2, first)],
    )
    lake.agree(
        f"select id, rowid, snapshot_id from ducklake_table_deletions('main.t', {first}, {last})",
        f"select id, rowid, snapshot_id from ducklake_table_deletions('lake', 'main', 't', {first}, {last})",
        [(1, 1, last)],
    )


def test_columns_that_are_called_like_those_of_the_feed_get_a_number(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t as select id as rowid, 'a' as change_type, 1 as `b``c` from range(2)")
    at = newest(lake)
    rows = lake.lake.sql(f"select * from ducklake_table_changes('t', {at}, {at})")
    assert rows.columns == ["snapshot_id", "rowid", "change_type", "rowid_1", "change_type_1", "b`c"]
    assert sorted(map(tuple, rows.collect())) == [(at, 0, "insert", 0, "a", 1), (at, 1, "insert", 1, "a", 1)]


def test_an_update_twice_in_one_transaction_is_told_once_for_each_version(open_lake: Callable[..., Both]) -> None:
    """The reference pairs each version with each, so that it tells of such a row four times."""
    lake = open_lake("sqlite")
    lake.spark("call ducklake_set_option('data_inlining_row_limit', 0)", "create table t as select id from range(3)")
    with lake.lake.transaction():
        lake.spark("update t set id = 10 where id = 1", "update t set id = 11 where id = 10")
    at = newest(lake)
    told = lake.spark_rows(f"select change_type, id from ducklake_table_changes('t', {at}, {at})")
    assert ("update_preimage", 1) in told
    assert ("update_postimage", 11) in told
    assert sum(id_ if "post" in kind else -id_ for kind, id_ in told) == 10


def test_deletes_of_merged_files_by_duckdb_are_told_in_the_snapshot_that_made_them(
    open_lake: Callable[..., Both],
) -> None:
    """The reference tells them in the snapshot that brought the rows, be it one that was not asked for."""
    lake = open_lake("sqlite")
    lake.duckdb("call lake.set_option('data_inlining_row_limit', 0)", "create table t (id bigint)")
    for step in range(3):
        lake.duckdb(f"insert into t values ({step})")
    lake.duckdb("call ducklake_merge_adjacent_files('lake')", "delete from t where id = 1")
    at = newest(lake)
    assert kinds(lake.spark_rows(f"select * from ducklake_table_changes('t', {at}, {at})")) == [(at, "delete", 1)]


def feeds_of_single_snapshots(lake: Both, *, by_spark: bool) -> list[tuple[Any, ...]]:
    """The changes of each snapshot, asked one by one."""
    first, last = first_of(lake), newest(lake)
    if by_spark:
        asked = [f"select * from ducklake_table_changes('main.t', {at}, {at})" for at in range(first, last + 1)]
        return sorted((row for query in asked for row in lake.spark_rows(query)), key=repr)
    asked = [f"select * from ducklake_table_changes('lake', 'main', 't', {at}, {at})" for at in range(first, last + 1)]
    return sorted((row for query in asked for row in lake.duckdb_rows(query)), key=repr)


def feed_of_all_snapshots(lake: Both) -> list[tuple[Any, ...]]:
    query = f"select * from ducklake_table_changes('main.t', {first_of(lake)}, {newest(lake)})"
    return sorted(lake.spark_rows(query), key=repr)


def test_updates_that_were_flushed_together_are_told_in_their_own_snapshots(lake: Both) -> None:
    """Asked for several snapshots, the reference tells each of the deletes in the snapshot of the first."""
    lake.duckdb("create table t (id int, v int)", "insert into t values (1, 0), (2, 0)")
    lake.duckdb(*["update t set v = v + 1"] * 3, "delete from t where id = 2")
    before = feed_of_all_snapshots(lake)
    lake.duckdb("call ducklake_flush_inlined_data('lake')")
    assert feed_of_all_snapshots(lake) == before
    assert feeds_of_single_snapshots(lake, by_spark=True) == before
    assert feeds_of_single_snapshots(lake, by_spark=False) == before
    lake.spark("update t set v = v + 1", "delete from t where v = 4")
    assert feeds_of_single_snapshots(lake, by_spark=True) == feed_of_all_snapshots(lake)


def test_a_rewrite_does_not_tell_of_inlined_deletes_again(open_lake: Callable[..., Both]) -> None:
    """The reference tells them again, and of several snapshots it tells the remaining rows as inserted."""
    lake = open_lake("sqlite")
    lake.duckdb("create table t as select i as id from range(20) r(i)", "delete from t where id = 7")
    before = feed_of_all_snapshots(lake)
    assert kinds(before)[-1][1:] == ("delete", 7)
    lake.duckdb("call ducklake_rewrite_data_files('lake', 't', delete_threshold => 0)")
    at = newest(lake)
    rewritten = lake.spark_rows(f"select * from ducklake_table_changes('main.t', {at}, {at})")
    theirs = lake.duckdb_rows(f"select * from ducklake_table_changes('lake', 'main', 't', {at}, {at})")
    assert sorted([*rewritten, (at, 7, "delete", 7)]) == sorted(theirs)
    assert sorted([*before, *rewritten], key=repr) == feed_of_all_snapshots(lake)


# -- what a model consumes


def test_new_changes_are_all_rows_at_first_and_then_what_changed(lake: Both) -> None:
    lake.spark("create table t as select id, 'a' as v from range(3)", "delete from t where id = 1")
    first, last = first_of(lake), newest(lake)
    rows = lake.spark_rows(f"select * from ducklake_new_changes('main.t', null, {last})")
    assert kinds(rows) == [(first, "insert", 0), (first, "insert", 2)]
    changed = f"select * from ducklake_new_changes('main.t', {first}, {last})"
    assert kinds(lake.spark_rows(changed)) == [(last, "delete", 1)]
    assert lake.spark_rows(f"select * from ducklake_new_changes('main.t', {last}, {last})") == []


def test_changes_that_were_expired_are_an_error(lake: Both) -> None:
    lake.spark("create table t as select id from range(3)", "delete from t where id = 1", "insert into t values (7)")
    first, last = first_of(lake), newest(lake)
    lake.duckdb(f"call ducklake_expire_snapshots('lake', versions => [{first}, {first + 1}])")
    with pytest.raises(ExpiredError, match=f"since snapshot {first} can not be told: 2 of the snapshots up to {last}"):
        lake.spark_rows(f"select * from ducklake_new_changes('main.t', {first}, {last})")
    with pytest.raises(NotFoundError, match=f"no snapshot {first}: it was expired; nearest"):
        lake.spark_rows(f"select * from ducklake_table_changes('main.t', {first}, {last})")


@pytest.mark.parametrize("other", ["spark", "duckdb"])
def test_of_two_who_consume_for_one_table_one_commits(lake: Both, other: str) -> None:
    lake.spark(
        "create table t as select id from range(3)", "create table seen as select 0 as n", "insert into t values (7)"
    )
    first, last = first_of(lake), newest(lake)
    call = f"ducklake_new_changes('t', {first}, {last}, consumer => 'main.seen', asked_at => {last})"
    consume = f"insert into seen select count(*) from {call}"
    with pytest.raises(ConflictError, match="main.seen"), lake.lake.transaction():
        lake.spark(consume)
        if other == "duckdb":
            lake.duckdb("insert into seen values (1)")
        else:
            with LakeSession(lake.address.catalog, data_path=lake.data_path, spark=lake.lake.spark) as second:
                second.execute(consume)
    lake.agree("select n from seen", expected=[(0,), (1,)])
    with pytest.raises(ConflictError, match="after it was asked what there is to consume for it"):
        lake.spark(consume)


# -- what differs


def test_a_diff_tells_what_was_added_removed_and_changed(lake: Both, writer: str) -> None:
    lake.duckdb("create table t (id bigint, v varchar, m map(varchar, int))")
    lake.write(
        writer,
        both("insert into t values (1, 'a', null), (2, 'b', null), (3, 'c', null), (4, 'd', null)"),
        both("update t set v = 'B' where id = 2"),
        both("delete from t where id = 3"),
        both("insert into t values (5, 'e', null), (6, 'f', null)"),
        both("delete from t where id in (1, 6)"),
        both("insert into t values (1, 'a', null)"),
        both("update t set v = 'b' where id = 2"),
        both("update t set v = 'D' where id = 4"),
    )
    start, end = first_of(lake) + 1, newest(lake)
    rows = lake.lake.sql(f"select diff, id, before.v, after.v from ducklake_diff('t', {start}, {end}, 'id')")
    expected = [("added", 5, None, "e"), ("changed", 4, "d", "D"), ("removed", 3, "c", None)]
    assert sorted(map(tuple, rows.collect())) == expected
    by_row = lake.spark_rows(f"select diff, count(*) from ducklake_diff('t', {start}, {end}) group by 1")
    assert sorted(by_row) == [("added", 2), ("changed", 1), ("removed", 2)], "row 1 is another row now"
    assert lake.spark_rows(f"select * from ducklake_diff('t', {end}, {end}, ['id', 'v'])") == []


def test_a_diff_of_a_table_that_was_made_anew_goes_by_names(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t as select id, 'a' as v from range(3)", "drop table t")
    lake.spark("create table t as select id, 1 as n, 'a' as v from range(1, 4)")
    rows = lake.spark_rows("select diff, id, before.n, after.n from ducklake_diff('t', 1, 3, 'ID')")
    expected = [("added", 3, None, 1), ("changed", 1, None, 1), ("changed", 2, None, 1), ("removed", 0, None, None)]
    assert sorted(rows) == expected
    for call, words in (("'t', 3, 1, 'id'", "3 is after 1"), ("'t', 1, 3, 'nope'", "has no column nope for a key")):
        with pytest.raises(LakeError, match=words):
            lake.spark_rows(f"select * from ducklake_diff({call})")
