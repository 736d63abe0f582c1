"""ALTER TABLE and ALTER VIEW."""

from __future__ import annotations

from dbt.adapters.ducklake.lake.types import Column
from dbt.adapters.ducklake.spark.sql.alter import (
    AddColumn,
    Alter,
    ChangeType,
    DropColumn,
    DropDefault,
    DropNotNull,
    MoveColumn,
    Position,
    RenameColumn,
    RenameRelation,
    SetColumnComment,
    SetDefault,
    SetNotNull,
    SetPartitionKeys,
    SetProperties,
    SetSortKeys,
    SetViewQuery,
    UnsetProperties,
)
from dbt.adapters.ducklake.spark.sql.definitions import PartitionKey, SortKey
from dbt.adapters.ducklake.spark.sql.statements import parse

from .helpers import A, B, define, parses


@parses(
    ("add column b string", [AddColumn(define(B))]),
    ("add a int", [AddColumn(define(A))]),
    (
        "add columns (a int not null comment 'x' first, s.b string default 'y' after `c d`)",
        [
            AddColumn(define(Column(0, "a", "int32", False, tags=(("comment", "x"),))), (), Position()),
            AddColumn(define(B, "'y'"), ("s",), Position("c d")),
        ],
    ),
    ("add column if not exists x.y.a int", [AddColumn(define(A), ("x", "y"), None, True)]),
    ("add columns a int, b string", [AddColumn(define(A)), AddColumn(define(B))]),
    ("drop column a.b", [DropColumn(("a", "b"))]),
    ("drop a", [DropColumn(("a",))]),
    ("drop columns if exists (a, b.c)", [DropColumn(("a",), True), DropColumn(("b", "c"), True)]),
    ("drop column a, b", [DropColumn(("a",)), DropColumn(("b",))]),
    ("rename column a.b to c", [RenameColumn(("a", "b"), "c")]),
    ("rename a to b", [RenameColumn(("a",), "b")]),
    ("rename to s.u", [RenameRelation(("s", "u"))]),
    ("alter column a type bigint", [ChangeType(("a",), Column(0, "a", "int64"))]),
    ("alter column s.a set data type bigint", [ChangeType(("s", "a"), Column(0, "a", "int64"))]),
    ("alter a set type bigint", [ChangeType(("a",), Column(0, "a", "int64"))]),
    ("change column a type bigint", [ChangeType(("a",), Column(0, "a", "int64"))]),
    ("alter column a set not null", [SetNotNull(("a",))]),
    ("alter column a drop not null", [DropNotNull(("a",))]),
    ("alter column a set default 1 + 1", [SetDefault(("a",), "1 + 1")]),
    ("alter column a drop default", [DropDefault(("a",))]),
    ("alter column a comment 'x'", [SetColumnComment(("a",), "x")]),
    ("alter column a first", [MoveColumn(("a",), Position())]),
    ("alter column a after b", [MoveColumn(("a",), Position("b"))]),
    (
        "alter column a type int, b comment 'x'",
        [ChangeType(("a",), A), SetColumnComment(("b",), "x")],
    ),
    (
        "change a b int comment 'x' after c",
        [
            ChangeType(("a",), A),
            SetColumnComment(("a",), "x"),
            MoveColumn(("a",), Position("c")),
            RenameColumn(("a",), "b"),
        ],
    ),
    ("change column a a int", [ChangeType(("a",), A)]),
    (
        "set partitioned by (year(a), bucket(8, b))",
        [SetPartitionKeys((PartitionKey("year", "a"), PartitionKey("bucket", "b", 8)))],
    ),
    ("reset partitioned by", [SetPartitionKeys(())]),
    ("set sorted by (a asc nulls last)", [SetSortKeys((SortKey("a", False, False),))]),
    ("reset sorted by", [SetSortKeys(())]),
    ("set tblproperties ('a' = 'b')", [SetProperties((("a", "b"),))]),
    ("unset tblproperties if exists ('a', b.c)", [UnsetProperties(("a", "b.c"), True)]),
)
def test_a_table_is_altered_action_by_action(sql: str, expected: object) -> None:
    assert parse(f"alter table lake.s.t {sql};") == Alter("table", ("lake", "s", "t"), tuple(expected))


@parses(
    ("rename to w", RenameRelation(("w",))),
    ("as select 2", SetViewQuery("select 2")),
    ("set tblproperties (a = 'b')", SetProperties((("a", "b"),))),
    ("unset tblproperties (a)", UnsetProperties(("a",))),
)
def test_a_view_is_altered(sql: str, expected: object) -> None:
    assert parse(f"alter view s.v {sql}") == Alter("view", ("s", "v"), (expected,))
