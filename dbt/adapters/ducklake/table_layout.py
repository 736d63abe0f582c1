"""The layout of a model's table: `partition_by`, `sorted_by` and `table_options` as values.

Each value reads itself from the model's configuration and renders its clause of CREATE TABLE and its form of ALTER
TABLE. None reads the table's current layout: the lake compares it with each ALTER, and commits only differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from dbt_common.exceptions import CompilationError

from .lake.errors import LakeError
from .lake.options import parse_option
from .spark.sql.ddl import CreateTable
from .spark.sql.definitions import PartitionKey, parse_partition_keys
from .spark.sql.quoting import string_literal
from .spark.sql.statements import parse

Keys = TypeVar("Keys", bound="_KeyList")


@dataclass(frozen=True)
class LayoutChange:
    """An ALTER TABLE that gives an existing table one part of its model's layout."""

    statement: str
    fallback: str | None = None
    """Removes the old keys only; for use while the columns of the new keys do not exist yet."""


@dataclass(frozen=True)
class _KeyList:
    """A list of keys, as SQL text."""

    setting: ClassVar[str]
    alias: ClassVar[str]
    clause: ClassVar[str]

    keys: tuple[str, ...] = ()

    @classmethod
    def from_config(cls: type[Keys], config: Any) -> Keys:
        found = [(name, value) for name in (cls.setting, cls.alias) if (value := config.get(name))]
        if len(found) > 1:
            raise CompilationError(f"{cls.setting} and {cls.alias} mean the same; leave one of them out")
        if not found:
            return cls()
        name, value = found[0]
        keys = [value] if isinstance(value, str) else value
        if not isinstance(keys, list) or not all(isinstance(key, str) and key.strip() for key in keys):
            raise CompilationError(f"{name} takes a column or a list of them, and it is {value!r}")
        return cls(tuple(keys))

    def check_syntax(self) -> None:
        for key in self.keys:
            try:
                statement = parse(f"create table t (c int) {self.clause} ({key})")
            except LakeError as error:
                raise CompilationError(f"{self.setting}: {key!r} is no key: {error}") from error
            if not isinstance(statement, CreateTable) or statement.query is not None or statement.properties:
                raise CompilationError(f"{self.setting}: {key!r} is no key")

    def create_clause(self) -> str:
        return f"{self.clause} ({', '.join(self.keys)})" if self.keys else ""

    def change(self, relation: str) -> LayoutChange:
        reset = f"alter table {relation} reset {self.clause}"
        return LayoutChange(f"alter table {relation} set {self.create_clause()}" if self.keys else reset, reset)


@dataclass(frozen=True)
class PartitionBy(_KeyList):
    setting = "partition_by"
    alias = "partitioned_by"
    clause = "partitioned by"

    def parsed_keys(self) -> tuple[PartitionKey, ...]:
        return parse_partition_keys(", ".join(self.keys)) if self.keys else ()


@dataclass(frozen=True)
class SortedBy(_KeyList):
    setting = "sorted_by"
    alias = "sort_by"
    clause = "sorted by"


@dataclass(frozen=True)
class TableOptions:
    """DuckLake's options of one table, with their values as the catalog stores them."""

    options: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_config(cls, config: Any) -> TableOptions:
        options = config.get("table_options") or {}
        if not isinstance(options, Mapping):
            raise CompilationError(f"table_options takes options and their values, and it is {options!r}")
        try:
            return cls(tuple((name, parse_option(name, value, "table")) for name, value in options.items()))
        except LakeError as error:
            raise CompilationError(f"table_options: {error}") from error

    def create_clause(self) -> str:
        pairs = (f"{string_literal(name)} = {string_literal(value)}" for name, value in self.options)
        return f"tblproperties ({', '.join(pairs)})" if self.options else ""

    def change(self, relation: str) -> LayoutChange | None:
        """None where the model sets no options: an option that it no longer names keeps its value."""
        return LayoutChange(f"alter table {relation} set {self.create_clause()}") if self.options else None


@dataclass(frozen=True)
class TableLayout:
    """How the files of a model's table are written."""

    partition_by: PartitionBy = PartitionBy()
    sorted_by: SortedBy = SortedBy()
    table_options: TableOptions = TableOptions()

    @classmethod
    def from_config(cls, config: Any) -> TableLayout:
        return cls(PartitionBy.from_config(config), SortedBy.from_config(config), TableOptions.from_config(config))

    def check_syntax(self) -> None:
        self.partition_by.check_syntax()
        self.sorted_by.check_syntax()

    def create_clauses(self) -> str:
        """The clauses of CREATE TABLE."""
        parts = (self.partition_by, self.sorted_by, self.table_options)
        return "\n".join(clause for part in parts if (clause := part.create_clause()))

    def changes(self, relation: str) -> Iterator[LayoutChange]:
        """What gives an existing table this layout. It holds for new files; existing files stay as they are."""
        for part in (self.partition_by, self.sorted_by, self.table_options):
            if (change := part.change(relation)) is not None:
                yield change
