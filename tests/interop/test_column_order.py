"""Columns whose order in the catalog is not that of their ids, as another engine may write it."""

from __future__ import annotations

import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t

from .engines import Both


def test_the_order_of_another_engine_is_kept(lake: Both) -> None:
    lake.spark("create table t (a bigint, b bigint, c bigint)", "insert into t values (1, 2, 3)")
    with lake.lake.lake().catalog.write() as connection:
        connection.execute(sa.update(t.column).where(t.column.c.column_name == "c").values(column_order=0))
    lake.lake.close()
    lake = Both(lake.lake.spark, lake.address)
    lake.spark("alter table t rename column c to d", "alter table t add column e string default 'x'")
    lake.duckdb("insert into t values (4, 5, 6, 'few')")
    lake.spark("insert into t values (7, 8, 9, 'more')", "update t set e = 'changed' where d = 4")
    lake.agree("select * from t", expected=[(3, 1, 2, "x"), (4, 5, 6, "changed"), (7, 8, 9, "more")])
    assert list(lake.lake.sql("select * from t").columns) == ["d", "a", "b", "e"]
    lake.close()
