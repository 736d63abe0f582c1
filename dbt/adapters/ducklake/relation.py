"""Names in a lake: `database.schema.identifier`, the database being the lake or an attached one."""

from __future__ import annotations

from dataclasses import dataclass, field

from dbt.adapters.base.relation import BaseRelation, Policy
from dbt.adapters.contracts.relation import ComponentName, RelationType
from dbt.adapters.spark.relation import SparkRelation


@dataclass(frozen=True, eq=False, repr=False)
class DucklakeRelation(SparkRelation):
    quote_policy: Policy = field(default_factory=Policy)
    include_policy: Policy = field(default_factory=Policy)
    renameable_relations: frozenset[RelationType] = frozenset({RelationType.Table, RelationType.View})
    replaceable_relations: frozenset[RelationType] = frozenset({RelationType.Table, RelationType.View})

    def __post_init__(self) -> None:
        """Spark's relations have no database beside the schema; a lake's do."""

    def render(self) -> str:
        return BaseRelation.render(self)

    def quoted(self, identifier: str) -> str:
        return "`" + identifier.replace("`", "``") + "`"

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        # Names keep their case and are found in any, quoted or not.
        return self.path.get_lowered_part(field) == value.lower()
