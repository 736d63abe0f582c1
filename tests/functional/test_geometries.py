"""Geometries in a dbt project: seeds of WKT, and models in either direction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dbt.tests.util import run_dbt

from .. import reference


class TestGeometries:
    @pytest.fixture(scope="class")
    def seeds(self) -> dict[str, str]:
        return {
            "places.csv": 'id,shape\n1,POINT (1 2)\n2,"LINESTRING (0 0, 1 1)"\n3,\n',
            "places.yml": "seeds: [{name: places, config: {column_types: {id: int, shape: geometry}}}]",
        }

    @pytest.fixture(scope="class")
    def models(self) -> dict[str, str]:
        return {
            "shapes.sql": "{{ config(materialized='table') }}"
            " select id, st_geomfromwkb(shape) as shape, 'a' as note from {{ ref('places') }}",
            "moved.sql": "{{ config(materialized='incremental', unique_key='id') }}"
            " select id, st_geomfromwkb(shape) as shape, note from {{ ref('shapes') }}"
            " {% if is_incremental() %} where id > 1 union all"
            " select 4, st_geomfromwkb(X'0101000000000000000000594000000000000069C0'), 'new' {% endif %}",
        }

    def test_shapes_pass_through_seeds_and_models(self, project: Any, lake_folder: Path) -> None:
        for command, nodes in (("seed", 1), ("run", 2), ("run", 2)):
            assert len(run_dbt([command])) == nodes
        connection = reference.connect(f"sqlite:{lake_folder}/metadata.sqlite", f"{lake_folder}/data/")
        try:
            ask = f"select id, shape::varchar from lake.{project.test_schema}."
            shapes = [(1, "POINT (1 2)"), (2, "LINESTRING (0 0, 1 1)"), (3, None)]
            for table in ("places", "shapes"):
                assert connection.execute(f"{ask}{table} order by id").fetchall() == shapes
            far = (4, "POINT (100 -200)")
            assert connection.execute(f"{ask}moved order by id").fetchall() == [*shapes, far]
            near = "shape && 'POINT(100 -200)'::geometry"
            assert connection.execute(f"{ask}moved where {near}").fetchall() == [far]
        finally:
            connection.close()
