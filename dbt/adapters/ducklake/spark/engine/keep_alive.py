"""A local Spark Connect server that outlives the command that started it, so that the next command finds Spark warm.

The server is a process of its own, on loopback, with a random token. Its address is in a file that only its user can
read; settings and secrets reach it through a pipe. Clients touch a lease file while they run, and the server ends when
the lease is older than the time that it was given. A server belongs to one user, one project, one set of settings and
one version of Spark; whoever differs in any of them starts another one.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import pyspark

from ...lake.errors import LakeError

START_SECONDS = 120.0
_TOUCH_SECONDS = 10.0
_POLL_SECONDS = 1.0
_UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_duration(text: object) -> float:
    """The seconds of a duration such as `90s`, `30m` or `2h`."""
    found = re.fullmatch(r"\s*([0-9]+)\s*([smh])\s*", text) if isinstance(text, str) else None
    if found is None or int(found[1]) == 0:
        raise LakeError(f"spark.keep_alive takes a time such as 90s, 30m or 2h, and it is {text!r}")
    return int(found[1]) * float(_UNITS[found[2]])


@dataclass(frozen=True)
class ServerAddress:
    """Where a server listens, and the token that it asks for."""

    port: int
    token: str
    pid: int
    web_ui: str | None = None

    @property
    def remote(self) -> str:
        """The connection string for Spark Connect."""
        return f"sc://localhost:{self.port}/;token={self.token}"

    def __repr__(self) -> str:
        return f"ServerAddress(port={self.port}, pid={self.pid})"


class WarmServer:
    """The server of one user, project, set of settings and version of Spark; it may not run yet."""

    def __init__(self, project: str, master: str, settings: Mapping[str, Any], folder: Path | None = None) -> None:
        if os.name != "posix":
            raise LakeError("spark.keep_alive needs a POSIX system; leave it out of the profile")
        if importlib.util.find_spec("grpc") is None:
            raise LakeError("spark.keep_alive needs Spark Connect: pip install 'dbt-ducklake[connect]'")
        if not master.startswith("local"):
            raise LakeError(f"spark.keep_alive keeps a local Spark, not {master}: leave one of them out")
        self.master = master
        self.settings = {key: str(value) for key, value in settings.items()}
        identity = [os.getuid(), project, pyspark.__version__, sys.executable, master, sorted(self.settings.items())]
        self.key = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:20]
        self.folder = folder or default_folder()
        self._lease: threading.Event | None = None

    def connect(self, idle_seconds: float) -> ServerAddress:
        """The address of the running server; starts one where there is none, or where the last one died."""
        _make_private(self.folder)
        with _locked(self.folder / f"{self.key}.starting"):
            self._hold_lease(min(_TOUCH_SECONDS, idle_seconds / 4))
            address = self.running()
            return address if address is not None else self._start(idle_seconds)

    def running(self) -> ServerAddress | None:
        """The address of the server, if it runs and answers."""
        return _running(self.folder, self.key)

    def stop(self) -> bool:
        """Stops the server; returns whether there was one."""
        address = self.running()
        if address is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(address.pid, signal.SIGTERM)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and _is_locked(self.folder / f"{self.key}.alive"):
            time.sleep(0.05)
        return True

    def release(self) -> None:
        """Ends this client's lease."""
        if self._lease is not None:
            self._lease.set()
            self._lease = None

    def _hold_lease(self, interval: float) -> None:
        """Touches the lease now, and from a thread until the process ends or the lease is released."""
        lease = self.folder / f"{self.key}.lease"
        lease.touch(mode=0o600)
        if self._lease is not None:
            return
        released = self._lease = threading.Event()

        def touch() -> None:
            while not released.wait(interval):
                lease.touch(mode=0o600)

        threading.Thread(target=touch, name="spark-lease", daemon=True).start()

    def _start(self, idle_seconds: float) -> ServerAddress:
        log_path = self.folder / f"{self.key}.log"
        order = {
            "folder": str(self.folder),
            "key": self.key,
            "master": self.master,
            "settings": self.settings,
            "idle_seconds": idle_seconds,
        }
        with _private_file(log_path) as log:
            server = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C of this command is not for the server
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )
        assert server.stdin is not None
        with server.stdin as pipe:
            pipe.write(json.dumps(order).encode())
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            address = self.running()
            if address is not None:
                return address
            if server.poll() is not None:
                break
            time.sleep(0.05)
        server.kill()
        raise LakeError(f"the Spark that spark.keep_alive starts did not come up: {_last_line(log_path)}")


def default_folder() -> Path:
    """The user's folder for addresses, leases and logs of servers."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(cache) / "dbt-ducklake" / "spark"


# -- files


def _make_private(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise LakeError(f"{folder} holds the tokens of Spark servers, and others may read it: chmod 700 it")


def _private_file(path: Path) -> IO[bytes]:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    import fcntl

    with open(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_locked(path: Path) -> bool:
    """Whether a process holds the lock; the system releases it however that process ends."""
    import fcntl

    try:
        with open(path, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def _running(folder: Path, key: str) -> ServerAddress | None:
    if not _is_locked(folder / f"{key}.alive"):
        return None
    try:
        address = ServerAddress(**json.loads((folder / f"{key}.json").read_text()))
        socket.create_connection(("localhost", address.port), timeout=5).close()
    except (OSError, ValueError, TypeError):
        return None
    return address


def _last_line(path: Path) -> str:
    lines = [line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()]
    return f"{lines[-1]} (all of it is in {path})" if lines else f"it said nothing; look into {path}"


# -- the server's process


def main() -> int:
    """Runs a server, as the order on the standard input says, until its lease is too old."""
    import fcntl

    order = json.load(sys.stdin)
    folder, key = Path(order["folder"]), str(order["key"])
    token = secrets.token_urlsafe(32)
    os.environ["SPARK_CONNECT_AUTHENTICATE_TOKEN"] = token
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(os.open(folder / f"{key}.alive", os.O_RDWR | os.O_CREAT, 0o600), "rb") as alive:
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        address_file = folder / f"{key}.json"
        address_file.unlink(missing_ok=True)
        context = _start_spark(order["master"], order["settings"])
        try:
            address = ServerAddress(_port(context), token, os.getpid(), context.uiWebUrl)
            _write_privately(address_file, json.dumps(asdict(address)))
            _wait_for_idleness(folder / f"{key}.lease", float(order["idle_seconds"]), context)
        finally:
            address_file.unlink(missing_ok=True)
            context.stop()
    return 0


def _start_spark(master: str, settings: Mapping[str, str]) -> Any:
    from pyspark import SparkConf, SparkContext

    conf = SparkConf().setMaster(master).setAppName("dbt-ducklake")
    conf.setAll(list(settings.items()))
    conf.setAll(
        [
            ("spark.plugins", "org.apache.spark.sql.connect.SparkConnectPlugin"),
            ("spark.connect.grpc.binding.address", "127.0.0.1"),
            ("spark.connect.grpc.binding.port", "0"),
            ("spark.driver.bindAddress", "127.0.0.1"),
            ("spark.driver.host", "127.0.0.1"),
        ]
    )
    return SparkContext(conf=conf)


def _port(context: Any) -> int:
    """The port that the system gave the Connect service of this process."""
    service = getattr(context._jvm.org.apache.spark.sql.connect.service, "SparkConnectService$")
    return int(getattr(service, "MODULE$").localPort())


def _write_privately(path: Path, text: str) -> None:
    """Writes a file that appears whole, and that only its owner can read."""
    descriptor, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
    os.replace(name, path)


def _wait_for_idleness(lease: Path, idle_seconds: float, context: Any) -> None:
    java = getattr(context._gateway, "proc", None)
    while java is None or java.poll() is None:
        try:
            touched = lease.stat().st_mtime
        except FileNotFoundError:
            return
        if time.time() - touched > idle_seconds:
            return
        time.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
