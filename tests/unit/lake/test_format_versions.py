"""Format versions: what new lakes have, and what is refused."""

from __future__ import annotations

import datetime
import shutil
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dbt.adapters.ducklake.lake import tables as t
from dbt.adapters.ducklake.lake.catalog import Catalog
from dbt.adapters.ducklake.lake.errors import CatalogError, ReadOnlyError
from dbt.adapters.ducklake.lake.partitions import EPOCH_TRANSFORMS, EpochDay, EpochHour, EpochMonth, EpochYear

from ...lakes import Lake, LakeAddress
from .catalogs import NewLake, every_catalog

DATA = Path(__file__).parents[2] / "data" / "lakes_1_1"


@every_catalog
def test_a_new_lake_has_the_version_that_is_asked_for_and_keeps_it(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind), format_version="1.1")
    lake.create()
    lake.append({"id": [1, 2], "name": ["a", "b"]})
    assert [r["row_group_count"] for r in lake.rows(lake.catalog.format.data_file)] == [1]
    again = Catalog.open(lake.address.catalog, format_version="1.0")
    assert again.format.name == "1.1"
    assert Lake(new_lake(kind)).catalog.format.name == "1.0"


@every_catalog
def test_comments_on_columns_of_views_are_rows_of_1_1(kind: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind), format_version="1.1")
    with lake.transaction() as tx:
        view = tx.create_view(tx.state.schema("main"), "v", "select 1 as a", "duckdb")
        tx.set_column_tags(view, "a", (("comment", "one"),))
    with lake.transaction() as tx:
        tx.set_column_tags(tx.state.find_relation("main", "v"), "a", (("comment", "first"),))
    view = lake.state.find_relation("main", "v")
    assert view.column_tags == (("a", (("comment", "first"),)),)
    rows = lake.rows(t.view_column_tag)
    assert sorted((r["column_name"], r["begin_snapshot"], r["end_snapshot"], r["value"]) for r in rows) == [
        ("a", 1, 2, "one"),
        ("a", 2, None, "first"),
    ]
    assert lake.changes[1:] == ['created_view:"main"."v"', f"altered_view:{view.id}"]
    with lake.transaction() as tx:
        tx.drop(tx.state.find_relation("main", "v"))
    assert all(r["end_snapshot"] is not None for r in lake.rows(t.view_column_tag))


def test_lakes_of_the_development_version_are_read_only(tmp_path: Path) -> None:
    shutil.copytree(DATA / "views", tmp_path / "views")
    lake = Lake(LakeAddress("sqlite", f"sqlite:{tmp_path}/views/metadata.sqlite", "data/"))
    view = lake.state.find_relation("main", "v")
    assert view.column_tags == (("number", (("comment", "its number"),)),)
    with pytest.raises(ReadOnlyError, match=r"1\.1-dev1, which was never released"):
        lake.create("more")


@every_catalog
@pytest.mark.parametrize("name", ["ducklake_schema", "ducklake_news"])
def test_what_nobody_here_knows_is_refused_if_it_is_in_use(kind: str, name: str, new_lake: NewLake) -> None:
    lake = Lake(new_lake(kind))
    with lake.catalog.write() as connection:
        if name == "ducklake_news":
            connection.execute(sa.text("create table ducklake_news (parent_schema bigint)"))
        else:
            connection.execute(sa.text("alter table ducklake_schema add column parent_schema bigint"))
    lake = Lake(lake.address)
    lake.create("kept")
    with lake.catalog.write() as connection:
        statement = "update ducklake_schema set parent_schema = 1"
        if name == "ducklake_news":
            statement = "insert into ducklake_news values (1)"
        connection.execute(sa.text(statement))
    with pytest.raises(CatalogError, match=f"{name}.parent_schema in its catalog, which has values"):
        Lake(lake.address)


def test_an_unknown_version_is_refused_before_anything_is_made(new_lake: NewLake) -> None:
    address = new_lake("sqlite")
    with pytest.raises(CatalogError, match=r"format_version is '1\.1-dev1', .* 1\.0 or 1\.1"):
        Lake(address, format_version="1.1-dev1")
    assert not Path(address.catalog.removeprefix("sqlite:")).exists()


MOMENTS = [
    (datetime.datetime(1969, 12, 31, 23, 59, 59, 999999), -1, -1, -1, -1),
    (datetime.datetime(1970, 1, 1), 0, 0, 0, 0),
    (datetime.datetime(1968, 2, 29, 1), -2, -23, -672, -672 * 24 + 1),
    (datetime.datetime(2026, 11, 19, 13), 56, 682, 20776, 20776 * 24 + 13),
]


@pytest.mark.parametrize("case", MOMENTS, ids=str)
def test_units_since_1970_are_rounded_down(case: Any) -> None:
    moment, *expected = case
    transforms = (EpochYear(), EpochMonth(), EpochDay(), EpochHour())
    assert [transform.apply(moment, "timestamp") for transform in transforms] == expected
    assert len(transforms) == len(EPOCH_TRANSFORMS)
    for transform, value in zip(transforms, expected, strict=True):
        low, high = transform.bounds(value, "timestamp")
        assert low is not None
        assert high is not None
        assert low <= f"{moment}" <= high
        assert transform.bounds(value, "timestamptz") == (f"{low}+00", f"{high}+00")
