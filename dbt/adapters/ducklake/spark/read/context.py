"""What a query's names mean: the lakes, the running transaction, and what is read of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...lake.catalog import SnapshotInfo
from ...lake.snapshot import LakeState, Macro, Table, View
from ...lake.transaction import Transaction
from .lakes import Lake


@dataclass(frozen=True)
class Consumed:
    """The changes of a table that a query reads: those after one snapshot, or all if there is none, up to another."""

    since: int | None
    until: int


@dataclass(frozen=True)
class Found:
    """A lake relation that a name in a query means, at the version that it is read at."""

    lake: Lake
    schema: str
    relation: Table | View
    state: LakeState
    at: SnapshotInfo
    transaction: Transaction | None
    """The transaction whose staged changes are read too; None when an earlier version is read."""
    consumed: Consumed | None = None
    """Where it is not its rows that are read, but what changed in it."""


@dataclass(frozen=True)
class QueryContext:
    """What a query's names mean: the lakes, the transaction, and where unqualified names are looked up."""

    lakes: Mapping[str, Lake]
    transactions: Callable[[str], Transaction]
    """The running transaction on the lake of that name: the snapshot that it is pinned to, and more."""
    lake: str
    schema: str
    saw: Callable[[Found], None]
    """Told of every lake relation that is read."""
    committed: Mapping[str, int] = field(default_factory=dict)
    """The last snapshot that this thread committed to each lake."""

    def find(self, parts: Sequence[str]) -> tuple[Lake, str, str] | None:
        """The lake, schema and name that a dotted name stands for, if it can be one of a lake."""
        if len(parts) == 1:
            return self.lakes[self.lake], self.schema, parts[0]
        if len(parts) == 2:
            first, name = parts
            if self.transactions(self.lake).state.find_schema(first) is None and first.lower() in self.lakes:
                return self.lakes[first.lower()], "main", name
            return self.lakes[self.lake], first, name
        if len(parts) == 3 and parts[0].lower() in self.lakes:
            return self.lakes[parts[0].lower()], parts[1], parts[2]
        return None

    def find_macro(self, parts: Sequence[str]) -> tuple[Lake, str, Macro] | None:
        """The lake, the schema and the macro that a dotted name stands for, if there is one."""
        place = self.find(parts)
        if place is None:
            return None
        lake, schema, name = place
        macro = self.transactions(lake.name).state.find_macro(schema, name)
        return None if macro is None else (lake, schema, macro)

    def within(self, lake: Lake, schema: str) -> QueryContext:
        """The same, where unqualified names are those of that schema: what a view's query and a function's body see."""
        return replace(self, lake=lake.name.lower(), schema=schema)
