"""What a query names: relations, table functions, function calls, columns and stars, with their positions in the text.

`name_reader.find_names` finds them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from .query_tokens import QueryTokens


@dataclass(frozen=True)
class TimeTravel:
    """The version or the timestamp at which a relation is read."""

    kind: Literal["version", "timestamp"]
    expression: str
    """The SQL text of the version or timestamp."""


@dataclass(frozen=True)
class RelationRef:
    """A relation in a FROM: `text[start:end]` is its name and its time travel clause."""

    parts: tuple[str, ...]
    start: int
    end: int
    time_travel: TimeTravel | None
    alias: str | None
    name_end: int
    """Where the name alone ends."""
    alias_position: int | None
    """Where an alias can be inserted, behind a `tablesample`; None where Spark allows none, as in `table t`."""


@dataclass(frozen=True)
class FunctionRef:
    """A table function in a FROM: `text[start:end]` is its name and its arguments."""

    name: str
    """The parts of the name without quotes, joined by dots."""
    arguments: tuple[tuple[str | None, str], ...]
    """The keyword of each argument (`keyword => value`), or None, and its SQL text."""
    start: int
    end: int
    alias: str | None


@dataclass(frozen=True)
class CallArgument:
    """An argument of a function call: `text[start:end]` is its value."""

    keyword: str | None
    """The name of its parameter, where the call says it: `keyword => value`."""
    start: int
    end: int


@dataclass(frozen=True)
class CallRef:
    """A call of a function with a dotted name: `text[start:end]` is the name alone."""

    parts: tuple[str, ...]
    start: int
    end: int
    arguments: tuple[CallArgument, ...]
    call_end: int
    """Where the closing parenthesis ends."""
    scope: int
    """The index of the scope that its arguments are in."""
    is_column: bool
    """Whether it is a whole column of SELECT, without an alias."""


Ref: TypeAlias = RelationRef | FunctionRef | CallRef


@dataclass(frozen=True)
class Source:
    """One item of a FROM, and the name that qualifies its columns."""

    names: tuple[str, ...]
    """The alias, or else the parts of the relation's name."""
    relation: RelationRef | None
    """None for anything but a relation: a subquery, a CTE, a function."""


@dataclass(frozen=True)
class Scope:
    """The sources of one SELECT."""

    parent: int | None
    """The index of the enclosing scope, if columns of this one may be resolved there."""
    sources: tuple[Source, ...]
    keeps_all_columns: bool
    """Whether `*` stands for every column of every source: no semi, anti or natural join, and no pivot."""


@dataclass(frozen=True)
class QualifiedColumn:
    """A dotted name that is no relation: `main.orders.id`, or with `star`, `main.orders.*`.

    The unqualified columns that `find_names` was asked for are recorded as such names too, with one part.
    """

    parts: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    """Start and end of each part."""
    scope: int
    star: bool


@dataclass(frozen=True)
class Star:
    """A `*` that stands for columns: `*`, `orders.*`, `* except (id)`."""

    end: int
    scope: int
    qualifier: QualifiedColumn | None
    """`orders.*`; None for the columns of all sources."""
    except_columns: tuple[tuple[str, ...], ...]
    except_position: int | None
    """Where the list of an existing EXCEPT begins."""


@dataclass(frozen=True)
class Names:
    """What a query names, in the order of the text."""

    relations: tuple[RelationRef, ...]
    functions: tuple[FunctionRef, ...]
    calls: tuple[CallRef, ...]
    scopes: tuple[Scope, ...]
    columns: tuple[QualifiedColumn, ...]
    stars: tuple[Star, ...]
    query_start: int | None
    """Where the query starts, behind a leading command; None if the text has no query."""

    def relations_around(self, scope: int) -> frozenset[str]:
        """Returns the names, in lower case, of the relations whose columns can be named in a scope."""
        names: set[str] = set()
        index: int | None = scope
        while index is not None:
            names |= {source.names[-1].lower() for source in self.scopes[index].sources}
            index = self.scopes[index].parent
        return frozenset(names)


def name_parts(text: str) -> tuple[str, ...] | None:
    """Returns the parts of a dotted name; None for any other text.

    >>> name_parts("main.`odd name`")
    ('main', 'odd name')
    >>> name_parts("main.orders o") is None
    True
    """
    tokens = QueryTokens(text)
    parts = tokens.dotted_name(0)
    if not tokens.is_identifier(0) or parts[-1] + 1 != tokens.count:
        return None
    return tokens.identifiers(parts)
