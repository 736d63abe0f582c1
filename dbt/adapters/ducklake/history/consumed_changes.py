"""Incremental reads of the change feed: the range of changes that a model has not consumed yet.

A node's commit records in its extra info up to which snapshot it consumed the changes of an input. The next run reads
this from the snapshots of the node's table, so progress and rows are always of the same commit.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ..lake import tables as t
from ..lake.change_feed import count_expired_snapshots
from ..lake.errors import ExpiredError, NotFoundError
from ..lake.snapshot import Table, View
from ..lake.snapshot_changes import parse_changes
from ..spark.change.rollback import EXTRA_INFO_KEY as ROLLBACK_KEY
from ..spark.inputs import Input
from ..spark.read.context import ChangeRange
from ..spark.read.lakes import Lake
from ..spark.session import LakeSession
from .extra_info import node_infos, parse_extra_info

_PAGE_SIZE = 50

PROGRESS_KEY = "progress_of_table"
"""The key in a commit's extra info with the table of a node that consumed changes and found nothing to do."""
_NOTED_EVERY = datetime.timedelta(days=1)


def must_note_progress(session: LakeSession, inputs: Iterable[Input]) -> bool:
    """Whether a node that changed nothing should record up to where it consumed changes.

    Else the expiry of snapshots could overtake it. Once a day is enough.
    """
    for read in inputs:
        consumed = read.change_range
        if consumed is None or consumed.since is None or consumed.until is None or consumed.until <= consumed.since:
            continue
        catalog = session.lake(read.name.partition(".")[0]).catalog
        with catalog.read() as connection:
            times = catalog.commit_times(connection, [consumed.since])
        since = times.get(consumed.since)
        if since is None or datetime.datetime.now(datetime.timezone.utc) - since >= _NOTED_EVERY:
            return True
    return False


@dataclass(frozen=True)
class ChangeConsumer:
    """A dbt node that builds its table from the changes of a source table."""

    node_id: str
    lake: str | None
    table: Table | View | None
    source_lake: str | None
    source: Table | View | None
    source_name: str

    def pending_range(self, session: LakeSession, full: bool, full_if_expired: bool) -> ChangeRange:
        """The changes that are not consumed yet, or all rows if `full`."""
        if not isinstance(self.source, Table):
            is_missing = self.source is None
            reason = "there is no such table" if is_missing else "it is a view, whose changes no snapshot tells"
            raise NotFoundError(f"ducklake_new_changes can not tell the changes of {self.source_name}: {reason}")
        base = session.base_snapshot(self.source_lake).id
        until = None if session.is_staged(self.source, self.source_lake) else base
        if full or not isinstance(self.table, Table):
            return ChangeRange(None, until)
        try:
            since = self._consumed_until(session.lake(self.lake), self.table, self.source)
            with session.lake(self.source_lake).catalog.read() as connection:
                if count_expired_snapshots(connection, since, base):
                    raise ExpiredError(
                        f"what changed in {self.source_name} since snapshot {since}, up to which this model consumed"
                        " it, can not be told: snapshots were expired since then. Run the model with --full-refresh,"
                        " or let it read the whole table by ducklake_new_changes(..., if_expired='full')"
                    )
        except ExpiredError:
            if not full_if_expired:
                raise
            return ChangeRange(None, until)
        return ChangeRange(since, until)

    def _consumed_until(self, lake: Lake, table: Table, source: Table) -> int:
        """The snapshot up to which the current version of the node's table has consumed the source."""
        for extra_info, rebuilt in self._node_commits(lake, table):
            inputs = [
                entry
                for entry in extra_info.get("inputs") or ()
                if entry.get("table_id") == source.id and self._is_in_source_lake(entry["relation"])
            ]
            for changes in (entry["changes"] for entry in inputs if "changes" in entry):
                return int(changes["until"])
            if inputs and rebuilt:  # a rebuild reads all rows of the source
                return min(int(entry["snapshot"]) for entry in inputs)
            raise ExpiredError(
                f"the last snapshot of this model does not say up to where it consumed {self.source_name}, for it did"
                " not read it by ducklake_new_changes then: run the model with --full-refresh once"
            )
        raise ExpiredError(
            f"no snapshot says up to where this model consumed {self.source_name}: those that wrote its table were"
            " expired, or were not this node's. Run the model with --full-refresh"
        )

    def _is_in_source_lake(self, name: str) -> bool:
        return name.partition(".")[0].lower() == (self.source_lake or "").lower()

    def _node_commits(self, lake: Lake, table: Table) -> Iterator[tuple[Mapping[str, Any], bool]]:
        """The extra info of the node's commits to its table, newest first, and whether each rebuilt the table.

        Leaves out the commits that a rollback of the table has undone.
        """
        changes, before = t.snapshot_changes, None
        candidates = sa.or_(
            changes.c.commit_extra_info.contains(json.dumps(self.node_id), autoescape=True),
            changes.c.commit_extra_info.contains(json.dumps(ROLLBACK_KEY), autoescape=True),
        )
        with lake.catalog.read() as connection:
            created_at = connection.scalar(
                sa.select(sa.func.min(t.table.c.begin_snapshot)).where(t.table.c.table_id == table.id)
            )
            while True:
                older = sa.true() if before is None else changes.c.snapshot_id < before
                query = sa.select(changes).where(candidates, older).order_by(changes.c.snapshot_id.desc())
                rows = connection.execute(query.limit(_PAGE_SIZE)).all()
                for row in rows:
                    if before is not None and row.snapshot_id >= before:
                        continue
                    before = row.snapshot_id
                    extra_info = parse_extra_info(row.commit_extra_info)
                    if isinstance(rollback := extra_info.get(ROLLBACK_KEY), dict):
                        if table.id in map(int, rollback.get("tables") or ()):
                            # The commits after the restored version are undone.
                            before = min(before, int(rollback["version"]) + 1)
                        continue
                    changed_ids = {i for _, i in parse_changes(row.changes_made or "").relation_changes}
                    for node in node_infos(extra_info):
                        if node.get("node_id") != self.node_id:
                            continue
                        is_progress = node.get(PROGRESS_KEY) == table.id
                        if is_progress or table.id in changed_ids or row.snapshot_id == created_at:
                            yield node, row.snapshot_id == created_at or bool(node.get("full_refresh"))
                if len(rows) < _PAGE_SIZE:
                    return
