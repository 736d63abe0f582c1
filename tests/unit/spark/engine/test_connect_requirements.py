"""What is missing for Spark Connect is said before Spark is asked, which would try for ten minutes."""

from __future__ import annotations

import importlib.util
import socket

import pytest

from dbt.adapters.ducklake.lake.errors import LakeError
from dbt.adapters.ducklake.spark.engine.connect_requirements import check_packages, check_reachable


@pytest.fixture
def port() -> int:
    """A port at which nothing listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return int(unused.getsockname()[1])


def test_missing_packages_are_named_with_the_extra_that_brings_them(monkeypatch: pytest.MonkeyPatch) -> None:
    check_packages()

    def find_spec(module: str) -> object | None:
        if module == "google.rpc":
            raise ModuleNotFoundError("No module named 'google'")
        return None if module == "grpc" else object()

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    with pytest.raises(LakeError, match=r"needs grpcio, googleapis-common-protos, .*'dbt-ducklake\[connect\]'"):
        check_packages()


def test_a_server_that_does_not_run_is_named_without_its_token(port: int) -> None:
    with pytest.raises(LakeError, match=rf"no server answers at 127\.0\.0\.1, port {port} \(Connection refused\)") as e:
        check_reachable(f"sc://127.0.0.1:{port}/;token=secret")
    assert "secret" not in str(e.value)


def test_a_server_that_listens_is_fine() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_reachable(f"sc://127.0.0.1:{server.getsockname()[1]}/;use_ssl=false")


def test_behind_a_proxy_nothing_is_tried(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy:3128")
    check_reachable(f"sc://127.0.0.1:{port}")
