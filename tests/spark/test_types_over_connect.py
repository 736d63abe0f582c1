"""Geometries, variants and values that Spark does not have, over Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

from .. import reference

SCRIPT = """
from dbt.adapters.ducklake import LakeSession

settings = {"remote": "local[2]", "config": {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}}
with LakeSession("duckdb:catalog.ducklake", data_path="data/", spark=settings) as lake:
    lake.execute("create table g (id int, g geometry)")
    lake.execute("insert into g values (1, 'POINT (1 2)')")
    lake.execute("insert into g values (2, X'0101000000000000000000594000000000000069C0')")
    lake.execute("insert into g select id + 2, st_geomfromwkb(g) from g")
    for table in ("in_files", "inlined"):
        lake.execute(f"update {table} set other = 'b'")
        kinds = lake.sql(f"select schema_of_variant(v) as k from {table} order by id")
        print([r["k"] for r in kinds.toArrow().to_pylist()])
    print([bytes(r["g"])[:5] for r in lake.sql("select g from g").toArrow().to_pylist()])
"""


@pytest.mark.usefixtures("connect_port")
def test_types_over_spark_connect(tmp_path: Path) -> None:
    address = f"duckdb:{tmp_path}/catalog.ducklake"
    query = "select id, moment::varchar, h::varchar, c::varchar, v::varchar from {} order by id"
    connection = _connect(address, tmp_path)
    before = {}
    for table, limit in (("in_files", 0), ("inlined", 10)):
        connection.execute(f"call lake.set_option('data_inlining_row_limit', {limit})")
        connection.execute(
            f"create table {table} (id int, moment timestamp_ns, h hugeint, c time, v variant, other varchar)"
        )
        connection.execute(
            f"insert into {table} values"
            " (1, '2020-01-01 00:00:00.123456789', 15e37::hugeint, '24:00:00', 'x', 'a'),"
            " (2, '2020-01-01', 1, '12:00:00', 'y', 'a')"
        )
        before[table] = connection.execute(query.format(table)).fetchall()
    connection.close()
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines()[-3:] == [*[str(["STRING"] * 2)] * 2, str([b"\x01\x01\x00\x00\x00"] * 4)]
    connection = _connect(address, tmp_path)
    for table, rows in before.items():
        assert connection.execute(query.format(table)).fetchall() == rows
    assert connection.execute("select id, g::varchar from g order by id").fetchall() == [
        (1, "POINT (1 2)"),
        (2, "POINT (100 -200)"),
        (3, "POINT (1 2)"),
        (4, "POINT (100 -200)"),
    ]
    connection.close()


def _connect(address: str, folder: Path) -> duckdb.DuckDBPyConnection:
    return reference.connect(address, f"{folder}/data/")
