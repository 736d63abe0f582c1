"""ALTER TABLE: old rows stay readable, and forbidden changes are refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import (
    AlreadyExistsError,
    ConstraintError,
    NotFoundError,
    SchemaChangeError,
    UnsupportedError,
)

from .helpers import rows, run, snapshots


def test_evolution_keeps_old_rows_readable(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, s struct<x: int, y: array<struct<p: int>>>, f float, gone string)",
        "insert into t select 1, named_struct('x', 10, 'y', array(named_struct('p', 100))), 0.5, 'old'",
        "alter table t add column s.z string",
        "alter table t add column s.y.element.q bigint",
        "alter table t rename column s.x to xx",
        "alter table t alter column id type bigint",
        "alter table t alter column f type double",
        "alter table t alter column s.xx type bigint",
        "alter table t rename column gone to kept",
        "alter table t add column d decimal(10,2) default 1.25",
        "alter table t drop column kept",
        "alter table t add column kept int",
    )
    assert rows(lake, "select * from t") == [
        (1, {"xx": 10, "y": [{"p": 100, "q": None}], "z": None}, 0.5, Decimal("1.25"), None)
    ]
    assert rows(lake, "select id, s.x, gone from t version as of 2") == [(1, 10, "old")]


@pytest.mark.parametrize(
    ("statement", "error", "message"),
    [
        ("alter table t alter column a type smallint", SchemaChangeError, "only a wider type"),
        ("alter table t alter column s type int", SchemaChangeError, "only a wider type"),
        ("alter table t drop column p", SchemaChangeError, "is partitioned by it"),
        ("alter table t drop column o", SchemaChangeError, "is sorted by"),
        ("alter table t add column a int", AlreadyExistsError, "already has a column a"),
        ("alter table t add column n int not null", ConstraintError, "give it a DEFAULT"),
        ("alter table t add column n int first", UnsupportedError, "comes last"),
        ("alter table t add column n timestamp default now()", SchemaChangeError, "no fixed value"),
        ("alter table t drop column nope", NotFoundError, "has no column nope"),
        ("alter table t set partitioned by (month(a))", SchemaChangeError, "the column is int32"),
        ("alter table t set sorted by (nope)", SchemaChangeError, "it has no column"),
        ("alter table t rename to u", AlreadyExistsError, "main.u already exists"),
        ("alter table t alter column st.x set not null", SchemaChangeError, "whole columns only"),
        ("drop schema main", SchemaChangeError, "is not empty"),
        ("create table t (a int)", AlreadyExistsError, "OR REPLACE"),
        ("drop view t", NotFoundError, "is a table"),
        ("create table n as select null as x", SchemaChangeError, "cast\\(null as string\\)"),
    ],
)
def test_a_forbidden_change_is_refused_with_the_rule(
    lake: LakeSession, statement: str, error: type[Exception], message: str
) -> None:
    run(
        lake,
        "create table t (a int, s string, p int, o int, st struct<x: int>) partitioned by (p) sorted by (o)",
        "create table u (a int)",
        "insert into t (a) values (1)",
    )
    newest = snapshots(lake)
    with pytest.raises(error, match=message):
        lake.execute(statement)
    assert snapshots(lake) == newest


def test_the_last_column_cannot_be_dropped(lake: LakeSession) -> None:
    lake.execute("create table t (a int)")
    with pytest.raises(SchemaChangeError, match="the last one"):
        lake.execute("alter table t drop column a")


def test_set_not_null_checks_the_rows(lake: LakeSession) -> None:
    run(lake, "create table t (a int)", "insert into t values (1), (null)")
    with pytest.raises(ConstraintError, match="where `a` is null"):
        lake.execute("alter table t alter column a set not null")
    run(lake, "insert overwrite t values (1)", "alter table t alter column a set not null")
    with pytest.raises(ConstraintError):
        lake.execute("insert into t values (null)")
    run(lake, "alter table t alter column a drop not null", "insert into t values (null)")
