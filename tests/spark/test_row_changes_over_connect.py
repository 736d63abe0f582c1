"""DELETE, UPDATE and MERGE over Spark Connect, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.spark.change import row_positions
from dbt.adapters.ducklake.spark.read import deletion_masks

def change_rows(lake):
    lake.execute("create table t as select id, 'a' as v, array(id) as l from range(0, 40, 1, 1)")
    lake.execute("create table s as select id, 'm' as v, array(0L) as l from range(35, 45)")
    lake.execute("delete from t where id in (select id from s where id > 37)")
    with lake.transaction():
        lake.execute("update t set v = concat(v, 'u') where id < 3")
        lake.execute(
            "merge into t using s on t.id = s.id when matched then update set v = s.v"
            " when not matched and s.id < 43 then insert *"
            " when not matched by source and t.id between 10 and 19 then delete"
        )
        lake.execute("merge into t using (select id, uuid() as u from range(2)) x on t.id = x.id"
                     " when matched then update set v = x.u")
    print(lake.sql("select count(*) as n, sum(id) as s, count_if(v = 'm') as m, sum(size(l)) as l from t")
          .toArrow().to_pylist())
    print(lake.sql("select count(*) as n from t where rowid = id and v not in ('a', 'm')").toArrow().to_pylist())
    lake.execute("drop table t")
    lake.execute("drop table s")

settings = {"remote": "local[2]", "config": {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}}
with LakeSession("sqlite:catalog.sqlite", data_path="data/", spark=settings) as lake:
    change_rows(lake)
    deletion_masks.MAX_FILES = 0
    row_positions.MAX_DRIVER_ROWS = row_positions.MAX_DRIVER_POSITIONS = 0
    lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    for vectors in (False, True):
        lake.execute(f"call ducklake_set_option('write_deletion_vectors', {vectors})")
        change_rows(lake)
"""


@pytest.mark.usefixtures("connect_port")
def test_rows_change_over_spark_connect_by_inlined_deletes_delete_files_and_vectors(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    ids = [*range(10), *range(20, 38), *range(38, 43)]
    rows = f"[{{'n': {len(ids)}, 's': {sum(ids)}, 'm': 8, 'l': {len(ids)}}}]"
    assert [line for line in done.stdout.splitlines() if line.startswith("[{")] == [rows, "[{'n': 3}]"] * 3
