"""Names in a lake: `database.schema.identifier`, the database being the lake or an attached one."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dbt.adapters.base.relation import BaseRelation, Policy
from dbt.adapters.contracts.relation import ComponentName, RelationType
from dbt.adapters.spark.relation import SparkRelation
from dbt_common.exceptions import CompilationError

from .spark.sql.types import string_literal

AS_OF = "ducklake_as_of"
"""The run variable, and the setting of a source, that say as of when sources are read."""


def time_travel(version: Any = None, timestamp: Any = None) -> str:
    """The clause that reads a relation as it was at a version or a moment."""
    if (version is None) == (timestamp is None):
        raise CompilationError("a relation is read as of a version or a timestamp: give one of the two")
    if version is not None:
        if isinstance(version, bool) or not str(version).isdigit():
            raise CompilationError(f"a version is the number of a snapshot, and it is {version!r}")
        return f"version as of {int(version)}"
    if isinstance(timestamp, datetime.datetime | datetime.date):
        timestamp = timestamp.isoformat()
    if not isinstance(timestamp, str) or not timestamp.strip():
        raise CompilationError(f"a timestamp is a text such as '2026-01-31 12:00:00', and it is {timestamp!r}")
    return f"timestamp as of {string_literal(timestamp)}"


def feed_bound(macro: str, which: str, given: Any) -> str:
    """A bound of a change feed in SQL: a version, or a moment."""
    if isinstance(given, int) and not isinstance(given, bool):
        return str(given)
    if isinstance(given, datetime.datetime | datetime.date):
        given = given.isoformat()
    if not isinstance(given, str) or not given.strip():
        raise CompilationError(f"{which} of {macro} is the number of a snapshot or a timestamp, and it is {given!r}")
    return given.strip() if given.strip().isdigit() else f"timestamp {string_literal(given)}"


def _as_of(given: Any) -> str:
    is_version = isinstance(given, int) or (isinstance(given, str) and given.strip().isdigit())
    return time_travel(version=str(given).strip()) if is_version else time_travel(timestamp=given)


@dataclass(frozen=True)
class Moments:
    """As of when a run reads its sources."""

    own: str = ""
    """The profile's own lake, of which a version without a lake's name is meant."""
    lakes: frozenset[str] = frozenset()
    as_of: Any = None
    """The run's variable: a version, a timestamp, or one of them for each lake by its name."""

    def of_source(self, source: Any) -> str | None:
        """The clause for a source, from its own setting or else from the run's; None where it is read as it is."""
        lake = str(source.database or self.own).lower()
        if lake not in self.lakes:
            return None
        places = (source.config, source.meta, source.config.get("meta") or {})
        own = next((place.get(AS_OF) for place in places if place.get(AS_OF) is not None), None)
        if own is not None:
            return _as_of(own)
        if isinstance(self.as_of, Mapping):
            given = {str(name).lower(): value for name, value in self.as_of.items()}
            unknown = sorted(given.keys() - self.lakes)
            if unknown:
                raise CompilationError(f"{AS_OF} names {unknown[0]}, which is none of the lakes {sorted(self.lakes)}")
            return _as_of(given[lake]) if lake in given else None
        if self.as_of is None:
            return None
        clause = _as_of(self.as_of)
        if clause.startswith("version") and lake != self.own:
            raise CompilationError(
                f"{AS_OF} is version {self.as_of}, which is one of the lake {self.own}, and source {source.name} is in"
                f" {lake}: give a timestamp, or a version for each lake: {{{self.own}: {self.as_of}, {lake}: ...}}"
            )
        return clause


@dataclass(frozen=True, eq=False, repr=False)
class DucklakeRelation(SparkRelation):
    quote_policy: Policy = field(default_factory=Policy)
    include_policy: Policy = field(default_factory=Policy)
    renameable_relations: frozenset[RelationType] = frozenset({RelationType.Table, RelationType.View})
    replaceable_relations: frozenset[RelationType] = frozenset({RelationType.Table, RelationType.View})
    as_of: str | None = None
    """The clause that reads it as it was."""

    moments: ClassVar[Moments] = Moments()

    @classmethod
    def bound(cls, moments: Moments) -> type[DucklakeRelation]:
        """The same relations, whose sources are read as of when a run says."""
        return type(cls.__name__, (cls,), {"moments": moments, "__module__": cls.__module__})

    def __post_init__(self) -> None:
        """Spark's relations have no database beside the schema; a lake's do."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DucklakeRelation) and self.to_dict() == other.to_dict()

    __hash__ = BaseRelation.__hash__

    @classmethod
    def create_from(cls, quoting: Any, relation_config: Any, **kwargs: Any) -> DucklakeRelation:
        # Only where `source()` is resolved is there a limit, if None: what is listed and documented is the source now.
        if "limit" in kwargs and getattr(relation_config, "resource_type", None) == "source":
            kwargs["as_of"] = cls.moments.of_source(relation_config)
        return super().create_from(quoting, relation_config, **kwargs)

    def at(self, version: Any = None, timestamp: Any = None) -> DucklakeRelation:
        """The relation as it was at a version or a moment."""
        if self.identifier is None or self.schema is None:
            raise CompilationError(f"{self} is no table or view of a lake, so it has no past to read")
        return self.replace(as_of=time_travel(version, timestamp))

    def name_literal(self) -> str:
        """Its name alone as a string in SQL, which functions take."""
        return string_literal(BaseRelation.render(self))

    def render(self) -> str:
        name = BaseRelation.render(self)
        is_whole = self.identifier is not None and self.include_policy.identifier
        return f"{name} {self.as_of}" if self.as_of and is_whole else name

    def quoted(self, identifier: str) -> str:
        return "`" + identifier.replace("`", "``") + "`"

    def _is_exactish_match(self, field: ComponentName, value: str) -> bool:
        # Names keep their case and are found in any, quoted or not.
        return self.path.get_lowered_part(field) == value.lower()
