"""The result of a statement, and the inputs of a transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import sqlalchemy as sa
from pyspark.sql import DataFrame

from ..lake import tables as t
from ..lake.commit.folding import changed_relations
from ..lake.commit.staged import Staged
from ..lake.snapshot import Table, View
from ..lake.table_summary import table_summaries
from ..lake.transaction import Transaction
from .engine.errors import errors_in_author_words
from .read.context import ChangeRange, ResolvedRelation
from .read.lakes import Lake


@dataclass(frozen=True)
class Result:
    """What a statement changed, or the rows that it returns."""

    snapshot_id: int | None = None
    """The snapshot that the statement committed; None inside a transaction, and for queries."""
    is_staged: bool = False
    """Whether something was changed in the shared transaction, which is committed later."""
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
    snapshot: int | None
    """The last snapshot that changed the relation, up to the one that was read.

    None for what is staged in the shared transaction, which is yet to be committed. Then the id may be provisional.
    """
    change_range: ChangeRange | None = None
    """The changes that were read, if the transaction read the change feed and not the rows."""


def staged_before(transaction: Transaction) -> set[int]:
    """The relations that others had changed in the shared transaction when this one began in it."""
    return changed_relations(Staged(transaction.base_state), transaction.origin)


def inputs_at(
    lake: Lake, snapshot_id: int, relations: Sequence[ResolvedRelation], staged: Collection[int]
) -> Iterator[Input]:
    """The relations of one lake that were read at a snapshot, except those that the transaction itself created."""
    in_snapshot = [r for r in relations if r.transaction is None or r.relation.id not in staged]
    committed = [r for r in in_snapshot if r.relation.id >= 0]
    tables = [r.relation.id for r in committed if isinstance(r.relation, Table)]
    views = [r.relation.id for r in committed if isinstance(r.relation, View)]
    with lake.catalog.read() as connection:
        summaries = table_summaries(connection, lake.catalog, snapshot_id, tables)
        last_changes = {table_id: summary.last_change_snapshot for table_id, summary in summaries.items()}
        query = sa.select(t.view.c.view_id, t.view.c.begin_snapshot)
        for row in connection.execute(query.where(t.view.c.view_id.in_(views), t.alive(t.view, snapshot_id))):
            last_changes[row.view_id] = row.begin_snapshot
    for r in relations:
        snapshot = last_changes.get(r.relation.id)
        is_staged = r.transaction is not None and r.relation.id in staged
        if is_staged or snapshot is not None:
            name = f"{r.lake.name}.{r.schema}.{r.relation.name}"
            yield Input(name, r.relation.id, None if is_staged else snapshot, r.change_range)
