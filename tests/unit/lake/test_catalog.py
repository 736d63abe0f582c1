"""Opening, creating and refusing lakes on every catalog database."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import inlined
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.lake.databases.connection_string import parse_catalog
from dbt.adapters.ducklake.lake.databases.duckdb import DuckDB
from dbt.adapters.ducklake.lake.errors import CatalogError, ReadOnlyError
from dbt.adapters.ducklake.lake.paths import same_folder
from dbt.adapters.ducklake.lake.retry import Retry

from ...lakes import Lake, LakeAddress, attached
from ...workers import hold_duckdb_file, in_processes, open_lake, spawn
from .catalogs import NewLake, every_catalog, every_reference_catalog

ODD_SCHEMAS = ["lake", 'od"d. S%ch', "SELECT", "ünï"]


# -- creating


@every_catalog
def test_a_new_lake_has_one_snapshot_and_the_schema_main(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    assert lake.latest == 0
    assert [s.name for s in lake.state.schemas.values()] == ["main"]
    assert lake.changes == ['created_schema:"main"']
    again = Lake(lake.address)
    assert again.latest == 0
    assert same_folder(again.catalog.data_path, lake.address.data_path)


@every_reference_catalog
def test_the_reference_takes_a_lake_created_here_as_its_own(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.duckdb() as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS id FROM range(100)")
        connection.execute("CREATE SCHEMA s; CREATE VIEW s.v AS SELECT 1")
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (100,)
    assert [c.name for c in lake.table("t").columns] == ["id"]
    assert lake.state.find_relation("s", "v") is not None


@every_reference_catalog
def test_a_lake_of_the_reference_is_taken_as_it_is(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with attached(address) as connection:
        connection.execute("CREATE TABLE t (id BIGINT, name VARCHAR); INSERT INTO t VALUES (1, 'one')")
    lake = Lake(address)
    lake.append({"id": [2], "name": ["two"]})
    assert lake.seen_by_duckdb("FROM t ORDER BY id") == [(1, "one"), (2, "two")]
    assert Catalog.open(address.catalog).data_path == lake.catalog.data_path


def test_a_duckdb_lake_keeps_its_data_beside_its_file_unless_told(tmp_path: Path) -> None:
    catalog = Catalog.open(f"{tmp_path}/sub/m.ducklake")
    assert catalog.data_path == f"{tmp_path}/sub/m.ducklake.files/"


@pytest.mark.parametrize("kind", ["sqlite", "postgres", "mysql"])
def test_a_new_lake_elsewhere_wants_a_data_path(kind: str, new_lake: NewLake) -> None:
    with pytest.raises(CatalogError, match="data_path is not given: say where"):
        Catalog.open(new_lake(kind).catalog)


@pytest.mark.processes
@every_catalog
@pytest.mark.parametrize("schema", [None, "lake"])
def test_processes_that_create_one_lake_at_once_share_it(kind: str, schema: str | None, new_lake: NewLake) -> None:
    if schema and kind in ("sqlite", "mysql"):
        pytest.skip(f"a {kind} database has no schemas")
    address = new_lake(kind)
    assert in_processes(4, open_lake, address.catalog, address.data_path, schema) == [0] * 4
    lake = Lake(address, metadata_schema=schema)
    assert len(lake.rows(t.snapshot)) == len(lake.rows(t.schema)) == 1
    assert len(lake.rows(t.ducklake_metadata)) == 4


@pytest.mark.catalogs
def test_a_creation_on_mysql_that_was_cut_short_is_finished_by_the_next(new_lake: NewLake) -> None:
    """On MySQL each CREATE TABLE commits by itself, so a creation that fails may leave some tables behind."""
    address = new_lake("mysql")
    engine = parse_catalog(address.catalog).engine()
    with engine.begin() as connection:
        t.ducklake_metadata.create(connection)
        t.snapshot.create(connection)
    with pytest.raises(CatalogError, match="there is no lake"):
        Catalog.open(address.catalog, address.data_path, create_if_not_exists=False)
    assert Lake(address).latest == 0


# -- metadata_schema


@pytest.mark.parametrize("kind", ["postgres", "duckdb"])
@pytest.mark.parametrize("schema", ODD_SCHEMAS)
def test_a_lake_can_be_kept_in_any_schema_of_its_database(kind: str, schema: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    lake = Lake(address, metadata_schema=schema)
    lake.create()
    lake.append({"id": [1], "name": ["file"]})
    with attached(address, metadata_schema=schema) as connection:
        connection.execute("INSERT INTO t VALUES (2, 'inlined')")
        assert connection.execute("FROM t ORDER BY id").fetchall() == [(1, "file"), (2, "inlined")]
    with lake.catalog.read() as connection:
        rows = inlined.read_inlined_rows(connection, lake.catalog, lake.table(), lake.latest)
    assert rows is not None
    assert rows.rows["name"].to_pylist() == ["inlined"]
    with lake.transaction() as tx:
        tx.truncate(tx.state.table("main", "t"))
    with attached(address, metadata_schema=schema) as connection:
        assert connection.execute("FROM t").fetchall() == []


@pytest.mark.parametrize("kind", ["postgres", "duckdb"])
def test_two_lakes_share_a_database_in_two_schemas(kind: str, new_lake: NewLake, tmp_path: Path) -> None:
    address = new_lake(kind)
    first = Lake(address)
    second = Lake(LakeAddress(kind, address.catalog, f"{tmp_path}/second/"), metadata_schema="second")
    first.create("one")
    assert second.latest == 0
    with pytest.raises(CatalogError, match="there is no lake"):
        Catalog.open(address.catalog, metadata_schema="third", create_if_not_exists=False)


@pytest.mark.parametrize("kind", ["sqlite", "mysql"])
def test_a_schema_is_refused_where_the_database_has_none(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with pytest.raises(CatalogError, match=f"a {kind} database has no schemas"):
        Catalog.open(address.catalog, address.data_path, metadata_schema="lake")


# -- refusing


@every_catalog
@pytest.mark.parametrize(
    ("words", "reason"),
    [({"create_if_not_exists": False}, "create_if_not_exists is false"), ({"read_only": True}, "opened read-only")],
)
def test_a_missing_lake_is_not_created_unasked(
    kind: str, words: dict[str, bool], reason: str, new_lake: NewLake
) -> None:
    address = new_lake(kind)
    with pytest.raises(CatalogError, match=f"there is no lake in .* none is created because .*{reason}"):
        Catalog.open(address.catalog, address.data_path, **words)
    if kind in ("sqlite", "duckdb"):
        assert not os.path.exists(address.catalog.partition(":")[2])


@every_catalog
def test_a_database_without_a_lake_in_it_is_no_lake(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with parse_catalog(address.catalog).engine().begin() as connection:
        connection.exec_driver_sql("CREATE TABLE something_else (a INTEGER)")
    with pytest.raises(CatalogError, match="there is no lake in"):
        Catalog.open(address.catalog, address.data_path, create_if_not_exists=False)


@every_catalog
def test_another_format_version_is_refused_with_both_versions_and_a_way_out(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.catalog.write() as connection:
        row = t.ducklake_metadata
        connection.execute(sa.update(row).where(row.c.key == "version").values(value="2.3"))
    with pytest.raises(CatalogError, match="has format version 2.3, .* works with 1.0 and 1.1; install a newer"):
        Lake(lake.address)


def test_a_lake_without_option_scopes_is_refused_by_its_version(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "old.sqlite") as connection:
        connection.execute("CREATE TABLE ducklake_metadata (key VARCHAR NOT NULL, value VARCHAR NOT NULL)")
        connection.execute("INSERT INTO ducklake_metadata VALUES ('version', '0.1')")
    with pytest.raises(CatalogError, match="has format version 0.1"):
        Catalog.open(f"sqlite:{tmp_path}/old.sqlite")


@every_reference_catalog
def test_an_encrypted_lake_of_the_reference_stays_one(kind: str, new_lake: NewLake) -> None:
    address = new_lake(kind)
    with attached(address, encrypted=1):
        pass
    assert Lake(address).catalog.is_encrypted


@every_catalog
def test_a_new_lake_can_be_encrypted_and_another_cannot_become_so(kind: str, new_lake: NewLake) -> None:
    assert Lake(new_lake(kind), encrypted=True).catalog.is_encrypted
    plain = Lake(new_lake(kind))
    assert not plain.catalog.is_encrypted
    with pytest.raises(
        CatalogError, match="encrypted is true, but the lake in .* is not encrypted, .* copy the tables"
    ):
        Lake(plain.address, encrypted=True)


@every_catalog
def test_another_data_path_is_refused_without_override_data_path(kind: str, new_lake: NewLake, tmp_path: Path) -> None:
    lake = Lake(new_lake(kind))
    with pytest.raises(CatalogError, match="keeps its data in .*; leave data_path out"):
        Catalog.open(lake.address.catalog, f"{tmp_path}/elsewhere")
    moved = Catalog.open(lake.address.catalog, f"{tmp_path}/elsewhere", override_data_path=True)
    assert moved.data_path == f"{tmp_path}/elsewhere/"
    assert Catalog.open(lake.address.catalog, lake.address.data_path.rstrip("/")).data_path == lake.address.data_path


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_file_that_is_no_database_is_left_alone(kind: str, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("neither SQLite nor DuckDB\n" * 100)
    with pytest.raises(CatalogError, match="can not be read: .*not a .*database"):
        Catalog.open(f"{kind}:{file}", f"{tmp_path}/data/")
    assert file.read_text() == "neither SQLite nor DuckDB\n" * 100


def test_a_database_that_is_not_on_the_server_is_named(postgres_server: str) -> None:
    with pytest.raises(CatalogError, match='database "nowhere" does not exist'):
        Catalog.open(f"postgres:{postgres_server} dbname=nowhere", "data/", retry=Retry(wait_ms=1))


def test_a_wrong_password_is_not_shown(postgres_server: str, tmp_path: Path) -> None:
    with psycopg.connect(postgres_server, dbname="postgres") as connection:
        if not connection.execute("SHOW hba_file").fetchone():
            pytest.skip("the server does not say how it lets users in")
    catalog = Catalog.open(
        f"postgres:{postgres_server} dbname=postgres password='not needed'", str(tmp_path), metadata_schema="pw"
    )
    assert "not needed" not in repr(catalog) + repr(catalog.database) + catalog.database.location


# -- read-only


@every_catalog
def test_a_read_only_lake_reads_and_does_nothing_else(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    closed = Lake(lake.address, read_only=True)
    assert closed.table().name == "t"
    with pytest.raises(ReadOnlyError, match="set read_only: false"):
        closed.create("u")
    with pytest.raises(ReadOnlyError), closed.catalog.write():
        pass


@pytest.mark.catalogs
def test_a_postgres_user_who_may_only_read_gets_a_read_only_lake(new_lake: NewLake, postgres_server: str) -> None:
    lake = Lake(new_lake("postgres"))
    lake.create()
    database = lake.address.catalog.rpartition("=")[2]
    with psycopg.connect(postgres_server, dbname=database, autocommit=True) as connection:
        connection.execute(f"CREATE USER reader_{database}")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader_{database}")
    catalog = lake.address.catalog.replace("user=postgres", f"user=reader_{database}")
    reader = Lake(LakeAddress("postgres", catalog, lake.address.data_path), read_only=True)
    assert reader.table().name == "t"
    careless = Lake(LakeAddress("postgres", catalog, lake.address.data_path))
    with pytest.raises(ReadOnlyError, match=r"may not write to the lake, for lack of INSERT on ducklake_snapshot, "):
        careless.create("u")


# -- a DuckDB file, which takes one process at a time


@pytest.mark.catalogs
@pytest.mark.processes
def test_a_duckdb_file_that_another_process_holds_is_waited_for(
    new_lake: NewLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(new_lake("duckdb"))
    held, release = spawn.Event(), spawn.Event()
    holder = spawn.Process(target=hold_duckdb_file, args=(lake.address.catalog.partition(":")[2], held, release))
    holder.start()
    assert held.wait(60)
    monkeypatch.setattr(DuckDB, "lock_timeout", 0.2)
    with pytest.raises(CatalogError, match="can not be read: .*Could not set lock"):
        Lake(lake.address)
    monkeypatch.setattr(DuckDB, "lock_timeout", 30.0)
    release.set()
    assert lake.latest == 0
    holder.join()


@pytest.mark.parametrize("kind", ["postgres", "mysql"])
def test_a_reading_transaction_sees_one_state_of_the_catalog(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.catalog.read() as connection:
        before = lake.catalog.latest_snapshot(connection)
        with lake.transaction() as transaction:
            transaction.create_schema("s")
        assert lake.latest == before.id + 1
        assert lake.catalog.latest_snapshot(connection) == before
