"""A lake on S3: what a write and a read of it ask the server for."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .. import servers
from ..lakes import LakeAddress, attached

SCRIPT = """
import json, sys, time
from dbt.adapters.ducklake import LakeSession

storage, how, log = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
spark = {**how, "config": {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}}
STATEMENTS = {
    "start": "create table one as select 1 as id",
    "insert": "insert into t select id, id % 8 from range(0, 100000, 1, 4)",
    "partitioned": "create table p partitioned by (g) as select * from t",
    "delete": "delete from t where id % 50 = 3",
    "read": "select count(*), sum(id) from t",
    "failed": "insert into p select raise_error('no'), 1 from range(10)",
}
with LakeSession("sqlite:lake.sqlite", data_path=sys.argv[4], storage=storage, spark=spark) as lake:
    lake.execute("call ducklake_set_option('data_inlining_row_limit', 0)")
    lake.execute("create table t (id bigint, g bigint)")
    for name, statement in STATEMENTS.items():
        before = len(open(log).readlines())
        try:
            rows = lake.execute(statement).arrow().to_pylist()
        except Exception as error:
            rows = [type(error).__name__]
        time.sleep(0.2)  # the server writes its log a little later
        print("ROWS", json.dumps([name, [list(row.values()) if isinstance(row, dict) else row for row in rows],
              before, len(open(log).readlines())]))
    lake.execute("call ducklake_expire_snapshots(older_than => now())")
    lake.execute("call ducklake_cleanup_old_files(cleanup_all => true)")
    named = [f for t in ("one", "t", "p") for f in lake.sql(f"from ducklake_list_files('main.{t}')").collect()]
    print("FILES", json.dumps(sorted(p for f in named for p in (f.data_file, f.delete_file) if p)))
"""


@pytest.fixture(scope="module")
def s3() -> Iterator[servers.S3]:
    try:
        with servers.s3() as server:
            yield server
    except servers.NotHere as reason:
        pytest.skip(str(reason))


def _run(s3: servers.S3, folder: Path, how: dict[str, str]) -> dict[str, tuple[list[Any], Counter[str]]]:
    """The rows of each statement, and how many requests of each kind it made."""
    arguments = [json.dumps(s3.storage), json.dumps(how), str(s3.log), f"s3://{s3.bucket}/{folder.name}/a b/"]
    command = [sys.executable, "-c", SCRIPT, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    requests = s3.requests()
    found = {}
    for line in done.stdout.splitlines():
        if line.startswith("ROWS"):
            name, rows, start, end = json.loads(line[5:])
            found[name] = rows, Counter(kind for kind, _ in requests[start - 1 : end - 1])
    (files,) = (json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("FILES"))
    bucket = s3.folder / s3.bucket
    on_disk = sorted(f"s3://bucket/{p.relative_to(bucket)}" for p in (bucket / folder.name).rglob("*") if p.is_file())
    assert on_disk == files
    return found


@pytest.mark.parametrize("how", [{"master": "local[2]"}, {"remote": "local[2]"}], ids=["local", "connect"])
@pytest.mark.usefixtures("connect_port")
def test_what_a_lake_on_s3_asks_for(s3: servers.S3, tmp_path: Path, how: dict[str, str]) -> None:
    found = _run(s3, tmp_path, how)
    for name, files, read in (("insert", 4, 0), ("partitioned", 8, 4)):
        requests = found[name][1]
        if name == "partitioned":  # moved to the folders of their partitions
            assert requests["CopyObject"] <= files
        else:
            assert (requests["CopyObject"], requests["PutObject"]) == (0, files)
            assert requests.total() <= 4 * files + 2 * read + 2  # 2: whether the folder is there
    kept = [i for i in range(100000) if i % 50 != 3]
    assert found["read"][0] == [[len(kept), sum(kept)]]
    # Two requests for each of 4 data files and 4 delete files: its length, and its content or its end.
    assert found["read"][1].keys() <= {"HeadObject", "GetObject"}
    assert found["read"][1].total() <= 20
    assert found["failed"][0] == ["SparkRuntimeException"]
    on_disk = f"{s3.folder}/{s3.bucket}/{tmp_path.name}/a b/"
    address = LakeAddress("sqlite", f"sqlite:{tmp_path}/lake.sqlite", on_disk)
    with attached(address, override_data_path=True) as duckdb:
        assert duckdb.sql("select count(*), sum(id) from p").fetchall() == [(100000, sum(range(100000)))]
