"""Transactions: staged changes are visible to their transaction and become one snapshot or none."""

from __future__ import annotations

import time

import pytest

from dbt.adapters.ducklake.lake import evolution
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.commit.staged import CommitInfo
from dbt.adapters.ducklake.lake.databases.connection_string import parse_catalog
from dbt.adapters.ducklake.lake.errors import (
    AlreadyExistsError,
    LakeError,
    NotFoundError,
    OptionError,
    SchemaChangeError,
)
from dbt.adapters.ducklake.lake.files import table_files
from dbt.adapters.ducklake.lake.partitions import Identity
from dbt.adapters.ducklake.lake.sorting import SortKey

from ...lakes import Lake, column, columns
from ...workers import paper_file
from .catalogs import ODD_NAMES, NewLake, every_catalog, every_reference_catalog


@pytest.fixture
def lake(new_lake: NewLake) -> Lake:
    """A lake in SQLite with one table, t."""
    lake = Lake(new_lake("sqlite"))
    lake.create()
    return lake


# -- one snapshot


@every_reference_catalog
def test_many_changes_are_one_snapshot_that_the_reference_reads(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.transaction(author="Ada", message="all of it") as tx:
        schema = tx.create_schema("s", comment="a schema")
        table = tx.create_table(schema, "t", columns(id="int64", name="varchar"), comment="a table")
        tx.append(table, [lake.file(tx, table, {"id": [1, 2], "name": ["a", None]})])
        table = tx.alter_table(
            table,
            lambda x: evolution.add_column(
                x, (), column("day", "date", initial_default="2024-01-01"), tx.column_ids(x)
            ),
        )
        table = tx.alter_table(table, lambda x: evolution.set_sort(x, (SortKey("id"),), tx.new_provisional_id()))
        table = tx.alter_table(
            table, lambda x: evolution.set_partition(x, [("day", Identity())], tx.new_provisional_id())
        )
        tx.create_view(schema, "v", "SELECT * FROM lake.s.t", "duckdb")
        tx.set_option("target_file_size", "1MB", table=table)
        tx.create_table(tx.state.schema("main"), "u", columns(a="int32"))
    assert lake.latest == 1
    assert lake.changes[1] == (
        'created_schema:"s",created_table:"s"."t",created_table:"main"."u",created_view:"s"."v",inserted_into_table:2'
    )
    assert lake.rows(t.snapshot_changes)[1]["author"] == "Ada"
    assert lake.seen_by_duckdb("SELECT id, name, CAST(day AS VARCHAR) FROM s.v ORDER BY id") == [
        (1, "a", "2024-01-01"),
        (2, None, "2024-01-01"),
    ]


@every_catalog
def test_nothing_staged_is_no_snapshot(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    committed = lake.begin(message="nothing").commit()
    assert (committed.changed, committed.snapshot.id, lake.latest) == (False, 0, 0)


def test_changes_that_cancel_each_other_are_no_snapshot(lake: Lake) -> None:
    with lake.transaction() as tx:
        table = tx.create_table(tx.create_schema("s"), "gone", columns(a="int32"))
        tx.append(table, [paper_file("gone.parquet", 1)])
        tx.set_option("target_file_size", "1MB", table=table)
        tx.set_option("target_file_size", "1MB", schema=tx.state.schema("s"))
        tx.create_view(tx.state.schema("s"), "v", "select 1", "duckdb")
        tx.drop_schema("s", cascade=True)
        main = tx.state.schema("main")
        tx.rename(tx.state.table("main", "t"), main, "other")
        tx.rename(tx.state.table("main", "other"), main, "t")
    assert lake.latest == 1
    assert [r for r in lake.rows(t.ducklake_metadata) if r["scope"]] == []
    assert lake.rows(t.data_file) == []


def test_a_dropped_transaction_leaves_nothing(lake: Lake) -> None:
    tx = lake.begin()
    tx.create_table(tx.state.schema("main"), "u", columns(a="int32"))
    assert lake.latest == 1
    assert lake.state.find_relation("main", "u") is None


# -- what a transaction sees


def test_a_transaction_sees_its_own_changes_and_nobody_elses(lake: Lake) -> None:
    tx = lake.begin()
    tx.create_table(tx.state.schema("main"), "mine", columns(a="int32"))
    lake.create("theirs")
    assert tx.state.find_relation("main", "mine")
    assert tx.state.find_relation("main", "theirs") is None
    with pytest.raises(AlreadyExistsError, match="main.mine already exists; it is a table"):
        tx.create_view(tx.state.schema("main"), "MINE", "select 1", "duckdb")
    tx.commit()
    assert lake.state.find_relation("main", "mine")
    assert lake.state.find_relation("main", "theirs")


def test_a_nested_transaction_folds_into_its_parent_or_is_dropped(lake: Lake) -> None:
    tx = lake.begin()
    inner = tx.nested()
    table = inner.create_table(inner.state.schema("main"), "kept", columns(a="int32"))
    innermost = inner.nested()
    innermost.append(innermost.state.table("main", "kept"), [paper_file("1.parquet", 1)])
    innermost.commit_info = CommitInfo("Ada", "from within")
    innermost.merge_into_parent()
    vanished = inner.nested()
    vanished.drop(table)
    vanished.create_table(vanished.state.schema("main"), "never", columns(a="int32"))
    assert tx.state.find_relation("main", "kept") is None
    inner.merge_into_parent()
    with pytest.raises(LakeError, match="merged into its parent, not committed"):
        inner.commit()
    with pytest.raises(LakeError, match="the outermost one is committed"):
        tx.merge_into_parent()
    tx.commit()
    assert sorted(x.name for x in lake.state.tables.values()) == ["kept", "t"]
    assert [f["path"] for f in lake.rows(t.data_file)] == ["1.parquet"]
    assert lake.rows(t.snapshot_changes)[-1]["commit_message"] == "from within"


# -- names


@every_reference_catalog
def test_any_name_can_be_created_and_is_read_by_the_reference(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    for name in ODD_NAMES:
        with lake.transaction() as tx:
            table = tx.create_table(tx.create_schema(name), name, (column(name, "int32", tags=()),), comment=name)
            tx.append(table, [lake.file(tx, table, {name: [1]})])
        again = lake.table(name, name)
        assert (again.name, again.columns[0].name, again.comment) == (name, name, name)
    with lake.duckdb() as connection:
        for name in ODD_NAMES:
            quoted = '"' + name.replace('"', '""') + '"'
            assert connection.execute(f"SELECT {quoted} FROM {quoted}.{quoted}").fetchall() == [(1,)]
        connection.execute("CREATE TABLE after_all (a INT)")


@pytest.mark.catalogs
def test_any_name_is_kept_in_a_mysql_database_of_another_alphabet(new_lake: NewLake) -> None:
    address = new_lake("mysql")
    with parse_catalog(address.catalog).engine().begin() as connection:
        name = connection.engine.url.database or connection.exec_driver_sql("SELECT DATABASE()").scalar()
        connection.exec_driver_sql(f"ALTER DATABASE `{name}` CHARACTER SET latin1 COLLATE latin1_swedish_ci")
    lake = Lake(address)
    lake.create("\U0001f986", a="int32")
    with lake.transaction() as tx:
        tx.set_tags(tx.state.table("main", "\U0001f986"), (("K", "1"), ("k", "2")))
    with lake.transaction() as tx:
        tx.set_tags(tx.state.table("main", "\U0001f986"), (("k", "2"),))
    assert lake.table("\U0001f986").tags == (("k", "2"),)


@pytest.mark.catalogs
def test_any_name_is_kept_on_mysql(new_lake: NewLake) -> None:
    lake = Lake(new_lake("mysql"))
    for name in (*ODD_NAMES, "l" * 70_000):
        lake.create(name)
        assert lake.table(name).name == name


def test_renames_may_swap_names_in_one_transaction(lake: Lake) -> None:
    lake.create("u", a="int32")
    lake.append({"id": [1], "name": ["a"]})
    ids = lake.table("t").id, lake.table("u").id
    with lake.transaction() as tx:
        main = tx.state.schema("main")
        for old, new in (("t", "tmp"), ("u", "t"), ("tmp", "u")):
            tx.rename(tx.state.relation("main", old), main, new)
    assert (lake.table("u").id, lake.table("t").id) == ids
    assert lake.changes[-1] == 'created_table:"main"."u",created_table:"main"."t"'
    assert lake.seen_by_duckdb("FROM u") == [(1, "a")]
    assert lake.seen_by_duckdb("FROM t") == []


def test_a_name_may_be_dropped_and_made_again_in_one_transaction(lake: Lake) -> None:
    lake.append({"id": [1], "name": ["a"]})
    with lake.transaction() as tx:
        tx.drop(tx.state.table("main", "t"))
        with pytest.raises(NotFoundError):
            tx.state.table("main", "t")
        table = tx.create_table(tx.state.schema("main"), "t", columns(other="int32"))
        tx.append(table, [lake.file(tx, table, {"other": [7]})])
    assert lake.changes[-1] == 'dropped_table:1,created_table:"main"."t",inserted_into_table:2'
    assert lake.seen_by_duckdb("FROM t") == [(7,)]
    assert lake.seen_by_duckdb("FROM t AT (VERSION => 2)") == [(1, "a")]


def test_a_table_that_moves_to_another_schema_keeps_its_files(lake: Lake) -> None:
    lake.append({"id": [1], "name": ["a"]})
    with lake.transaction() as tx:
        tx.rename(tx.state.table("main", "t"), tx.create_schema("s"), "moved")
    lake.append({"id": [2], "name": ["b"]}, "moved", "s")
    assert lake.seen_by_duckdb("FROM s.moved ORDER BY id") == [(1, "a"), (2, "b")]


def test_a_schema_is_dropped_with_its_relations_and_may_be_created_again(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.create_table(tx.create_schema("s"), "u", columns(a="int32"))
        tx.create_view(tx.state.schema("s"), "v", "SELECT 1 AS one", "duckdb")
    with lake.transaction() as tx:
        with pytest.raises(SchemaChangeError, match=r"s is not empty \(2 tables, views and macros: u, v\)"):
            tx.drop_schema("s")
        tx.drop_schema("S", cascade=True)
        tx.create_table(tx.create_schema("s"), "u", columns(b="int32"))
    assert [c.name for c in lake.table("u", "s").columns] == ["b"]
    assert lake.state.find_relation("s", "v") is None
    assert lake.seen_by_duckdb("FROM s.u") == []


def test_a_relation_is_dropped_after_it_changed_in_the_transaction(lake: Lake) -> None:
    with lake.transaction() as tx:
        table = tx.state.table("main", "t")
        tx.set_tags(table, (("comment", "newer than the value in hand"),))
        tx.drop(table)
    assert lake.state.find_relation("main", "t") is None


# -- comments, tags, options


@every_catalog
def test_comments_and_tags_are_set_and_removed(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    with lake.transaction() as tx:
        tx.set_schema_comment("main", "a schema")
    with lake.transaction() as tx:
        tx.set_tags(tx.state.table("main", "t"), (("comment", "a 'table'"), ("owner", "ünï")))
    assert lake.state.schema("main").comment == "a schema"
    assert lake.table().tags == (("comment", "a 'table'"), ("owner", "ünï"))
    assert lake.changes[2:] == [None, "altered_table:1"]
    if kind != "mysql":
        assert lake.seen_by_duckdb("SELECT comment FROM duckdb_tables() WHERE table_name = 't'") == [("a 'table'",)]
        with lake.duckdb() as connection:
            connection.execute("CREATE TABLE after_all (a INT)")
    with lake.transaction() as tx:
        tx.set_schema_comment("main", None)
        tx.set_tags(tx.state.table("main", "t"), ())
    assert (lake.state.schema("main").comment, lake.table().tags) == (None, ())


@every_catalog
def test_an_option_staged_with_its_table_belongs_to_the_table(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.transaction() as tx:
        table = tx.create_table(tx.state.schema("main"), "t", columns(a="int32"))
        tx.set_option("parquet_compression", "ZSTD", table=table)
        assert tx.options.get("parquet_compression", table_id=table.id) == "zstd"
    begun = lake.begin()
    assert begun.options.get("parquet_compression", 0, lake.table().id) == "zstd"
    assert begun.options.get("parquet_compression") == "snappy"


@every_catalog
def test_an_option_alone_is_no_snapshot(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    for value in ("1MB", "2MB"):
        with lake.transaction() as tx:
            tx.set_option("target_file_size", value)
    assert lake.latest == 0
    assert lake.begin().options.number("target_file_size") == 2_000_000
    with lake.transaction() as tx:
        tx.set_option("target_file_size", None)
    assert lake.begin().options.number("target_file_size") == 512_000_000
    with pytest.raises(OptionError, match="not set, so it can not be unset"):
        lake.begin().set_option("target_file_size", None)


def test_a_lake_may_require_commit_messages(lake: Lake) -> None:
    with lake.transaction() as tx:
        tx.set_option("require_commit_message", True)
    with pytest.raises(LakeError, match="asks for a commit message"):
        lake.create("u")
    with lake.transaction(message="said") as tx:
        tx.create_table(tx.state.schema("main"), "u", columns(a="int32"))
    with lake.transaction() as tx:
        tx.set_option("require_commit_message", False)


# -- rows


@every_reference_catalog
def test_appended_files_are_read_and_widen_the_statistics(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [5, 6], "name": ["m", None]})
    lake.append({"id": [1, 9], "name": ["a", "z"]})
    stats = {
        r["column_id"]: (r["min_value"], r["max_value"], r["contains_null"]) for r in lake.rows(t.table_column_stats)
    }
    assert stats == {1: ("1", "9", False), 2: ("a", "z", True)}
    assert [(f["row_id_start"], f["record_count"]) for f in lake.rows(t.data_file)] == [(0, 2), (2, 2)]
    with lake.duckdb() as connection:
        assert connection.execute("SELECT rowid, id FROM t ORDER BY id").fetchall() == [(2, 1), (0, 5), (1, 6), (3, 9)]
        assert connection.execute("SELECT min(id), max(id), count(*) FROM t").fetchone() == (1, 9, 4)
        assert connection.execute("SELECT name FROM t WHERE id = 9").fetchall() == [("z",)]
        assert connection.execute("FROM t AT (VERSION => 2) ORDER BY id").fetchall() == [(5, "m"), (6, None)]
        connection.execute("INSERT INTO t SELECT 100, 'ours too' FROM range(20)")
    lake.append({"id": [200], "name": ["after"]})
    assert lake.seen_by_duckdb("SELECT count(*), count(DISTINCT rowid), max(id) FROM t") == [(25, 25, 200)]


@every_reference_catalog
def test_truncate_ends_files_and_inlined_rows(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [1], "name": ["file"]})
    with lake.duckdb() as connection:
        connection.execute("INSERT INTO t VALUES (2, 'inlined')")
    with lake.transaction() as tx:
        table = tx.state.table("main", "t")
        tx.append(table, [paper_file("staged and gone.parquet", 1)])
        tx.truncate(table)
        tx.append(table, [lake.file(tx, table, {"id": [3], "name": ["new"]})])
    assert lake.changes[-1] == "inserted_into_table:1,deleted_from_table:1,inlined_delete:1"
    assert lake.seen_by_duckdb("FROM t") == [(3, "new")]
    assert lake.seen_by_duckdb("FROM t AT (VERSION => 3) ORDER BY id") == [(1, "file"), (2, "inlined")]


@every_reference_catalog
def test_a_truncate_keeps_rows_that_were_inserted_meanwhile(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [1], "name": ["before"]})
    tx = lake.begin()
    tx.truncate(tx.state.table("main", "t"))
    with lake.duckdb() as connection:
        connection.execute("INSERT INTO t VALUES (2, 'inlined')")
    lake.append({"id": [3], "name": ["file"]})
    tx.commit()
    assert lake.seen_by_duckdb("FROM t ORDER BY id") == [(2, "inlined"), (3, "file")]


@every_catalog
def test_chosen_files_end_and_the_others_stay(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    with lake.transaction() as tx:
        tx.append(tx.state.table("main", "t"), [paper_file(f"{n}.parquet", 1) for n in range(3)])
    with lake.transaction() as tx, lake.catalog.read() as connection:
        table = tx.state.table("main", "t")
        files = table_files(connection, lake.catalog, table, "t/", 2)
        tx.end_files(table, files[:2])
    assert [f["path"] for f in lake.rows(t.data_file, t.data_file.c.end_snapshot.is_(None))] == ["2.parquet"]


def test_a_column_may_be_dropped_in_the_transaction_that_wrote_it(lake: Lake) -> None:
    with lake.transaction() as tx:
        table = tx.state.table("main", "t")
        tx.append(table, [lake.file(tx, table, {"id": [1], "name": ["a"]})])
        tx.alter_table(table, lambda x: evolution.drop_column(x, ("name",)))
    assert lake.seen_by_duckdb("FROM t") == [(1,)]


# -- ids and versions


@every_catalog
def test_a_column_id_is_never_used_again(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    for change in ("add", "drop", "add"):
        with lake.transaction() as tx:
            table = tx.state.table("main", "t")
            if change == "add":
                tx.alter_table(table, lambda x: evolution.add_column(x, (), column("c", "int32"), tx.column_ids(x)))
            else:
                tx.alter_table(table, lambda x: evolution.drop_column(x, ("c",)))
    assert [c.id for c in lake.table().columns] == [1, 2, 4]


@every_catalog
def test_the_schema_version_moves_with_definitions_only(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    with lake.transaction() as tx:
        tx.append(tx.state.table("main", "t"), [paper_file("1.parquet", 1)])
    with lake.transaction() as tx:
        table = tx.state.table("main", "t")
        tx.alter_table(table, lambda x: evolution.add_column(x, (), column("c", "int32"), tx.column_ids(x)))
    versions = sorted((r["snapshot_id"], r["schema_version"]) for r in lake.rows(t.snapshot))
    assert versions == [(0, 0), (1, 1), (2, 1), (3, 2)]
    assert sorted((r["begin_snapshot"], r["schema_version"], r["table_id"]) for r in lake.rows(t.schema_versions)) == [
        (1, 1, 1),
        (3, 2, 1),
    ]


# -- large commits


@every_catalog
@pytest.mark.long
def test_ten_thousand_files_are_one_commit(kind: str, new_lake: NewLake, capsys: pytest.CaptureFixture[str]) -> None:
    lake = Lake(new_lake(kind))
    lake.create(**{f"c{n}": "int64" for n in range(20)})
    ids = tuple(range(1, 21))
    tx = lake.begin()
    tx.append(tx.state.table("main", "t"), [paper_file(f"{n}.parquet", 10, ids) for n in range(10_000)])
    begun = time.perf_counter()
    tx.commit()
    appended = time.perf_counter() - begun
    tx = lake.begin()
    with lake.catalog.read() as connection:
        table = tx.state.table("main", "t")
        tx.end_files(table, table_files(connection, lake.catalog, table, "t/", 2))
    begun = time.perf_counter()
    tx.commit()
    with capsys.disabled():
        print(f"\n{kind}: 10,000 files x 20 columns in {appended:.2f} s, ended in {time.perf_counter() - begun:.2f} s")
    assert lake.rows(t.data_file, t.data_file.c.end_snapshot.is_(None)) == []
