"""Migration: older lakes become what the reference makes of them, in one transaction."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import inlined
from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.lake.databases.connection_string import parse_catalog
from dbt.adapters.ducklake.lake.errors import CatalogError
from dbt.adapters.ducklake.lake.migration import Migration, migrate

from ... import reference
from ...lakes import Lake
from .catalogs import NewLake, every_catalog

DATA = Path(__file__).parents[2] / "data"
OLD_LAKES = ("0_2", "0_3", "0_4")


def migrated(catalog: str, to_version: str | None = None, **options: Any) -> Migration:
    return migrate(parse_catalog(catalog), to_version, **options)


def old_lake(version: str, folder: Path) -> str:
    """A copy of a lake that an older version of the reference made."""
    shutil.copytree(DATA / f"lakes_{version}", folder)
    return f"sqlite:{folder}/metadata.sqlite"


def old_lake_in_duckdb(version: str, folder: Path) -> str:
    """The same with its catalog in DuckDB: the reference fails to migrate a 0.2 in SQLite."""
    sqlite = old_lake(version, folder).removeprefix("sqlite:")
    with duckdb.connect(f"{folder}/metadata.ducklake", config={"allow_unsigned_extensions": "true"}) as connection:
        connection.execute(f"LOAD '{reference.extension('sqlite_scanner', 'sqlite_scanner')}'")
        connection.execute(f"ATTACH '{sqlite}' AS old (TYPE sqlite, READ_ONLY)")
        tables = connection.execute("select table_name from duckdb_tables() where database_name = 'old'").fetchall()
        for (table,) in tables:
            connection.execute(f'create table "{table}" as from old."{table}"')
    return f"duckdb:{folder}/metadata.ducklake"


def contents(catalog: str) -> dict[str, tuple[list[str], list[tuple[Any, ...]]]]:
    """The columns and rows of each table of a catalog."""
    engine = parse_catalog(catalog).engine()
    found = {}
    with engine.connect() as connection:
        for name in parse_catalog(catalog).table_names(connection):
            rows = [dict(row) for row in connection.execute(sa.text(f'select * from "{name}"')).mappings()]
            columns = sorted(connection.execute(sa.text(f'select * from "{name}" limit 0')).keys())
            found[name] = (columns, sorted((tuple(row[c] for c in columns) for row in rows), key=repr))
    engine.dispose()
    return found


@pytest.mark.parametrize("copy", [old_lake, old_lake_in_duckdb])
@pytest.mark.parametrize("version", OLD_LAKES)
def test_an_old_lake_becomes_what_the_reference_makes_of_it(version: str, copy: Any, tmp_path: Path) -> None:
    ours, theirs = copy(version, tmp_path / "ours"), copy(version, tmp_path / "theirs")
    migrated(ours, "1.0")
    if (version, copy) == ("0_2", old_lake):
        with pytest.raises(duckdb.BinderException, match="Unsupported ALTER TABLE"):
            reference.connect(theirs, automatic_migration=True, data_path="data/")
        return
    reference.connect(theirs.removeprefix("duckdb:"), automatic_migration=True, data_path="data/").close()
    expected, found = contents(theirs), contents(ours)
    assert found.keys() == expected.keys()
    columns, files = found["ducklake_data_file"]
    if version != "0_4":  # the reference forgets which snapshots a merged file holds rows of
        partial_max = columns.index("partial_max")
        assert [file[partial_max] for file in files if file[partial_max] is not None] == [12]
        files = [(*file[:partial_max], None, *file[partial_max + 1 :]) for file in files]
        found["ducklake_data_file"] = (columns, sorted(files, key=repr))
    for table in expected:
        assert found[table] == expected[table], table


@pytest.mark.parametrize("version", OLD_LAKES)
def test_a_dry_run_tells_every_change_and_makes_none(version: str, tmp_path: Path) -> None:
    catalog = old_lake(version, tmp_path / "lake")
    before = contents(catalog)
    planned = migrated(catalog, dry_run=True)
    assert contents(catalog) == before
    assert (planned.from_version, planned.to_version) == (version.replace("_", "."), "1.1")
    assert migrated(catalog) == planned
    assert planned.changes[-1] == "set the version to 1.1"
    assert migrated(catalog).changes == ()


def test_an_old_lake_is_refused_with_the_way_to_migrate_it(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"format version 0\.3, .* 1\.0 and 1\.1; .*ducklake_migrate"):
        Catalog.open(old_lake("0_3", tmp_path / "lake"))


@every_catalog
def test_a_lake_of_1_0_becomes_one_of_1_1(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    lake.append({"id": [1], "name": ["a"]})
    migrated(lake.address.catalog)
    again = Lake(lake.address)
    assert again.catalog.format.name == "1.1"
    again.append({"id": [2], "name": ["b"]})
    files = sorted(again.rows(again.catalog.format.data_file), key=lambda r: r["data_file_id"])
    assert [r["row_group_count"] for r in files] == [None, 1]
    inlined = inlined_columns(again)
    assert bool(inlined) == again.catalog.database.supports_inlining
    for columns in inlined.values():
        assert columns == ["_ducklake_row_id", "_ducklake_begin_snapshot", "_ducklake_end_snapshot", "id", "name"]


def inlined_columns(lake: Lake) -> dict[str, list[str]]:
    """The columns of each table of inlined rows."""
    with lake.catalog.read() as connection:
        tables = [r.table_name for r in connection.execute(sa.select(t.inlined_data_tables))]
        return {name: list(connection.execute(sa.text(f'select * from "{name}" limit 0')).keys()) for name in tables}


@every_catalog
def test_who_opened_the_lake_before_it_was_migrated_can_not_commit(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    lake.create()
    if kind == "duckdb":
        lake.catalog.close()
    migrated(lake.address.catalog)
    before = lake.latest
    with pytest.raises(CatalogError, match=r"was migrated from format version 1\.0 to 1\.1 .* open it again"):
        lake.append({"id": [1], "name": ["a"]})
    assert lake.latest == before


def test_a_column_of_the_user_in_the_way_is_named(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    lake.create("odd", id="int64", _ducklake_row_id="int64")
    with pytest.raises(CatalogError, match="table odd has a column _ducklake_row_id, .* rename the column"):
        migrated(lake.address.catalog)
    assert Lake(lake.address).catalog.format.name == "1.0"


def test_columns_with_the_old_names_are_inlined_in_1_1(new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"), format_version="1.1")
    table = lake.create(row_id="int64", begin_snapshot="varchar")
    assert inlined.can_inline(lake.catalog, table.columns)
    assert not inlined.can_inline(Lake(new_lake("sqlite")).catalog, table.columns)


@pytest.mark.parametrize("wanted", ["0.9", "1.1-dev1", "2"])
def test_a_version_that_nothing_leads_to_is_refused(wanted: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake("sqlite"))
    with pytest.raises(CatalogError, match=f"to version 1.0 or 1.1, not to '{wanted}'"):
        migrated(lake.address.catalog, wanted)
    later = Lake(new_lake("sqlite"), format_version="1.1")
    with pytest.raises(CatalogError, match=r"has format version 1\.1, from which no migration leads to 1\.0"):
        migrated(later.address.catalog, "1.0")
