"""INSERT: where values go, how they are cast, and which rows are refused."""

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import ConstraintError, NotFoundError, SchemaChangeError

from .helpers import rows, run, snapshots, value


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
