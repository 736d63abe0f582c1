"""Writes and reads on S3, with the latency of a network: in place, and by Hadoop's committer as plain Spark does it.

The server is the one of the tests (`tests/servers.py`), behind a proxy that holds each request for 30 ms.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tests import servers

from .harness import Bench, Figure

LATENCY = 0.03
HADOOPS = "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol"
ROWS = "select id, id % 8 as g from range(0, 1000000, 1, 4)"
STATEMENTS = {
    "4 files": f"create or replace table t as {ROWS}",
    "8 partitions": f"create or replace table p partitioned by (g) as {ROWS}",
    "scan of 100 files": "select sum(id) from many",
}
SCRIPT = """
import json, statistics, sys, time
from dbt.adapters.ducklake import LakeSession

storage, path, log, rounds, statements, config = map(json.loads, sys.argv[1:])
config = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "8", **config}
with LakeSession("sqlite:lake.sqlite", data_path=path, storage=storage, spark={"config": config}) as lake:
    lake.execute("create table many as select id from range(0, 1000000, 1, 100)")
    for name, statement in statements.items():
        seconds = []
        for _ in range(rounds + 1):
            before, start = len(open(log).readlines()), time.perf_counter()
            lake.execute(statement).arrow()
            seconds.append(time.perf_counter() - start)
            time.sleep(0.3)  # the server writes its log a little later
        print("FIGURE", json.dumps([name, statistics.median(seconds[1:]), len(open(log).readlines()) - before]))
"""


def run(bench: Bench) -> list[Figure]:
    with servers.s3() as server, _with_latency(server) as slow:
        ours = _measured(bench, slow, "ours", {})
        hadoops = _measured(bench, slow, "hadoops", {"spark.sql.sources.commitProtocolClass": HADOOPS})
    figures = []
    for name in STATEMENTS:
        (seconds, requests), (other_seconds, other_requests) = ours[name], hadoops[name]
        figures += [
            Figure(f"{name}, S3 with {LATENCY * 1000:.0f} ms", seconds, "s", other_seconds, "Hadoop's committer"),
            Figure(f"{name}, requests", requests, "", other_requests, "Hadoop's committer"),
        ]
    return figures


def _measured(bench: Bench, s3: servers.S3, name: str, config: dict[str, str]) -> dict[str, tuple[float, int]]:
    folder = bench.folder / name
    folder.mkdir()
    arguments = (s3.storage, f"s3://{s3.bucket}/{name}/", str(s3.log), bench.rounds, STATEMENTS, config)
    command = [sys.executable, "-c", SCRIPT, *map(json.dumps, arguments)]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True)
    lines = [json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("FIGURE")]
    return {task: (seconds, requests) for task, seconds, requests in lines}


@contextmanager
def _with_latency(server: servers.S3) -> Iterator[servers.S3]:
    """The server behind a proxy that holds each request."""
    port, target = servers.free_port(), int(server.endpoint.rsplit(":", 1)[1])
    loop = asyncio.new_event_loop()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
        last = 0.0
        while data := await reader.read(1 << 16):
            if time.monotonic() - last > delay / 2:  # the first part of a request
                await asyncio.sleep(delay)
            writer.write(data)
            await writer.drain()
            last = time.monotonic()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream_writer = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(
            forward(reader, upstream_writer, LATENCY), forward(upstream_reader, writer, 0.0), return_exceptions=True
        )

    loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", port))
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield replace(server, endpoint=f"http://127.0.0.1:{port}")
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=5)
