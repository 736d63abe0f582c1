"""A call of a table function: its arguments, and the tables and snapshots that they name."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from ...lake.catalog import SnapshotInfo
from ...lake.errors import LakeError, NotFoundError
from ...lake.snapshot import LakeState, Table
from ...lake.transaction import Transaction
from ..sql.literals import parse_literal
from ..sql.names import FunctionRef, name_parts
from .context import QueryContext
from .lakes import Lake, not_found_at_snapshot

if TYPE_CHECKING:
    from .planner import Planner


class Arguments:
    """The arguments of one call, by position or by name. Each can be taken once."""

    def __init__(self, ref: FunctionRef) -> None:
        self.function_name = ref.name
        self._positional = [text for keyword, text in ref.arguments if keyword is None]
        self._named = {keyword.lower(): text for keyword, text in ref.arguments if keyword is not None}

    def text(self, name: str, positional: bool = False) -> str | None:
        """The SQL text of an argument; None if it is not given."""
        if positional and self._positional:
            return self._positional.pop(0)
        return self._named.pop(name, None)

    def value(self, name: str, positional: bool = False) -> Any:
        """The value of an argument, which must be a literal; None if it is not given."""
        text = self.text(name, positional)
        if text is None:
            return None
        literal = parse_literal(text)
        if literal is None:
            raise LakeError(f"{self.function_name}: argument {name} must be a literal, not {text}")
        return literal.value

    def table_name(self) -> str:
        name = self.value("table_name", positional=True)
        if not isinstance(name, str):
            function = self.function_name
            raise LakeError(f"{function} needs a table's name first, as in {function}('main.orders', 3, 7)")
        return name

    def bound(self, name: str) -> str:
        """The SQL text of an argument that names a snapshot or a timestamp: `start`, or `start_snapshot`."""
        text = self.bound_or_null(name)
        if text is None:
            raise self.missing_bound(name)
        return text

    def bound_or_null(self, name: str) -> str | None:
        """The same; None without the argument, or for NULL."""
        text = self.text(name, positional=True) or self.text(f"{name}_snapshot")
        return None if text is None or text.strip().lower() == "null" else text

    def missing_bound(self, name: str) -> LakeError:
        return LakeError(f"{self.function_name} needs a {name}: the number of a snapshot, or a timestamp")

    def version(self, name: str) -> int | None:
        """The number of a snapshot; None for NULL."""
        value = self.value(name, positional=True)
        if value is not None and not isinstance(value, int):
            raise LakeError(f"{self.function_name}: {name} is the number of a snapshot, not {value!r}")
        return value

    def check_all_used(self) -> None:
        unused = [*self._positional, *(f"{k} => {v}" for k, v in self._named.items())]
        if unused:
            raise LakeError(f"{self.function_name} does not take the argument {unused[0]}")


@dataclass
class TableFunctionCall:
    """One call of a table function in a query."""

    context: QueryContext
    planner: Planner
    lake_name: str
    """The lake whose function is called."""
    arguments: Arguments
    with_virtual_columns: bool
    """Whether the query names `rowid` or `snapshot_id`."""

    @property
    def lake(self) -> Lake:
        return self.context.lakes[self.lake_name]

    @property
    def transaction(self) -> Transaction:
        return self.context.transaction_on(self.lake_name)

    def resolve_name(self, name: str) -> tuple[Lake, str, str]:
        """The lake, schema and name of a table; the lake is the function's if the name has none."""
        schema = self.context.current_schema if self.lake_name == self.context.current_lake else "main"
        inside = self.context.with_current_schema(self.lake, schema)
        resolved = inside.resolve_name(name_parts(name) or (name,))
        if resolved is None:
            raise NotFoundError(f"{name} is no table of a lake; write schema.table, or lake.schema.table")
        return resolved

    def table(self, lake: Lake, schema: str, name: str, snapshot: SnapshotInfo, state: LakeState) -> Table:
        """A table as of a snapshot."""
        if state.find_relation(schema, name) is None:
            raise not_found_at_snapshot(lake, schema, name, snapshot, state)
        return state.table(schema, name)

    def snapshot_at(self, lake: Lake, version: int) -> tuple[SnapshotInfo, LakeState]:
        """A snapshot that the transaction can see, and the lake's state there."""
        snapshot, state = lake.snapshot_at(version=version)
        base = self.context.transaction_on(lake.name).base
        if snapshot.id > base.id:
            raise NotFoundError(
                f"snapshot {snapshot.id} came after this transaction began, which reads snapshot {base.id}"
            )
        return snapshot, state

    def resolve_bound(
        self, lake: Lake, bound: str, at_timestamp: Callable[[sa.Connection, datetime.datetime], SnapshotInfo]
    ) -> tuple[SnapshotInfo, LakeState]:
        """The snapshot that a bound names: by number, or by a timestamp that `at_timestamp` resolves."""
        literal = parse_literal(bound)
        if literal is not None and isinstance(literal.value, int) and not isinstance(literal.value, bool):
            return self.snapshot_at(lake, literal.value)
        timestamp = self.planner.evaluate_timestamp(bound)
        with lake.catalog.read() as connection:
            found = at_timestamp(connection, timestamp)
        base = self.context.transaction_on(lake.name).base
        return lake.snapshot_at(version=min(found.id, base.id))
