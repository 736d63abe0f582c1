"""A query with other names in place of its relations; byte for byte what its author wrote, but for these."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from .names import FunctionRef, Names, QualifiedColumn, Ref, RelationRef, Scope
from .tokens import lowered, quote


def rewrite(
    sql: str,
    names: Names,
    replacements: Mapping[RelationRef, str] | Mapping[FunctionRef, str] | Mapping[Ref, str],
    full_names: Mapping[RelationRef, tuple[str, ...]] | None = None,
    hidden: Mapping[RelationRef, Sequence[str]] | None = None,
) -> str:
    """`sql` with views in place of the refs in `replacements`, and columns still finding their tables.

    A view's name is written as it is given. A relation without an alias gets its own last name as
    alias, so that `orders.id` still means it; `main.orders.id` becomes `` `orders`.id``. When that
    alias would mean another relation too, the alias is a new name.

    `full_names` gives what a relation is called in full: with `("lake", "main", "orders")` for a
    relation written `orders`, `lake.main.orders.id` is its column too. Without it, a relation's full
    name is the name as written. `hidden` are columns, of relations in `replacements`, that no `*` stands for.
    """
    views: dict[Ref, str] = {}
    for ref, view in replacements.items():
        views[ref] = view
    sources = Sources(names.scopes, full_names or {})
    uses = [
        (column, count, relation)
        for column in names.columns
        for count, relation in [sources.relation_of(column)]
        if relation is not None and relation in views and relation.alias is None
    ]
    aliases = _aliases(names, views, uses, sources)

    edits: list[tuple[int, int, str]] = []
    for ref, view in views.items():
        if not isinstance(ref, RelationRef) or ref.alias is not None or ref.alias_at is None:
            edits.append((ref.start, ref.end, _apart(sql, ref.start, ref.end, view)))
            continue
        alias = f" AS {quote(aliases[ref])}"
        if ref.alias_at == ref.end:
            edits.append((ref.start, ref.end, _apart(sql, ref.start, ref.end, view + alias)))
        else:
            edits.append((ref.start, ref.end, _apart(sql, ref.start, ref.end, view)))
            edits.append((ref.alias_at, ref.alias_at, alias))
    for column, count, relation in uses:
        if count > 1 or aliases[relation].lower() != column.parts[0].lower():
            start, end = column.spans[0][0], column.spans[count - 1][1]
            edits.append((start, end, quote(aliases[relation])))
    edits += _star_edits(names, hidden or {}, aliases, sources)

    pieces, done = [], 0
    for start, end, text in sorted(edits, key=lambda edit: edit[:2]):
        if start < done:  # inside the arguments of a function that is replaced as a whole
            continue
        pieces += [sql[done:start], text]
        done = end
    return "".join([*pieces, sql[done:]])


def _star_edits(
    names: Names, hidden: Mapping[RelationRef, Sequence[str]], aliases: Mapping[RelationRef, str], sources: Sources
) -> Iterator[tuple[int, int, str]]:
    for star in names.stars if hidden else ():
        scope = names.scopes[star.scope]
        covered = [source.relation for source in scope.sources] if scope.whole else []
        if star.column is not None:
            count, relation = sources.relation_of(star.column)
            covered = [relation] if count == len(star.column.parts) else []
        left_out = []
        for relation in (r for r in covered if r is not None):
            label = relation.alias or aliases.get(relation, "")
            excepted = {name[-1] for name in map(lowered, star.excepted) if name[-2:-1] in ((), (label.lower(),))}
            left_out += [f"{quote(label)}.{quote(n)}" for n in hidden.get(relation, ()) if n not in excepted]
        if left_out and star.list_at is None:
            yield star.end, star.end, f" except ({', '.join(left_out)})"
        elif left_out and star.list_at is not None:
            yield star.list_at, star.list_at, f"{', '.join(left_out)}, "


class Sources:
    """The sources of each scope by the last part of their names, so that wide joins stay cheap."""

    def __init__(self, scopes: tuple[Scope, ...], full_names: Mapping[RelationRef, tuple[str, ...]]) -> None:
        self.parents = [scope.parent for scope in scopes]
        self.by_last_part: list[dict[str, list[tuple[tuple[str, ...], RelationRef | None]]]] = []
        for scope in scopes:
            sources: dict[str, list[tuple[tuple[str, ...], RelationRef | None]]] = {}
            for source in scope.sources:
                names, relation = source.names, source.relation
                if relation is not None and relation.alias is None:
                    names = full_names.get(relation, names)
                sources.setdefault(names[-1].lower(), []).append((lowered(names), relation))
            self.by_last_part.append(sources)

    def called(self, scope: int, qualifier: tuple[str, ...]) -> list[RelationRef | None]:
        """What the qualifier means in a scope alone; None stands for what is no relation."""
        wanted = lowered(qualifier)
        named = self.by_last_part[scope].get(wanted[-1], [])
        return [relation for names, relation in named if names[-len(wanted) :] == wanted]

    def outward(self, scope: int | None) -> Iterator[int]:
        while scope is not None:
            yield scope
            scope = self.parents[scope]

    def relation_of(self, column: QualifiedColumn) -> tuple[int, RelationRef | None]:
        """How many of the column's parts name a relation, and which: Spark tries the longest first."""
        longest = len(column.parts) - (0 if column.star else 1)
        for scope in self.outward(column.scope):
            for count in range(longest, 0, -1):
                found = self.called(scope, column.parts[:count])
                if found:
                    return count, found[0] if len(found) == 1 else None
        return 0, None

    def shares_last_part(self, column: QualifiedColumn, relation: RelationRef) -> bool:
        """Whether the relation's last part alone, where the column stands, means something else too."""
        for scope in self.outward(column.scope):
            found = self.called(scope, relation.parts[-1:])
            if any(other is not relation for other in found):
                return True
            if found:
                return False
        return False


def _aliases(
    names: Names,
    views: Mapping[Ref, str],
    uses: list[tuple[QualifiedColumn, int, RelationRef]],
    sources: Sources,
) -> dict[RelationRef, str]:
    """What each replaced relation without an alias is called from now on."""
    aliases = {
        ref: ref.parts[-1] if ref.alias_at is not None else views[ref]
        for ref in names.relations
        if ref in views and ref.alias is None
    }
    taken = {alias.lower() for alias in aliases.values()}
    taken |= {part.lower() for scope in names.scopes for source in scope.sources for part in source.names}
    renamed: set[RelationRef] = set()
    for column, count, relation in uses:
        if count == 1 or relation in renamed or relation.alias_at is None:
            continue
        if sources.shares_last_part(column, relation):
            stem = "_".join(relation.parts)
            numbered = (f"{stem}_{number}" for number in range(2, len(taken) + 3))
            aliases[relation] = next(name for name in chain([stem], numbered) if name.lower() not in taken)
            taken.add(aliases[relation].lower())
            renamed.add(relation)
    return aliases


def _apart(sql: str, start: int, end: int, name: str) -> str:
    """`name`, kept from growing together with a word that stood at a backquote: from`t`where."""
    before = " " if re.match(r"\w", sql[start - 1 : start]) else ""
    after = " " if name[-1:] != "`" and re.match(r"\w", sql[end : end + 1]) else ""
    return before + name + after
