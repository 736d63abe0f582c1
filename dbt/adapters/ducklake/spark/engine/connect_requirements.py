"""What Spark Connect needs, checked before it is used: Python packages, and a server that answers."""

from __future__ import annotations

import importlib.util
import os
import socket
import urllib.parse

from ...lake.errors import LakeError

_PACKAGES = {
    "pandas": "pandas",
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
}
_DEFAULT_PORT = 15002
_CONNECT_SECONDS = 10.0
_PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""The variables by which gRPC finds a proxy."""


def check_packages() -> None:
    """Raises if a package is not installed. Imports none: that takes a second."""
    missing = [package for module, package in _PACKAGES.items() if not _is_installed(module)]
    if missing:
        raise LakeError(
            f"Spark Connect needs {', '.join(missing)}, which Python does not find: pip install 'dbt-ducklake[connect]'"
        )


def check_reachable(remote: str) -> None:
    """Raises if nothing listens at the address of a server. Spark itself would try for ten minutes."""
    if not remote.startswith("sc://") or any(name in os.environ for name in _PROXIES):
        return
    try:
        parts = urllib.parse.urlsplit(remote)
        address = (parts.hostname or "", parts.port or _DEFAULT_PORT)
    except ValueError:
        return  # Spark's own message says what is wrong with the address
    try:
        socket.create_connection(address, timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        raise LakeError(
            f"Spark can not be reached: no server answers at {address[0]}, port {address[1]}"
            f" ({error.strerror or error}); start it, or correct spark.remote"
        ) from error


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of a parent package
        return False
