"""What names in a query mean: the sources in FROM, their columns, and the aliases of SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from .expressions import Expression, Untranslatable
from .relations import Column


@dataclass
class Source:
    """A relation, a subquery or a list of values in FROM."""

    alias: str
    """Its name in the translated query, in which no other source has it."""
    names: tuple[str, ...]
    """The parts of its name, by any last few of which a column can be qualified."""
    columns: tuple[Column, ...]
    is_visible: bool = True
    """Whether columns can come from it. The right side of a SEMI join is visible in its condition only."""

    def answers_to(self, qualifier: Sequence[str]) -> bool:
        wanted = [part.lower() for part in qualifier]
        return [part.lower() for part in self.names[-len(wanted) :]] == wanted

    def find(self, name: str) -> list[Column]:
        return [c for c in self.columns if c.name is not None and c.name.lower() == name.lower()]


@dataclass(frozen=True)
class MergedColumn:
    """A column of USING, which several sources have."""

    name: str
    expression: Expression
    sources: tuple[Source, ...]


@dataclass
class CommonTable:
    """A common table expression."""

    name: str
    columns: tuple[Column, ...]


@dataclass
class Scope:
    """The names that an expression can use."""

    parent: Scope | None = None
    sources: list[Source] = field(default_factory=list)
    merged: list[MergedColumn] = field(default_factory=list)
    common_tables: Mapping[str, CommonTable] = field(default_factory=dict)
    aliases: dict[str, Expression | None] = field(default_factory=dict)
    """The columns of SELECT by their names in lower case; None for a name that several have."""
    windows: Mapping[str, object] = field(default_factory=dict)
    aliases_are_visible: bool = False
    aliases_first: bool = False
    """Whether a name is rather that of a column of SELECT, as in ORDER BY."""
    parameters: Mapping[str, Expression] = field(default_factory=dict)
    """The arguments of the macro whose body this is, by the names of its parameters in lower case."""
    reserved_names: frozenset[str] = frozenset()
    """Names, in lower case, of relations where the macro is called. No relation of its body may have one of them."""

    def visible_sources(self) -> list[Source]:
        return [source for source in self.sources if source.is_visible]

    def ancestors(self) -> Iterator[Scope]:
        """Yields this scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def taken_aliases(self) -> set[str]:
        aliases = {source.alias.lower() for scope in self.ancestors() for source in scope.sources}
        return aliases.union(*(scope.reserved_names for scope in self.ancestors()))

    def unique_alias(self, name: str) -> str:
        """Returns a name for a source that no source around has."""
        taken, number, alias = self.taken_aliases(), 1, name
        while alias.lower() in taken:
            number += 1
            alias = f"{name}_{number}"
        return alias

    def names_of_relations(self) -> frozenset[str]:
        """Returns the names, in lower case, of all relations that a column can come from here."""
        names = {n.lower() for scope in self.ancestors() for s in scope.sources for n in (s.alias, s.names[-1])}
        return frozenset(names).union(*(scope.reserved_names for scope in self.ancestors()))

    def parameter(self, name: str) -> Expression | None:
        """Returns the argument for a parameter of the macro whose body this is, which hides columns of its name.

        Raises if DuckDB would take a column in the argument for one of the body.
        """
        crossed: list[Scope] = []
        for scope in self.ancestors():
            crossed.append(scope)
            found = scope.parameters.get(name.lower())
            if found is None:
                continue
            for source in (source for inner in crossed for source in inner.sources):
                if source.names[-1].lower() in scope.reserved_names and not found.is_constant:
                    raise Untranslatable(
                        f"a relation {source.names[-1]} both in the macro and where it is called,"
                        " whose columns DuckDB would mix up; give the one in the query another alias"
                    )
            return found
        return None

    def common_table(self, name: str) -> CommonTable | None:
        return self.common_tables.get(name.lower())

    def add_alias(self, name: str, expression: Expression) -> None:
        key = name.lower()
        self.aliases[key] = None if key in self.aliases else expression

    def alias(self, name: str) -> Expression | None:
        """Returns the column of SELECT with this name. Raises if several have it."""
        if name.lower() not in self.aliases:
            return None
        found = self.aliases[name.lower()]
        if found is None:
            raise Untranslatable(f"the name {name}, which several columns have")
        return found

    def find_column(self, parts: Sequence[str]) -> tuple[Source | MergedColumn, Column | None, int] | None:
        """Returns where a dotted column comes from, and how many of its parts name it; the others are fields.

        Looks at the sources of this scope only, and like Spark tries the longest qualifier first.
        """
        for count in range(len(parts) - 1, -1, -1):
            qualifier, name = parts[:count], parts[count]
            if count == 0 and (merged := [m for m in self.merged if m.name.lower() == name.lower()]):
                return merged[-1], None, 1
            found = [
                (source, column)
                for source in self.visible_sources()
                if not qualifier or source.answers_to(qualifier)
                for column in source.find(name)
            ]
            if len(found) > 1:
                raise Untranslatable(f"the column {'.'.join(parts)}, which is ambiguous")
            if found:
                return found[0][0], found[0][1], count + 1
        return None
