"""Geometries: Spark reads WKB, and writes WKB, WKT and its own GEOMETRY, with the statistics by which DuckDB prunes."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pyspark.errors import PySparkException

from .engines import Both

SHAPES = (
    "POINT (1 2)",
    "point(1.5 -2e-3)",
    "POINT Z (1 2 3)",
    "POINT M (1 2 3)",
    "POINT ZM (1 2 3 4)",
    "POINT EMPTY",
    "LINESTRING (0 0, 1 1 , 2 .5)",
    "LINESTRING EMPTY",
    "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 2 1, 2 2, 1 1))",
    "MULTIPOINT (1 2, 3 4)",
    "MULTIPOINT ((1 2), (3 4))",
    "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3, 4 4))",
    "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((10 10, 11 10, 11 11, 10 10), (10.1 10.1, 10.2 10, 10.2 10.2, 10.1 10.1)))",
    "POLYGON Z ((0 0 1, 4 0 1, 4 4 1, 0 0 1))",
    "MULTIPOLYGON EMPTY",
    " POINT( -7.123456789012345  1e300 ) ",
)
NO_SHAPES = (
    *("POINT (1)", "POINT (1 2 3)", "POINT (1 2, 3 4)", "POINT (a b)", "POINT (1 2", "POINT (infinity 1)", "", "x"),
    *("LINESTRING (1 1)", "LINESTRING ((1 2))", "POLYGON (1 2)", "GEOMETRYCOLLECTION (POINT (1 2))"),
)

# Little-endian WKB of POINT (100 -200)
FAR = "X'0101000000000000000000594000000000000069C0'"


def _at(x: float, y: float) -> str:
    return f"g && 'POINT({x} {y})'::geometry"


def test_shapes_are_written_from_text_as_duckdb_reads_it(lake: Both) -> None:
    lake.spark(
        "create table g (id int, g geometry, s struct<g: geometry, n: int>, l array<geometry>, m map<int, geometry>)"
    )
    rows = [(index, shape) for index, shape in enumerate(SHAPES)]
    lake.lake.spark.createDataFrame(rows, "id int, w string").createOrReplaceTempView("shapes")
    lake.spark("insert into g select id, w, named_struct('g', w, 'n', id), array(w, null), map(1, w) from shapes")
    with lake.connection() as connection:
        found = connection.execute(
            "select g::varchar, s.g::varchar, l[1]::varchar, m[1]::varchar from g order by id"
        ).fetchall()
        expected = [connection.execute("select (?::geometry)::varchar", [shape]).fetchone() for shape in SHAPES]
    assert found == [(*row, *row, *row, *row) for row in expected if row]
    lake.compare()


def test_what_is_no_shape_is_refused(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark("create table g (g geometry)")
    for text in NO_SHAPES:
        with pytest.raises(PySparkException, match="no shape that can be read from WKT|WKB_PARSE_ERROR"):
            lake.spark(f"insert into g values ('{text}')")
    for wkb in ("X'00'", "X'0101000020E6100000000000000000F03F0000000000000040'"):
        with pytest.raises(PySparkException, match="WKB_PARSE_ERROR"):
            lake.spark(f"insert into g values ({wkb})")
    assert lake.duckdb_rows("select * from g") == []


def test_every_way_to_write_a_geometry(lake: Both) -> None:
    lake.duckdb("create table g (id int, g geometry)", "insert into g select i, 'POINT(1 2)' from range(30) r(i)")
    lake.spark(
        f"insert into g values (100, {FAR}), (101, null)",
        f"insert into g select 102, st_geomfromwkb({FAR})",
        f"insert into g select 103, st_geomfromwkb({FAR}, 4326)",
        "insert into g values (104, 'LINESTRING (5 5, 6 6)')",
        "update g set g = 'POINT (50 50)' where id = 0",
        f"update g set g = st_geomfromwkb({FAR}) where id = 1",
        "update g set id = 1002 where id = 2",
        f"merge into g using (select explode(array(3, 200)) as id, st_geomfromwkb({FAR}) as w) n on g.id = n.id"
        " when matched then update set g = n.w when not matched then insert (id, g) values (n.id, n.w)",
        "merge into g using (select 201 as id) n on g.id = n.id"
        " when not matched then insert values (n.id, 'POINT (9 9)')",
        "delete from g where id between 10 and 20",
        f"create table h as select st_geomfromwkb({FAR}) as g, array(st_geomfromwkb({FAR})) as l",
        "insert into h select g, array(g) from g where id > 100",
        "insert overwrite h select * from h",
    )
    far = "POINT (100 -200)"
    shapes = {0: "POINT (50 50)", 104: "LINESTRING (5 5, 6 6)", 101: None, 201: "POINT (9 9)"}
    with lake.connection() as connection:
        found = dict(connection.execute("select id, g::varchar from g").fetchall())
        assert {id: found[id] for id in shapes} == shapes
        assert {id for id, shape in found.items() if shape == far} == {1, 3, 100, 102, 103, 200}
        assert len(found) == 30 + 7 - 11
        assert connection.execute("select typeof(g), typeof(l) from h limit 1").fetchall() == [
            ("GEOMETRY", "GEOMETRY[]")
        ]
        assert connection.execute("select count(*), count(g) from h").fetchall() == [(8, 7)]
    lake.compare()
    assert lake.spark_rows(f"select count(*) from g where st_asbinary(st_geomfromwkb(g)) = {FAR}") == [(6,)]


def test_duckdb_prunes_by_the_box_of_all_rows(lake: Both) -> None:
    lake.spark("create table g (id int, g geometry, s struct<g: geometry>)")
    lake.spark("insert into g values (1, 'POINT (1 2)', named_struct('g', 'POINT (1 2)')), (2, null, null)")
    lake.duckdb(
        "call lake.set_option('data_inlining_row_limit', 0)",
        "insert into g values (3, 'POINT (10 20)', {'g': 'POINT (10 20)'})",
    )
    lake.spark(
        "insert into g values (4, 'POINT Z (-0.0000001 1e-9 7)', named_struct('g', null)), (5, 'POINT EMPTY', null)"
    )
    ((column, text),) = lake.catalog_rows(
        "select column_id, extra_stats from {m}.ducklake_table_column_stats where column_id = 2"
    )
    stats = json.loads(text)
    assert (column, stats["types"]) == (2, ["point", "point_z"])
    box = {name: value for name, value in stats["bbox"].items() if value is not None}
    assert box == {"xmin": -1e-7, "xmax": 10.0, "ymin": 1e-9, "ymax": 20.0, "zmin": 7.0, "zmax": 7.0}
    with lake.connection() as connection:
        plan = str(connection.execute(f"explain select * from g where {_at(500, 500)}").fetchall())
        assert "EMPTY_RESULT" in plan
        for x, y, id in ((1, 2, 1), (10, 20, 3), (-0.0000001, 1e-9, 4)):
            assert connection.execute(f"select id from g where {_at(x, y)}").fetchall() == [(id,)]
            condition = _at(x, y).replace("g &&", "s.g &&")
            assert connection.execute(f"select id from g where {condition}").fetchall() == ([(id,)] if id < 4 else [])
        connection.execute("insert into g values (6, 'POINT (-500 -500)', null)")
        connection.execute("call ducklake_merge_adjacent_files('lake')")
        for x, y, id in ((1, 2, 1), (10, 20, 3), (-500, -500, 6)):
            assert connection.execute(f"select id from g where {_at(x, y)}").fetchall() == [(id,)]
    lake.spark("update g set g = 'POINT (700 700)' where id = 1")
    assert lake.duckdb_rows(f"select id from g where {_at(700, 700)}") == [(1,)]
    lake.compare()


def test_a_table_of_empty_shapes_hides_no_later_one(open_lake: Callable[..., Both]) -> None:
    lake = open_lake("sqlite")
    lake.spark(
        "create table g (id int, g geometry)",
        "insert into g values (1, null)",
        "insert into g values (2, 'POINT EMPTY')",
    )
    lake.duckdb("insert into g values (3, 'POINT (1 1)')")
    lake.spark("insert into g values (4, 'POINT (2 2)')")
    for id, x in ((3, 1), (4, 2)):
        assert lake.duckdb_rows(f"select id from g where {_at(x, x)}") == [(id,)]
