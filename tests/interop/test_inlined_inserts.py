"""Rows that Spark inserts into the catalog: DuckDB reads, changes and flushes them as its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dbt.adapters.ducklake.lake.errors import ConstraintError

from .engines import Both, Step, both, by_spark, each

pytestmark = pytest.mark.usefixtures("interpreting_spark")

TYPES = {
    "b": ("boolean", "true", "false"),
    "i8": ("tinyint", "-128", "127"),
    "i16": ("smallint", "-32768", "32767"),
    "i32": ("int", "-2147483648", "2147483647"),
    "i64": ("bigint", "-9223372036854775807", "9223372036854775807"),
    "f32": ("float", "cast('-inf' as float)", "0.1"),
    "f64": ("double", "cast('nan' as double)", "1.7976931348623157e308"),
    "d9": ("decimal(9,2)", "-1234567.89", "0.01"),
    "d15": ("decimal(15,15)", "0.123456789012345", "-0.000000000000001"),
    "s": ("string", "''", "'it''s \"ünï\" \\\\x41 \U0001f986, [1]'"),
    "day": ("date", "date'0001-01-01'", "date'9999-12-31'"),
    "local": ("timestamp_ntz", "timestamp_ntz'1969-12-31 23:59:59.999999'", "timestamp_ntz'2024-02-29 00:00:00'"),
    "instant": ("timestamp", "timestamp'1883-01-01 00:00:00.5Z'", "timestamp'2024-02-29 00:00:00+05:30'"),
    "bytes": ("binary", "X''", "X'00FF5C2741'"),
}


def inlined(lake: Both, table: str = "t") -> int:
    """The rows of a table that the catalog holds, deleted or not."""
    names = lake.catalog_rows(
        "select i.table_name from {m}.ducklake_inlined_data_tables i join {m}.ducklake_table t using (table_id)"
        f" where t.table_name = '{table}' and t.end_snapshot is null"
    )
    return sum(lake.catalog_rows(f"select count(*) from {{m}}.{name}")[0][0] for (name,) in names)


def files(lake: Both) -> int:
    return int(lake.catalog_rows("select count(*) from {m}.ducklake_data_file")[0][0])


def test_every_plain_type_arrives_in_duckdb(lake: Both) -> None:
    columns = ", ".join(f"{name} {kind}" for name, (kind, *_) in TYPES.items())
    lake.spark(f"create table t ({columns})")
    for row in zip(*(values for _, *values in TYPES.values()), strict=True):
        lake.spark(f"insert into t values ({', '.join(row)})")
    lake.spark(f"insert into t values ({', '.join('null' for _ in TYPES)})")
    lake.compare()
    if lake.address.kind != "mysql":
        assert (inlined(lake), files(lake)) == (3, 0)
        for name in TYPES:  # DuckDB answers MIN and MAX from statistics
            if name not in ("b", "f64", "bytes"):
                lake.agree(f"select min({name}), max({name}), count({name}) from t")


def test_both_engines_write_and_change_the_same_inlined_rows(lake: Both, writer: str) -> None:
    lake.write(
        writer,
        both("create table t (id int, v varchar)"),
        both("insert into t values (1, 'a'), (2, 'b')"),
        both("insert into t select 3, 'c'"),
        both("update t set v = 'B' where id = 2"),
        both("delete from t where id = 1"),
        both("insert into t values (4, null)"),
        both("alter table t add column n int"),
        both("insert into t values (5, 'e', 50)"),
        both("alter table t rename column v to w"),
        both("insert into t (id, w) values (6, 'f')"),
        both("delete from t where n is null and id > 3"),
    )
    lake.compare()
    lake.agree("select * from t", expected=[(2, "B", None), (3, "c", None), (5, "e", 50)])
    if lake.address.kind != "mysql":
        (newest,) = lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0]
        feed = f"select snapshot_id, change_type, id from ducklake_table_changes({{}}'t', 1, {newest})"
        lake.agree(feed.format(""), feed.format("'lake', 'main', "))


def test_spark_inserts_into_the_catalog_tables_that_duckdb_made(lake: Both) -> None:
    """With the types that DuckDB gives their columns, and the names that it left without quotes."""
    if lake.address.kind == "mysql":
        pytest.skip("DuckDB makes none on MySQL")
    lake.duckdb('create table t (Id int, "Select" decimal(9,2), F double, D date, B boolean, T timestamp, S varchar)')
    lake.spark(
        "insert into t values (1, 1.25, 0.5, date'2024-01-01', true, '2024-01-01 00:00:00', '0123')",
        "insert into t select 2, 1234567.89, 1e300, date'2024-01-02', false, null, '1e5'",
    )
    assert inlined(lake) == 2
    lake.compare()
    lake.duckdb("insert into t values (3, 0.5, 'nan', null, null, null, null)")
    lake.compare()


def test_a_transaction_changes_what_it_inserted(lake: Both) -> None:
    lake.spark("create table t (id int, v string)", "insert into t values (1, 'a'), (2, 'b')")
    with lake.lake.transaction():
        lake.spark(
            "insert into t values (3, 'c'), (4, 'd'), (5, 'e')",
            "update t set v = upper(v) where id in (1, 3)",
            "delete from t where id in (2, 4)",
            "merge into t using (select 5 as id, 'E' as v union all select 6, 'F') s on t.id = s.id"
            " when matched then update set v = s.v when not matched then insert *",
            "insert into t select id + 10, v from t",
        )
        assert sorted(lake.spark_rows("select id, v from t")) == [
            *((1, "A"), (3, "C"), (5, "E"), (6, "F")),
            *((11, "A"), (13, "C"), (15, "E"), (16, "F")),
        ]
    lake.compare()
    assert len({row[0] for row in lake.spark_rows("select rowid from t")}) == 8
    lake.agree("select min(id), max(id), min(v), count(*) from t")


@pytest.mark.parametrize(
    "change",
    [
        "add column n int",
        "drop column v",
        "rename column v to w",
        "alter column id type bigint",
        "alter column id comment 'x'",
    ],
)
def test_columns_change_after_an_insert_in_one_transaction(change: str, open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table t (id int, v string, p int) partitioned by (p)", "insert into t values (1, 'a', 1)")
    with lake.lake.transaction():
        lake.spark("insert into t values (2, 'b', 2), (3, 'c', 3)", f"alter table t {change}")
        lake.spark("insert into t (id) values (4)")
    lake.compare()
    assert lake.spark_rows("select id from t order by id") == [(1,), (2,), (3,), (4,)]


def test_where_no_catalog_table_is_ready_a_commit_makes_one(lake: Both) -> None:
    """Nothing was inlined until the option changed, and the columns changed meanwhile."""
    if lake.address.kind == "mysql":
        pytest.skip("nothing is inlined on MySQL")
    lake.spark(
        "create table old (id int)",
        "insert into old values (1)",
        "call ducklake_set_option('data_inlining_row_limit', 0)",
        "create table t (id int)",
        "insert into t values (1)",
        "alter table old add column v string",
        "insert into old values (2, 'b')",
        "call ducklake_set_option('data_inlining_row_limit', 10)",
    )
    assert (inlined(lake), files(lake)) == (0, 2)
    with lake.lake.transaction():
        lake.spark("insert into t values (2)", "insert into old values (3, 'c')")
    assert (inlined(lake), inlined(lake, "old")) == (1, 2)
    lake.compare()
    lake.duckdb("insert into t values (3)", "insert into old values (4, 'd')")
    lake.spark("insert into t values (4)")
    lake.compare()
    lake.duckdb("call ducklake_flush_inlined_data('lake')")
    lake.compare()
    assert (inlined(lake), inlined(lake, "old")) == (0, 0)


CASES: dict[str, tuple[Step, ...]] = {
    "replaced": (
        both("create or replace table t as select 1 as id, 'a' as v"),
        both("create or replace table t as select 2 as id, 'b' as v"),
        both("create or replace table t as select 'x' as id"),
    ),
    "partitioned and sorted": (
        both("create table t (id int, p varchar)"),
        each("alter table t set partitioned by (p)", "alter table t set partitioned by (p)"),
        by_spark("alter table t set sorted by (id desc)"),
        both("insert into t values (1, 'a'), (2, 'b')"),
        by_spark("insert into t replace where p = 'a' values (3, 'a')"),
    ),
    "truncated": (
        both("create table t (id int)"),
        both("insert into t values (1), (2)"),
        each("truncate table t", "delete from t"),
        both("insert into t values (3)"),
        by_spark("insert overwrite t values (4)"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_tables_are_replaced_partitioned_and_emptied(case: str, lake: Both) -> None:
    lake.write("turns" if lake.address.kind == "postgres" else "spark", *CASES[case])
    lake.compare()
    lake.spark("call ducklake_flush_inlined_data('main.t')")
    lake.compare()


def test_the_limit_counts_the_rows_of_one_statement(lake: Both) -> None:
    if lake.address.kind == "mysql":
        pytest.skip("nothing is inlined on MySQL")
    lake.spark("create table t (id int, v string)", "call ducklake_set_option('data_inlining_row_limit', 3)")
    lake.spark("insert into t select id, 'x' from range(3)")
    assert (inlined(lake), files(lake)) == (3, 0)
    lake.spark(
        "insert into t select id, 'x' from range(4)", "insert into t values (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')"
    )
    assert (inlined(lake), files(lake)) == (3, 2)
    lake.compare()


@pytest.mark.parametrize("keys", ["", " partitioned by (v)"])
def test_few_rows_of_a_large_query_leave_no_file(keys: str, open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark(
        f"create table t (id bigint not null, v string){keys}",
        "insert into t select id, string(id) from range(1000000) where id % 300000 = 7",
    )
    assert (inlined(lake), files(lake)) == (4, 0)
    assert [path for path in Path(lake.data_path).rglob("*") if path.is_file()] == []
    with pytest.raises(ConstraintError, match="NOT NULL"):
        lake.spark("insert into t select nullif(id, 7), 'x' from range(1000000) where id % 300000 = 7")
    lake.compare()


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("v array<int>", "array(1)"),
        ("v decimal(38,10)", "1234567890123456789012345678.0123456789"),
        ("v string", "'a\\0b'"),
        ("v string", "repeat('x', 2000000)"),
        ("row_id int", "7"),
        (f"{'n' * 64} int", "7"),
    ],
)
def test_what_a_catalog_can_not_keep_exactly_goes_to_a_file(
    column: str, value: str, open_lake: Callable[..., Both]
) -> None:
    lake = open_lake("sqlite")
    lake.spark(f"create table t (id int, {column})", f"insert into t values (1, {value})")
    assert files(lake) == 1
    lake.compare()
