"""Database servers for tests: private ones on loopback, in a folder of their own, gone afterwards.

Given ones are used instead where DUCKLAKE_TEST_POSTGRES (libpq words) or DUCKLAKE_TEST_MYSQL
(`host=... user=...` words) name them.
"""

from __future__ import annotations

import glob
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager


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
