"""Views of the lake and temporary views."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import LakeError

from .helpers import rows, run, snapshots


def test_views_resolve_names_in_their_own_schema(lake: LakeSession) -> None:
    run(
        lake,
        "create schema s",
        "create table s.t as select 1 as a, 'x' as b",
        "use s",
        "create view v (k, l) as select a, upper(b) from t",
        "create view w as select k + 1 as n, date_format(current_date(), 'yyyy') > '2000' as late from v",
        "use main",
    )
    assert rows(lake, "select * from s.v") == [(1, "X")]
    assert rows(lake, "select * from s.w") == [(2, True)]
    assert rows(lake, "show views in s") == [("s", "v", False), ("s", "w", False)]


def test_a_view_with_an_error_is_refused_when_it_is_created(lake: LakeSession) -> None:
    with pytest.raises(Exception, match="there is no table or view main.nowhere in lake lake"):
        lake.execute("create view v as select * from nowhere")
    assert snapshots(lake) == 0


def test_temporary_views_may_read_the_lake(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as a", "create or replace temp view tv as select * from t")
    assert rows(lake, "select * from tv") == [(1,)]


def test_a_view_cannot_read_itself(lake: LakeSession) -> None:
    run(lake, "create table t as select 1 as a", "create view v as select a from t")
    with pytest.raises(Exception, match="there is no table or view main.v in lake lake"):
        lake.execute("create or replace view v as select a from v")
    run(lake, "alter view v as select a + 1 as a from t", "alter view v rename to w")
    assert rows(lake, "select a from w") == [(2,)]
    assert lake.execute("drop view if exists nowhere.v").snapshot_id is None


def test_drop_view_drops_a_temporary_view(lake: LakeSession) -> None:
    run(lake, "create or replace temporary view seen as select 1 as id", "drop view seen", "drop view if exists seen")
    with pytest.raises((LakeError, PySparkException)):
        rows(lake, "select * from seen")
    run(lake, "create view seen as select 2 as id", "create or replace temporary view seen as select 1 as id")
    run(lake, "drop view seen")
    assert rows(lake, "select * from seen") == [(1,)]
    run(lake, "drop view seen")
    with pytest.raises(LakeError, match="seen"):
        lake.execute("drop view seen")
