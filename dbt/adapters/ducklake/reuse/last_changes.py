"""The last snapshot that changed each relation or function of a lake."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

import sqlalchemy as sa

from ..lake import tables as t
from ..lake.catalog import Catalog
from ..lake.snapshot import LakeState, Macro, Table, View
from ..lake.snapshot_changes import parse_changes
from ..lake.table_summary import table_summaries
from ..spark.session import LakeSession

_MAX_TABLES = 2_000
"""Of a lake with more tables, only those that nodes read are looked at."""


class LastChanges:
    """The last changes of a run's lakes. Threads share it.

    All tables are asked for at once, and later only those that were changed since.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, tuple[int, dict[int, int]]] = {}
        """By lake, up to which snapshot the last changes are known, and the last change of each relation."""

    def of(self, session: LakeSession, lake: str, relations: Sequence[Table | View | Macro]) -> dict[int, int]:
        """By id, up to the snapshot that the thread reads."""
        catalog, at, state = session.lake(lake).catalog, session.base_snapshot(lake).id, session.state(lake)
        wanted = {relation.id for relation in relations}
        with self._lock, catalog.read() as connection:
            known_at, known = self._known.get(lake.lower(), (at, {}))
            if known_at > at:
                return _last_changes(connection, catalog, at, state, wanted)
            for commit in catalog.commits_after(connection, known_at) if known_at < at else ():
                for _, relation_id in parse_changes(commit.changes_made or "").relation_changes:
                    known.pop(relation_id, None)
            if wanted - known.keys():
                others = state.tables.keys() if len(state.tables) < _MAX_TABLES else ()
                known |= _last_changes(connection, catalog, at, state, {*wanted, *others} - known.keys())
            self._known[lake.lower()] = at, known
            return {relation_id: known.get(relation_id, at) for relation_id in wanted}

    def known(self, lake: str) -> frozenset[int]:
        """The last changes that have been asked for, and with them those of other relations."""
        with self._lock:
            return frozenset(self._known[lake.lower()][1].values()) if lake.lower() in self._known else frozenset()


def _last_changes(
    connection: sa.Connection, catalog: Catalog, at: int, state: LakeState, ids: Collection[int]
) -> dict[int, int]:
    found: dict[int, int] = {}
    if tables := [i for i in ids if i in state.tables]:
        summaries = table_summaries(connection, catalog, at, tables)
        found |= {table_id: summary.last_change_snapshot or at for table_id, summary in summaries.items()}
    for table, key, others in ((t.view, t.view.c.view_id, state.views), (t.macro, t.macro.c.macro_id, state.macros)):
        if wanted := [i for i in ids if i in others]:
            query = sa.select(key, table.c.begin_snapshot).where(key.in_(wanted), t.alive(table, at))
            found |= {row[0]: row[1] for row in connection.execute(query)}
    return found
