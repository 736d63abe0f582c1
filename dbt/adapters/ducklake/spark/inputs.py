"""The inputs of a transaction: the relations that it read, at the versions that it read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import sqlalchemy as sa

from ..lake import tables as t
from ..lake.commit.folding import changed_relations
from ..lake.commit.staged import Staged
from ..lake.snapshot import Table, View
from ..lake.table_summary import table_summaries
from ..lake.transaction import Transaction
from .read.context import ChangeRange, ResolvedRelation
from .read.lakes import Lake

ReadKey: TypeAlias = tuple[str, int, int, ChangeRange | None]
"""What of reads is told apart: the lake, the relation's id, the snapshot and the range of changes."""


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


def inputs_of(
    reads: Mapping[ReadKey, ResolvedRelation], lakes: Mapping[str, Lake], transactions: Mapping[str, Transaction]
) -> list[Input]:
    """What the transactions on these lakes read, except what they created themselves."""
    by_snapshot: dict[tuple[str, int], list[ResolvedRelation]] = defaultdict(list)
    for (lake, _, snapshot, _), relation in reads.items():
        by_snapshot[lake.lower(), snapshot].append(relation)
    inputs: list[Input] = []
    for (lake, snapshot), relations in by_snapshot.items():
        inputs += _inputs_at(lakes[lake], snapshot, relations, staged_before(transactions[lake]))
    return sorted(inputs, key=lambda i: (i.name, i.snapshot or 0))


def _inputs_at(
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
