"""What a model has consumed of what it reads by its changes, as the snapshots of its table say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from ..lake import tables as t
from ..lake.conflicts import parse_changes
from ..lake.errors import ExpiredError, NotFoundError
from ..lake.feed import missing_snapshots
from ..lake.snapshot import Table, View
from ..spark.change.rollback import EXTRA_INFO as ROLLBACK
from ..spark.read.lakes import Lake
from ..spark.session import LakeSession
from .lineage import said_by

_PAGE = 50


@dataclass(frozen=True)
class Consumer:
    """A node's table, which is made of the changes of another one."""

    node_id: str
    lake: str | None
    table: Table | View | None
    source_lake: str | None
    source: Table | View | None
    source_name: str

    def bounds(self, session: LakeSession, from_start: bool, full_if_expired: bool) -> tuple[int | None, int]:
        """After which snapshot the changes begin, None for all rows, and up to which they are read."""
        if not isinstance(self.source, Table):
            what = "there is no such table" if self.source is None else "it is a view, whose changes no snapshot tells"
            raise NotFoundError(f"ducklake_new_changes can not tell the changes of {self.source_name}: {what}")
        until = session.base(self.source_lake).id
        if from_start or not isinstance(self.table, Table):
            return None, until
        try:
            since = self._consumed(session.lake(self.lake), self.table, self.source)
            with session.lake(self.source_lake).catalog.read() as connection:
                if missing_snapshots(connection, since, until):
                    raise ExpiredError(
                        f"what changed in {self.source_name} since snapshot {since}, up to which this model consumed"
                        " it, can not be told: snapshots were expired since then. Run the model with --full-refresh,"
                        " or let it read the whole table by ducklake_new_changes(..., if_expired='full')"
                    )
        except ExpiredError:
            if not full_if_expired:
                raise
            return None, until
        return since, until

    def _consumed(self, lake: Lake, table: Table, source: Table) -> int:
        """Up to which snapshot the last version of the node's table consumed the source."""
        for said, built in self._commits(lake, table):
            given = [
                read
                for read in said.get("inputs") or ()
                if read.get("table_id") == source.id and self._is_source(read["relation"])
            ]
            for changes in (read["changes"] for read in given if "changes" in read):
                return int(changes["until"])
            if given and built:  # of all rows that there were
                return min(int(read["snapshot"]) for read in given)
            raise ExpiredError(
                f"the last snapshot of this model does not say up to where it consumed {self.source_name}, for it did"
                " not read it by ducklake_new_changes then: run the model with --full-refresh once"
            )
        raise ExpiredError(
            f"no snapshot says up to where this model consumed {self.source_name}: those that wrote its table were"
            " expired, or were not this node's. Run the model with --full-refresh"
        )

    def _is_source(self, name: str) -> bool:
        return name.partition(".")[0].lower() == (self.source_lake or "").lower()

    def _commits(self, lake: Lake, table: Table) -> Iterator[tuple[Mapping[str, Any], bool]]:
        """What the node's snapshots of its table say, the newest first, and whether they built it anew.

        Those that the table was taken back from do not count.
        """
        changes, top = t.snapshot_changes, None
        wanted = sa.or_(
            changes.c.commit_extra_info.contains(json.dumps(self.node_id), autoescape=True),
            changes.c.commit_extra_info.contains(json.dumps(ROLLBACK), autoescape=True),
        )
        with lake.catalog.read() as connection:
            begun = connection.scalar(
                sa.select(sa.func.min(t.table.c.begin_snapshot)).where(t.table.c.table_id == table.id)
            )
            while True:
                below = sa.true() if top is None else changes.c.snapshot_id < top
                query = sa.select(changes).where(wanted, below).order_by(changes.c.snapshot_id.desc()).limit(_PAGE)
                rows = connection.execute(query).all()
                for row in rows:
                    if top is not None and row.snapshot_id >= top:
                        continue
                    top = row.snapshot_id
                    said = said_by(row.commit_extra_info)
                    if isinstance(back := said.get(ROLLBACK), dict):
                        top = min([top, *(v + 1 for i, v in _taken_back(back) if i == table.id)])
                    elif said.get("node_id") == self.node_id:
                        touched = {i for _, i in parse_changes(row.changes_made or "").tables}
                        if table.id in touched or row.snapshot_id == begun:
                            yield said, row.snapshot_id == begun or bool(said.get("full_refresh"))
                if len(rows) < _PAGE:
                    return


def _taken_back(said: dict[str, Any]) -> Iterator[tuple[int, int]]:
    """The tables that a rollback took back, each with the snapshot that it is as of again."""
    for table_id in said.get("tables") or ():
        yield int(table_id), int(said["version"])
