"""Statistics of geometries, whose text the reference reads."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.ducklake.lake.geometry_stats import (
    ANY_GEOMETRIES,
    NO_GEOMETRIES,
    GeometryStats,
    chunk_geometry_stats,
    parse_geometry_stats,
)
from dbt.adapters.ducklake.lake.stats import ColumnStats, TableColumnStats, merge_column_stats, widen_table_stats

POINT = GeometryStats((1.0, 2.0, -1e-9, 1e300, None, None, None, None), frozenset({"point"}))


def _footer(**values: Any) -> SimpleNamespace:
    names = [f"{axis}{end}" for axis in "xyzm" for end in ("min", "max")]
    return SimpleNamespace(geo_statistics=SimpleNamespace(**{**dict.fromkeys(names), **values}))


def _file(stats: GeometryStats | None, values: int = 1) -> ColumnStats:
    return ColumnStats(10, values, 0, None, None, None, None if stats is None else stats.text())


def test_the_text_is_the_references() -> None:
    assert POINT.text() == (
        '{"bbox": {"xmin": 1.000000, "xmax": 2.000000, "ymin": -1e-09, "ymax": 1e+300, "zmin": null, "zmax": null,'
        ' "mmin": null, "mmax": null}, "types": ["point"]}'
    )


@pytest.mark.parametrize("stats", [POINT, NO_GEOMETRIES, ANY_GEOMETRIES])
def test_a_text_is_read_back_exactly(stats: GeometryStats) -> None:
    assert parse_geometry_stats(stats.text()) == stats
    numbers = json.loads(stats.text(), parse_int=lambda text: pytest.fail(f"the reference reads {text} as zero"))
    assert set(numbers) == {"bbox", "types"}


@pytest.mark.parametrize("text", [None, "", "{}", '{"bbox": {"xmin": 1.0}, "types": []}', "[]"])
def test_an_unknown_text_bounds_nothing(text: str | None) -> None:
    assert parse_geometry_stats(text) == ANY_GEOMETRIES


def test_a_footer_with_a_box_tells_bounds_and_types() -> None:
    chunk = _footer(geospatial_types=[1, 3003], xmin=0.0, xmax=1.0, ymin=2.0, ymax=3.0, zmin=4.0, zmax=5.0)
    found = chunk_geometry_stats(chunk, 7)
    assert found == GeometryStats((0.0, 1.0, 2.0, 3.0, 4.0, 5.0, None, None), frozenset({"point", "polygon_zm"}))


@pytest.mark.parametrize(
    "chunk",
    [
        SimpleNamespace(),
        SimpleNamespace(geo_statistics=None),
        _footer(geospatial_types=[], xmin=0.0, xmax=1.0, ymin=2.0, ymax=3.0),
        _footer(geospatial_types=[17], xmin=0.0, xmax=1.0, ymin=2.0, ymax=3.0),
        _footer(geospatial_types=[1], xmin=170.0, xmax=-170.0, ymin=2.0, ymax=3.0),
    ],
)
def test_a_footer_without_a_sure_box_bounds_nothing(chunk: Any) -> None:
    assert chunk_geometry_stats(chunk, 7) == ANY_GEOMETRIES
    assert chunk_geometry_stats(chunk, 0) == NO_GEOMETRIES


def test_a_table_has_the_box_of_all_its_files() -> None:
    other = GeometryStats((-5.0, 0.0, 0.0, 1.0, 3.0, 3.0, None, None), frozenset({"point_z"}))
    table = widen_table_stats(None, _file(POINT), "geometry")
    assert table.extra_stats == POINT.text()
    table = widen_table_stats(table, _file(other), "geometry")
    assert parse_geometry_stats(table.extra_stats) == POINT.union(other)
    assert POINT.union(other).bounds == (-5.0, 2.0, -1e-9, 1e300, 3.0, 3.0, None, None)
    assert merge_column_stats(_file(POINT), _file(other), "geometry").extra_stats == POINT.union(other).text()


def test_a_table_whose_box_is_unknown_gets_the_widest() -> None:
    unknown = TableColumnStats(False, None, None, None, None)
    table = widen_table_stats(unknown, _file(POINT), "geometry")
    assert parse_geometry_stats(table.extra_stats).bounds == ANY_GEOMETRIES.bounds


def test_new_rows_end_what_is_known_about_the_fields_of_variants() -> None:
    known = TableColumnStats(False, None, None, None, '[{"field_name": "\\"a\\"", "min": "0", "max": "4"}]')
    assert widen_table_stats(known, _file(None), "variant").extra_stats is None
