"""The lines about long nodes at a terminal: when they come, and what they say."""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.ducklake import progress
from dbt.adapters.ducklake.progress import ProgressLog, RunningNode, at_terminal
from dbt.adapters.ducklake.spark.engine.progress import ConnectProgress, Progress

HALF = Progress(stages=4, stages_done=2, tasks=800, tasks_done=310, rows_read=4_200_000, bytes_read=1_300_000_000)


class Session:
    """A LakeSession whose Spark is at some point."""

    def __init__(self, at: Progress | Exception = HALF, started: bool = True, page: str | None = None) -> None:
        self.at = at
        self.spark_started = started
        self.spark_page = page

    def spark_progress(self, tag: str) -> Progress:
        if isinstance(self.at, Exception):
            raise self.at
        return self.at


def node(session: Any, name: str = "model.shop.orders") -> RunningNode:
    return RunningNode(session, name, f"{name}-1")


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def log(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> ProgressLog:
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0.02)
    monkeypatch.setattr(progress, "_POLL_SECONDS", 0.005)
    log = ProgressLog(lines.append)
    log.enabled = True
    return log


def wait_for(lines: list[str], count: int) -> None:
    deadline = time.monotonic() + 10
    while len(lines) < count and time.monotonic() < deadline:
        time.sleep(0.002)


@pytest.mark.parametrize(
    ("session", "state"),
    [
        (Session(), "2 of 4 stages, 310 of 800 tasks, 4.2M rows and 1.3 GB read"),
        (Session(Progress(1, 0, 20_000, 7)), "0 of 1 stages, 7 of 20.0k tasks"),
        (Session(Progress(1, 0, 2, 1, bytes_read=500)), "0 of 1 stages, 1 of 2 tasks, 500 B read"),
        (Session(Progress()), "no Spark job yet"),
        (Session(started=False), "Spark is starting"),
    ],
)
def test_a_line_says_how_far_spark_is(session: Session, state: str) -> None:
    assert node(session).line() == f"orders: {state} [0s]"


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("model.shop.orders", "orders"),
        ("model.shop.orders.v2", "orders.v2"),
        ("test.shop.not_null_orders_id.cf6c17daed", "not_null_orders_id"),
        ("snapshot.shop.history", "history"),
        ("master", "master"),
    ],
)
def test_a_line_names_the_node_as_its_author_does(name: str, short: str) -> None:
    assert node(Session(), name).line().startswith(f"{short}: ")


def test_each_running_node_gets_a_line_now_and_then(log: ProgressLog, lines: list[str]) -> None:
    orders, days = node(Session()), node(Session(), "model.shop.days")
    with log.of(orders), log.of(days), log.of(days):
        wait_for(lines, 6)
    shown = {line.partition(":")[0] for line in lines}
    assert shown == {"orders", "days"}
    count = len(lines)
    time.sleep(0.05)
    assert len(lines) == count, "a node that has ended gets no line"
    with log.of(node(Session(), "model.shop.later")):
        wait_for(lines, count + 1)
    assert lines[-1].startswith("later: ")


def test_a_short_node_gets_no_line(lines: list[str]) -> None:
    log = ProgressLog(lines.append)
    log.enabled = True
    with log.of(node(Session())):
        time.sleep(0.05)
    assert lines == []


def test_away_from_a_terminal_there_is_nothing(log: ProgressLog, lines: list[str]) -> None:
    log.enabled = False
    with log.of(node(Session())):
        time.sleep(0.1)
    assert lines == []


def test_the_page_of_spark_is_shown_once(log: ProgressLog, lines: list[str]) -> None:
    with log.of(node(Session(page="http://host:4040"))):
        wait_for(lines, 3)
    assert lines[0].endswith("s]; Spark's page: http://host:4040")
    assert not any("page" in line for line in lines[1:])


def test_a_spark_that_cannot_be_asked_is_no_error(log: ProgressLog, lines: list[str]) -> None:
    gone, orders = node(Session(ConnectionError("gone")), "model.shop.gone"), node(Session())
    with log.of(gone), log.of(orders):
        wait_for(lines, 2)
    assert {line.partition(":")[0] for line in lines} == {"orders"}


@pytest.mark.parametrize(
    ("terminal", "args", "expected"),
    [
        (True, {"quiet": False, "log_format": "default"}, True),
        (True, {}, True),
        (False, {}, False),
        (True, {"quiet": True}, False),
        (True, {"log_format": "json"}, False),
        (True, {"log_level": "none"}, False),
    ],
)
def test_lines_are_for_people_at_a_terminal(
    terminal: bool, args: dict[str, Any], expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(isatty=lambda: terminal))
    assert at_terminal(SimpleNamespace(args=SimpleNamespace(**args))) is expected


def stage(tasks: int, done: int, size: int = 0) -> Any:
    return SimpleNamespace(num_tasks=tasks, num_completed_tasks=done, num_bytes_read=size, done=tasks == done)


def test_operations_of_spark_connect_add_up_in_their_group() -> None:
    handler = ConnectProgress()
    handler([stage(9, 9)], 0, "before any group", True)
    handler.set_group("a")
    handler([stage(4, 1)], 1, "first", False)
    handler([stage(4, 4, 100), stage(2, 1, 10)], 1, "first", False)
    handler([stage(3, 0)], 1, "second", False)
    handler(None, 0, "third", True)
    assert handler.of_group("a") == Progress(3, 1, 9, 5, bytes_read=110)
    handler.set_group("b")
    assert not handler.of_group("a")
