"""MaintenanceContext: what an operation on a lake works with, and the tables that it is asked to work on."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

import sqlalchemy as sa

from ...lake.errors import NotFoundError
from ...lake.missing_names import did_you_mean_relation
from ...lake.snapshot import LakeState, Table, View
from ...lake.transaction import Transaction
from ..read.lakes import Lake
from ..read.planner import Planner
from ..sql.names import name_parts
from ..sql.translation.to_spark.macros import macros_in
from ..write.target import WriteTarget


@dataclass(frozen=True)
class MaintenanceContext:
    """One lake, and Spark for the operations that need it."""

    lake: Lake
    planner: Planner
    author: str | None
    current_schema: str
    other_lakes: tuple[Lake, ...] = ()
    """The other lakes of the session."""
    deadline: float | None = None
    """The time of `time.monotonic()` after which no further step begins."""

    @property
    def is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() >= self.deadline

    def begin(self, message: str) -> Transaction:
        """A transaction on the newest snapshot, whose commit has this message."""
        self.lake.catalog.check_writable()
        transaction = self.lake.begin()
        transaction.commit_info = replace(transaction.commit_info, author=self.author, message=message)
        return transaction

    def tables(
        self,
        transaction: Transaction,
        table_name: str | None = None,
        schema: str | None = None,
        candidates: Callable[[sa.Connection, int], set[int]] | None = None,
    ) -> list[Table]:
        """The table of a name, or the tables of a schema or of the lake that have the option `auto_compact`.

        A name may have its schema in front: `main.orders`. `candidates` finds the tables by id that may need an
        operation at a snapshot. The others of a schema or of the lake are left out, so that nothing is asked for each.
        """
        state, options = transaction.state, transaction.options
        if table_name is not None:
            return [self.table(state, table_name, schema)]
        in_schema = None if schema is None else state.schema(schema).id
        ids: Collection[int] = state.tables.keys()
        if candidates is not None:
            with self.lake.catalog.read() as connection:
                ids = candidates(connection, transaction.base.id)
        return sorted(
            (
                table
                for table in state.tables.values()
                if table.id in ids
                and in_schema in (None, table.schema_id)
                and options.flag("auto_compact", table.schema_id, table.id)
            ),
            key=lambda table: (state.schema_of(table).name, table.name),
        )

    def table(self, state: LakeState, name: str, schema: str | None = None) -> Table:
        """The table of a name, which may have its schema in front. Raises if there is none."""
        parts = name_parts(name) or (name,)
        if len(parts) == 3 and parts[0].lower() == self.lake.name.lower():
            parts = parts[1:]
        in_schema, last = (parts[-2] if len(parts) > 1 else schema or self.current_schema), parts[-1]
        relation = state.find_relation(in_schema, last) if len(parts) <= 2 else None
        if isinstance(relation, Table):
            return relation
        if isinstance(relation, View):
            raise NotFoundError(f"{state.qualified_name(relation)} is a view, and has no files")
        hint = did_you_mean_relation(state, in_schema, last)
        raise NotFoundError(
            f"there is no table {in_schema}.{last} in lake {self.lake.name}{f'; {hint}' if hint else ''}"
        )

    def write_target(self, transaction: Transaction, table: Table) -> WriteTarget:
        """Where an operation writes files of a table."""
        state = transaction.state
        return WriteTarget(
            table=table,
            folder=state.table_folder(self.lake.catalog.data_path, table),
            options=transaction.options,
            store=self.lake.file_store,
            find_macro=macros_in(state, self.lake.name, self.current_schema),
        )
