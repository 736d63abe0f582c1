"""Relations: `database.schema.identifier`, where the database is the profile's lake or an attached one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.contracts.relation import ComponentName, Policy, RelationType
from dbt.adapters.spark.relation import SparkRelation
from dbt_common.exceptions import CompilationError

from .spark.sql.quoting import quoted, string_literal
from .time_travel import SourceTimeTravel, time_travel_clause


@dataclass(frozen=True, eq=False, repr=False)
class DucklakeRelation(SparkRelation):
    quote_policy: Policy = field(default_factory=Policy)
    include_policy: Policy = field(default_factory=Policy)
    renameable_relations: frozenset[RelationType] = frozenset({RelationType.Table, RelationType.View})
    replaceable_relations: frozenset[RelationType] = frozenset({RelationType.Table, RelationType.View})
    as_of: str | None = None
    """The time travel clause."""

    source_time_travel: ClassVar[SourceTimeTravel] = SourceTimeTravel()

    @classmethod
    def with_source_time_travel(cls, time_travel: SourceTimeTravel) -> type[DucklakeRelation]:
        """A subclass for one run: its `source()` relations carry the run's time travel clause."""
        return type(cls.__name__, (cls,), {"source_time_travel": time_travel, "__module__": cls.__module__})

    def __post_init__(self) -> None:
        """Skips Spark's check: its relations have no database besides the schema, a lake's have one."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DucklakeRelation) and self.to_dict() == other.to_dict()

    __hash__ = BaseRelation.__hash__

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **kwargs: Any) -> DucklakeRelation:
        # dbt passes `limit` (maybe None) only when it resolves `source()`. Listings and docs show the current version.
        if "limit" in kwargs and getattr(relation_config, "resource_type", None) == "source":
            kwargs["as_of"] = cls.source_time_travel.clause_for(relation_config)
        return super().create_from(quoting, relation_config, **kwargs)

    def at(self, version: Any = None, timestamp: Any = None) -> DucklakeRelation:
        """The relation as of a version or a timestamp."""
        if self.identifier is None or self.schema is None:
            raise CompilationError(f"{self} is no table or view of a lake, so it has no past to read")
        return self.replace(as_of=time_travel_clause(version, timestamp))

    def _render_iterator(self) -> Iterator[tuple[ComponentName | None, str | None]]:
        """The parts of the name. Without a schema it is a bare name, as temporary views have: they are in no lake."""
        parts = dict(super()._render_iterator())
        if parts.get(ComponentName.Identifier) is not None and not (self.schema and parts[ComponentName.Schema]):
            parts[ComponentName.Database] = parts[ComponentName.Schema] = None
        yield from parts.items()

    def name_literal(self) -> str:
        """The name without a time travel clause, as the SQL string that table functions take."""
        return string_literal(BaseRelation.render(self))

    def render(self) -> str:
        name = BaseRelation.render(self)
        has_identifier = self.identifier is not None and self.include_policy.identifier
        return f"{name} {self.as_of}" if self.as_of and has_identifier else name

    def quoted(self, identifier: str) -> str:
        return quoted(identifier)

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        # A lake keeps the case of names and finds them in any case, quoted or not.
        return self.path.get_lowered_part(field) == value.lower()
