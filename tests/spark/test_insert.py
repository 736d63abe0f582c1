"""INSERT: where values go, how they are cast, and which rows are refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConstraintError, NotFoundError, SchemaChangeError

from .helpers import content, rows, run, snapshots, value


def test_inserts_by_position_by_name_and_with_defaults(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (a int, b string default 'none', c date default date'2026-01-01')",
        "insert into t values (1, 'x', date'2020-01-01')",
        "insert into t (c, a) select date'2021-01-01', 2",
        "insert into t by name select 'y' as b, 3 as a",
        "alter table t alter column b set default 'later'",
        "insert into t (a) values (4)",
    )
    assert rows(lake, "select * from t order by a") == [
        (1, "x", datetime.date(2020, 1, 1)),
        (2, "none", datetime.date(2021, 1, 1)),
        (3, "y", datetime.date(2026, 1, 1)),
        (4, "later", datetime.date(2026, 1, 1)),
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("insert into t values (1)", "takes 2 columns here"),
        ("insert into t by name select 1 as z", "has no column z"),
        ("insert into t (a, A) values (1, 2)", "given twice"),
        ("insert into nope values (1)", "no table or view main.nope"),
    ],
)
def test_rows_that_do_not_fit_are_refused(lake: LakeSession, statement: str, message: str) -> None:
    lake.execute("create table t (a int, b string)")
    with pytest.raises((SchemaChangeError, NotFoundError, ValueError), match=message):
        lake.execute(statement)


def test_an_insert_casts_values_as_spark_stores_them(lake: LakeSession) -> None:
    lake.execute("create table t (a tinyint, b bigint, c decimal(5,2), d string)")
    lake.execute("insert into t select 7, cast(8 as smallint), 1.5, 9")
    assert rows(lake, "select * from t") == [(7, 8, Decimal("1.50"), "9")]
    with pytest.raises(Exception, match="CAST_OVERFLOW"):
        lake.execute("insert into t select 1000, 1, 1, 'x'")
    with pytest.raises(Exception, match="INVALID_COLUMN_OR_FIELD_DATA_TYPE"):
        lake.execute("insert into t select trim('7'), 1, 1, 'x'")
    assert value(lake, "select count(*) from t") == 1


def test_not_null_is_enforced_before_anything_is_committed(lake: LakeSession) -> None:
    lake.execute("create table t (a int not null, s struct<x: int> not null, l array<int> not null)")
    newest = snapshots(lake)
    with pytest.raises(ConstraintError, match="column a of table t is NOT NULL, and 1 of the new rows"):
        lake.execute("insert into t select null, named_struct('x', 1), array(1)")
    with pytest.raises(Exception, match="column s is NOT NULL"):
        lake.execute("insert into t select 1, null, array(1)")
    lake.execute("insert into t select 1, named_struct('x', null), array(null)")
    assert snapshots(lake) == newest + 1
    assert rows(lake, "select data_file from ducklake_list_files('t')") != []


def test_a_failed_write_leaves_no_file(lake: LakeSession, tmp_path: Path) -> None:
    lake.execute("create table t (a int not null) partitioned by (a)")
    with pytest.raises(ConstraintError):
        lake.execute("insert into t select if(id = 3, null, id) from range(5)")
    assert [p for p in tmp_path.rglob("*") if p.suffix in (".parquet", ".crc")] == []


LITERALS = {
    "boolean": ("true", "FALSE", "null"),
    "tinyint": ("-128", "127", "128", "1.0", "'7'"),
    "int": ("0", "-2147483648", "+5", "2147483648", "3L", "1e2"),
    "bigint": ("9223372036854775807", "-9223372036854775808", "9223372036854775808"),
    "float": ("1.1", "1e40"),
    "double": ("1", "-0.1", "1e-5", "9007199254740993", "1.5d", "2f", "123456789012345678901234567890"),
    "decimal(10,2)": ("1", "1.5", "-12345678.90", "1.555", "123456789.1", "1e1", "1.5bd"),
    "decimal(38,0)": ("99999999999999999999999999999999999999", "1e37"),
    "string": ("'it''s'", "'a' 'b'", "'\\n'", "r'\\n'", "''", "1", "true", "'\U0001f986'", "X'41'", '"double"'),
    "binary": ("X'0aFF'", "X''", "X'F'", "'text'"),
    "date": ("date'2020-02-29'", "'2020-02-29'", "'2021-02-29'", "'2020-2-9'", "'0001-01-01'"),
    "timestamp_ntz": (
        *("'2020-02-29 01:02:03.123456'", "'2020-02-29T01:02:03'", "'2020-02-29'", "'2020-02-29 25:00:00'"),
        *("timestamp_ntz'2020-02-29 01:02:03'", "timestamp'2020-02-29 01:02:03'", "date'2020-02-29'"),
    ),
    "timestamp": (
        "'2020-02-29 01:02:03'",
        "timestamp'2020-02-29 01:02:03+05:00'",
        "timestamp_ntz'2020-02-29 01:02:03'",
    ),
}


@pytest.mark.parametrize("kind", LITERALS)
def test_literals_have_the_values_that_spark_gives_them(kind: str, lake: LakeSession) -> None:
    run(lake, f"create table plain (v {kind})", f"create table computed (v {kind})")
    for literal in LITERALS[kind]:
        found = []
        for statement in (
            f"insert into plain values ({literal})",
            f"insert into computed (values ({literal}) limit 1)",
        ):
            try:
                lake.execute(statement)
                found.append("inserted")
            except Exception as error:
                found.append(type(error).__name__)
        assert found[0] == found[1], literal
    assert content(lake, "plain") == content(lake, "computed")


def test_inlined_local_times_need_not_exist_in_the_sessions_time_zone(lake: LakeSession) -> None:
    """They are read alone, with their row ids, and when other rows of the table change."""
    lake.spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        run(
            lake,
            "create table t (id int, local timestamp_ntz, instant timestamp)",
            "insert into t values (1, '2024-03-10 02:30:00', null)",
            "insert into t select 2, timestamp_ntz'2024-03-10 02:45:00', timestamp'2024-03-10 07:30:00Z'",
            "create table u as select * from t",
        )
        for query in ("select local from t", "select local from u", "select local, rowid from t"):
            assert [r[0].hour for r in rows(lake, query)] == [2, 2], query
        assert value(lake, "select string(instant) from u where id = 2") == "2024-03-10 03:30:00"
        run(lake, "update t set id = id + 10", "alter table t add column n int")
        assert [r[0].minute for r in rows(lake, "select local from t order by id")] == [30, 45]
    finally:
        lake.spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_an_insert_of_literals_starts_no_spark(tmp_path: Path) -> None:
    with LakeSession(f"sqlite:{tmp_path}/lake.sqlite", data_path=f"{tmp_path}/data/") as session:
        run(
            session,
            "create table t (id int, name string not null, at timestamp_ntz)",
            "insert into t values (1, 'a', '2026-01-01 00:00:00'), (2, 'b', null)",
            "insert into t (NAME, id) values ('c', 3)",
        )
        with pytest.raises(ConstraintError, match="column name of table t is NOT NULL, and 2 of the new rows"):
            session.execute("insert into t (id) values (4), (5)")
        many = ", ".join(f"({n}, 'x', null)" for n in range(100))
        assert session.execute(f"insert into t values {many}").rows_affected == 100
        assert not session.spark_started
