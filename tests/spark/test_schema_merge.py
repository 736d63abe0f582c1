"""Schema merge: MERGE and INSERT WITH SCHEMA EVOLUTION add columns and fields and widen types."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.errors import LakeError, NotFoundError, SchemaChangeError

from .helpers import rows, run, snapshots

MERGE = "merge with schema evolution into t using s on t.id = s.id"
BOTH = "when matched then update set * when not matched then insert *"


def content(lake: LakeSession, table: str = "t") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lake.execute(f"select * from {table} order by id").arrow().to_pylist()
    return found


def types(lake: LakeSession, table: str = "t") -> dict[str, str]:
    return {name: kind for name, kind, *_ in rows(lake, f"describe {table}")}


def test_a_merge_with_stars_adds_the_columns_of_its_source(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select 1 as id, 'a' as v union all select 2, 'b'",
        "create table s as select 2 as ID, 'B' as v, date'2026-01-01' as day union all select 3, 'C', null",
    )
    before = snapshots(lake)
    run(lake, f"{MERGE} {BOTH}")
    assert [tuple(row.values()) for row in content(lake)] == [
        (1, "a", None),
        (2, "B", date(2026, 1, 1)),
        (3, "C", None),
    ]
    assert types(lake) == {"id": "int", "v": "string", "day": "date"}
    assert snapshots(lake) == before + 1
    assert [tuple(r.values()) for r in content(lake, f"t version as of {before - 1}")] == [(1, "a"), (2, "b")]


def test_a_column_that_the_source_lacks_keeps_old_values_and_is_the_default_in_new_rows(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, v string, kind string default 'plain')",
        "insert into t values (1, 'a', 'old')",
        "create table s as select * from values (1, true), (2, false) as r(id, flag)",
        f"{MERGE} {BOTH}",
    )
    assert [tuple(r.values()) for r in content(lake)] == [(1, "a", "old", True), (2, None, "plain", False)]


def test_types_are_widened_and_never_narrowed(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, n int, f float, d decimal(6,2), big bigint, text string)",
        "insert into t values (1, 1, 1.5, 1.25, 5000000000, 'x')",
        "create table s as select 1 as id, 3000000000 as n, 0.1D as f, cast(12345.125 as decimal(10,3)) as d,"
        " 7 as big, 8 as text",
        f"{MERGE} {BOTH}",
    )
    assert types(lake) == {
        "id": "int",
        "n": "bigint",
        "f": "double",
        "d": "decimal(10,3)",
        "big": "bigint",
        "text": "string",
    }
    assert [str(v) for v in content(lake)[0].values()] == ["1", "3000000000", "0.1", "12345.125", "7", "8"]


def test_struct_fields_are_added_and_those_that_the_source_lacks_stay(lake: LakeSession) -> None:
    run(
        lake,
        "create table t (id int, p struct<a: int, q: struct<x: int, y: string>>, l array<struct<k: int>>,"
        " m map<string, struct<k: int>>)",
        "insert into t select 1, named_struct('a', 1, 'q', named_struct('x', 1, 'y', 'old')),"
        " array(named_struct('k', 1)), map('one', named_struct('k', 1))",
        "insert into t select 2, null, null, null",
        "create table s as select id, named_struct('q', named_struct('x', 5000000000, 'z', true), 'b', 'new') as p,"
        " array(named_struct('k', 2, 'j', 'in a list')) as l,"
        " map('two', named_struct('k', 3, 'j', 'in a map')) as m from values (1), (2), (3) as r(id)",
        "insert into s select 4, null, null, null",
        "insert into t select 4, named_struct('a', 4, 'q', null), null, null",
        f"{MERGE} {BOTH}",
    )
    assert types(lake)["p"] == "struct<a:int,q:struct<x:bigint,y:string,z:boolean>,b:string>"
    found = {row["id"]: row for row in content(lake)}
    deep = {"x": 5000000000, "z": True}
    assert found[1]["p"] == {"a": 1, "q": {**deep, "y": "old"}, "b": "new"}
    assert found[2]["p"] == found[3]["p"] == {"a": None, "q": {**deep, "y": None}, "b": "new"}
    assert found[4]["p"] is None
    assert found[1]["l"] == [{"k": 2, "j": "in a list"}]
    assert found[1]["m"] == [("two", {"k": 3, "j": "in a map"})]


@pytest.mark.parametrize(
    ("clauses", "columns", "left"),
    [
        ("when matched then update set v = s.v", "id v", [(1, "B")]),
        ("when matched then update set v = s.v, day = s.day", "id v day", [(1, "B", 5)]),
        ("when matched then update set T.V = S.V, `t`.`day` = `s`.`day`", "id v day", [(1, "B", 5)]),
        (
            "when not matched then insert (id, day, v) values (s.id, s.day, 'n') when matched then delete",
            "id v day",
            [(2, "n", 6)],
        ),
        (
            "when not matched then insert (id, v, day) values (id, v, day) when matched then delete",
            "id v day",
            [(2, "C", 6)],
        ),
        (
            "when matched and t.day is null then update set day = s.day",
            "id v day",
            [(1, "a", 5)],
        ),
        (
            "when matched and s.more then update set v = 'x' when not matched then insert *",
            "id v day more",
            [(1, "a", None, None), (2, "C", 6, True)],
        ),
        ("when matched then delete when not matched then insert (id) values (s.id)", "id v", [(2, None)]),
    ],
)
def test_a_listed_column_is_added_if_it_gets_the_source_column_of_its_name(
    lake: LakeSession, clauses: str, columns: str, left: list[tuple[Any, ...]]
) -> None:
    run(
        lake,
        "create table t as select 1 as id, 'a' as v",
        "create table s as select * from values (1, 'B', 5, false), (2, 'C', 6, true) as r(id, v, day, more)",
        f"{MERGE} {clauses}",
    )
    assert list(content(lake)[0]) == columns.split()
    assert [tuple(row.values()) for row in content(lake)] == left


def test_a_struct_field_is_added_by_its_path(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select 1 as id, named_struct('a', 1, 'q', named_struct('x', 1)) as p",
        "create table s as select 1 as id, named_struct('q', named_struct('y', 'new', 'z', 0)) as p",
        f"{MERGE} when matched then update set p.q.y = s.p.q.y, p.a = 2",
    )
    assert content(lake) == [{"id": 1, "p": {"a": 2, "q": {"x": 1, "y": "new"}}}]


@pytest.mark.parametrize(
    "clauses",
    [
        "when matched then update set day = s.day + 1",
        "when matched then update set day = s.more",
        "when matched then update set p.day = s.day",
        "when matched then update set p.a = s.p.a",
        "when not matched then insert (id, day) values (s.id, 1)",
    ],
)
def test_a_listed_column_that_gets_another_expression_is_not_added(lake: LakeSession, clauses: str) -> None:
    run(
        lake,
        "create table t as select 1 as id, 'a' as v",
        "create table s as select id, 5 as day, 7 as more, named_struct('a', 1) as p from values (1) as r(id)",
    )
    before = snapshots(lake)
    with pytest.raises(NotFoundError, match="which table t has not; it has id, v"):
        lake.execute(f"{MERGE} {clauses}")
    assert snapshots(lake) == before


def test_a_merge_without_schema_evolution_adds_no_columns(lake: LakeSession) -> None:
    run(
        lake,
        "create table t as select 1 as id, 'a' as v",
        "create table s as select 1 as id, 'b' as v, 1 as more",
        f"merge into t using s on t.id = s.id {BOTH}",
        "create or replace table s as select 1 as id",
    )
    assert content(lake) == [{"id": 1, "v": "b"}]
    with pytest.raises(SchemaChangeError, match="write MERGE WITH SCHEMA EVOLUTION"):
        lake.execute(f"merge into t using s on t.id = s.id {BOTH}")


def test_added_columns_work_with_partitions_deletes_and_the_change_feed(lake: LakeSession) -> None:
    run(
        lake,
        "create table t partitioned by (g) as select id, id % 2 as g from range(6)",
        "delete from t where id = 0",
        "create table s as select id, id % 2 as g, concat('v', id) as v from range(4, 8)",
        f"{MERGE} {BOTH} when not matched by source and t.id = 1 then delete",
        "update t set v = 'set' where id = 2",
    )
    assert [tuple(r.values()) for r in content(lake)] == [
        (2, 0, "set"),
        (3, 1, None),
        *((i, i % 2, f"v{i}") for i in range(4, 8)),
    ]
    changes = rows(lake, "select change_type, id from ducklake_table_changes('t', 4, 4)")
    assert sorted(changes, key=repr) == sorted(
        [
            ("delete", 1),
            *((kind, i) for i in (4, 5) for kind in ("update_preimage", "update_postimage")),
            ("insert", 6),
            ("insert", 7),
        ],
        key=repr,
    )


# -- INSERT


@pytest.mark.parametrize(
    ("insert", "columns", "left"),
    [
        ("into t by name select 2 as id, 'new' as more", "id v more", [(1, "a", None), (2, None, "new")]),
        ("into t select 2, 'b', 'new' as more", "id v more", [(1, "a", None), (2, "b", "new")]),
        ("into t values (2, 'b')", "id v", [(1, "a"), (2, "b")]),
        ("into t (v, id) values ('b', 5000000000)", "id v", [(1, "a"), (5000000000, "b")]),
        ("overwrite t by name select 3 as id, 4 as more", "id v more", [(3, None, 4)]),
        ("into t replace where id = 1 select 4, 'd', 1.5 as more", "id v more", [(4, "d", 1.5)]),
        ("into t by name replace using (id) select 1 as id, true as more", "id v more", [(1, None, True)]),
    ],
)
def test_an_insert_adds_the_columns_of_its_query(
    lake: LakeSession, insert: str, columns: str, left: list[tuple[Any, ...]]
) -> None:
    run(lake, "create table t as select 1 as id, 'a' as v")
    before = snapshots(lake)
    run(lake, f"insert with schema evolution {insert}")
    assert list(content(lake)[0]) == columns.split()
    assert [tuple(map(str, row.values())) for row in content(lake)] == [tuple(map(str, row)) for row in left]
    assert snapshots(lake) == before + 1


@pytest.mark.parametrize(
    ("insert", "message"),
    [
        ("into t select 1", "takes 2 columns here"),
        ("into t (id, nosuch) values (1, 2)", "no column nosuch"),
        ("into t by name select 1 as id, null as more", "cast\\(null as string\\)"),
        ("into t by name select 1 as id, 2 as more, 3 as MORE", "given twice"),
        ("into t by name select trim('text') as id", "required to be .INT"),
    ],
)
def test_a_refused_insert_says_why_and_leaves_the_table(lake: LakeSession, insert: str, message: str) -> None:
    run(lake, "create table t as select 1 as id, 'a' as v")
    before = snapshots(lake)
    with pytest.raises((LakeError, AnalysisException), match=message):
        lake.execute(f"insert with schema evolution {insert}")
    assert snapshots(lake) == before
    assert content(lake) == [{"id": 1, "v": "a"}]
