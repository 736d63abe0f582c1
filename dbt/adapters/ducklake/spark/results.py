"""The result of a statement, and the inputs of a transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import DataFrame

from ..lake import tables as t
from ..lake.snapshot import Table, View
from ..lake.table_summary import table_summaries
from .engine.errors import errors_in_author_words
from .read.context import ChangeRange, ResolvedRelation
from .read.lakes import Lake


@dataclass(frozen=True)
class Result:
    """What a statement changed, or the rows that it returns."""

    snapshot_id: int | None = None
    """The snapshot that the statement committed; None inside a transaction, and for queries."""
    rows_affected: int = 0
    notes: tuple[str, ...] = ()
    """What is to be known besides, such as `Spark only` of a view that DuckDB cannot query."""
    table: pa.Table | None = field(default=None, repr=False)
    """The rows of a statement that needs no Spark, such as SHOW TABLES."""
    dataframe: DataFrame | None = field(default=None, repr=False)
    """The rows of a query. Spark computes them when they are read."""

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self.table is not None:
            return self.table
        if self.dataframe is not None:
            with errors_in_author_words():
                return self.dataframe.toArrow()
        return pa.table({})

    def stream(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow record batches."""
        return self.arrow().to_reader()


@dataclass(frozen=True)
class Input:
    """A relation that a transaction read."""

    name: str
    """The dotted name: lake, schema and relation."""
    id: int
    snapshot: int
    """The last snapshot that changed the relation, up to the one that was read."""
    change_range: ChangeRange | None = None
    """The changes that were read, if the transaction read the change feed and not the rows."""


def inputs_at(lake: Lake, snapshot_id: int, relations: Sequence[ResolvedRelation]) -> Iterator[Input]:
    """The relations of one lake that were read at a snapshot, except those that the transaction itself created."""
    committed = [r for r in relations if r.relation.id >= 0]
    tables = [r.relation.id for r in committed if isinstance(r.relation, Table)]
    views = [r.relation.id for r in committed if isinstance(r.relation, View)]
    with lake.catalog.read() as connection:
        summaries = table_summaries(connection, lake.catalog, snapshot_id, tables)
        last_changes = {table_id: summary.last_change_snapshot for table_id, summary in summaries.items()}
        query = sa.select(t.view.c.view_id, t.view.c.begin_snapshot)
        for row in connection.execute(query.where(t.view.c.view_id.in_(views), t.alive(t.view, snapshot_id))):
            last_changes[row.view_id] = row.begin_snapshot
    for r in committed:
        snapshot = last_changes.get(r.relation.id)
        if snapshot is not None:
            yield Input(f"{r.lake.name}.{r.schema}.{r.relation.name}", r.relation.id, snapshot, r.change_range)
