"""The setting `maintenance`: what a run does for the tables that it has written, and how long it may take."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dbt_common.exceptions import CompilationError

from .lake.maintenance.health import Limits

MIN_SECONDS = 1.0
"""With less time left, nothing is begun: it would be cancelled."""


@dataclass(frozen=True)
class MaintenanceSettings(Limits):
    """The limits from which on a table is maintained, and those of the time that it takes."""

    max_seconds: float = 60.0
    """For one table."""
    max_share: float = 0.25
    """Of the time that the run has taken so far, for all its tables together."""

    @classmethod
    def parse(cls, value: Any) -> MaintenanceSettings | None:
        """The settings of a profile or a model; None if they are off. Raises a CompilationError if they are wrong."""
        if value in (None, False, "off"):  # YAML reads the word off as false
            return None
        if value in (True, "auto", "on"):
            return cls()
        if not isinstance(value, Mapping):
            raise CompilationError(f"maintenance takes auto, off, or settings, and it is {value!r}")
        known = {field.name for field in fields(cls)}
        for name, number in value.items():
            if name not in known:
                raise CompilationError(f"maintenance has no setting {name}; it has {', '.join(sorted(known))}")
            is_number = isinstance(number, int | float) and not isinstance(number, bool) and number >= 0
            is_valid = is_number and (number <= 1 or not name.endswith("_share"))
            if not is_valid or (name in ("small_files", "inlined_rows") and number != int(number)):
                expected = "a number between 0 and 1" if name.endswith("_share") else "a number of 0 or more"
                raise CompilationError(f"maintenance: {name} takes {expected}, and it is {number!r}")
        return cls(**value)

    def arguments(self) -> dict[str, Any]:
        """The limits, as `ducklake_maintain` takes them."""
        return {field.name: getattr(self, field.name) for field in fields(Limits)}


class RunBudget:
    """The time that maintenance may take in a run. Threads share it."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._spent = 0.0
        self._lock = threading.Lock()

    def remaining_seconds(self, settings: MaintenanceSettings) -> float:
        """How long maintenance of the next table may take."""
        with self._lock:
            of_run = settings.max_share * (time.monotonic() - self._begun) - self._spent
        return min(settings.max_seconds, of_run)

    def spend(self, seconds: float) -> None:
        with self._lock:
            self._spent += seconds


def describe(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What `ducklake_maintain` returned, as a line of a log for each operation."""
    verbs = {
        "ducklake_merge_adjacent_files": "merged {files_processed} files into {files_created}",
        "ducklake_rewrite_data_files": "rewrote {files_processed} files without deleted rows into {files_created}",
        "ducklake_flush_inlined_data": "flushed {rows_flushed} inlined rows into files",
    }
    for row in rows:
        is_done = row["files_processed"] is not None or row["rows_flushed"] is not None
        text = verbs[row["operation"]].format(**row) if is_done else row["operation"]
        note = f" ({row['note']})" if row["note"] else ""
        yield f"{row['schema_name']}.{row['table_name']}: {text} in {row['seconds']:.1f} s{note}"
