"""What the snapshots of a lake record of the builds of nodes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sqlalchemy as sa

from ..history.consumed_changes import PROGRESS_KEY
from ..history.extra_info import REUSE_KEY, node_infos, parse_extra_info
from ..lake import tables as t
from ..lake.catalog import Catalog
from ..lake.commit.rows import id_batches

_MAX_NOTES_SIZE = 50_000_000

Infos: TypeAlias = Mapping[str, Mapping[str, Any]]
"""By the unique id of the node, what a snapshot says of its build."""


@dataclass
class _OfLake:
    notes: Mapping[str, tuple[int, Mapping[str, Any]]]
    """By node, the newest snapshot in which it found that it changes nothing."""
    of_snapshots: dict[int, Infos] = field(default_factory=dict)


class BuildRecords:
    """The records of a run's lakes. Threads share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lakes: dict[str, _OfLake] = {}

    def newest(
        self, catalog: Catalog, node_id: str, last_change: int, last_changes: Iterable[int]
    ) -> tuple[int, Mapping[str, Any]] | None:
        """The newest snapshot in which a node recorded what it was built from, unless others changed it since.

        `last_changes` are the snapshots that other nodes will be asked for: all are read at once.
        """
        with self._lock:
            if (lake := self._lakes.get(catalog.database.location)) is None:
                with catalog.read() as connection:
                    lake = self._lakes[catalog.database.location] = _OfLake(_newest_notes(connection))
            note = lake.notes.get(node_id)
            if note is not None and note[0] > last_change:
                return note
            if last_change not in lake.of_snapshots:
                missing = sorted({last_change, *last_changes} - lake.of_snapshots.keys())
                with catalog.read() as connection:
                    lake.of_snapshots.update(_infos(connection, missing))
            info = lake.of_snapshots[last_change].get(node_id)
            return None if info is None else (last_change, info)


def _newest_notes(connection: sa.Connection) -> dict[str, tuple[int, Mapping[str, Any]]]:
    """What the snapshots say that changed nothing, the newest of them, up to a size that memory holds."""
    changes = t.snapshot_changes
    size = sa.func.length(changes.c.commit_extra_info)
    noted = sa.select(changes.c.snapshot_id, size.label("size")).where(
        changes.c.commit_extra_info.contains(PROGRESS_KEY, autoescape=True)
    )
    ids, total = [], 0
    for row in connection.execute(noted.order_by(changes.c.snapshot_id.desc())):
        total += row.size
        if total > _MAX_NOTES_SIZE:
            break
        ids.append(row.snapshot_id)
    found: dict[str, tuple[int, Mapping[str, Any]]] = {}
    for snapshot, infos in sorted(_infos(connection, ids).items()):
        found.update({node_id: (snapshot, info) for node_id, info in infos.items()})
    return found


def _infos(connection: sa.Connection, snapshots: Iterable[int]) -> dict[int, Infos]:
    """By snapshot, what each says of builds; of most snapshots, nothing."""
    changes = t.snapshot_changes
    query = sa.select(changes.c.snapshot_id, changes.c.commit_extra_info)
    found: dict[int, Infos] = {snapshot: {} for snapshot in snapshots}
    for batch in id_batches(list(found)):
        for row in connection.execute(query.where(changes.c.snapshot_id.in_(batch))):
            infos = node_infos(parse_extra_info(row.commit_extra_info))
            found[row.snapshot_id] = {
                str(info.get("node_id")): info for info in infos if isinstance(info.get(REUSE_KEY), Mapping)
            }
    return found
