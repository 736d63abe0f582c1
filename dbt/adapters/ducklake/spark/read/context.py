"""What names in a query resolve to: the lakes, the running transactions, and the current lake and schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...lake.catalog import SnapshotInfo
from ...lake.errors import NotFoundError
from ...lake.missing_names import function_not_found, lake_not_found, relation_not_found, schema_not_found
from ...lake.snapshot import LakeState, Macro, Schema, Table, View
from ...lake.transaction import Transaction
from .lakes import Lake


@dataclass(frozen=True)
class ChangeRange:
    """The changes that an incremental read of the change feed consumes."""

    since: int | None
    """The snapshot after which the changes begin; None for all rows of the table."""
    until: int | None
    """The last snapshot whose changes are read; None if those staged in the shared transaction are read, too."""


@dataclass(frozen=True)
class ResolvedRelation:
    """The lake relation that a name in a query resolves to, at the snapshot at which it is read."""

    lake: Lake
    schema: str
    relation: Table | View
    state: LakeState
    snapshot: SnapshotInfo
    transaction: Transaction | None
    """The transaction whose staged changes are read too; None for time travel."""
    change_range: ChangeRange | None = None
    """Set where the query consumes the relation's changes and does not read its rows."""


@dataclass(frozen=True)
class QueryContext:
    """Resolves names in a query, and records the relations that the query reads."""

    lakes: Mapping[str, Lake]
    transaction_on: Callable[[str], Transaction]
    """Returns the running transaction on the lake of this name."""
    current_lake: str
    current_schema: str
    record_read: Callable[[ResolvedRelation], None]
    """Is called with each lake relation that a query reads."""
    committed_snapshots: Mapping[str, int] = field(default_factory=dict)
    """The last snapshot that this thread committed to each lake."""
    record_function: Callable[[str, Macro], None] = lambda name, macro: None
    """Is called with the dotted name of each function of a lake that a query calls."""
    record_outside: Callable[[str], None] = lambda what: None
    """Is called with whatever else a query reads, of which no snapshot tells when it changes."""

    def resolve_name(self, parts: Sequence[str]) -> tuple[Lake, str, str] | None:
        """The lake, schema and name that a dotted name stands for; None if it cannot belong to a lake.

        `a.b` is schema `a` of the current lake if there is one, else schema `main` of lake `a`.
        """
        if len(parts) == 1:
            return self.lakes[self.current_lake], self.current_schema, parts[0]
        if len(parts) == 2:
            qualifier, name = parts
            state = self.transaction_on(self.current_lake).state
            if state.find_schema(qualifier) is None and qualifier.lower() in self.lakes:
                return self.lakes[qualifier.lower()], "main", name
            return self.lakes[self.current_lake], qualifier, name
        if len(parts) == 3 and parts[0].lower() in self.lakes:
            return self.lakes[parts[0].lower()], parts[1], parts[2]
        return None

    def relation(self, parts: Sequence[str]) -> tuple[Lake, LakeState, Table | View]:
        """The relation that a dotted name stands for, and its lake. Raises if there is none."""
        found = self.find_relation(parts)
        if found is None:
            raise self.not_found(parts)
        lake, _, relation = found
        return lake, self.transaction_on(lake.name).state, relation

    def find_relation(self, parts: Sequence[str]) -> tuple[Lake, str, Table | View] | None:
        """The lake, the schema and the relation that a dotted name stands for, if there is one."""
        resolved = self.resolve_name(parts)
        if resolved is None:
            return None
        lake, schema, name = resolved
        relation = self.transaction_on(lake.name).state.find_relation(schema, name)
        return None if relation is None else (lake, schema, relation)

    def has_schema(self, name: str) -> bool:
        """Whether the first of two parts of a name is a schema of the current lake, or a lake."""
        return name.lower() in self.lakes or self.transaction_on(self.current_lake).state.find_schema(name) is not None

    def schema(self, lake: Lake, name: str) -> Schema:
        state = self.transaction_on(lake.name).state
        schema = state.find_schema(name)
        if schema is None:
            raise schema_not_found(state, name, self._place(lake))
        return schema

    def not_found(self, parts: Sequence[str], other_place: str = "") -> NotFoundError:
        """The error for a dotted name that is no relation of a lake, nor of another place where it was looked for."""
        resolved = self.resolve_name(parts)
        if resolved is not None:
            lake, schema, name = resolved
            place = self._place(lake) + other_place
            return relation_not_found(self.transaction_on(lake.name).state, schema, name, place)
        if len(parts) == 3:
            return lake_not_found(parts[0], (lake.name for lake in self.lakes.values()))
        return NotFoundError(f"{'.'.join(parts)} is no name of a table or view; write lake.schema.table")

    def function_not_found(self, parts: Sequence[str]) -> NotFoundError:
        """The error for the name of a function in a lake, with all its parts."""
        lake, state = self.lakes[parts[0].lower()], self.transaction_on(parts[0].lower()).state
        return function_not_found(state, parts[-2], parts[-1], self._place(lake))

    def _place(self, lake: Lake) -> str:
        return f" in lake {lake.name} at snapshot {self.transaction_on(lake.name).base.id}"

    def find_macro(self, parts: Sequence[str]) -> tuple[Lake, str, Macro] | None:
        """The lake, the schema and the macro that a dotted name stands for, if there is one."""
        resolved = self.resolve_name(parts)
        if resolved is None:
            return None
        lake, schema, name = resolved
        macro = self.transaction_on(lake.name).state.find_macro(schema, name)
        return None if macro is None else (lake, schema, macro)

    def with_current_schema(self, lake: Lake, schema: str) -> QueryContext:
        """This context with another current schema, as for the query of a view or the body of a function."""
        return replace(self, current_lake=lake.name.lower(), current_schema=schema)
