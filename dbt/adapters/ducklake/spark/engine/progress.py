"""How far the jobs of a job group are: stages, tasks and what they read."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from py4j.protocol import Py4JError
from pyspark import SparkContext


@dataclass(frozen=True)
class Progress:
    """The stages and tasks of jobs that have run or are running."""

    stages: int = 0
    stages_done: int = 0
    tasks: int = 0
    tasks_done: int = 0
    rows_read: int = 0
    """The rows that scans returned; 0 over Spark Connect, which does not tell."""
    bytes_read: int = 0

    def __bool__(self) -> bool:
        return self.stages > 0


def progress_of_group(context: SparkContext, group: str) -> Progress:
    """The progress of a job group of classic Spark. May be called in any thread."""
    tracker = context.statusTracker()
    stage_ids: set[int] = set()
    running_ids: set[int] = set()
    for job in filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group))):
        stage_ids.update(job.stageIds)
        if job.status == "RUNNING":
            running_ids.update(job.stageIds)
    stages = stages_done = tasks = tasks_done = rows_read = bytes_read = 0
    for stage in filter(None, map(tracker.getStageInfo, stage_ids)):
        done = stage.numCompletedTasks >= stage.numTasks
        if not done and stage.stageId not in running_ids:
            continue  # skipped: an earlier job has computed what it would
        rows, size = _read_by(context, stage.stageId)
        stages, stages_done = stages + 1, stages_done + done
        tasks, tasks_done = tasks + stage.numTasks, tasks_done + stage.numCompletedTasks
        rows_read, bytes_read = rows_read + rows, bytes_read + size
    return Progress(stages, stages_done, tasks, tasks_done, rows_read, bytes_read)


def _read_by(context: SparkContext, stage: int) -> tuple[int, int]:
    """The rows and bytes that a stage has read so far, which PySpark's tracker does not tell."""
    try:
        data = context._jsc.sc().statusStore().lastStageAttempt(stage)
        return int(data.inputRecords()), int(data.inputBytes())
    except (Py4JError, TypeError):
        return 0, 0


class _ConnectStage(Protocol):
    num_tasks: int
    num_completed_tasks: int
    num_bytes_read: int
    done: bool


class ConnectProgress:
    """A progress handler of Spark Connect that adds up the operations of each job group.

    Spark Connect calls it in the thread that waits for the operation, so a group belongs to a thread.
    """

    def __init__(self) -> None:
        self._thread = _ThreadGroup()
        self._operations: dict[str, dict[str | None, tuple[_ConnectStage, ...]]] = {}

    def register(self, spark: Any) -> None:
        """Follows the operations of a session, if it is one of Spark Connect."""
        if is_connect(spark):
            spark.registerProgressHandler(self)

    def unregister(self, spark: Any) -> None:
        if is_connect(spark):
            spark.removeProgressHandler(self)

    def set_group(self, group: str) -> None:
        """Sets the group of the thread's operations, and forgets its last one."""
        if self._thread.group != group:
            self._operations.pop(self._thread.group, None)
            self._thread.group = group

    def __call__(
        self, stages: Iterable[_ConnectStage] | None, inflight_tasks: int, operation_id: str | None, done: bool
    ) -> None:
        if self._thread.group and stages is not None:
            self._operations.setdefault(self._thread.group, {})[operation_id] = tuple(stages)

    def of_group(self, group: str) -> Progress:
        operations: Mapping[str | None, tuple[_ConnectStage, ...]] = dict(self._operations.get(group, {}))
        stages = [stage for operation in operations.values() for stage in operation]
        return Progress(
            len(stages),
            sum(stage.done for stage in stages),
            sum(stage.num_tasks for stage in stages),
            sum(stage.num_completed_tasks for stage in stages),
            bytes_read=sum(stage.num_bytes_read for stage in stages),
        )


class _ThreadGroup(threading.local):
    group: str = ""


def is_connect(spark: Any) -> bool:
    return type(spark).__module__.startswith("pyspark.sql.connect")


def web_page(spark: Any) -> str | None:
    """The address of Spark's web page; None if it is off or not known."""
    if is_connect(spark):
        return None
    address = spark.sparkContext.uiWebUrl
    return str(address) if address else None
