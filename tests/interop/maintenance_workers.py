"""What other processes do to a lake that is maintained: they write, maintain and are killed. They have a Spark each."""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import duckdb

from dbt.adapters.ducklake import LakeSession
from dbt.adapters.ducklake.lake.transaction import Transaction

from .. import reference
from ..lakes import PATIENT
from ..workers import die_after_statements

Role = Callable[[int, str, str, float], dict[int, int]]
"""Gets the number of its process, the catalog, the data path and how many seconds it works."""


def by_role(number: int, roles: Sequence[Role], catalog: str, data_path: str, seconds: float) -> dict[int, int]:
    """Does what the role of a process is; answers the rows that it leaves in main.t: values by key."""
    return roles[number](number, catalog, data_path, seconds)


def write_with_duckdb(number: int, catalog: str, data_path: str, seconds: float) -> dict[int, int]:
    # So few keys that it stores the deletes in the catalog: DuckDB 1.5 does not see all conflicts of delete files.
    changes = _RandomChanges(number, inserted=(2, 5, 40), changed=(1, 3))
    connection = reference.connect(catalog, data_path)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        statement, rows = changes.next()
        try:
            connection.execute(statement)
        except duckdb.Error:  # it conflicted, and changed nothing
            continue
        changes.rows = rows
    connection.close()
    return changes.rows


def write_with_spark(number: int, catalog: str, data_path: str, seconds: float) -> dict[int, int]:
    """Plans again what conflicts."""
    changes = _RandomChanges(number, inserted=(20,), changed=(5,))
    with _started(catalog, data_path) as lake:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            statement, rows = changes.next()
            lake.execute(statement)
            changes.rows = rows
    return changes.rows


def maintain_with_spark(number: int, catalog: str, data_path: str, seconds: float) -> dict[int, int]:
    """Flushes, rewrites and merges main.t."""
    with _started(catalog, data_path) as lake:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            lake.call("ducklake_flush_inlined_data", "main.t")
            lake.call("ducklake_rewrite_data_files", "main.t", delete_threshold=0.1)
            lake.call("ducklake_merge_adjacent_files", "main.t")
    return {}


def die_in_maintenance(catalog: str, data_path: str, operation: str, arguments: dict[str, Any], after: int) -> None:
    """Calls an operation and is killed: with 0 before its commit, else after so many writing statements of it."""
    lake = LakeSession(catalog, data_path=data_path, spark={"master": "local[1]"})
    commit = Transaction.commit

    def dying_commit(transaction: Transaction) -> Any:
        if after == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        die_after_statements(transaction.catalog, after)
        return commit(transaction)

    Transaction.commit = dying_commit  # type: ignore[method-assign]
    lake.call(operation, **arguments)


def _started(catalog: str, data_path: str) -> LakeSession:
    lake = LakeSession(catalog, data_path=data_path, spark={"master": "local[1]"}, retry=PATIENT)
    lake.sql("select 1").collect()
    return lake


class _RandomChanges:
    """Statements that insert, update and delete rows of main.t, with keys of one writer alone."""

    def __init__(self, number: int, inserted: Sequence[int], changed: Sequence[int]) -> None:
        """`inserted` and `changed` are how many rows a statement may insert, and update or delete."""
        self.rows: dict[int, int] = {}
        """The rows that the writer has: values by key."""
        self._chance = random.Random(number)
        self._new_keys = itertools.count(number * 1_000_000)
        self._inserted, self._changed = inserted, changed

    def next(self) -> tuple[str, dict[int, int]]:
        """A statement, and the rows after it."""
        keys = self._chance.sample(sorted(self.rows), min(len(self.rows), self._chance.choice(self._changed)))
        listed = ", ".join(map(str, keys))
        kind = self._chance.random() if keys else 0.0
        if kind < 0.4:
            count = self._chance.choice(self._inserted)
            new = {key: self._chance.randrange(100) for key in itertools.islice(self._new_keys, count)}
            return f"insert into t values {', '.join(map(str, new.items()))}", self.rows | new
        if kind < 0.7:
            updated = {key: self.rows[key] + 1 for key in keys}
            return f"update t set v = v + 1 where id in ({listed})", self.rows | updated
        return f"delete from t where id in ({listed})", {k: v for k, v in self.rows.items() if k not in keys}
