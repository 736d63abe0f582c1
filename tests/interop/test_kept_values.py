"""Values that Spark's types cannot hold stay as they are when their rows change in another column."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from .engines import CATALOGS, Both

EVERYWHERE = {
    "time": ("24:00:00", "23:59:59.999999", "00:00:00"),
    "timestamp_ns": (
        *("2020-01-01 01:02:03.123456789", "1969-12-31 23:59:59.999999999", "infinity", "-infinity"),
        *("1677-09-22 00:00:00.000000001", "2262-04-11 23:47:16.854775806"),
    ),
    "timetz": ("24:00:00+15:59", "12:00:00+02", "01:00:00-05:30"),
    "interval": ("1 year 2 months 3 days 04:05:06.789", "178956970 years 7 months 2147483647 days", "1000 hours"),
    "hugeint": ("150000000000000000000000000000000000001", "-150000000000000000000000000000000000000", "7"),
    "date": ("infinity", "-infinity", "12000-01-01", "0044-03-15 (BC)", "5877642-06-25 (BC)", "5881580-07-10"),
    "timestamp": ("infinity", "-infinity", "12000-01-01 00:00:00.5", "0044-03-15 (BC) 10:00:00"),
    "timestamptz": ("infinity", "-infinity", "12000-01-01 00:00:00+00", "0044-03-15 (BC) 10:00:00+00"),
    "timestamp_s": ("12000-01-01 00:00:00", "0044-03-15 (BC) 10:00:00"),
    "timestamp_ms": ("12000-01-01 00:00:00.123", "0044-03-15 (BC) 10:00:00.001"),
}
INLINED = {
    # DuckDB cannot write these to its files.
    "time_ns": ("12:34:56.123456789", "24:00:00", "00:00:00.000000001"),
    "interval": ("1 year 2 months -3 days 04:05:06.789012", "-100 years", "-00:00:00.001", "1 month -1 days"),
    "uhugeint": ("340282366920938463463374607431768211455", "0"),
    "timestamp_s": ("infinity", "-infinity"),
    "timestamp_ms": ("infinity", "-infinity"),
}


def _fill(lake: Both, values: dict[str, tuple[str, ...]], row_limit: int) -> None:
    """A table with a column of each type, and the values in it."""
    columns = ", ".join(f"c_{kind} {kind}, l_{kind} {kind}[]" for kind in values)
    rows = []
    for index in range(max(map(len, values.values()))):
        cells = [f"'{texts[index]}'::{kind}" if index < len(texts) else "null" for kind, texts in values.items()]
        rows.append(f"({index}, 'a', " + ", ".join(f"{cell}, [{cell}, null]" for cell in cells) + ")")
    lake.duckdb(
        f"call lake.set_option('data_inlining_row_limit', {row_limit})",
        f"create table t (id int, other varchar, {columns})",
        f"insert into t values {', '.join(rows)}",
    )


def _texts(lake: Both, table: str, values: dict[str, tuple[str, ...]]) -> list[tuple[object, ...]]:
    columns = ", ".join(f"c_{kind}::varchar, l_{kind}::varchar" for kind in values)
    with lake.connection() as connection:
        return connection.execute(f"select id, {columns} from {table} order by id").fetchall()


CHANGES = (
    "update t set other = 'b' where id >= 0",
    "merge into t using (select explode(sequence(0, 9)) as k) n on t.id = n.k when matched and t.id % 2 = 0 then update"
    " set t.other = 'c' when matched then update set t.other = upper(t.other)",
    "update t set id = id where other is not null",
)


@pytest.mark.parametrize("kind", CATALOGS)
@pytest.mark.parametrize("inlined", [False, True])
def test_values_are_kept_when_another_column_changes(open_lake: Callable[..., Both], kind: str, inlined: bool) -> None:
    lake = open_lake(kind)
    values = {**EVERYWHERE, **(INLINED if inlined else {})}
    if kind == "postgres":  # in which DuckDB cannot create a table with one
        values.pop("time_ns", None)
    _fill(lake, values, 100 if inlined else 0)
    before = _texts(lake, "t", values)
    for change in CHANGES:
        lake.spark(change)
        assert _texts(lake, "t", values) == before, change
    assert lake.duckdb_rows("select distinct other from t order by 1") == [("B",), ("c",)]
    texts = ", ".join(f"c_{kind}::varchar" for kind in values)
    assert lake.duckdb_rows("select count(*) from t where c_timestamp_ns = '2020-01-01 01:02:03.123456789'") == [(1,)]
    assert lake.duckdb_rows("select count(*) from t where c_timestamp_ns > '2262-04-11 23:47:16.854775805'") == [(2,)]
    assert len(lake.duckdb_rows(f"select {texts} from t where c_time = '24:00:00'")) == 1


def test_values_in_structs_are_kept_when_another_field_changes(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("duckdb")
    for row_limit, table in ((0, "f"), (100, "i")):
        lake.duckdb(
            f"call lake.set_option('data_inlining_row_limit', {row_limit})",
            f"create table {table} (id int, s struct(moment timestamp_ns, h hugeint, c time, n int),"
            " m map(timestamp_ns, hugeint))",
            f"insert into {table} values (1, {{'moment': '2020-01-01 00:00:00.000000001', 'h': 15e37::hugeint, 'c':"
            " '24:00:00', 'n': 1}, map{'2020-01-01 00:00:00.000000009'::timestamp_ns: (-15e37)::hugeint}),"
            " (2, null, null)",
        )
        lake.spark(
            f"update {table} set s.n = 2 where id = 1",
            f"update {table} set s.c = '12:00:00' where id = 2",
            f"update {table} set s.h = 5 where id = 3",
        )
        with lake.connection() as connection:
            row = connection.execute(f"select s::varchar, m::varchar from {table} where id = 1").fetchall()
        digits = int(15e37)  # DuckDB writes doubles
        assert row == [
            (
                f"{{'moment': '2020-01-01 00:00:00.000000001', 'h': {digits}, 'c': '24:00:00', 'n': 2}}",
                f"{{'2020-01-01 00:00:00.000000009'=-{digits}}}",
            )
        ]
        lake.spark(f"update {table} set s.h = 5, s.moment = timestamp_ntz'2021-01-01 00:00:00.5' where id = 1")
        with lake.connection() as connection:
            row = connection.execute(
                f"select s.moment::varchar, s.h, s.c::varchar from {table} where id = 1"
            ).fetchall()
        assert row == [("2021-01-01 00:00:00.5", 5, "24:00:00")]


def test_values_are_assigned_and_kept_in_one_merge(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.duckdb(
        "call lake.set_option('data_inlining_row_limit', 0)",
        "create table t (id int, moment timestamp_ns, h hugeint, other varchar)",
        "insert into t select i, '2020-01-01 00:00:00.000000001', 15e37::hugeint, 'a' from range(4) r(i)",
    )
    lake.spark(
        "merge into t using (select explode(sequence(0, 5)) as k) n on t.id = n.k"
        " when matched and k = 0 then update set t.moment = timestamp_ntz'2021-01-01', t.h = 1"
        " when matched and k = 1 then update set t.other = 'b' when matched and k = 2 then delete"
        " when not matched then insert values (n.k, timestamp_ntz'2022-01-01', 2, 'new')"
    )
    with lake.connection() as connection:
        found = connection.execute("select id, moment::varchar, h::varchar, other from t order by id").fetchall()
    kept, digits = "2020-01-01 00:00:00.000000001", str(int(15e37))
    assert found == [
        (0, "2021-01-01 00:00:00", "1", "a"),
        (1, kept, digits, "b"),
        (3, kept, digits, "a"),
        (4, "2022-01-01 00:00:00", "2", "new"),
        (5, "2022-01-01 00:00:00", "2", "new"),
    ]
    lake.agree(
        "select id, other from t where moment = timestamp_ntz'2021-01-01'", "select id, other from t where h = 1"
    )
    lake.agree("select id, moment, other from t", "select id, moment::timestamp as moment, other from t")


@pytest.mark.parametrize("partition", ["moment", "year(moment)", "bucket(4, moment)"])
def test_rows_stay_in_the_partition_of_their_nanoseconds(open_lake: Callable[..., Both], partition: str) -> None:
    lake = open_lake("sqlite")
    texts = ("2020-01-01 01:02:03.123456789", "2020-01-01 01:02:03.5", "2021-01-01", "1969-12-31 23:59:59.999999999")
    lake.duckdb(
        "call lake.set_option('data_inlining_row_limit', 0)",
        "create table t (id int, moment timestamp_ns, other varchar)",
        f"alter table t set partitioned by ({partition})",
        "insert into t values " + ", ".join(f"({i}, '{text}', 'a')" for i, text in enumerate(texts)),
    )
    values = "select partition_value from {m}.ducklake_file_partition_value v join {m}.ducklake_data_file f using"
    values += " (data_file_id) where f.end_snapshot is null order by 1"
    before = lake.catalog_rows(values)
    lake.spark("update t set other = 'b'")
    assert lake.catalog_rows(values) == before
    for i, text in enumerate(texts):
        assert lake.duckdb_rows(f"select id, other from t where moment = '{text}'") == [(i, "b")]


def test_a_rollback_and_a_rewritten_file_keep_values(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    values = {kind: EVERYWHERE[kind] for kind in ("timestamp_ns", "hugeint", "time")}
    _fill(lake, values, 0)
    before = _texts(lake, "t", values)
    lake.spark("delete from t where id < 2")
    ((snapshot,),) = lake.catalog_rows("select max(snapshot_id) - 1 from {m}.ducklake_snapshot")
    lake.spark(f"call ducklake_rollback('t', version => {snapshot})")
    assert _texts(lake, "t", values) == before
    lake.duckdb("call lake.set_option('rewrite_delete_threshold', 0.1)")
    lake.spark("delete from t where id = 1")
    assert _texts(lake, "t", values) == [row for row in before if row[0] != 1]
