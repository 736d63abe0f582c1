"""What every part of the adapter builds on: the lake's session, the thread's handle, and the lake's definitions."""

from __future__ import annotations

from typing import TypeAlias

from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.spark.impl import SparkAdapter

from .column import DucklakeColumn
from .connection_handle import Handle
from .connections import DucklakeConnectionManager
from .lake.snapshot import LakeState, Table, View
from .relation import DucklakeRelation
from .spark.session import LakeSession
from .spark.sql.statements import parse_name


class LakeAdapter(SparkAdapter):
    Relation: TypeAlias = DucklakeRelation
    Column: TypeAlias = DucklakeColumn
    ConnectionManager: TypeAlias = DucklakeConnectionManager
    connections: DucklakeConnectionManager

    @property
    def session(self) -> LakeSession:
        return self.connections.session

    @property
    def handle(self) -> Handle:
        """The handle of the current thread's connection."""
        handle: Handle = self.connections.get_thread_connection().handle
        return handle

    def lake_state(self, database: str | None) -> LakeState:
        """The definitions of a lake, as the thread's transaction sees them."""
        # dbt quotes the name in some calls.
        name = parse_name(database)[-1] if database and database.startswith("`") else database
        with self.connections.exception_handler("metadata"):
            return self.session.state(name)

    def find_table_or_view(self, relation: BaseRelation) -> Table | View | None:
        if relation.schema is None:
            return None
        return self.lake_state(relation.database).find_relation(relation.schema, relation.identifier or "")

    @available.parse_none
    def begin_node_transaction(self) -> None:
        """Begins the node's transaction, unless a hook has begun it. All that it reads is then of one snapshot."""
        if not self.connections.get_thread_connection().transaction_open:
            self.connections.begin()
