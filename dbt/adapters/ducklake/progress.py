"""Lines about nodes that take long, at a terminal: how far Spark is, every ten seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from dbt_common.events.base_types import EventLevel
from dbt_common.events.functions import fire_event
from dbt_common.events.types import Note

from .spark.engine.progress import Progress
from .spark.session import LakeSession

INTERVAL_SECONDS = 10.0
_POLL_SECONDS = 0.25


def at_terminal(config: Any) -> bool:
    """Whether dbt prints text that a person reads while it runs."""
    args = getattr(config, "args", None)
    is_text = getattr(args, "log_format", "default") != "json" and getattr(args, "log_level", "info") != "none"
    return is_text and not getattr(args, "quiet", False) and sys.stdout.isatty()


def abbreviated_count(count: int) -> str:
    for size, unit in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= 10 * size or (count >= size and size > 10**3):
            return f"{count / size:.1f}{unit}"
    return str(count)


def abbreviated_size(size: int) -> str:
    for unit, name in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} B"


class RunningNode:
    """A node that a thread runs, with the tag of its Spark jobs."""

    def __init__(self, session: LakeSession, name: str, tag: str) -> None:
        self.session = session
        self.name = name
        self.tag = tag
        self.started_at = self.last_line_at = time.monotonic()

    def line(self) -> str:
        seconds = round(time.monotonic() - self.started_at)
        return f"{_short_name(self.name)}: {self._state()} [{seconds}s]"

    def _state(self) -> str:
        if not self.session.spark_started:
            return "Spark is starting"
        return _progress_text(self.session.spark_progress(self.tag))


class ProgressLog:
    """Logs a line for each running node now and then, from one thread for all."""

    def __init__(self, write: Callable[[str], None] | None = None) -> None:
        self.enabled = False
        self._write = write or _log
        self._running: list[RunningNode] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._shown_page: str | None = None

    @contextmanager
    def of(self, node: RunningNode) -> Iterator[None]:
        """Logs the progress of a node while the block runs."""
        if not self.enabled:
            yield
            return
        with self._changed:
            self._running.append(node)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="dbt-progress", daemon=True)
                self._thread.start()
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(node)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._running:
                    self._changed.wait()
                due = [n for n in dict.fromkeys(self._running) if time.monotonic() - n.last_line_at >= INTERVAL_SECONDS]
            for node in due:
                self._write_line(node)
            time.sleep(_POLL_SECONDS)

    def _write_line(self, node: RunningNode) -> None:
        node.last_line_at = time.monotonic()
        try:
            page, line = node.session.spark_page, node.line()
        except Exception:  # Spark is being stopped, or cannot be reached: the node itself says so
            return
        with self._changed:
            if node not in self._running:  # it has ended in the meantime
                return
            if page is not None and page != self._shown_page:
                self._shown_page = page
                line += f"; Spark's page: {page}"
            self._write(line)


def _log(line: str) -> None:
    fire_event(Note(msg=line), level=EventLevel.INFO)


def _short_name(name: str) -> str:
    """The name of a node without its kind and package: `orders` for `model.shop.orders`."""
    kind, *rest = name.split(".", 2)
    if len(rest) < 2:
        return name
    return rest[1] if kind == "model" else rest[1].split(".")[0]


def _progress_text(progress: Progress) -> str:
    if not progress:
        return "no Spark job yet"
    parts = [
        f"{progress.stages_done} of {progress.stages} stages",
        f"{abbreviated_count(progress.tasks_done)} of {abbreviated_count(progress.tasks)} tasks",
    ]
    read = [f"{abbreviated_count(progress.rows_read)} rows"] if progress.rows_read else []
    read += [abbreviated_size(progress.bytes_read)] if progress.bytes_read else []
    return ", ".join(parts + [f"{' and '.join(read)} read"] * bool(read))


progress_log = ProgressLog()
"""The log of this process. The adapter enables it."""
