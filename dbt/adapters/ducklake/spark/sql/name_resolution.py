"""Resolves the qualifier of a column to the relation it means, as Spark does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .names import QualifiedColumn, RelationRef, Scope
from .tokens import lowered


class SourceIndex:
    """The sources of each scope, by the last part of their names so that lookups stay cheap in wide joins."""

    def __init__(self, scopes: tuple[Scope, ...], full_names: Mapping[RelationRef, tuple[str, ...]]) -> None:
        self._parents = [scope.parent for scope in scopes]
        self._by_last_part: list[dict[str, list[tuple[tuple[str, ...], RelationRef | None]]]] = []
        for scope in scopes:
            sources: dict[str, list[tuple[tuple[str, ...], RelationRef | None]]] = {}
            for source in scope.sources:
                names, relation = source.names, source.relation
                if relation is not None and relation.alias is None:
                    names = full_names.get(relation, names)
                sources.setdefault(names[-1].lower(), []).append((lowered(names), relation))
            self._by_last_part.append(sources)

    def find(self, scope: int, qualifier: tuple[str, ...]) -> list[RelationRef | None]:
        """Returns the sources of one scope that a qualifier can mean; None stands for a source that is no relation."""
        wanted = lowered(qualifier)
        candidates = self._by_last_part[scope].get(wanted[-1], [])
        return [relation for names, relation in candidates if names[-len(wanted) :] == wanted]

    def enclosing_scopes(self, scope: int | None) -> Iterator[int]:
        """Yields a scope and those around it, innermost first."""
        while scope is not None:
            yield scope
            scope = self._parents[scope]

    def resolve(self, column: QualifiedColumn) -> tuple[int, RelationRef | None]:
        """Returns how many parts of a column are its qualifier, and the relation that they mean.

        Like Spark, tries the longest qualifier first. The relation is None where the qualifier means something else,
        or is ambiguous; the number is 0 where no part is a qualifier.
        """
        longest = len(column.parts) - (0 if column.star else 1)
        for scope in self.enclosing_scopes(column.scope):
            for count in range(longest, 0, -1):
                found = self.find(scope, column.parts[:count])
                if found:
                    return count, found[0] if len(found) == 1 else None
        return 0, None

    def last_part_is_ambiguous(self, relation: RelationRef, column: QualifiedColumn) -> bool:
        """Whether the last part of the relation's name can mean another source too where the column stands."""
        for scope in self.enclosing_scopes(column.scope):
            found = self.find(scope, relation.parts[-1:])
            if any(other is not relation for other in found):
                return True
            if found:
                return False
        return False
