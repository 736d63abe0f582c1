"""Writes a query with other names in place of its relations; everything else stays as its author wrote it.

The changes are edits of the text, so that positions in Spark's errors can be mapped back to the author's text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from .name_resolution import SourceIndex
from .names import FunctionRef, Names, QualifiedColumn, Ref, RelationRef, Star
from .quoting import quoted
from .tokens import lowered

Edit: TypeAlias = tuple[int, int, str]
"""The start and end of a part of a text, and what replaces it."""


def rewrite(
    sql: str,
    names: Names,
    replacements: Mapping[RelationRef, str] | Mapping[FunctionRef, str] | Mapping[Ref, str],
    full_names: Mapping[RelationRef, tuple[str, ...]] | None = None,
    hidden_columns: Mapping[RelationRef, Sequence[str]] | None = None,
) -> str:
    """Returns `sql` with the name in `replacements` in place of each ref, such that its columns still resolve.

    A replaced relation gets its own last name as alias, unless it has an alias:

    >>> from .name_reader import find_names
    >>> def with_views(sql, **options):
    ...     names = find_names(sql)
    ...     return rewrite(sql, names, {ref: f"v{i}" for i, ref in enumerate(names.relations, 1)}, **options)
    >>> with_views("select orders.id from orders")
    'select orders.id from v1 AS `orders`'
    >>> with_views("select o.id from orders o")
    'select o.id from v1 o'

    Qualifiers become that alias. If the alias could mean another relation too, a new name takes its place:

    >>> with_views("select main.orders.id from main.orders")
    'select `orders`.id from v1 AS `orders`'
    >>> with_views("select a.t.id from a.t join b.t on a.t.id = b.t.id")
    'select `a_t`.id from v1 AS `a_t` join v2 AS `b_t` on `a_t`.id = `b_t`.id'

    `full_names` are the names that a relation has beside the one in the text: with `("lake", "main", "orders")` for
    `orders`, the column `lake.main.orders.id` is resolved to it too. `hidden_columns` are columns of replaced
    relations that `*` does not include:

    >>> names = find_names("select * from orders")
    >>> [orders] = names.relations
    >>> rewrite("select * from orders", names, {orders: "v1"}, hidden_columns={orders: ["rowid"]})
    'select * except (`orders`.`rowid`) from v1 AS `orders`'
    """
    return apply_edits(rewriting_edits(sql, names, replacements, full_names, hidden_columns), sql)


def rewriting_edits(
    sql: str,
    names: Names,
    replacements: Mapping[RelationRef, str] | Mapping[FunctionRef, str] | Mapping[Ref, str],
    full_names: Mapping[RelationRef, tuple[str, ...]] | None = None,
    hidden_columns: Mapping[RelationRef, Sequence[str]] | None = None,
) -> list[Edit]:
    """Returns the edits that `rewrite` makes, in the order of the text; none overlaps another."""
    views: dict[Ref, str] = {}
    for ref, view in replacements.items():
        views[ref] = view
    sources = SourceIndex(names.scopes, full_names or {})
    uses = [
        (column, count, relation)
        for column in names.columns
        for count, relation in [sources.resolve(column)]
        if relation is not None and relation in views and relation.alias is None
    ]
    aliases = _aliases(names, views, uses, sources)

    edits: list[Edit] = []
    for ref, view in views.items():
        if not isinstance(ref, RelationRef) or ref.alias is not None or ref.alias_position is None:
            edits.append((ref.start, ref.end, _separated(sql, ref.start, ref.end, view)))
            continue
        alias = f" AS {quoted(aliases[ref])}"
        if ref.alias_position == ref.end:
            edits.append((ref.start, ref.end, _separated(sql, ref.start, ref.end, view + alias)))
        else:
            edits.append((ref.start, ref.end, _separated(sql, ref.start, ref.end, view)))
            edits.append((ref.alias_position, ref.alias_position, alias))
    for column, count, relation in uses:
        if count > 1 or aliases[relation].lower() != column.parts[0].lower():
            start, end = column.spans[0][0], column.spans[count - 1][1]
            edits.append((start, end, quoted(aliases[relation])))
    edits += _star_edits(names, hidden_columns or {}, aliases, sources)
    return _without_overlaps(edits)


def _without_overlaps(edits: list[Edit]) -> list[Edit]:
    kept, done = [], 0
    for edit in sorted(edits, key=lambda edit: edit[:2]):
        if edit[0] >= done:  # else it is inside the arguments of a function that is replaced as a whole
            kept.append(edit)
            done = edit[1]
    return kept


def apply_edits(edits: Sequence[Edit], sql: str) -> str:
    pieces, done = [], 0
    for start, end, text in edits:
        pieces += [sql[done:start], text]
        done = end
    return "".join([*pieces, sql[done:]])


def _aliases(
    names: Names,
    views: Mapping[Ref, str],
    uses: list[tuple[QualifiedColumn, int, RelationRef]],
    sources: SourceIndex,
) -> dict[RelationRef, str]:
    """Returns the name that qualifies the columns of each replaced relation without an alias."""
    aliases = {
        ref: ref.parts[-1] if ref.alias_position is not None else views[ref]
        for ref in names.relations
        if ref in views and ref.alias is None
    }
    taken = {alias.lower() for alias in aliases.values()}
    taken |= {part.lower() for scope in names.scopes for source in scope.sources for part in source.names}
    renamed: set[RelationRef] = set()
    for column, count, relation in uses:
        if count == 1 or relation in renamed or relation.alias_position is None:
            continue
        if sources.last_part_is_ambiguous(relation, column):
            stem = "_".join(relation.parts)
            numbered = (f"{stem}_{number}" for number in range(2, len(taken) + 3))
            aliases[relation] = next(name for name in chain([stem], numbered) if name.lower() not in taken)
            taken.add(aliases[relation].lower())
            renamed.add(relation)
    return aliases


def _star_edits(
    names: Names,
    hidden_columns: Mapping[RelationRef, Sequence[str]],
    aliases: Mapping[RelationRef, str],
    sources: SourceIndex,
) -> Iterator[Edit]:
    """Yields the edits that exclude hidden columns from each `*`, in an EXCEPT of its own or in the existing one."""
    for star in names.stars if hidden_columns else ():
        excluded = []
        for relation in _star_relations(star, names, sources):
            label = relation.alias or aliases.get(relation, "")
            excepted = {name[-1] for name in map(lowered, star.except_columns) if name[-2:-1] in ((), (label.lower(),))}
            hidden = [name for name in hidden_columns.get(relation, ()) if name not in excepted]
            excluded += [f"{quoted(label)}.{quoted(name)}" for name in hidden]
        if excluded and star.except_position is None:
            yield star.end, star.end, f" except ({', '.join(excluded)})"
        elif excluded and star.except_position is not None:
            yield star.except_position, star.except_position, f"{', '.join(excluded)}, "


def _star_relations(star: Star, names: Names, sources: SourceIndex) -> Iterator[RelationRef]:
    """Yields the relations whose columns a `*` includes; none if it includes only some of the columns."""
    if star.qualifier is not None:
        count, relation = sources.resolve(star.qualifier)
        if relation is not None and count == len(star.qualifier.parts):
            yield relation
        return
    scope = names.scopes[star.scope]
    if scope.keeps_all_columns:
        yield from (source.relation for source in scope.sources if source.relation is not None)


def _separated(sql: str, start: int, end: int, name: str) -> str:
    """Returns `name` with spaces where it would run into a word: a backquote may follow one directly, from`t`where."""
    before = " " if re.match(r"\w", sql[start - 1 : start]) else ""
    after = " " if name[-1:] != "`" and re.match(r"\w", sql[end : end + 1]) else ""
    return before + name + after
