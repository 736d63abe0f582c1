"""Source freshness from snapshots: when the rows of a table changed last."""

from __future__ import annotations

import datetime
from collections.abc import Iterable

from .lake.snapshot import Table
from .lake.table_summary import table_summaries
from .spark.read.lakes import Lake


def last_write_times(lake: Lake, names: Iterable[tuple[str, str]]) -> dict[tuple[str, str], datetime.datetime | None]:
    """The time of the last write to each table, by schema and name. Leaves out names that are no table of the lake."""
    with lake.catalog.read() as connection:
        base = lake.catalog.latest_snapshot(connection)
        state = lake.snapshots.state(connection, base)
        found = {(schema, name): state.find_relation(schema, name) for schema, name in names}
        tables = {key: relation for key, relation in found.items() if isinstance(relation, Table)}
        summaries = table_summaries(connection, lake.catalog, base.id, [table.id for table in tables.values()])
        snapshots = {key: summaries[table.id].last_write_snapshot for key, table in tables.items()}
        times = lake.catalog.commit_times(connection, {s for s in snapshots.values() if s is not None})
    return {key: None if s is None else times.get(s) for key, s in snapshots.items()}
