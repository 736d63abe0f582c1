"""What a statement returns, and what a transaction read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import DataFrame

from ..lake import tables as t
from ..lake.facts import table_facts
from ..lake.snapshot import Table, View
from .read.context import Consumed, Found
from .read.lakes import Lake


@dataclass(frozen=True)
class Result:
    """What a statement did, or the rows that it asked for."""

    snapshot_id: int | None = None
    """The snapshot that a change was committed as; None inside a transaction, and for queries."""
    rows_affected: int = 0
    table: pa.Table | None = field(default=None, repr=False)
    """The rows of a statement that needed no Spark, such as SHOW TABLES."""
    dataframe: DataFrame | None = field(default=None, repr=False)
    """The rows of a query, which Spark computes when they are asked for."""

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self.table is not None:
            return self.table
        if self.dataframe is not None:
            return self.dataframe.toArrow()
        return pa.table({})

    def stream(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow record batches."""
        return self.arrow().to_reader()


@dataclass(frozen=True)
class Input:
    """A relation that a transaction read."""

    name: str
    """Its lake, schema and name."""
    id: int
    snapshot: int
    """The last snapshot that changed it, up to the one that was read."""
    consumed: Consumed | None = None
    """Where it was not read, but what changed in it."""


def inputs_at(lake: Lake, at: int, found: Sequence[Found]) -> Iterator[Input]:
    """What was read of one lake at one snapshot; what a transaction made itself is no input."""
    there = [f for f in found if f.relation.id >= 0]
    tables = [f.relation.id for f in there if isinstance(f.relation, Table)]
    views = [f.relation.id for f in there if isinstance(f.relation, View)]
    with lake.catalog.read() as connection:
        changed = {i: facts.last_change for i, facts in table_facts(connection, lake.catalog, at, tables).items()}
        query = sa.select(t.view.c.view_id, t.view.c.begin_snapshot)
        for row in connection.execute(query.where(t.view.c.view_id.in_(views), t.alive(t.view, at))):
            changed[row.view_id] = row.begin_snapshot
    for f in there:
        snapshot = changed.get(f.relation.id)
        if snapshot is not None:
            yield Input(f"{f.lake.name}.{f.schema}.{f.relation.name}", f.relation.id, snapshot, f.consumed)
