"""String literals are cast to the column that they are written to; columns of a query are not."""

from __future__ import annotations

import datetime
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from dbt.adapters.ducklake import LakeSession

from .helpers import content, rows, run, snapshots

DAY, MOMENT = datetime.date(2026, 1, 1), datetime.datetime(2026, 1, 1, 10, 0)
UTC = datetime.timezone.utc


def test_scripts_may_write_every_type_as_text(lake: LakeSession) -> None:
    run(
        lake,
        "create table audit (id int, at timestamp_ntz, day date, ok boolean, cost decimal(5,2), note string)",
        # migration scripts
        "insert into audit values ('1', '2026-01-01 10:00:00', '2026-01-01', 'true', '1.5', '5'), (null, null, null,"
        " null, null, null)",
        "insert into audit (at, id) select '2026-01-01 10:00:00', 2 union all select null, 3",
        "insert into audit by name with x as (select 4 as id) select x.*, '2026-01-01' as day from x",
        # an audit hook with '{{ run_started_at }}', whose offset a timestamp without a zone drops, as Spark's cast does
        "insert into audit (id, at, note) values (5, '2026-01-01 10:00:00.000000+00:00', 'on-run-end')",
        # dbt_artifacts selects the columns of a VALUES
        "insert into audit (id, at, ok, note) select col1, col2, col3, nullif(col4, '') from values"
        " (6, '2026-01-01 10:00:00', 'False', ''), (7, null, 'True', 'x')",
        "insert into audit partition (day = '2026-01-01', id = 8) (note) select 'p'",
        "insert with schema evolution into audit (id, day) values ('9', '2026-01-01')",
    )
    assert rows(lake, "select id, at, day, ok, cast(cost as string), note from audit order by id nulls last") == [
        (1, MOMENT, DAY, True, "1.50", "5"),
        (2, MOMENT, None, None, None, None),
        (3, None, None, None, None, None),
        (4, None, DAY, None, None, None),
        (5, MOMENT, None, None, None, "on-run-end"),
        (6, MOMENT, None, False, None, None),
        (7, None, None, True, None, "x"),
        (8, None, DAY, None, None, "p"),
        (9, None, DAY, None, None, None),
        (None, None, None, None, None, None),
    ]


def test_update_and_merge_cast_literals(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, day date default date'2025-01-01', at timestamp, s struct<d: date>)",
        "insert into t values (1, null, null, null), (2, null, null, named_struct('d', null))",
        "update t set day = '2026-01-01', s.d = ('2026-01-02') where id = 2",
        "merge into t using (select 1 as k union all select 3) u on t.id = u.k"
        " when matched then update set at = '2026-01-01 10:00:00Z', day = default"
        " when not matched then insert (id, day, at) values (k, '2026-01-01', null)",
        "merge into t using (select 2 as k) u on t.id = u.k when not matched by source and id = 3 then update"
        " set id = '4'",
    )
    assert content(lake) == [
        (1, datetime.date(2025, 1, 1), MOMENT.replace(tzinfo=UTC), None),
        (2, DAY, None, {"d": datetime.date(2026, 1, 2)}),
        (4, DAY, None, None),
    ]


NONSENSE = [
    ("insert into t values (1, 'tomorrow', null, null)", "column day of table t: the value 'tomorrow' .* to date"),
    (
        "insert into t (at) values ('2026-01-01'), ('it''s')",
        "column at of table t: the value 'it's' .* to timestamp_ntz",
    ),
    ("insert into t (id) select '12x'", "column id of table t: the value '12x' can not be cast to int"),
    ("insert into t (id) values ('3000000000')", "column id of table t: the value '3000000000'"),
    ("insert into t partition (day = '2026-02-30') (id) select 1", "column day of table t: the value '2026-02-30'"),
    ("update t set day = ''", "column day of table t: the value '' can not be cast to date"),
    ("update t set s.x = 'one'", "column s.x of table t: the value 'one' can not be cast to int"),
    (
        "merge into t using (select 2 as k) u on t.id = u.k when not matched then insert (id, day) values (k, 'never')",
        "column day of table t: the value 'never'",
    ),
]


@pytest.fixture(params=["ANSI mode", "legacy mode"])
def in_either_mode(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get("spark.sql.ansi.enabled") or "true"
    spark.conf.set("spark.sql.ansi.enabled", "true" if request.param == "ANSI mode" else "false")
    yield
    spark.conf.set("spark.sql.ansi.enabled", before)


@pytest.mark.usefixtures("in_either_mode")
def test_nonsense_is_refused_with_the_column(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, day date, at timestamp_ntz, s struct<x: int>)",
        "insert into t values (1, date'2026-01-01', null, named_struct('x', 1))",
    )
    before = snapshots(lake)
    for statement, message in NONSENSE:
        with pytest.raises(PySparkException, match=message):
            lake.execute(statement)
    assert snapshots(lake) == before


def test_columns_of_a_query_and_nested_texts_stay_strict(lake: LakeSession) -> None:
    run(lake, "create table t (id int, l array<int>, s struct<x: int>)", "create table src as select '7' as c")
    run(lake, "insert into t (id) values (8)")
    for statement in [
        "insert into t (id) select c from src",
        "insert into t (id) select '7' union all select c from src",
        "insert into t (id) select c from (select '7' as c)",
        "insert into t (id) select upper('7')",
        "insert into t (l) values (array('7'))",
        "insert into t (s) select named_struct('x', '7')",
        "update t set id = concat('7', '')",
        "merge into t using src on t.id = 1 when not matched then insert (id) values (c)",
        "merge into t using (select '7' as id) s on t.id = 1 when not matched then insert (id) values (s.id)",
    ]:
        with pytest.raises(PySparkException, match="INVALID_COLUMN_OR_FIELD_DATA_TYPE"):
            lake.execute(statement)


def test_the_sessions_time_zone_counts_for_a_timestamp_with_a_zone_only(lake: LakeSession, spark: SparkSession) -> None:
    lake.execute("create table t (n timestamp_ntz, z timestamp)")
    before = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        run(
            lake,
            "insert into t values ('2026-01-01 10:00:00', '2026-01-01 10:00:00')",
            "insert into t values ('2026-01-01 10:00:00+02:00', '2026-01-01 10:00:00+02:00')",
            "update t set z = '2026-07-01 10:00:00' where z < '2026-01-01 09:00:00Z'",
        )
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    assert content(lake) == [
        (MOMENT, datetime.datetime(2026, 1, 1, 15, 0, tzinfo=UTC)),
        (MOMENT, datetime.datetime(2026, 7, 1, 14, 0, tzinfo=UTC)),
    ]
