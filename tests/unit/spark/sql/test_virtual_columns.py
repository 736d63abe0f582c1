"""Virtual columns (rowid, snapshot_id): where a query names them, and where a star leaves them out."""

from __future__ import annotations

import pytest

from dbt.adapters.ducklake.spark.sql.names import (
    find_names,
)
from dbt.adapters.ducklake.spark.sql.rewriting import rewrite
from dbt.adapters.ducklake.spark.sql.virtual_columns import tables_asked

ALL = ("rowid", "snapshot_id")


def shown(sql: str, **tables: str) -> str:
    """The query with its names kept, and without virtual columns in its stars; tables have columns of their own."""
    names = find_names(sql, ALL)
    columns = {ref: tables[ref.parts[-1]].split() for ref in names.relations if ref.parts[-1] in tables}
    full = {ref: ("lake", "main", ref.parts[-1]) for ref in columns}
    asked = tables_asked(names, columns, full)
    views = {ref: ".".join(ref.parts).upper() for ref in asked}
    return rewrite(sql, names, views, full, dict.fromkeys(asked, ALL))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select * from t", None),
        ("select * from t where note = 'rowid' -- snapshot_id", None),
        ("select 'rowid' as x, `row id` from t", None),
        ("select rowid(1) from t", None),
        ("select rowid from t", "select rowid from T AS `t`"),
        ("select `ROWID` from t as x", "select `ROWID` from T as x"),
        ("select t.rowid from t join u", "select t.rowid from T AS `t` join u"),
        ("select main.t.rowid from main.t join u", "select `t`.rowid from MAIN.T AS `t` join u"),
        ("select rowid from t join u", "select rowid from T AS `t` join U AS `u`"),
        ("select s.snapshot_id, t.* from ducklake_snapshots() s join t on true", None),
        ("select o.rowid from t join o", None),
        ("select rowid from t join o", None),
        ("select t.rowid from t join o", "select t.rowid from T AS `t` join o"),
        ("select rowid from v", None),
        ("select t.s.rowid from t", None),
        (
            "select (select max(id) from u where u.id = rowid) from t",
            "select (select max(id) from U AS `u` where u.id = rowid) from t",
        ),
        (
            "select (select max(x) from v where x = t.rowid) from t",
            "select (select max(x) from v where x = t.rowid) from T AS `t`",
        ),
        (
            "select * from (select id from t where rowid = 1) q",
            "select * from (select id from T AS `t` where rowid = 1) q",
        ),
        ("with x as (select * from t) select rowid from x", None),
        ("from t |> where rowid = 1", "from T AS `t` |> where rowid = 1"),
    ],
)
def test_a_table_has_virtual_columns_where_they_are_named(sql: str, expected: str | None) -> None:
    assert shown(sql, t="id s", u="id", o="snapshot_id rowid") == (expected or sql)


LESS = "`t`.`rowid`, `t`.`snapshot_id`"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select *, rowid from t", f"select * except ({LESS}), rowid from T AS `t`"),
        ("select rowid, t.* from t", f"select rowid, t.* except ({LESS}) from T AS `t`"),
        (
            "select distinct * from t where rowid > 1",
            f"select distinct * except ({LESS}) from T AS `t` where rowid > 1",
        ),
        (
            "select * from t as x join v on x.rowid = v.id",
            "select * except (`x`.`rowid`, `x`.`snapshot_id`) from T as x join v on x.rowid = v.id",
        ),
        (
            "select * from t join u on t.rowid = u.rowid",
            f"select * except ({LESS}, `u`.`rowid`, `u`.`snapshot_id`)"
            " from T AS `t` join U AS `u` on t.rowid = u.rowid",
        ),
        ("select u.* from t join u on t.rowid = u.id", "select u.* from T AS `t` join u on t.rowid = u.id"),
        ("select * except (id) from t order by rowid", f"select * except ({LESS}, id) from T AS `t` order by rowid"),
        ("select * except (rowid, snapshot_id) from t", "select * except (rowid, snapshot_id) from T AS `t`"),
        ("select * except (T.ROWID) from t", "select * except (`t`.`snapshot_id`, T.ROWID) from T AS `t`"),
        ("select hash(*), rowid from t", f"select hash(* except ({LESS})), rowid from T AS `t`"),
        ("select count(*), 2 * rowid, id * id from t", "select count(*), 2 * rowid, id * id from T AS `t`"),
        ("select t.s.*, rowid from t", "select t.s.*, rowid from T AS `t`"),
        ("select * from t left semi join u on t.rowid = 1", "select * from T AS `t` left semi join u on t.rowid = 1"),
        (
            "select * from t left semi join u on u.id = t.rowid except select * from u",
            "select * from T AS `t` left semi join u on u.id = t.rowid except select * from u",
        ),
        (
            "select * from (select * from t where rowid = 1) q join u",
            f"select * from (select * except ({LESS}) from T AS `t` where rowid = 1) q join u",
        ),
    ],
)
def test_a_star_stands_for_no_virtual_columns(sql: str, expected: str) -> None:
    assert shown(sql, t="id s", u="id", o="snapshot_id rowid") == expected
