"""Partitioned and sorted tables: both engines split rows alike, and find them again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .engines import Both, both, by_duckdb, each

# column type: (Spark, DuckDB, values in Spark, values in DuckDB)
_DATES = ("1969-12-31", "2024-02-29", "0001-01-01", "9999-12-31")
_MOMENTS = ("1969-12-31 23:59:59.999999", "2024-02-29 12:30:00", "0001-01-01 00:00:00", "1970-01-01 00:00:00")
_TEXTS = (
    "",
    "a/b c%=é",
    "NULL",
    "__HIVE_DEFAULT_PARTITION__",
    "~",
    "~x",
    "..",
    "a'b\"c",
    "日本",
    "x=y",
    " ",
    "#?&+",
    "a:b",
    "A",
    "a",
)


def _cast(spark: str, duckdb: str, *texts: str) -> tuple[str, str, list[str], list[str]]:
    return (
        spark,
        duckdb,
        [f"cast('{t}' as {_READ.get(spark, spark)})" for t in texts],
        [f"cast('{t}' as {duckdb})" for t in texts],
    )


_READ = {
    "uint8": "smallint",
    "uint64": "decimal(20,0)",
    "uuid": "string",
    "time": "string",
    "timestamp_s": "timestamp_ntz",
    "timestamp_ms": "timestamp_ntz",
    "json": "string",
}
SCALARS = {
    "boolean": _cast("boolean", "boolean", "true", "false"),
    "int8": _cast("tinyint", "tinyint", "-128", "127", "0"),
    "int16": _cast("smallint", "smallint", "-32768", "7"),
    "int32": _cast("int", "int", "-2147483648", "34"),
    "int64": _cast("bigint", "bigint", "-9223372036854775808", "34"),
    "uint8": _cast("uint8", "utinyint", "255", "0"),
    "uint64": _cast("uint64", "ubigint", "18446744073709551615", "0"),
    "float32": _cast("float", "float", "1.5", "0.1", "NaN", "-inf", "1e20"),
    "float64": _cast("double", "double", "1.5", "0.1", "NaN", "inf", "1e300", "123456789.125", "1e-5"),
    "decimal4": _cast("decimal(4,2)", "decimal(4,2)", "99.99", "-1.50", "0.00"),
    "decimal38": _cast("decimal(38,10)", "decimal(38,10)", "1234567890123456789012345678.0123456789", "0"),
    "date": _cast("date", "date", *_DATES),
    "timestamp": _cast("timestamp_ntz", "timestamp", *_MOMENTS),
    "timestamptz": _cast("timestamp", "timestamptz", *(m + "+00" for m in _MOMENTS)),
    "timestamp_s": _cast("timestamp_s", "timestamp_s", "1969-12-31 23:59:59", "2024-02-29 00:00:00"),
    "timestamp_ms": _cast("timestamp_ms", "timestamp_ms", "1969-12-31 23:59:59.5", "2024-02-29 00:00:00"),
    "time": _cast("time", "time", "00:00:00", "23:59:59.5"),
    "uuid": _cast("uuid", "uuid", "7fffffff-0000-4000-8000-00000000000a", "ffffffff-0000-4000-8000-00000000000a"),
    "varchar": (
        "string",
        "varchar",
        ["'" + t.replace("'", "\\'") + "'" for t in _TEXTS],
        ["'" + t.replace("'", "''") + "'" for t in _TEXTS],
    ),
}
CALENDAR = ("date", "timestamp", "timestamptz", "timestamp_s", "timestamp_ms")


def _keys(kind: str) -> list[str]:
    """One table's keys: every transform that its type has."""
    return ["{c}", "bucket(4, {c})"] + (
        ["year({c})", "month({c})", "day({c})", "hour({c})"] if kind in CALENDAR else []
    )


VALUES = """
select f.begin_snapshot, v.partition_key_index, v.partition_value, f.record_count
from {m}.ducklake_file_partition_value v join {m}.ducklake_data_file f using (data_file_id)
join {m}.ducklake_table t on t.table_id = f.table_id where t.table_name = '%s' order by all
"""


@pytest.mark.parametrize(("kind", "setter"), [("sqlite", "spark"), ("duckdb", "duckdb"), ("postgres", "spark")])
def test_rows_are_split_alike(open_lake: Callable[..., Both], kind: str, setter: str) -> None:
    lake = open_lake(kind)
    with lake.connection() as connection:
        connection.execute("call lake.set_option('data_inlining_row_limit', 0)")
    creates, alters, ours, theirs = [], [], [], []
    names = list(SCALARS)
    for name in names:
        spark, duckdb, in_spark, in_duckdb = SCALARS[name]
        creates.append(f"create table t_{name} (id int, c {spark if setter == 'spark' else duckdb})")
        alters += [f"alter table t_{name} set partitioned by ({', '.join(_keys(name)).format(c='c')})"]
        ours.append(
            f"insert into t_{name} values " + ", ".join(f"({i}, {v})" for i, v in enumerate([*in_spark, "null"]))
        )
        theirs.append(
            f"insert into t_{name} values " + ", ".join(f"({i}, {v})" for i, v in enumerate([*in_duckdb, "null"]))
        )
    setup = ["begin", *creates, *alters, "commit"]
    (lake.spark if setter == "spark" else lake.duckdb)(*setup)
    lake.spark("begin", *ours, "commit")
    spark_at = lake.catalog_rows("select max(snapshot_id) from {m}.ducklake_snapshot")[0][0]
    lake.duckdb("begin", *theirs, "commit")
    different = {}
    for name in names:
        rows = lake.catalog_rows(VALUES % f"t_{name}")
        written = [sorted((r[1:] for r in rows if (r[0] == spark_at) is who), key=repr) for who in (True, False)]
        if written[0] != written[1]:
            different[name] = [[r for r in a if r not in b] for a, b in (written, reversed(written))]
    lake.compare(first=spark_at)
    assert not different
    for name in names:
        spark, duckdb, in_spark, in_duckdb = SCALARS[name]
        for a, b in zip(in_spark[:4], in_duckdb[:4], strict=True):
            found = lake.agree(f"select id from t_{name} where c = {a}", f"select id from t_{name} where c = {b}")
            assert len(found) == 2, (name, a, found)
        lake.agree(f"select id from t_{name} where c is null")


def test_keys_change_and_old_files_stay(lake: Both, writer: str) -> None:
    rows = ", ".join(f"({i}, 'r{i % 3}', date '2024-0{1 + i % 4}-15')" for i in range(12))
    lake.write(
        writer,
        each("create table t (id int, r string, d date)", "create table t (id int, r varchar, d date)"),
        both(f"insert into t values {rows}"),
        both("alter table t set partitioned by (r)"),
        both(f"insert into t values {rows}"),
        both("alter table t set partitioned by (year(d), month(d), bucket(3, id))"),
        both(f"insert into t values {rows}"),
        both("alter table t rename column r to region"),
        both("alter table t set partitioned by (region, day(d))"),
        both(f"insert into t values {rows}"),
        both("alter table t reset partitioned by"),
        both(f"insert into t values {rows}"),
        by_duckdb("delete from t where region = 'r1' and id < 6"),
    )
    lake.compare()
    for condition in ("region = 'r1'", "d = date '2024-02-15'", "id = 7", "region = 'r2' and d > date '2024-02-01'"):
        lake.agree(f"select * from t where {condition}")


def test_folders_need_not_tell_the_partition(open_lake: Callable[..., Both], writer: str) -> None:
    lake = open_lake("sqlite")
    rows = ", ".join(f"({i}, 'r{i % 3}')" for i in range(12))
    lake.write(
        writer,
        each(
            "call ducklake_set_option('hive_file_pattern', false)", "call lake.set_option('hive_file_pattern', false)"
        ),
        each("create table t (id int, r string)", "create table t (id int, r varchar)"),
        both("alter table t set partitioned by (r)"),
        both(f"insert into t values {rows}"),
        both(f"insert into t values {rows}"),
    )
    paths = [p for (p,) in lake.catalog_rows("select path from {m}.ducklake_data_file")]
    assert len(paths) == 6
    assert not any("=" in p for p in paths), paths
    lake.compare()
    lake.agree("select * from t where r = 'r1'")


def test_a_sorted_table_is_sorted_by_either(lake: Both, writer: str) -> None:
    rows = ", ".join(f"({(i * 7) % 20}, 's{i % 5}')" for i in range(20))
    lake.write(
        writer,
        each("create table t (id int, s string)", "create table t (id int, s varchar)"),
        both("alter table t set sorted by (s desc nulls first, id)"),
        both(f"insert into t values {rows}, (null, null)"),
        both(f"insert into t values {rows}, (null, null)"),
        both("alter table t reset sorted by"),
        both(f"insert into t values {rows}"),
    )
    lake.compare()
    for snapshot in (3, 4):
        with lake.connection() as connection:
            ids = connection.execute(
                "select id, s from"
                f" ducklake_table_insertions('lake', 'main', 't', {snapshot}, {snapshot}) order by rowid"
            ).fetchall()
        assert ids == sorted(ids, key=lambda r: (r[1] is not None, -int((r[1] or "s0")[1:]), r[0])), snapshot
