"""What is said about a lake beside its rows: views, comments, options, commit messages."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from .engines import Both, both, each


def test_views_are_read_by_both(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each("create table t (id int, s string)", "create table t (id int, s varchar)"),
        both("insert into t values (1, 'a'), (2, 'b'), (3, null)"),
        both("create view v as select id, s from main.t where id > 1"),
        both("create view w (number, word) as select id, upper(s) from main.t"),
        both("create view vv as select count(*) as n, max(v.id) as m from main.v"),
        both("create or replace view w (number, word) as select id + 1, lower(s) from main.t"),
    )
    lake.agree("select * from v", expected=[(2, "b"), (3, None)])
    lake.agree("select number, word from w", expected=[(2, "a"), (3, "b"), (4, None)])
    lake.agree("select * from vv", expected=[(2, 3)])
    lake.duckdb("insert into t values (4, 'd')")
    lake.agree("select * from vv", expected=[(3, 4)])
    lake.write(writer, both("alter view v rename to v2"), both("drop view vv"))
    lake.agree("select * from v2 where id > 3", expected=[(4, "d")])


def test_views_with_functions_of_one_engine(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t as select 1 as id, array(1, 2) as l")
    lake.spark("create view only_spark as select id, x from t lateral view explode(l) as x")
    assert lake.spark_rows("select * from only_spark") == [(1, 1), (1, 2)]
    lake.duckdb("create view theirs as select id, list_sum(l) as total, strftime(date '2024-01-02', '%Y') as y from t")
    with lake.connection() as connection:
        names = connection.execute("select view_name from duckdb_views() where database_name = 'lake'").fetchall()
        assert {"only_spark", "theirs"} <= {n for (n,) in names}


COMMENT = 'it\'s "quoted", 100% é\nnew line'


def test_comments_are_seen_by_both(lake: Both, writer: str) -> None:
    text = COMMENT.replace("'", "\\'")
    other = COMMENT.replace("'", "''")
    lake.write(
        writer,
        both("create table t (id int, v int)"),
        both("create view w as select id from main.t"),
        each(f"comment on table t is '{text}'", f"comment on table t is '{other}'"),
        each(f"comment on column t.v is '{text}'", f"comment on column t.v is '{other}'"),
        each(f"comment on view w is '{text}'", f"comment on view w is '{other}'"),
        both("comment on column t.id is 'first'"),
        both("alter table t rename column v to u"),
        both("comment on column t.id is 'second'"),
    )
    with lake.connection() as connection:
        tables = connection.execute("select comment from duckdb_tables() where database_name = 'lake'").fetchall()
        views = connection.execute(
            "select comment from duckdb_views() where database_name = 'lake' and view_name = 'w'"
        ).fetchall()
        columns = connection.execute(
            "select column_name, comment from duckdb_columns() where database_name = 'lake' and table_name = 't'"
        ).fetchall()
    assert tables == [(COMMENT,)]
    assert views == [(COMMENT,)]
    assert sorted(columns) == [("id", "second"), ("u", COMMENT)]
    described = {r["col_name"]: r["comment"] for r in lake.lake.execute("describe table t").arrow().to_pylist()}
    assert described["id"] == "second"
    assert described["u"] == COMMENT
    lake.write(writer, both("comment on table t is null"), both("comment on column t.u is null"))
    with lake.connection() as connection:
        assert connection.execute("select comment from duckdb_tables() where database_name = 'lake'").fetchall() == [
            (None,)
        ]


def test_options_hold_for_whoever_writes(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        each(
            "call ducklake_set_option('parquet_compression', 'zstd')",
            "call lake.set_option('parquet_compression', 'zstd')",
        ),
        each(
            "call ducklake_set_option('data_inlining_row_limit', 0)",
            "call lake.set_option('data_inlining_row_limit', 0)",
        ),
        both("create table t (id int, v bigint)"),
        both("create table g (id int)"),
        each(
            "call ducklake_set_option('parquet_compression', 'gzip', table_name => 'g')",
            "call lake.set_option('parquet_compression', 'gzip', table_name => 'g')",
        ),
    )
    lake.spark("insert into t select id, id * 7919 % 1000 from range(3000)", "insert into g values (1)")
    lake.duckdb("insert into t select i, i from range(3000) r(i)", "insert into g values (2)")
    used = {(t, pq.ParquetFile(path).metadata.row_group(0).column(0).compression) for t, path in _files(lake)}
    assert used == {("t", "ZSTD"), ("g", "GZIP")}
    asked = lake.catalog_rows(
        "select option_name, value from lake.options() where option_name like 'parquet%' order by all"
    )
    ours = lake.lake.sql("select * from ducklake_options()").toArrow().to_pylist()
    assert {v for _, v in asked} <= {r["value"] for r in ours}, (asked, ours)
    lake.compare()


@pytest.mark.parametrize("kind", ["sqlite"])
def test_a_row_group_has_as_many_rows_as_told(open_lake: Callable[..., Both], kind: str) -> None:
    lake = open_lake(kind)
    lake.duckdb("call lake.set_option('parquet_row_group_size', 2048)")
    lake.spark("create table t as select id, uuid() as u from range(0, 10000, 1, 1)")
    metadata = [pq.ParquetFile(path).metadata for _, path in _files(lake)]
    assert max(m.row_group(i).num_rows for m in metadata for i in range(m.num_row_groups)) <= 2048


def _files(lake: Both) -> list[tuple[str, str]]:
    return [
        (table, f"{lake.data_path}{schema_path}{table_path}{path}")
        for table, schema_path, table_path, path in lake.catalog_rows(
            "select t.table_name, s.path, t.path, f.path from {m}.ducklake_data_file f"
            " join {m}.ducklake_table t using (table_id) join {m}.ducklake_schema s using (schema_id)"
            " where f.end_snapshot is null order by f.data_file_id"
        )
    ]


def test_who_committed_and_why_is_told(lake: Both) -> None:
    with lake.lake.transaction(author="ours é", message="it's 'loaded'", extra_info='{"a": 1}'):
        lake.spark("create table t as select 1 as id", "insert into t values (2)")
    lake.duckdb(
        "begin",
        "insert into t values (3)",
        "call lake.set_commit_message('theirs', 'added \"three\"', extra_info => 'x')",
        "commit",
    )
    told = lake.catalog_rows(
        "select snapshot_id, author, commit_message, commit_extra_info from lake.snapshots() order by 1"
    )
    assert told[1:] == [(1, "ours é", "it's 'loaded'", '{"a": 1}'), (2, "theirs", 'added "three"', "x")]
    columns = "snapshot_id, author, commit_message, commit_extra_info"
    lake.agree(f"select {columns} from ducklake_snapshots()", f"select {columns} from lake.snapshots()")
