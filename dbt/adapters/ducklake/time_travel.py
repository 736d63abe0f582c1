"""Time travel in dbt: clauses for relations, bounds of the change feed, and the versions of sources in a run."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dbt_common.exceptions import CompilationError

from .spark.sql.quoting import string_literal

AS_OF = "ducklake_as_of"
"""The name of the run's variable, and of a source's setting, that pin sources to a version or a timestamp."""


def time_travel_clause(version: Any = None, timestamp: Any = None) -> str:
    """The clause that reads a relation as of a version or a timestamp."""
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


def time_travel_argument(version: Any = None, timestamp: Any = None) -> str:
    """The same as an argument of a function: `version => 3`."""
    kind, _, value = time_travel_clause(version, timestamp).partition(" as of ")
    return f"{kind} => {value}"


def change_feed_bound(macro: str, name: str, bound: Any) -> str:
    """A bound of the change feed in SQL: a version or a timestamp."""
    if isinstance(bound, int) and not isinstance(bound, bool):
        return str(bound)
    if isinstance(bound, datetime.datetime | datetime.date):
        bound = bound.isoformat()
    if not isinstance(bound, str) or not bound.strip():
        raise CompilationError(f"{name} of {macro} is the number of a snapshot or a timestamp, and it is {bound!r}")
    return bound.strip() if bound.strip().isdigit() else f"timestamp {string_literal(bound)}"


def _clause_of(as_of: Any) -> str:
    is_version = isinstance(as_of, int) or (isinstance(as_of, str) and as_of.strip().isdigit())
    return time_travel_clause(version=str(as_of).strip()) if is_version else time_travel_clause(timestamp=as_of)


@dataclass(frozen=True)
class SourceTimeTravel:
    """The version or timestamp at which a run reads its sources."""

    own_lake: str = ""
    """The profile's own lake. A version without a lake's name is a version of this lake."""
    lakes: frozenset[str] = frozenset()
    as_of: Any = None
    """The run's variable: a version, a timestamp, or a mapping from lakes to versions or timestamps."""

    @classmethod
    def from_config(cls, config: Any) -> SourceTimeTravel:
        """Reads the variable from `--vars`, or else from the project."""
        credentials = config.credentials
        names = (credentials.database, *(lake["name"] for lake in credentials.attach or ()))
        variables = {**getattr(getattr(config, "vars", None), "vars", {}), **(getattr(config, "cli_vars", None) or {})}
        return cls(credentials.database.lower(), frozenset(str(n).lower() for n in names), variables.get(AS_OF))

    def clause_for(self, source: Any) -> str | None:
        """The time travel clause of a source: its own setting, else the run's; None for the current version."""
        lake = str(source.database or self.own_lake).lower()
        if lake not in self.lakes:
            return None
        settings = (source.config, source.meta, source.config.get("meta") or {})
        own = next((s.get(AS_OF) for s in settings if s.get(AS_OF) is not None), None)
        if own is not None:
            return _clause_of(own)
        if isinstance(self.as_of, Mapping):
            by_lake = {str(name).lower(): value for name, value in self.as_of.items()}
            unknown = sorted(by_lake.keys() - self.lakes)
            if unknown:
                raise CompilationError(f"{AS_OF} names {unknown[0]}, which is none of the lakes {sorted(self.lakes)}")
            return _clause_of(by_lake[lake]) if lake in by_lake else None
        if self.as_of is None:
            return None
        clause = _clause_of(self.as_of)
        if clause.startswith("version") and lake != self.own_lake:
            raise CompilationError(
                f"{AS_OF} is version {self.as_of}, which is one of the lake {self.own_lake}, and source {source.name}"
                f" is in {lake}: give a timestamp, or a version for each lake:"
                f" {{{self.own_lake}: {self.as_of}, {lake}: ...}}"
            )
        return clause
