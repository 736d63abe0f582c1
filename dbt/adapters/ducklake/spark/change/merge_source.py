"""The source of a MERGE. Its rows are computed once, since the statement reads them several times."""

from __future__ import annotations

from functools import cached_property

from pyspark.sql import functions as F
from pyspark.sql import types as s

from ..sql import statements as st
from ..sql.name_reader import find_names
from ..sql.names import RelationRef
from ..sql.quoting import quoted
from .command_context import CommandContext

SOURCE_ROW = "_lake_source_row"
"""The column that numbers the source's rows."""


class MergeSource:
    """The rows of the source, and the names that the statement's conditions have for them."""

    def __init__(self, context: CommandContext, statement: st.Merge) -> None:
        self._statement = statement
        alias = "" if self._alias is None else f" as {quoted(self._alias)}"
        query = f"{statement.with_clause or ''} select * from {statement.source}{alias}"
        rows = context.query(query, statement.text)
        self.rows = rows.withColumn(SOURCE_ROW, F.monotonically_increasing_id()).localCheckpoint()
        self.fields: list[s.StructField] = [f for f in self.rows.schema.fields if f.name != SOURCE_ROW]

    @cached_property
    def _relation(self) -> RelationRef | None:
        """The relation that the source names; None if it is a subquery or a function."""
        head = f"{self._statement.with_clause or ''} select * from "
        relations = find_names(head + self._statement.source).relations
        return next((r for r in relations if r.start == len(head)), None)

    @cached_property
    def _alias(self) -> str | None:
        """The alias of the source; None if it is a relation without an alias."""
        if self._statement.source_alias is not None or self._relation is not None:
            return self._statement.source_alias
        name = self._statement.source.strip().strip("`")
        return name if name.isidentifier() else "_lake_source"

    @property
    def qualifier(self) -> tuple[str, ...]:
        """What qualifies the source's columns in SQL: its alias, or the parts of its name."""
        return (self._alias,) if self._alias else self._relation.parts if self._relation else ()

    def from_item(self, view: str) -> tuple[str, dict[str, str]]:
        """How a view of source rows stands in FROM, and the relations that the planner must replace by the view.

        A source without an alias keeps its name in the text, since conditions may be qualified with it.
        """
        if self._alias is None:
            return self._statement.source, {self._statement.source: view}
        return f"{view} as {quoted(self._alias)}", {}
