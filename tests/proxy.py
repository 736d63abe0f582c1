"""A TCP proxy on loopback that breaks the connection to a database server where a test says."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Literal

COMMIT = re.compile(rb"COMMIT\x00?$")  # at the end of a packet, unlike the column commit_message

Moment = Literal["before", "during", "after", "silently"]
"""When a statement's connection breaks: before it reaches the server; when the server has answered, but the answer did
not arrive; after the answer arrived. Silently: before it reaches the server, which does not notice."""


class Proxy:
    """Passes bytes on. `cut` breaks the next connection on which a statement is sent."""

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.refuses = False
        """Whether new connections are refused, once a connection was cut."""
        self.cuts = 0
        self._statement: re.Pattern[bytes] | None = None
        self._moment: Moment = "before"
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._cut_off: list[socket.socket] = []
        """The server's ends of connections that were cut silently."""
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self, statement: re.Pattern[bytes], moment: Moment) -> None:
        self._statement, self._moment = statement, moment

    def release(self) -> None:
        """Closes the server's ends of connections that were cut silently."""
        for end in self._cut_off:
            _close(end)

    def close(self) -> None:
        self._listener.close()
        for end in (*self._sockets, *self._cut_off):
            _close(end)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses and self.cuts:
                _close(client)
                continue
            server = socket.create_connection(self._server)
            self._sockets += [client, server]
            cutting = threading.Event()
            threading.Thread(target=self._to_server, args=(client, server, cutting), daemon=True).start()
            threading.Thread(target=self._to_client, args=(client, server, cutting), daemon=True).start()

    def _to_server(self, client: socket.socket, server: socket.socket, cutting: threading.Event) -> None:
        while data := _received(client):
            with self._lock:
                is_cut = self._statement is not None and self._statement.search(data) is not None
                if is_cut:
                    self._statement = None
                    self.cuts += 1
            if is_cut and self._moment == "silently":
                self._sockets.remove(server)
                self._cut_off.append(server)
                _close(client)
                return
            if is_cut and self._moment == "before":
                break
            if is_cut:
                cutting.set()
            if not _sent(server, data):
                break
        if not cutting.is_set():
            _close(server)
            _close(client)

    def _to_client(self, client: socket.socket, server: socket.socket, cutting: threading.Event) -> None:
        while data := _received(server):
            if cutting.is_set() and self._moment == "during":
                break
            if not _sent(client, data) or cutting.is_set():
                break
        if server not in self._cut_off:
            _close(server)
            _close(client)


def _received(end: socket.socket) -> bytes:
    try:
        return end.recv(1 << 16)
    except OSError:
        return b""


def _sent(end: socket.socket, data: bytes) -> bool:
    try:
        end.sendall(data)
    except OSError:
        return False
    return True


def _close(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


@contextmanager
def proxied(catalog: str) -> Iterator[tuple[str, Proxy]]:
    """A catalog string of `host=... port=...` words that leads through a proxy, and the proxy."""
    kind, _, rest = catalog.partition(":")
    words = dict(word.split("=") for word in rest.split())
    proxy = Proxy(words["host"], int(words["port"]))
    try:
        words |= {"host": "127.0.0.1", "port": str(proxy.port)}
        yield f"{kind}:" + " ".join(f"{key}={value}" for key, value in words.items()), proxy
    finally:
        proxy.close()
