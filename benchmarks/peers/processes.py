"""The memory and CPU time of a process and of all that it started. Needs /proc, so Linux."""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

_INTERVAL_SECONDS = 0.25
HAS_PROC = Path("/proc/self/stat").exists()


class PeakMemory:
    """Samples the resident memory of a process tree, in a thread, while the block runs."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.bytes: int | None = None
        """None where it cannot be measured."""

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _sample(self) -> None:
        while HAS_PROC and not self._stopped.wait(_INTERVAL_SECONDS):
            self.bytes = max(self.bytes or 0, sum(_tree(self._pid, _pages)) * os.sysconf("SC_PAGE_SIZE"))


def cpu_seconds() -> float | None:
    """The CPU time so far of this process, of the ones that it started, and of those of them that have ended."""
    return sum(_tree(os.getpid(), _ticks)) / os.sysconf("SC_CLK_TCK") if HAS_PROC else None


# The places in /proc/PID/stat after the program's name, which is in parentheses and may have spaces.
def _pages(fields: list[str]) -> int:
    return int(fields[21])


def _ticks(fields: list[str]) -> int:
    return sum(int(value) for value in fields[11:15])


def _tree(root: int, value: Callable[[list[str]], int]) -> Iterator[int]:
    children: dict[int, list[int]] = defaultdict(list)
    values: dict[int, int] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        children[int(fields[1])].append(int(folder.name))
        values[int(folder.name)] = value(fields)
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield values.get(pid, 0)
        waiting += children[pid]
