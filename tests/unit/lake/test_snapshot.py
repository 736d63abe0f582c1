"""Snapshots: found by version or time, and loaded as a state in few queries."""

from __future__ import annotations

import datetime
import time
from typing import Any

import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.errors import NotFoundError
from dbt.adapters.ducklake.lake.quoted_names import parse_quoted_names, quote_name
from dbt.adapters.ducklake.lake.snapshot_loader import Snapshots, load_state
from dbt.adapters.ducklake.lake.tables import format_instant, parse_instant

from ...lakes import Lake, attached, columns
from .catalogs import NewLake, every_catalog, every_reference_catalog

UTC = datetime.timezone.utc
NOON = datetime.datetime(2024, 5, 1, 12, tzinfo=UTC)
MINUTE = datetime.timedelta(minutes=1)


def at_timestamp(lake: Lake, moment: datetime.datetime) -> int:
    with lake.catalog.read() as connection:
        return lake.catalog.snapshot_at_timestamp(connection, moment).id


def with_snapshots(lake: Lake, count: int) -> Lake:
    """Adds the snapshots 1 to `count`, one for each minute after noon."""
    rows = [
        {
            "snapshot_id": n,
            "snapshot_time": NOON + n * MINUTE,
            "schema_version": 0,
            "next_catalog_id": 1,
            "next_file_id": 0,
        }
        for n in range(1, count + 1)
    ]
    with lake.catalog.write() as connection:
        connection.execute(sa.update(t.snapshot).values(snapshot_time=NOON))
        lake.catalog.database.insert(connection, t.snapshot, rows)
    return lake


# -- versions and times


@every_catalog
def test_a_timestamp_finds_the_newest_snapshot_up_to_it(kind: str, new_lake: NewLake) -> None:
    lake = with_snapshots(Lake(new_lake(kind)), 3)
    assert at_timestamp(lake, NOON) == 0
    assert at_timestamp(lake, NOON + 2 * MINUTE) == 2
    assert at_timestamp(lake, NOON + 2 * MINUTE - datetime.timedelta(microseconds=1)) == 1
    assert at_timestamp(lake, NOON + datetime.timedelta(days=999)) == 3
    elsewhere = datetime.timezone(datetime.timedelta(hours=5, minutes=30))
    assert at_timestamp(lake, (NOON + 2 * MINUTE).astimezone(elsewhere)) == 2
    with pytest.raises(NotFoundError, match=r"no snapshot at 2024-05-01T11:59:00\+00:00: the lake's first is 0 of"):
        at_timestamp(lake, NOON - MINUTE)


@every_reference_catalog
@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/St_Johns"])
def test_times_that_the_reference_wrote_in_any_zone_are_moments(kind: str, zone: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    moments = []
    with attached(address) as connection:
        connection.execute(f"SET TimeZone = '{zone}'")
        for name in ("a", "b", "c"):
            connection.execute(f"CREATE TABLE {name} (i INT)")
            time.sleep(0.02)
            moments.append(datetime.datetime.now(UTC))
            time.sleep(0.02)
    lake = Lake(address)
    assert [at_timestamp(lake, moment) for moment in moments] == [1, 2, 3]
    lake.create("d")
    assert at_timestamp(lake, datetime.datetime.now(UTC)) == 4


@every_catalog
def test_a_moment_is_found_among_many_snapshots_by_the_database(kind: str, new_lake: NewLake) -> None:
    lake = with_snapshots(Lake(new_lake(kind)), 2_000)
    fetched = 0

    with lake.catalog.read() as connection:
        real = connection.execute

        def counted(*args: Any) -> Any:
            nonlocal fetched
            result = real(*args).freeze()
            fetched += len(result.data)
            return result()

        connection.execute = counted  # type: ignore[method-assign]
        assert lake.catalog.snapshot_at_timestamp(connection, NOON + 1_234.5 * MINUTE).id == 1_234
    assert fetched == 1


@every_catalog
def test_the_error_for_a_missing_version_names_the_nearest(kind: str, new_lake: NewLake) -> None:
    lake = with_snapshots(Lake(new_lake(kind)), 9)
    with lake.catalog.write() as connection:
        connection.execute(sa.delete(t.snapshot).where(t.snapshot.c.snapshot_id.in_([0, 1, 4, 5])))
    with lake.catalog.read() as connection:
        assert lake.catalog.snapshot_at_version(connection, 6).id == 6
        for version, error in (
            (4, "no snapshot 4: it was expired; nearest to it there is 3 and 6"),
            (10, "no snapshot 10: the lake never had it; nearest to it there is 9"),
            (0, "no snapshot 0: it was expired, or never was; nearest to it there is 2"),
            (-1, "nearest to it there is 2"),
        ):
            with pytest.raises(NotFoundError, match=error):
                lake.catalog.snapshot_at_version(connection, version)


def test_a_moment_is_written_as_duckdb_writes_it_and_read_with_any_offset() -> None:
    assert format_instant(NOON + datetime.timedelta(microseconds=120_000)) == "2024-05-01 12:00:00.12+00"
    assert format_instant(NOON) == "2024-05-01 12:00:00+00"
    for text in (
        "2024-05-01 12:00:00+00",
        "2024-05-01 17:30:00+05:30",
        "2024-05-01 08:30:00-0330",
        "2024-05-01T12:00:00",
    ):
        assert parse_instant(text) == NOON


# -- states


@every_reference_catalog
def test_everything_that_the_reference_defines_is_seen(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with attached(address) as connection:
        connection.execute("CREATE SCHEMA s")
        connection.execute("""
            CREATE TABLE s.t (
                a INTEGER NOT NULL, b DECIMAL(10, 2) DEFAULT 1.5, c VARCHAR DEFAULT 'it''s',
                d STRUCT(x INTEGER, y STRUCT(z VARCHAR[])), e MAP(VARCHAR, DATE[]), f DATE
            )""")
        connection.execute("ALTER TABLE s.t SET PARTITIONED BY (year(f), bucket(4, a))")
        connection.execute("ALTER TABLE s.t SET SORTED BY (c DESC NULLS FIRST, lower(c))")
        connection.execute("COMMENT ON TABLE s.t IS 'a table'")
        connection.execute("COMMENT ON COLUMN s.t.a IS 'a column'")
        connection.execute("CREATE VIEW s.v (one, two) AS SELECT 1, 2")
        connection.execute("COMMENT ON VIEW s.v IS 'a view'")
    lake = Lake(address)
    table = lake.table("t", "s")
    assert [f"{c.name} {c.type_text()}" for c in table.columns] == [
        "a int32",
        "b decimal(10,2)",
        "c varchar",
        "d struct<x: int32, y: struct<z: list<varchar>>>",
        "e map<varchar, list<date>>",
        "f date",
    ]
    assert [c.nulls_allowed for c in table.columns] == [False, True, True, True, True, True]
    assert [c.default_value for c in table.columns] == [None, "1.5", "it's", None, None, None]
    assert table.partition
    assert [(f.column_id, str(f.transform)) for f in table.partition.fields] == [
        (table.column("f").id, "year"),
        (table.column("a").id, "bucket(4)"),
    ]
    assert table.sort
    assert [(k.expression, k.descending, k.nulls_first) for k in table.sort.keys] == [
        ("c", True, True),
        ("lower(c)", False, False),
    ]
    assert (table.comment, table.column("a").comment) == ("a table", "a column")
    view: Any = lake.state.relation("s", "V")
    assert (view.column_aliases, view.comment, view.dialect) == (("one", "two"), "a view", "duckdb")


@every_reference_catalog
def test_every_version_is_seen_as_it_was(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with attached(address) as connection:
        for statement in (
            "CREATE TABLE t (a INT)",
            "ALTER TABLE t ADD COLUMN b INT",
            "ALTER TABLE t RENAME a TO c",
            "ALTER TABLE t RENAME TO u",
            "COMMENT ON TABLE u IS 'x'",
            "COMMENT ON TABLE u IS NULL",
            "ALTER TABLE u DROP COLUMN b",
            "DROP TABLE u",
        ):
            connection.execute(statement)
    lake = Lake(address)
    seen = []
    for version in range(9):
        with lake.catalog.read() as connection:
            state = lake.snapshots.state(connection, lake.catalog.snapshot_at_version(connection, version))
        seen.append([(r.name, [c.name for c in r.columns], r.comment) for r in state.tables.values()])
    assert seen == [
        [],
        [("t", ["a"], None)],
        [("t", ["a", "b"], None)],
        [("t", ["c", "b"], None)],
        [("u", ["c", "b"], None)],
        [("u", ["c", "b"], "x")],
        [("u", ["c", "b"], None)],
        [("u", ["c"], None)],
        [],
    ]


def test_names_are_found_without_regard_to_case_and_errors_say_what_there_is(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create("Orders", Id="int64")
    state = lake.state
    assert state.table("MAIN", "ORDERS").column("ID").name == "Id"
    with pytest.raises(NotFoundError, match=r"no schema nope; did you mean main\.Orders\?"):
        state.table("nope", "orders")
    with pytest.raises(NotFoundError, match="no schema nope; the lake's schemas are main"):
        state.schema("nope")
    with pytest.raises(NotFoundError, match=r"no table or view main\.nope"):
        state.table("main", "nope")
    with pytest.raises(NotFoundError, match="no column x; its columns are Id"):
        state.table("main", "orders").column("x")


@every_catalog
@pytest.mark.large
def test_five_thousand_tables_load_in_a_handful_of_queries(
    kind: str, new_lake: NewLake, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = Lake(new_lake(kind))
    many = columns(**{f"c{n}": "int32" for n in range(20)})
    uuid = lake.state.schemas[0].uuid
    tables = [{"table_id": n, "table_uuid": uuid} for n in range(1, 5_001)]
    with lake.catalog.write() as connection:
        insert = lake.catalog.database.insert
        common = {"begin_snapshot": 0, "schema_id": 0, "path_is_relative": True}
        insert(connection, t.table, [{**r, **common, "table_name": f"t{r['table_id']}", "path": "p/"} for r in tables])
        rows = [
            {
                "column_id": i,
                "begin_snapshot": 0,
                "table_id": r["table_id"],
                "column_order": i,
                "column_name": c.name,
                "column_type": c.type,
                "nulls_allowed": True,
            }
            for r in tables
            for i, c in enumerate(many, 1)
        ]
        insert(connection, t.column, rows)
    statements: list[str] = []
    sa.event.listen(lake.catalog._engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    begun = time.perf_counter()
    with lake.catalog.read() as connection:
        state = load_state(connection, lake.catalog, 0)
    with capsys.disabled():
        print(f"\n{kind}: 5,000 tables of 20 columns in {time.perf_counter() - begun:.2f} s")
    assert len(state.tables) == 5_000
    assert [c.name for c in state.tables[4_999].columns] == [c.name for c in many]
    assert len([s for s in statements if s.lstrip().upper().startswith("SELECT")]) < 12


def test_a_state_is_loaded_once_while_the_schema_stays(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create()
    before = lake.begin().base_state
    lake.append({"id": [1], "name": ["a"]})
    assert lake.begin().base_state is before
    lake.create("u")
    assert lake.begin().base_state is not before


def test_few_states_are_kept(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.snapshots = Snapshots(lake.catalog, keep=2)
    for name in ("a", "b", "c", "d"):
        lake.create(name)
    assert len(lake.snapshots._states) == 2


@pytest.mark.parametrize("names", [[], ["a"], ["a", "b"], ['q"', ",", '","', ""], ['"'], ["a.b", "ü"]])
def test_quoted_lists_come_back(names: list[str]) -> None:
    assert parse_quoted_names(",".join(quote_name(n) for n in names)) == tuple(names)
    assert parse_quoted_names(".".join(quote_name(n) for n in names), ".") == tuple(names)


@pytest.mark.parametrize("text", ["a", '"a"b', '"a', '"a";"b"'])
def test_a_malformed_quoted_list_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected|not found"):
        parse_quoted_names(text)


def test_a_warm_cache_gives_the_states_that_a_cold_one_does(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    with lake.duckdb() as duckdb:
        for change in (
            "create table a (id int, s struct(x int, y varchar))",
            "create table b (id int, name varchar)",
            "comment on column a.id is 'who'",
            "alter table a add column extra int",
            "alter table a rename column extra to more",
            "comment on column a.id is 'whose'",
            "alter table a drop column more",
            "alter table a add column s.z int",
            "comment on column a.id is null",
            "drop table b",
            "create table b (id bigint)",
            "alter table b set partitioned by (id)",
            "create view v as select 1 as x",
        ):
            duckdb.execute(change)
    newest = lake.latest
    for order in (range(newest + 1), range(newest, -1, -1), [3, 9, 4, 8, 5, 1, newest]):
        warm = Snapshots(lake.catalog, keep=1)
        for version in order:
            with lake.catalog.read() as connection:
                state = warm.state(connection, lake.catalog.snapshot_at_version(connection, version))
                assert state == load_state(connection, lake.catalog, version), version
