"""Servers of databases and of S3 for tests: private ones on loopback, in a folder of their own, gone afterwards.

Given ones are used instead where DUCKLAKE_TEST_POSTGRES (libpq words) or DUCKLAKE_TEST_MYSQL
(`host=... user=...` words) name them.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


class NotHere(Exception):
    """The server is not installed; the message says what to install."""


def _program(name: str, *places: str) -> str | None:
    found = shutil.which(name)
    for place in () if found else places:
        matches = sorted(glob.glob(os.path.join(place, name)))
        found = matches[-1] if matches else None
    return found


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


def _as_user(user: str, folder: str) -> list[str]:
    """How a server that refuses to run as root is run by root: as its own user."""
    if os.geteuid() != 0:
        return []
    shutil.chown(folder, user, user)
    return ["runuser", "-u", user, "--"]


def _wait(answers: object, what: str) -> None:
    for _ in range(150):
        try:
            answers()  # type: ignore[operator]
            return
        except Exception as error:
            last = error
            time.sleep(0.2)
    raise RuntimeError(f"{what} does not answer: {last}")


@contextmanager
def postgres() -> Iterator[str]:
    """The libpq words of a PostgreSQL server in which databases may be created."""
    if given := os.environ.get("DUCKLAKE_TEST_POSTGRES"):
        yield given
        return
    initdb = _program("initdb", "/usr/lib/postgresql/*/bin", "/opt/homebrew/opt/postgresql*/bin")
    if initdb is None:
        raise NotHere("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    import psycopg

    with tempfile.TemporaryDirectory(prefix="lake-pg-") as folder:
        run = _as_user("postgres", folder)
        data, port = os.path.join(folder, "data"), free_port()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        subprocess.run([*run, initdb, "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8"], check=True, **quiet)
        server = subprocess.Popen(
            [*run, os.path.join(os.path.dirname(initdb), "postgres"), "-D", data, "-p", str(port)]
            + ["-k", folder, "-h", "127.0.0.1", "-c", "fsync=off", "-c", "max_connections=200"],
            **quiet,
        )
        words = f"host=127.0.0.1 port={port} user=postgres"
        try:
            _wait(lambda: psycopg.connect(words, dbname="postgres").close(), "PostgreSQL")
            yield words
        finally:
            server.terminate()
            server.wait()


@contextmanager
def mysql() -> Iterator[str]:
    """The words of a MySQL or MariaDB server in which databases may be created."""
    if given := os.environ.get("DUCKLAKE_TEST_MYSQL"):
        yield given
        return
    install = _program("mariadb-install-db", "/usr/bin")
    daemon = _program("mariadbd", "/usr/sbin", "/usr/libexec")
    if install is None or daemon is None:
        raise NotHere("MariaDB is not installed (Debian: apt-get install mariadb-server)")
    import pymysql

    with tempfile.TemporaryDirectory(prefix="lake-my-") as folder:
        user = "mysql" if os.geteuid() == 0 else os.environ.get("USER", "")
        run = _as_user("mysql", folder)
        data, port = os.path.join(folder, "data"), free_port()
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.STDOUT}
        common = ["--no-defaults", f"--datadir={data}"]
        subprocess.run([*run, install, *common, "--auth-root-authentication-method=normal"], check=True, **quiet)
        server = subprocess.Popen(
            [*run, daemon, *common, f"--port={port}", "--bind-address=127.0.0.1"]
            + [f"--socket={folder}/s.sock", f"--pid-file={folder}/pid", f"--user={user}"],
            **quiet,
        )
        try:
            _wait(lambda: pymysql.connect(host="127.0.0.1", port=port, user="root").close(), "MariaDB")
            yield f"host=127.0.0.1 port={port} user=root"
        finally:
            server.terminate()
            server.wait()


@dataclass(frozen=True)
class S3:
    """A server of S3 with one bucket, which is a folder."""

    endpoint: str
    folder: Path
    log: Path
    bucket: str = "bucket"
    key: str = "key"
    secret: str = "secretsecret"

    @property
    def storage(self) -> dict[str, str]:
        return {"endpoint": self.endpoint, "region": "us-east-1", "key": self.key, "secret": self.secret}

    def requests(self) -> list[tuple[str, str]]:
        """The requests so far: the name of each, such as PutObject, and what it is about."""
        found = re.findall(r" s3_(\w+) (\S+)", self.log.read_text())
        return [(name, path) for name, path in found]


@contextmanager
def s3() -> Iterator[S3]:
    """A server of S3 on loopback."""
    program = _program("versitygw", os.path.expanduser("~/go/bin"))
    if program is None:
        raise NotHere("versitygw is not installed (go install github.com/versity/versitygw/cmd/versitygw@v1.8.0)")
    with tempfile.TemporaryDirectory(prefix="lake-s3-") as folder:
        port = free_port()
        server = S3(f"http://127.0.0.1:{port}", Path(folder, "data"), Path(folder, "requests"))
        Path(server.folder, server.bucket).mkdir(parents=True)
        command = [program, "--port", f"127.0.0.1:{port}", "--access-log", str(server.log), "posix", str(server.folder)]
        keys = {"ROOT_ACCESS_KEY": server.key, "ROOT_SECRET_KEY": server.secret}
        process = subprocess.Popen(command, env={**os.environ, **keys}, stdout=subprocess.DEVNULL)
        try:
            _wait(lambda: socket.create_connection(("127.0.0.1", port)).close(), "versitygw")
            yield server
        finally:
            process.terminate()
            process.wait()
